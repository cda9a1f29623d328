"""The rules of automatic actions; no I/O."""
