"""The HTTP resources of alarms."""
