"""Scripts of packages that an operation runs."""
