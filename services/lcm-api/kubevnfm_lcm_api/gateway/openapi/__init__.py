"""The OpenAPI document of what the gateway serves, and its page."""
