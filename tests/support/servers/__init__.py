"""Servers and processes that tests start."""
