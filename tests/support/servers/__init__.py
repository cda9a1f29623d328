"""Real servers for tests: started on loopback with a folder and ports of their own, ended by their own process ids."""
