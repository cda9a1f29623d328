"""Health checks: runs of the tests of charts (multicloud.md MC-134)."""
