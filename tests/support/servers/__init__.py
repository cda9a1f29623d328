"""Real servers for tests: started on loopback with their own folder and ports, and stopped by process id."""
