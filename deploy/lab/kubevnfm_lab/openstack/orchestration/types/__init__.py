"""The resource types that templates may use."""
