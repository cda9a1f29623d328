"""What LCM operation user data classes import, and the module that calls them. On no path but the child's."""
