"""VNFs of containers (CNFs): Kubernetes objects in a cluster."""
