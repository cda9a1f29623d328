"""The gateway and the life cycle of VNF instances."""
