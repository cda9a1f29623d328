"""Rules of deploying Kubernetes objects: what a manifest is, in which order, when it is ready, what may be touched."""
