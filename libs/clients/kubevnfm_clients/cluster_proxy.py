"""The proxy that the access data of an API server name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import aiohttp
from yarl import URL

from kubevnfm_clients.cluster_access import ClusterAccess


@dataclass(frozen=True)
class ClusterProxy:
    """Arguments of requests; without a URL, the environment decides. TLS to the API server goes through it unbroken (CONNECT)."""

    url: URL | None = None
    headers: Mapping[str, str] | None = field(default=None, repr=False)
    """Its login."""

    @classmethod
    def from_access(cls, access: ClusterAccess) -> ClusterProxy:
        """Return that of the access data."""
        if not access.proxy_url:
            return cls()
        url = URL(access.proxy_url)
        # aiohttp makes it Proxy-Authorization, of the request or of the CONNECT.
        login = None if url.user is None else {"Authorization": aiohttp.encode_basic_auth(url.user, url.password or "")}
        return cls(url.with_user(None), login)
