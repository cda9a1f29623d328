"""The HTTP resources of subscriptions and events."""
