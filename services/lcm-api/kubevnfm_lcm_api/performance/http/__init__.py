"""The HTTP resources of performance management."""
