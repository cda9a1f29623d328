"""Runs command handlers once: inbox, lease, outbox."""
