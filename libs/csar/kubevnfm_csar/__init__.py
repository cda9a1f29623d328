"""Reads VNF packages: CSAR archives and SOL001 VNF descriptors."""
