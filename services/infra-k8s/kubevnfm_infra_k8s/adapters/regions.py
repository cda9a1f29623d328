"""The cloud regions: vim-registry has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from kubevnfm_clients.multicloud.region_views import RegionFeatures
from kubevnfm_clients.multicloud.regions import CloudRegion
from kubevnfm_clients.multicloud.suspension import Suspension
from kubevnfm_clients.multicloud.types import Page
from kubevnfm_clients.ports import VimDirectory
from kubevnfm_events import VimConnection
from kubevnfm_kit.errors import NotFound
from kubevnfm_sol.vim import KUBERNETES

from kubevnfm_infra_k8s.domain.exporting.nodes import RegionKey
from kubevnfm_infra_k8s.domain.reconciling.ports import Region


class RegionDirectory(Protocol):
    """The part of `kubevnfm_clients.multicloud.regions.CloudRegions` that is asked here."""

    async def get(self, owner: str, region: str) -> CloudRegion:
        """Return a region. Raises NotFound."""
        ...

    async def find(self, filters: Mapping[str, str], *, limit: int, after: str | None = None) -> Page[CloudRegion]:
        """Return regions by id; ``filters``: values by attribute."""
        ...

    async def features(self, owner: str, region: str) -> RegionFeatures:
        """Read what the nodes have. Raises NotFound, Unprocessable, RegionUnavailable."""
        ...

    async def suspensions(self) -> Mapping[str, Suspension]:
        """Return the suspensions of all regions, by the id of the VIM."""
        ...


class ExportedRegions:
    """`domain.exporting.ports.RegionsOfVims`."""

    def __init__(self, regions: RegionDirectory) -> None:
        self._regions = regions

    async def key(self, vim_id: str) -> RegionKey | None:
        found = (await self._regions.find({"vim_id": vim_id}, limit=1)).items
        return RegionKey(found[0].cloud_owner, found[0].cloud_region) if found else None

    async def features(self, key: RegionKey) -> RegionFeatures | None:
        try:
            return await self._regions.features(key.owner, key.name)
        except NotFound:
            return None


class LabelsOfRegions:
    """`domain.ports.RegionLabels`."""

    def __init__(self, regions: RegionDirectory) -> None:
        self._regions = regions

    async def labels(self, vim: VimConnection) -> Mapping[str, str]:
        # Access data of a request may lead to another cluster than that of the region whose id they have.
        if vim.vim_id is None or not vim.is_reference:
            return {}
        found = (await self._regions.find({"vim_id": vim.vim_id}, limit=1)).items
        return found[0].default_namespace_labels if found else {}


class RegisteredRegions:
    """`domain.reconciling.ports.Regions`: ``<owner>/<region>``, or the id of a VIM that is no region."""

    def __init__(self, regions: RegionDirectory, vims: VimDirectory) -> None:
        self._regions, self._vims = regions, vims

    async def region(self, cloud_region_id: str) -> Region:
        owner, slash, name = cloud_region_id.partition("/")
        if slash:
            found = await self._regions.get(owner, name)
            return Region(
                found.vim_id, found.links_namespace, found.sriov_namespace, frozenset(found.protected_namespaces)
            )
        vim = await self._vims.connection(VimConnection(vim_id=cloud_region_id))
        if vim.vim_type != KUBERNETES:
            raise NotFound(f"VIM {cloud_region_id} is not a Kubernetes cluster")
        return Region(cloud_region_id)

    async def suspensions(self) -> Mapping[str, Suspension]:
        return await self._regions.suspensions()
