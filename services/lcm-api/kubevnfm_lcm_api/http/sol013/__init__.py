"""Filters, selectors and shapes of lists (SOL013 clause 5)."""
