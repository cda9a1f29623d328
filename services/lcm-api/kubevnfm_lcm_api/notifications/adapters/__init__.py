"""Subscribers over HTTP."""
