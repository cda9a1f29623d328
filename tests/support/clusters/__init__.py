"""Clusters on the machines of a lab."""
