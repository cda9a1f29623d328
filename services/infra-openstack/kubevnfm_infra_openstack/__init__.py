"""VMs, ports, volumes and networks: Heat stacks."""
