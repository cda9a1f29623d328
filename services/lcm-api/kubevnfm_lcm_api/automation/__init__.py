"""Automatic healing and scaling: what asks for an operation is stored, and carried out as an ordinary operation."""
