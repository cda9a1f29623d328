"""DocumentStore on one SQLite file."""
