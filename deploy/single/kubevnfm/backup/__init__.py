"""Backup and restore: one archive of the documents of all services, the packages and the ids of the keys (docs/backup.md)."""
