"""Where packages come from and where they are stored."""
