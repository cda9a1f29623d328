"""The context of the HTTP handlers of all subjects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from aiohttp import web
from kubevnfm_access.middleware import PROXIES
from kubevnfm_kit.clock import Clock
from kubevnfm_kit.owners import Owners
from kubevnfm_secrets import KeyRing
from kubevnfm_store.port import DocumentStore


@dataclass(frozen=True)
class HttpContext:
    """The database, the key ring, the clock, the names of leases' owners, and what an operator has set for the HTTP interface."""

    store: DocumentStore
    ring: KeyRing
    clock: Clock
    public_url: str | None
    """The root of every link; None: as the caller has reached the gateway."""
    internal_token: str
    page_size: int
    owners: Owners = field(default_factory=Owners)
    sequence: Callable[[], str] = str
    """The place in the event stream at this moment; "" without a stream."""


CONTEXT: Final = web.AppKey("context", HttpContext)


def context(request: web.Request) -> HttpContext:
    """Return the context of a request."""
    return request.app[CONTEXT]


def api_root(request: web.Request) -> str:
    """Return the absolute root of every link: the configured public URL, else as the caller has reached the gateway."""
    return context(request).public_url or request.app[PROXIES].root(request)
