"""The HTTP resources of VNF packages."""
