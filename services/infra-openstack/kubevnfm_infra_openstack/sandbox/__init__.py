"""``tacker_shim``: the program of the sandbox that calls user data classes. The service imports none of it; the sandbox gets
its path.
"""
