"""The program by which ``Sandbox.state`` tries the sandbox."""
