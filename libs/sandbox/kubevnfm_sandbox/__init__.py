"""Runs code of VNF packages in a process of its own that cannot reach the service, its files or the network.

``process`` starts it and is all that services import. ``launcher`` and ``runner`` are its programs, started by path.
"""
