"""What is done inside machines, and in which order; no I/O but through the ports."""
