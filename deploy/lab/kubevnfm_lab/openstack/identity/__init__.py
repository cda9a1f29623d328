"""Keystone."""
