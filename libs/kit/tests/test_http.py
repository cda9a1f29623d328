"""Every answer of every service, and the code that listens."""

from __future__ import annotations

import re
from pathlib import Path

from aiohttp import ClientSession, web
from healthy import healthy
from kubevnfm_kit.connections import Limits
from kubevnfm_kit.health import add_health
from kubevnfm_kit.http import serving
from kubevnfm_kit.internal import internal_app

ROOT = Path(__file__).parents[3]


async def test_caches_store_no_answer() -> None:
    """Answers of handlers, streams, errors and aiohttp's own; of the internal APIs too."""

    async def stream(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"data: the VNF\n\n")
        return response

    for app in (web.Application(), internal_app([], token="token")):
        app.router.add_get("/stream", stream)
        add_health(app, healthy)
        async with serving(app, host="127.0.0.1", port=0, limits=Limits()) as port, ClientSession() as session:
            for path in ("/health/ready", "/stream", "/nowhere"):
                async with session.get(f"http://127.0.0.1:{port}{path}") as answer:
                    assert answer.headers["Cache-Control"] == "no-store", path


def test_all_services_listen_through_one_function() -> None:
    """It adds the header and the limits: another listener would have neither."""
    opens = re.compile(r"\b(AppRunner|ServerRunner|TCPSite|UnixSite|SockSite|run_app)\(|\bweb\.Server\(")
    found = {
        str(path.relative_to(ROOT))
        for part in ("libs", "services", "deploy/single")
        for path in (ROOT / part).rglob("*.py")
        if "tests" not in path.parts and opens.search(path.read_text(encoding="utf-8"))
    }
    assert found == {"libs/kit/kubevnfm_kit/http.py"}
