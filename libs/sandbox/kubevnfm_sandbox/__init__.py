"""Runs code of VNF packages in a process of its own that cannot reach the service, its files or the network.

``process`` starts it; ``runs`` says what it runs. Services import these two. ``launcher`` and ``runner`` are its programs, started by path.
"""
