"""Clouds, clusters and machines that people give."""
