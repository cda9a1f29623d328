"""The proxy between kubevnfm and an API server."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

import aiohttp
from aiohttp.helpers import get_env_proxy_for_url
from yarl import URL

from kubevnfm_clients.cluster_access import ClusterAccess


@dataclass(frozen=True)
class ClusterProxy:
    """Arguments of requests; without a URL there is no proxy. TLS to the API server goes through it unbroken (CONNECT)."""

    url: URL | None = None
    headers: Mapping[str, str] | None = field(default=None, repr=False)
    """Its login."""

    @classmethod
    async def between(cls, access: ClusterAccess) -> ClusterProxy:
        """Return that of the access data, or else the one that the environment names for the endpoint."""
        if access.proxy_url:
            url = URL(access.proxy_url)
            login = (url.user or "", url.password or "") if url.user is not None else None
            return cls(url.with_user(None), _login(aiohttp.encode_basic_auth(*login) if login is not None else None))
        # It would connect to addresses that are not judged.
        if access.of_vnf:
            return cls()
        # In a thread, because it may resolve a name.
        return await asyncio.to_thread(cls._of_environment, access.endpoint)

    @classmethod
    def _of_environment(cls, endpoint: str) -> ClusterProxy:
        try:
            url, login = get_env_proxy_for_url(URL(endpoint))
        except LookupError:
            return cls()
        return cls(url, _login(login.encode() if login is not None else None))


def _login(header: str | None) -> Mapping[str, str] | None:
    # aiohttp makes it Proxy-Authorization, of the request or of the CONNECT.
    return None if header is None else {"Authorization": header}
