"""Turns requests for operations into drafts: one module for each operation, and the parts that several of them share."""
