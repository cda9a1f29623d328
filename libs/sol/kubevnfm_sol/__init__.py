"""ETSI SOL data types, spelled as the standard does."""
