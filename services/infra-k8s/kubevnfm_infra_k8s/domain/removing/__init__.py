"""Deletes objects: at the end of an instance, and those that other manifests lack."""
