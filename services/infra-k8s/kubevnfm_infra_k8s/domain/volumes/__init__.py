"""Persistent volumes that outlive VNFs (multicloud.md chapter 13)."""
