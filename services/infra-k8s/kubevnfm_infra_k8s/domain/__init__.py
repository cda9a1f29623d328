"""The rules of deploying Kubernetes objects: manifests, their order, readiness, and which objects may be changed."""
