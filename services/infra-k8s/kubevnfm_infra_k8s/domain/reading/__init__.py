"""Reads manifests, and the objects of an instance in a cluster."""
