"""Cluster API: its contracts, conditions and readiness, and the wait for workload clusters."""
