"""The internal HTTP API."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from aiohttp import ClientSession
from kubevnfm_kit.http import serving
from kubevnfm_mgmt_executor.adapters.http import internal_api
from patience import until_true
from structlog.testing import capture_logs


async def test_a_caller_that_leaves_a_long_log_is_no_fault() -> None:
    class Endless:
        async def log(self, *_: Any, **__: Any) -> AsyncIterator[bytes]:
            while True:
                yield b"x" * 65_536
                await asyncio.sleep(0)

    logs: Any = Endless()
    app = internal_api(logs, token="t", why_no_playbooks=str)

    async def is_said() -> bool:
        return bool(lines)

    with capture_logs() as lines:
        async with serving(app, host="127.0.0.1", port=0) as port, ClientSession() as session:
            url = f"http://127.0.0.1:{port}/internal/v1/operations/op-1/log"
            answer = await session.get(url, headers={"Authorization": "Bearer t"})
            await answer.content.readany()
            answer.close()
            await until_true(is_said)
    assert [(each["event"], each["status"]) for each in lines] == [("http_request", 200)]
