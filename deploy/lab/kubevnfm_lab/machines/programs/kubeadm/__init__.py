"""kubeadm: makes clusters of machines, and refuses what the real one refuses."""

from kubevnfm_lab.machines.programs.kubeadm.commands import PROGRAMS

__all__ = ["PROGRAMS"]
