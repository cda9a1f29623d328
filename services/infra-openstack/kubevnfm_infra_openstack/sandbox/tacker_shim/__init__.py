"""The modules that LCM operation user data classes import, and the one that calls them. Only the child has them on
its path.
"""
