"""Services behind their handlers or their HTTP, with twins of what is around them."""
