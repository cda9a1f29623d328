"""Clients for the metrics of other services, in the text format of Prometheus."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

import aiohttp

from kubevnfm_clients.http import ServiceUnavailable

_TIMEOUT: Final = aiohttp.ClientTimeout(total=30.0, sock_connect=5.0)


class Metrics(Protocol):
    """The metrics of services. May raise OutsideUnavailable."""

    async def text(self) -> str:
        """Return all of them in the text format of Prometheus (version 0.0.4)."""
        ...


class HttpMetrics:
    """`Metrics` over HTTP: one page of those of several services, whose metrics have different names.

    For services with one replica only: the counters of replicas would rise and fall from one call to the next.
    """

    def __init__(self, session: aiohttp.ClientSession, url_by_service: Mapping[str, str]) -> None:
        self._session, self._url_by_service = session, url_by_service

    async def text(self) -> str:
        return "".join([await self._of(service, url) for service, url in self._url_by_service.items()])

    async def _of(self, service: str, url: str) -> str:
        try:
            async with self._session.get(f"{url}/metrics", timeout=_TIMEOUT) as response:
                response.raise_for_status()
                return await response.text()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise ServiceUnavailable(f"{service} does not answer ({type(error).__name__})") from error
