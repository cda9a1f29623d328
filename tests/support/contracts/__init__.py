"""Suites and checks of contracts."""
