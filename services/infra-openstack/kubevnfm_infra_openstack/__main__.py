"""Runs infra-openstack as a process of its own, with an HTTP listener for its health."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web
from kubevnfm_clients.packages import HttpPackages
from kubevnfm_clients.session import Peers
from kubevnfm_clients.vims import HttpVimDirectory
from kubevnfm_worker.backends import Backends
from kubevnfm_worker.service import run_service

from kubevnfm_infra_openstack.settings import Settings
from kubevnfm_infra_openstack.wiring import SERVICE, infra_openstack


@asynccontextmanager
async def wire(settings: Settings, backends: Backends, peers: Peers) -> AsyncIterator[int]:
    """Enter the service with its clients of other services; yield the port of its health endpoints."""
    packages = HttpPackages(
        settings.lcm_api_url,
        *peers.credentials("lcm-api"),
        cache_dir=settings.cache_dir,
        cache_gib=settings.cache_disk_gib,
    )
    vims = HttpVimDirectory(settings.vim_registry_url, *peers.credentials("vim-registry"))
    host, port = settings.health_host, settings.health_port
    async with (
        infra_openstack(settings, backends, packages=packages, vims=vims),
        backends.serving(web.Application(), SERVICE, host=host, port=port, tls=settings.server_tls) as listening,
    ):
        yield listening


if __name__ == "__main__":
    run_service(SERVICE, Settings, wire)
