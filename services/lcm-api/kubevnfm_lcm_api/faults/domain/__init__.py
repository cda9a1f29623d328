"""The rules of alarms: which faults a state has, and how an alarm follows a fault."""
