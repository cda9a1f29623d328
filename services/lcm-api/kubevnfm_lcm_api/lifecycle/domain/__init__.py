"""The rules of the life cycle: no I/O, no client library."""
