"""Clusters that are reached at one address only."""

from __future__ import annotations

import socket
from collections.abc import Sequence

from aiohttp.abc import AbstractResolver, ResolveResult
from kubevnfm_clients.cluster_api import ClusterApi
from kubevnfm_events import VimConnection
from kubevnfm_kit.client_session import client_session
from kubevnfm_kit.errors import VnfmError
from kubevnfm_kit.http_client import HttpConnector
from kubevnfm_secrets import KeyRing

from kubevnfm_mgmt_executor.domain.capi.collecting import reach

_TIMEOUT_S = 10.0


async def serves_at(vim: VimConnection, address: str, ring: KeyRing) -> bool:
    """Return whether this address is that cluster: its API accepts the access data over the TLS that they expect."""

    async def pinned(_host: str, _port: int) -> Sequence[str]:
        return (address,)

    async with client_session(connector=HttpConnector(resolver=_Pinned(address)), judge=pinned) as session:
        try:
            await reach(ClusterApi(session, vim, ring, timeout_s=_TIMEOUT_S))
        except VnfmError:
            return False
    return True


class _Pinned(AbstractResolver):
    """Every name has one address: no second look-up can lead elsewhere (DNS rebinding)."""

    def __init__(self, address: str) -> None:
        self._address = address

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        is_v6 = ":" in self._address
        return [
            ResolveResult(
                hostname=host,
                host=self._address,
                port=port,
                family=socket.AF_INET6 if is_v6 else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
        ]

    async def close(self) -> None:
        """Nothing is held."""
