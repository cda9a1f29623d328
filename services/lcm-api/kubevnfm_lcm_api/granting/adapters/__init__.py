"""The NFVO over HTTP."""
