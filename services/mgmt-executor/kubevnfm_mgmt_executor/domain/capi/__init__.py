"""Credentials of workload clusters of Cluster API: read in the management cluster, sent to a receiver (capi.md 9 and 10)."""
