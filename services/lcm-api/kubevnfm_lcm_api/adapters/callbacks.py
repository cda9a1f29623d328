"""Subscribers over HTTP (SOL003 clause 5.4.20): the callback test, and notifications."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import aiohttp

from kubevnfm_lcm_api.subscriptions import NotificationRefused

_TEST_S: Final = 20.0
_NOTIFY_S: Final = 10.0
_WORTH_REPEATING: Final = frozenset({408, 429})


class HttpSubscriber:
    """`subscriptions.Subscriber` over one client session."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def test(self, uri: str, basic: tuple[str, str] | None) -> str | None:
        """See the port."""
        try:
            async with self._session.get(
                uri, auth=_auth(basic), allow_redirects=False, timeout=aiohttp.ClientTimeout(total=_TEST_S)
            ) as response:
                return None if response.status == 204 else f"it answered {response.status}"
        except (aiohttp.ClientError, TimeoutError) as error:
            return f"it did not answer ({type(error).__name__})"

    async def notify(
        self, uri: str, body: Mapping[str, Any], version: str, basic: tuple[str, str] | None
    ) -> str | None:
        """See the port."""
        headers = {"Accept": "application/json", "Version": version}
        try:
            async with self._session.post(
                uri,
                json=body,
                headers=headers,
                auth=_auth(basic),
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=_NOTIFY_S),
            ) as response:
                status = response.status
        except (aiohttp.ClientError, TimeoutError) as error:
            return f"it did not answer ({type(error).__name__})"
        if status < 300:
            return None
        if status < 500 and status not in _WORTH_REPEATING:
            raise NotificationRefused(f"it answered {status}")
        return f"it answered {status}"


def _auth(basic: tuple[str, str] | None) -> aiohttp.BasicAuth | None:
    return aiohttp.BasicAuth(*basic) if basic is not None else None
