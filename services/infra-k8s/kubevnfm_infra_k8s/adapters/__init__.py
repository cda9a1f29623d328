"""Kubernetes API servers, package files, and the documents that this service keeps."""
