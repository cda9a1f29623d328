"""``/health/live`` and ``/health/ready``: whether a process lives, and which of its parts are not ready.

The answers are open to all who reach the listener, so they have no names of hosts or files, no addresses and no texts of others.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from aiohttp import web

from kubevnfm_kit.clock import rfc3339
from kubevnfm_kit.connections import Handler

State = Literal["ready", "degraded", "failed", "unknown"]
_LACKING: Final[frozenset[State]] = frozenset({"degraded", "failed"})


@dataclass(frozen=True)
class PartState:
    """A part that a process needs, or another service."""

    part: str
    state: State
    """``degraded``: some of the work is not done; ``failed``: none that needs the part; ``unknown``: nothing is known of it."""
    since: datetime
    text: str = ""
    """Why it is not ready: one sentence, for anybody."""
    is_vital: bool = False
    """Whether the process can answer no request while the part is not ready."""


Parts = Callable[[], Awaitable[Sequence[PartState]]]


def health_handlers(parts: Parts, states: Mapping[str, object] | None = None) -> tuple[Handler, Handler]:
    """Return the handlers of ``/health/live`` (200 while the event loop runs) and ``/health/ready``.

    The latter answers 503 while a vital part is not ready. ``states`` are read at each call, and shown beside the parts.
    """

    async def live(_: web.Request) -> web.Response:
        return web.json_response({"status": "live"})

    async def readiness(_: web.Request) -> web.Response:
        found = await parts()
        lacking = [each for each in found if each.state in _LACKING]
        is_ready = not any(each.is_vital and each.state != "ready" for each in found)
        status = ("degraded" if lacking else "ready") if is_ready else "not ready"
        body = {"status": status, "parts": [_shown(each) for each in found], **(states or {})}
        return web.json_response(body, status=200 if is_ready else 503)

    return live, readiness


def add_health(app: web.Application, parts: Parts, states: Mapping[str, object] | None = None) -> None:
    """Add ``GET /health/live`` and ``GET /health/ready`` (`health_handlers`)."""
    live, readiness = health_handlers(parts, states)
    app.router.add_get("/health/live", live)
    app.router.add_get("/health/ready", readiness)


def _shown(part: PartState) -> Mapping[str, str]:
    why = {"text": part.text} if part.text else {}
    return {"part": part.part, "state": part.state, "since": rfc3339(part.since), **why}
