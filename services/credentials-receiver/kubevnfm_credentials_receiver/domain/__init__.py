"""The call-back: what a request must prove, what its body must hold, and what becomes of it; no I/O."""
