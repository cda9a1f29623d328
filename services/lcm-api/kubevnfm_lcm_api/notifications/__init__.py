"""Subscriptions, their notifications, and the event stream."""
