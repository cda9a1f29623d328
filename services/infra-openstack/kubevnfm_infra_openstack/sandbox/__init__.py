"""``tacker_shim``: the modules that user data classes import. The service imports none of it; the sandbox gets its path."""
