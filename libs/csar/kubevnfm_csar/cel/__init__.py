"""Expressions of packages in CEL, the Common Expression Language (multicloud.md MC-011)."""
