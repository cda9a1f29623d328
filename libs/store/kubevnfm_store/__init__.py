"""The DocumentStore port with its MongoDB and SQLite adapters."""
