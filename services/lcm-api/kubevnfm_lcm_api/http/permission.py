"""The permission of a caller whose answer goes on for long."""

from __future__ import annotations

import asyncio
from typing import Final

from aiohttp import web
from kubevnfm_access.middleware import ADMISSION, CALLER
from kubevnfm_kit.clock import machine_now

from kubevnfm_lcm_api.http.context import context

_AGAIN_S: Final = 15.0


class Permission:
    """A watcher's permission to watch. It ends when the credentials expire: new ones need a new stream."""

    def __init__(self, request: web.Request) -> None:
        self._caller, self._admission, self._clock = request[CALLER], request[ADMISSION], context(request).clock
        self._loop = asyncio.get_running_loop()
        self._asked_at = self._loop.time()

    async def lasts(self) -> bool:
        """Return whether more may be sent; the credentials are checked again every 15 s."""
        if self._loop.time() - self._asked_at >= _AGAIN_S:
            caller = await self._admission.again(self._caller)
            if caller is None:
                return False
            self._caller, self._asked_at = caller, self._loop.time()
        expires = self._caller.expires
        return expires is None or machine_now(self._clock).timestamp() < expires
