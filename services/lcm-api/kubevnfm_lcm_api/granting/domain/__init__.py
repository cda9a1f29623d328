"""What an operation asks of an NFVO, and what its grant changes: no I/O."""
