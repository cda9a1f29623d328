"""The rules of packages: no I/O."""
