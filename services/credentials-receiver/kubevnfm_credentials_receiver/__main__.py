"""Runs credentials-receiver as a process of its own."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from kubevnfm_clients.instances import HttpInstances
from kubevnfm_clients.session import Peers
from kubevnfm_worker.backends import Backends
from kubevnfm_worker.service import run_service

from kubevnfm_credentials_receiver.settings import Settings
from kubevnfm_credentials_receiver.wiring import SERVICE, CredentialsReceiver, credentials_receiver


def wire(settings: Settings, backends: Backends, peers: Peers) -> AbstractAsyncContextManager[CredentialsReceiver]:
    """Return the service with its clients of other services."""
    return credentials_receiver(
        settings, backends, awaiting=HttpInstances(settings.lcm_api_url, *peers.credentials("lcm-api"))
    )


if __name__ == "__main__":
    run_service(SERVICE, Settings, wire)
