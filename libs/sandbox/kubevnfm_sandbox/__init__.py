"""Runs code of VNF packages in a process of its own that cannot reach the service, its files or the network.

``process`` starts it, ``foreign`` starts a program that is not Python; ``runs`` says what is run, ``answers`` reads what it answers.
``launcher`` and ``runner`` are the programs of the process, started by path.
"""
