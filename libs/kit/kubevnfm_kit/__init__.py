"""Errors, settings, logging, clock, ids, running and health of a service."""
