"""Runs infra-k8s as a process of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kubevnfm_clients.charts import HttpFetchedCharts
from kubevnfm_clients.multicloud.regions import HttpCloudRegions
from kubevnfm_clients.packages import HttpPackages
from kubevnfm_clients.session import Peers
from kubevnfm_clients.vims import HttpCloudIdentities, HttpVimDirectory
from kubevnfm_clients.vnf_networks import VnfNetworks
from kubevnfm_worker.backends import Backends
from kubevnfm_worker.service import run_service

from kubevnfm_infra_k8s.settings import Settings
from kubevnfm_infra_k8s.wiring import SERVICE, infra_k8s


@asynccontextmanager
async def wire(settings: Settings, backends: Backends, peers: Peers) -> AsyncIterator[int]:
    """Enter the service with its clients of other services; yield its port."""
    packages = HttpPackages(
        settings.lcm_api_url,
        *peers.credentials("lcm-api"),
        cache_dir=settings.cache_dir,
        cache_gib=settings.cache_disk_gib,
    )
    charts = HttpFetchedCharts(
        settings.lcm_api_url,
        *peers.credentials("lcm-api"),
        cache_dir=settings.cache_dir,
        cache_gib=settings.cache_disk_gib,
    )
    vims = HttpVimDirectory(settings.vim_registry_url, *peers.credentials("vim-registry"))
    identities = HttpCloudIdentities(settings.vim_registry_url, *peers.credentials("vim-registry"))
    regions = HttpCloudRegions(settings.vim_registry_url, *peers.credentials("vim-registry"), backends.key_ring)
    networks = VnfNetworks.from_settings(settings)
    async with infra_k8s(
        settings,
        backends,
        packages=packages,
        charts=charts,
        vims=vims,
        identities=identities,
        regions=regions,
        networks=networks,
    ) as running:
        yield running.port


if __name__ == "__main__":
    run_service(SERVICE, Settings, wire)
