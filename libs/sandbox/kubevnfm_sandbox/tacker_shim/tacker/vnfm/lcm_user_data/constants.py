"""Limits that v1 user data is written for."""

USER_DATA_TIMEOUT = 60
"""Seconds."""
