"""The rules about VIMs: no I/O."""
