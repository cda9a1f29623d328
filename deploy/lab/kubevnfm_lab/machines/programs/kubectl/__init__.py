"""kubectl: a thin client of the cluster's real API server."""

from kubevnfm_lab.machines.programs.kubectl.commands import PROGRAMS

__all__ = ["PROGRAMS"]
