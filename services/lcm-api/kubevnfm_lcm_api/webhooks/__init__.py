"""Webhooks: what monitoring systems report, at the paths and in the form that Tacker documents."""
