"""Reads VNF packages: CSAR archives and SOL001 VNF descriptors.

It only reads: it uses no network and runs no code of the package. Everything blocks; callers run it in a thread.
"""
