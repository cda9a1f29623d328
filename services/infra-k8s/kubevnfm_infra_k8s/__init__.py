"""Kubernetes objects of any kind."""
