"""Adapters for OpenStack and Kubernetes, and the internal HTTP API."""
