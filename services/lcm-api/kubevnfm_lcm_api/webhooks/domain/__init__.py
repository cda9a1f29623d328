"""The rules of webhooks: no I/O."""
