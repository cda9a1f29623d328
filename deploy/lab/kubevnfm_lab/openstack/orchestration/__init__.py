"""Heat: templates, the engine that brings resources to what they ask for, and its API."""
