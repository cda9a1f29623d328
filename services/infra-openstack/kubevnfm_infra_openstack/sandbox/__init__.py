"""The parts of the user data process: ``child`` is its program, ``tacker_shim`` the modules that classes may import.

The service imports neither; `adapters.user_data_process` starts the program by its path.
"""
