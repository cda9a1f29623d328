"""The cloud regions: vim-registry has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from kubevnfm_clients.multicloud.regions import CloudRegion
from kubevnfm_clients.multicloud.suspension import Suspension
from kubevnfm_clients.ports import VimDirectory
from kubevnfm_events import VimConnection
from kubevnfm_kit.errors import NotFound
from kubevnfm_sol.vim import KUBERNETES

from kubevnfm_infra_k8s.domain.reconciling.ports import Region


class RegionDirectory(Protocol):
    """The part of `kubevnfm_clients.multicloud.regions.CloudRegions` that is asked here."""

    async def get(self, owner: str, region: str) -> CloudRegion:
        """Return a region. Raises NotFound."""
        ...

    async def suspensions(self) -> Mapping[str, Suspension]:
        """Return the suspensions of all regions, by the id of the VIM."""
        ...


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
