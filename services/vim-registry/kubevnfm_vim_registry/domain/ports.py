"""The interface to the VIMs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from kubevnfm_vim_registry.domain.record import VimRecord, VimType


@dataclass(frozen=True)
class Verified:
    """The facts that a VIM returned after a log-in with its access data."""

    regions: Sequence[str]
    """OpenStack: its regions, the default one first; Kubernetes: its namespaces.

    ``placement_attr.regions`` of existing clients.
    """
    kubernetes_version: str = ""
    """``v1.31.4`` and the like."""


class VimProbe(Protocol):
    """Calls VIMs of one type. Both methods raise VimUnauthorized, VimRefused, VimUnreachable."""

    async def verify(self, vim: VimRecord) -> Verified:
        """Log in and read the facts. Raises also KubernetesTooOld."""
        ...

    async def check(self, vim: VimRecord) -> None:
        """Make light authenticated calls, which succeed if the VIM works."""
        ...


Probes = Mapping[VimType, VimProbe]
