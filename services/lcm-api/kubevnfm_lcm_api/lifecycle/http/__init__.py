"""The HTTP resources of VNF instances and their operations."""
