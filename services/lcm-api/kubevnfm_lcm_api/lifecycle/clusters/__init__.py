"""Machines that become a Kubernetes cluster, or a registry for one."""
