"""Runs vim-registry as a process of its own."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from kubevnfm_clients.instances import HttpInstances
from kubevnfm_clients.logs import HttpCredentials
from kubevnfm_clients.session import Peers
from kubevnfm_clients.vims import HttpVimUsers
from kubevnfm_clients.vnf_networks import VnfNetworks
from kubevnfm_worker.backends import Backends
from kubevnfm_worker.service import run_service

from kubevnfm_vim_registry.settings import Settings
from kubevnfm_vim_registry.wiring import SERVICE, RunningVimRegistry, vim_registry


def wire(settings: Settings, backends: Backends, peers: Peers) -> AbstractAsyncContextManager[RunningVimRegistry]:
    """Return the service with its clients of other services."""
    return vim_registry(
        settings,
        backends,
        users=HttpVimUsers(settings.lcm_api_url, *peers.credentials("lcm-api")),
        credentials=HttpCredentials(
            settings.credentials_receiver_url, settings.credentials_token.get_secret_value(), peers.session
        ),
        operations=HttpInstances(settings.lcm_api_url, *peers.credentials("lcm-api")),
        networks=VnfNetworks.from_settings(settings),
    )


if __name__ == "__main__":
    run_service(SERVICE, Settings, wire)
