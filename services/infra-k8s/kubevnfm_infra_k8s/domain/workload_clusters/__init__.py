"""Works on workload clusters of Cluster API, and waits for them."""
