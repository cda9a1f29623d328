"""What stands behind the ports, and the HTTP API in front."""
