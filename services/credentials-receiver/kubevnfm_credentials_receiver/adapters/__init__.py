"""The HTTP API, and the limit on failed requests."""
