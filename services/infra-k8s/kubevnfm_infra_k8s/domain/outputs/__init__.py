"""Outputs: values of objects that an instance shows (multicloud.md MC-138)."""
