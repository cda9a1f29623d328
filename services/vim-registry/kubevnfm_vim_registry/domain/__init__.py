"""VIMs: their records, the rules for them, and what is needed of the outside."""
