"""A subject with an API of its own, small, for tests: address pools on a router. CONTRIBUTING.md has the recipe that it follows."""
