"""Calls of identity servers: JSON, bounded in time and size; every failure is IdentityUnavailable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import aiohttp
from kubevnfm_clients.bounded import read_json
from kubevnfm_kit.http_client import ProxyFailure

from kubevnfm_access.errors import IdentityUnavailable

_TIMEOUT: Final = aiohttp.ClientTimeout(total=10.0, sock_connect=5.0)
_LARGEST: Final = 4 * 1024 * 1024
"""Keystone's answers hold the whole catalog."""


@dataclass(frozen=True)
class IdentityAnswer:
    """An identity server's answer."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: Any = field(repr=False)
    """The JSON value; None if the body is not JSON."""


async def call(session: aiohttp.ClientSession, method: str, url: str, **how: Any) -> IdentityAnswer:
    """Send a request; return the answer, whatever its status below 500. Raises IdentityUnavailable."""
    try:
        async with session.request(method, url, timeout=_TIMEOUT, allow_redirects=False, **how) as response:
            body = await read_json(response, limit_bytes=_LARGEST)
            status, headers = response.status, response.headers
    except ProxyFailure as error:
        raise IdentityUnavailable(f"the identity server is not reached: {error}") from error
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        raise IdentityUnavailable(f"the identity server does not answer ({type(error).__name__})") from error
    if status >= 500:
        raise IdentityUnavailable(f"the identity server answered {status}")
    return IdentityAnswer(status, headers, body)
