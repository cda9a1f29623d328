"""What the user data process is made of: ``child`` is its program, ``tacker_shim`` what classes in it may import.

Neither is imported by the service; `adapters.user_data_process` starts the program by its path.
"""
