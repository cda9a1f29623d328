"""Looks names of clusters up in threads of their own: a name server that does not answer holds each of them for up to half a minute.

The threads of the event loop are two more than four for each core, and other work waits for them: reading of files, TLS contexts, and
the names of clusters whose name servers answer.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final

from aiohttp.abc import AbstractResolver, ResolveResult
from kubevnfm_kit.http_client import HttpConnector

_MOST: Final = 256
_threads: Final = ThreadPoolExecutor(_MOST, thread_name_prefix="cluster-names")
"""A thread is started when a look-up finds none that is free."""


class NameResolver(AbstractResolver):
    """Resolves as `aiohttp.ThreadedResolver` does, in these threads."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        look_up = partial(
            socket.getaddrinfo, host, port, family=family, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG
        )
        found = await asyncio.get_running_loop().run_in_executor(_threads, look_up)
        return [
            ResolveResult(
                hostname=host,
                host=_text(address),
                port=port,
                family=of,
                proto=protocol,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for of, _, protocol, _, address in found
        ]

    async def close(self) -> None:
        """Nothing is kept."""


async def resolved(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a name. Raises OSError."""
    try:
        found = await NameResolver().resolve(host, port, socket.AF_UNSPEC)
    except UnicodeError as error:
        raise OSError(f"{host} is no host name") from error
    return list(dict.fromkeys(each["host"] for each in found))


def _text(address: Any) -> str:
    # The interface of a link-local address of IPv6 is its fourth member.
    return f"{address[0]}%{address[3]}" if len(address) == 4 and address[3] else str(address[0])


def cluster_connector(**options: Any) -> HttpConnector:
    """Return a connector for API servers, or for what logs in to them; ``options`` are those of TCPConnector."""
    return HttpConnector(resolver=NameResolver(), **options)
