"""Applies, updates, scales, heals and repairs objects."""
