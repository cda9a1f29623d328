"""SSH, the stored journal, host keys and node output, and the internal HTTP API."""
