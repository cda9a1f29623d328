"""The rules of mgmt-executor: drivers, their phases and tasks, and the ports that they need. No I/O."""
