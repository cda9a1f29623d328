"""The Secret type and its key ring."""
