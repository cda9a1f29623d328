"""The tree of a VNF instance: what is stored of it, and what other services know of its parts now."""
