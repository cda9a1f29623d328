"""VNFs of machines: Heat stacks."""
