"""The parameters of a Kubernetes cluster: one model, its rules, and how the nodes of a role are chosen."""
