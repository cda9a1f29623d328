"""The work that brings documents with a wanted state, links and volumes, to that state (ADR 14)."""
