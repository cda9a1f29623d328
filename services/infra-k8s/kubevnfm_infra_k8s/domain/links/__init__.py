"""Virtual links: networks of a region that several VNFs share, as documents that are reconciled (ADR 14)."""
