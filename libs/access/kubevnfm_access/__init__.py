"""Authentication, roles and rate limits for HTTP interfaces; knows no service."""
