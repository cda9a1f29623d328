"""The interface to the VIMs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from kubevnfm_clients.cloud_identity import CloudIdentity
from kubevnfm_clients.multicloud.region_inventories import AaiInventory, ClusterProfileInventory
from kubevnfm_clients.multicloud.regions import ObjectsWanted
from kubevnfm_clients.multicloud.types import Page
from kubevnfm_kit.json_types import JsonObject

from kubevnfm_vim_registry.domain.capacity import SeenCapacity
from kubevnfm_vim_registry.domain.inventories import Pulled
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


class CapacityProbe(Protocol):
    """Reads how much VIMs of one type have. Raises VimUnauthorized, VimRefused, VimUnreachable, VimForbids."""

    async def capacity(self, vim: VimRecord, *, as_of: str) -> SeenCapacity:
        """Return what the VIM has now."""
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

    async def version(self, vim: VimRecord) -> str:
        """Make one authenticated call; return the version of the server."""
        ...

    async def nodes(self, vim: VimRecord) -> Sequence[JsonObject]:
        """Return all nodes. Raises also VimForbids."""
        ...

    async def listed(self, vim: VimRecord, api_version: str, kind: str) -> Sequence[JsonObject]:
        """Return all objects of a kind, none if the cluster does not serve it or forbids it."""
        ...

    async def objects(
        self, vim: VimRecord, wanted: ObjectsWanted, *, limit: int, after: str | None
    ) -> Page[JsonObject]:
        """Return some objects. Raises also UnknownKind, VimForbids."""
        ...


class AaiInventories(Protocol):
    """Reads cloud regions from A&AI."""

    async def read(self, owner: str, region: str, wanted: AaiInventory) -> Pulled:
        """Return the kubeconfig of a region. Raises InventoryRefused, InventoryLost, InventoryAway."""
        ...


class ProfileInventories(Protocol):
    """Reads ClusterProfiles from the clusters of regions."""

    async def read(self, hub: VimRecord, wanted: ClusterProfileInventory) -> Pulled:
        """Return the kubeconfig of a profile, its labels and properties.

        Raises InventoryRefused, InventoryLost, InventoryAway.
        """
        ...


Probes = Mapping[VimType, VimProbe]
CapacityProbes = Mapping[VimType, CapacityProbe]
