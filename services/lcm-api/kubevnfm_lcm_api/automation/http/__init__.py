"""The HTTP resources of automatic actions."""
