"""Heat: templates, the engine that makes resources match them, and its API."""
