"""Typed clients of the services' internal HTTP APIs."""
