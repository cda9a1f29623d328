"""The systems that measure."""
