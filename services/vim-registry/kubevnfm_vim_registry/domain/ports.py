"""What the registry needs of the VIMs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from kubevnfm_vim_registry.domain.record import VimRecord, VimType


@dataclass(frozen=True)
class Verified:
    """What a VIM told when it was asked with its access data."""

    regions: Sequence[str]
    """OpenStack: its regions; Kubernetes: its namespaces (``placement_attr.regions`` of existing clients)."""
    kubernetes_version: str = ""
    """``v1.31.4`` and the like."""


class VimProbe(Protocol):
    """Asks VIMs of one type. Both raise VimUnauthorized, VimRefused, VimUnreachable."""

    async def verify(self, vim: VimRecord) -> Verified:
        """Log in and look around. Raises KubernetesTooOld too."""
        ...

    async def greet(self, vim: VimRecord) -> None:
        """Make one light authenticated call: a sign of life."""
        ...


Probes = Mapping[VimType, VimProbe]
