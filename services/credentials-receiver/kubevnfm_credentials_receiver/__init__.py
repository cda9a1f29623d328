"""The call-back for workload clusters' credentials."""
