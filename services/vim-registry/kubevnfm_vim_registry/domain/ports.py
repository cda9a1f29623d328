"""The interface to the VIMs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from kubevnfm_clients.cloud_identity import CloudIdentity

from kubevnfm_vim_registry.domain.record import VimRecord, VimType
from kubevnfm_vim_registry.domain.region import Inspected, Permission


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


class CloudLogins(Protocol):
    """Logins to an OpenStack beside the VIM's own. Both methods raise VimUnauthorized, VimRefused, VimUnreachable."""

    async def give(self, vim: VimRecord, name: str, *, present: str | None) -> CloudIdentity:
        """Return the VIM's application credential, or one of this name: that of the id ``present``, or a new one."""
        ...

    async def take_back(self, vim: VimRecord, name: str) -> int:
        """Delete the application credentials of this name; return how many there were."""
        ...


class RegionProbe(Protocol):
    """Reads the clusters of regions. Each method raises VimUnauthorized, VimRefused, VimUnreachable."""

    async def inspect(self, vim: VimRecord, permissions: Iterable[Permission]) -> Inspected:
        """Return which cluster it is, what it serves, and which of the permissions its user lacks."""
        ...


Probes = Mapping[VimType, VimProbe]
