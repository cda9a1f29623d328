"""Those who call the gateway, and what they check of its answers."""
