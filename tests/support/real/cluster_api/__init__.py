"""The real controllers of Cluster API with clusters in memory, beside a Kubernetes API server (docs/real-cluster-api.md)."""
