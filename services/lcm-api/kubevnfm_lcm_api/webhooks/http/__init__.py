"""The HTTP resources of webhooks."""
