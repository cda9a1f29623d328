"""Grants by an external NFVO (SOL003 clause 9; api.md 3.10)."""
