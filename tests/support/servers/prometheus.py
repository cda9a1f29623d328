"""A Prometheus as its HTTP API shows it: `/api/v1/query_range` answers with the series that a test has given for an expression."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Value = float | Callable[[float], float | None]
"""A value, or one by the time in seconds; None: there is none at that time."""


@dataclass
class TwinPrometheus:
    """Answers each expression that has a certain text in it."""

    url: str = ""
    series: list[tuple[str, Mapping[str, str], Value]] = field(default_factory=list)
    """Each with the text that makes an expression its own, and its labels."""
    asked: list[Mapping[str, str]] = field(default_factory=list)
    """The forms of all questions that were answered."""
    authorizations: list[str] = field(default_factory=list)
    is_away: bool = False
    refused: str = ""
    """Why it refuses each expression; empty: it does not."""
    raw: bytes | None = None
    """The body that it answers instead."""
    turned_away: int = 0
    """How many questions it did not answer."""

    @classmethod
    @asynccontextmanager
    async def listening(cls) -> AsyncIterator[TwinPrometheus]:
        """Yield one that answers."""
        twin = cls()
        app = web.Application()
        app.add_routes([web.post("/api/v1/query_range", twin._answer)])
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            twin.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            yield twin
        finally:
            await runner.cleanup()

    def add(self, text: str, value: Value, **labels: str) -> None:
        """Have expressions with this text answer this series too."""
        self.series.append((text, labels, value))

    async def _answer(self, request: web.Request) -> web.Response:
        self.authorizations.append(request.headers.get("Authorization", ""))
        if self.is_away:
            self.turned_away += 1
            return web.Response(status=503, text="Service Unavailable")
        if self.raw is not None:
            return web.Response(body=self.raw, content_type="application/json")
        form = {name: str(value) for name, value in (await request.post()).items()}
        start, end, step = (float(form[name]) for name in ("start", "end", "step"))
        if self.refused or step <= 0 or end < start or (end - start) / step > 11_000:
            problem = {"status": "error", "errorType": "bad_data", "error": self.refused or "invalid parameter"}
            return web.json_response(problem, status=400)
        self.asked.append(form)
        found: list[dict[str, Any]] = []
        for text, labels, value in self.series:
            if text in form["query"]:
                times = [start + number * step for number in range(int((end - start) / step + 1e-6) + 1)]
                pairs = [(at, value(at) if callable(value) else value) for at in times]
                values = [[at, str(one)] for at, one in pairs if one is not None]
                found.append({"metric": dict(labels), "values": values})
        return web.json_response({"status": "success", "data": {"resultType": "matrix", "result": found}})
