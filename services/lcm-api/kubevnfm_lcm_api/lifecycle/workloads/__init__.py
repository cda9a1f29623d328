"""CNFs that build a Kubernetes cluster with Cluster API."""
