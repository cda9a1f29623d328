"""Adapters for Kubernetes API servers, package files, and this service's documents."""
