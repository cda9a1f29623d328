"""The module that calls LCM operation user data classes, and the request that it hands them. Only the child has them on
its path; what the classes import is in the sandbox's own ``tacker_shim``.
"""
