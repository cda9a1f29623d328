"""Cinder."""
