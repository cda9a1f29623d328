"""The modules that code written for OpenStack Tacker imports; the code is our own. Only confined processes have them on their
path.
"""
