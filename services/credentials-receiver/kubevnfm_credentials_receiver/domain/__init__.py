"""The rules of call-backs: the signature of a request, the content of its body, and the stored record. No I/O."""
