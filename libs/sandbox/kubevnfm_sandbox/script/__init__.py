"""The program by which ``Sandbox.run_script`` executes a Python file of a package."""
