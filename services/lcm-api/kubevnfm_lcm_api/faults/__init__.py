"""Alarms (SOL003 chapter 7): raised and cleared by the state of what this manager knows."""
