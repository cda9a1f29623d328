"""VIMs: their records, the rules for requests, and the interface to the VIMs themselves."""
