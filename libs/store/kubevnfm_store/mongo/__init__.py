"""DocumentStore on MongoDB."""
