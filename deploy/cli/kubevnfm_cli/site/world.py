"""The gateway as the kinds of a site see it: reads, writes that a dry run does not make, and waits for operations."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kubevnfm_cli.faults import CONFLICT, FAILED, WITHOUT_SUCCESS, Fault, Stopped, Unreachable
from kubevnfm_cli.gateway import Gateway, Query, Reply, path_of
from kubevnfm_cli.json_types import JsonObject, objects, part
from kubevnfm_cli.progress import RESTS
from kubevnfm_cli.site.model import Entry, Key, Site
from kubevnfm_cli.site.secrets import revealed
from kubevnfm_cli.terminal import printable

OPEN_STATES: Final = ("STARTING", "PROCESSING", "ROLLING_BACK", "FAILED_TEMP")
_FIRST_LOOK_S, _LONGEST_LOOK_S = 0.1, 2.0
_AWAY_S: Final = 120.0
"""How long the gateway may not answer while an operation is awaited: it may be restarted."""
_MOST_PAGES: Final = 1000
_PROBLEM: Final = 1000


class Conflicts(Fault):
    """Something is in the way that this file has not made, or a change that no operation makes."""

    code = CONFLICT


class Failed(Fault):
    """An operation ended without success."""

    code = WITHOUT_SUCCESS


@dataclass(frozen=True)
class Options:
    """The options of the call."""

    adopts: bool = False
    """Take over what has the name and is of no other site."""
    waits: bool = False
    """Wait for the end of the last operation of each instance too."""
    renews_secrets: bool = False
    """Send access data again, whose secrets cannot be compared."""
    timeout_s: float = 3600.0


@dataclass
class Thing:
    """The resource of an entry at the gateway."""

    id: str | None = None
    """None: it does not exist yet."""
    facts: dict[str, Any] = field(default_factory=dict)
    will_change: bool = False
    """Whether steps for it are planned."""


@dataclass
class World:
    """The gateway, the site, and what is known of its entries."""

    connect: Callable[[], Gateway]
    """Returns a new client: one thread uses one connection."""
    site: Site
    options: Options
    progress: Callable[[Key, str], None]
    """Reports what is waited for."""
    stop: threading.Event = field(default_factory=threading.Event)
    things: dict[Key, Thing] = field(default_factory=dict)
    awaited: frozenset[Key] = frozenset()
    """Entries that others need."""
    renewed: set[Key] = field(default_factory=set)
    """Entries whose access data this call has sent."""
    hashes: dict[Key, str] = field(default_factory=dict)
    """The hashes of the archives of packages, as this call has found them."""
    _clients: threading.local = field(default_factory=threading.local)
    _until: float = 0.0

    def __post_init__(self) -> None:
        self._until = time.monotonic() + self.options.timeout_s

    @property
    def gateway(self) -> Gateway:
        """The client of this thread."""
        if not hasattr(self._clients, "gateway"):
            self._clients.gateway = self.connect()
        client: Gateway = self._clients.gateway
        return client

    def read(self, path: str, query: Query | None = None) -> Any:
        """Return a body. Raises Refused, Unreachable."""
        return self.gateway.get(path, query).json()

    def read_list(self, path: str, query: Query | None = None) -> list[JsonObject]:
        """Return all items of a list."""
        reply = self.gateway.get(path, query)
        found = objects(reply.json())
        for _ in range(_MOST_PAGES):
            if reply.next is None:
                return found
            reply = self.gateway.get(reply.next)
            found += objects(reply.json())
        raise Fault(f"{path}: more than {_MOST_PAGES} pages")

    def write(
        self, method: str, path: str, body: object = None, *, query: Query | None = None, prefer: str | None = None
    ) -> Reply:
        """Send a request that changes something, with the values from outside. Raises Refused, Unreachable, Stopped."""
        if self.stop.is_set():
            raise Stopped("interrupted before the next change")
        headers = {**_content_type(method), **({"Prefer": prefer} if prefer else {})}
        return self.gateway.call(method, path, revealed(body), query=query, headers=headers)

    def check(self, key: Key, method: str, path: str, body: object) -> None:
        """Have the gateway check a request for an instance, without effect; report its warnings. Raises Refused."""
        found = self.gateway.call(
            method, path, revealed(body), query={"dry_run": "true"}, headers=_content_type(method)
        ).object()
        self.warn(key, found.get("warnings"))

    def thing(self, key: Key) -> Thing:
        """Return what stands for an entry that was worked on before."""
        return self.things.get(key, Thing())

    def must_wait(self, entry: Entry) -> bool:
        """Return whether the end of an instance's last operation is awaited."""
        return self.options.waits or entry.key in self.awaited

    def awaited_operation(self, key: Key, operation_id: str) -> JsonObject:
        """Return an operation once it has COMPLETED. Raises Failed, Stopped, Unreachable.

        It is polled, unlike by `kubevnfm wait`: eight are awaited at once, and a stream would hold Ctrl-C up until its heartbeat.
        """
        path = path_of("kubevnfm", "v1", "operations", operation_id)
        pause_s, away_since, shown = _FIRST_LOOK_S, 0.0, ""
        while True:
            try:
                view = self.gateway.get(path).object()
                away_since = 0.0
            except Unreachable:
                now = time.monotonic()
                away_since = away_since or now
                if now - away_since > _AWAY_S:
                    raise
                view = {}
            state = view.get("state")
            if state == "COMPLETED":
                return view
            if state in RESTS:
                raise Failed(failure_text(view))
            text = _state_text(view) if view else "the gateway is away"
            if text != shown:
                shown = text
                self.progress(key, printable(shown, _PROBLEM))
            self.pause(pause_s, f"operation {operation_id} goes on: kubevnfm wait {operation_id}")
            pause_s = min(pause_s * 1.5, _LONGEST_LOOK_S)

    def warn_of_operation(self, key: Key, operation_id: str) -> None:
        """Report the parts of an operation's request that are not used, if the gateway answers: the operation goes on anyway."""
        with contextlib.suppress(Unreachable):
            view = self.gateway.get(path_of("kubevnfm", "v1", "operations", operation_id)).object()
            self.warn(key, view.get("warnings"))

    def warn(self, key: Key, warnings: object) -> None:
        """Report the warnings of an operation or a package."""
        for warning in warnings if isinstance(warnings, list) else ():
            text = part(warning, "text") if isinstance(warning, dict) else warning
            self.progress(key, f"warning: {printable(text, _PROBLEM)}")

    def pause(self, pause_s: float, otherwise: str) -> None:
        """Wait a moment. Raises Stopped, which says ``otherwise``, after Ctrl-C or at the end of the time."""
        if self.stop.wait(pause_s):
            raise Stopped(f"interrupted; {otherwise}")
        if time.monotonic() > self._until:
            raise Stopped(f"the time of {self.options.timeout_s:g} s ran out; {otherwise}")


def _content_type(method: str) -> dict[str, str]:
    return {"Content-Type": "application/merge-patch+json"} if method == "PATCH" else {}


def _state_text(view: Mapping[str, Any]) -> str:
    """Return what an operation waits for, or else the steps that it is at."""
    running = [str(step.get("title")) for step in objects(view.get("steps")) if step.get("state") == "asked"]
    return f"{view.get('operation')}: {part(view, 'cause', 'text') or ', '.join(running) or view.get('state')}"


def failure_text(view: Mapping[str, Any]) -> str:
    """Return why an operation did not succeed, and the command that explains it."""
    operation_id, state = view.get("id"), view.get("state", view.get("operationState"))
    reason = part(view, "cause", "text") or part(view, "error", "detail") or "no reason given"
    return f"{view.get('operation')} is {state}: {printable(reason, _PROBLEM)}; kubevnfm why {operation_id}"


def code_of(error: BaseException) -> int:
    """Return the exit code of an error."""
    return error.code if isinstance(error, Fault) else FAILED
