"""Runs mgmt-executor as a process of its own."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from kubevnfm_clients.packages import HttpPackages
from kubevnfm_clients.session import Peers
from kubevnfm_clients.vims import HttpVimDirectory
from kubevnfm_clients.vnf_networks import VnfNetworks
from kubevnfm_worker.backends import Backends
from kubevnfm_worker.service import run_service

from kubevnfm_mgmt_executor.settings import Settings
from kubevnfm_mgmt_executor.wiring import SERVICE, MgmtExecutor, mgmt_executor


def wire(settings: Settings, backends: Backends, peers: Peers) -> AbstractAsyncContextManager[MgmtExecutor]:
    """Return the service with its clients of other services."""
    packages = HttpPackages(
        settings.lcm_api_url,
        *peers.credentials("lcm-api"),
        cache_dir=settings.cache_dir,
        cache_gib=settings.cache_disk_gib,
    )
    vims = HttpVimDirectory(settings.vim_registry_url, *peers.credentials("vim-registry"))
    networks = VnfNetworks.from_settings(settings)
    return mgmt_executor(settings, backends, packages=packages, vims=vims, networks=networks)


if __name__ == "__main__":
    run_service(SERVICE, Settings, wire)
