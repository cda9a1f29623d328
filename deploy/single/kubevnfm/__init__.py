"""The six services in one process, and the command line."""
