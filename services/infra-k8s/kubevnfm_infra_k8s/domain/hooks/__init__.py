"""Hooks: what runs before, after, or because of what an operation does with the objects of an instance (multicloud.md MC-141)."""
