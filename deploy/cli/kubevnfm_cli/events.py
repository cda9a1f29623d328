"""The gateway's event stream (server-sent events), which goes on after each loss of the connection."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from kubevnfm_cli.faults import Refused, Unreachable
from kubevnfm_cli.gateway import Gateway, Query
from kubevnfm_cli.json_types import JsonObject, part

AGAIN: Final = "connected again"
_PATH: Final = "/kubevnfm/v1/events"
_FIRST_PAUSE_S: Final = 0.5
_LONGEST_PAUSE_S: Final = 4.0
_LONGEST_ID: Final = 1000
_MOST_CHARACTERS: Final = 16 << 20
_PASSING: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Answers after which the same request may work."""


@dataclass(frozen=True)
class Event:
    """A CloudEvent of the stream."""

    body: JsonObject
    """The event as it came."""

    @property
    def kind(self) -> str:
        """The routing key: ``lcm.step.changed``."""
        return str(self.body.get("type", "")).removeprefix("kubevnfm.").removesuffix(".v1")

    def about(self, attribute: str) -> str:
        """Return the id of the thing that it is about: an attribute beside the facts; "" if it has none."""
        named = self.body.get(attribute)
        return named if isinstance(named, str) else ""

    @property
    def time(self) -> str:
        """When it became true."""
        return str(self.body.get("time", ""))

    @property
    def data(self) -> JsonObject:
        """The facts."""
        data = self.body.get("data")
        return data if isinstance(data, dict) else {}


class Tick(Enum):
    """Something else than an event."""

    OPEN = "open"
    """The stream is open, at the begin or again."""
    ALIVE = "alive"
    """A heartbeat."""
    MISSED = "missed"
    """Events may be missing: the state has to be read."""


class Stream:
    """Events of a query from a sequence on. Iterating survives restarts of the gateway.

    Raises Stopped when the time of the gateway's calls is over, Refused, and Unreachable if it did not answer even once.
    """

    def __init__(
        self,
        gateway: Gateway,
        query: Query,
        *,
        after: str | None,
        trouble: Callable[[str], None] = lambda text: None,
        is_known: bool = False,
    ) -> None:
        self._gateway = gateway
        self._query = query
        self._after = _header(after)
        self._trouble = trouble
        self._has_answered = is_known
        self._is_away = False

    def __iter__(self) -> Iterator[Event | Tick]:
        pause = _FIRST_PAUSE_S
        while True:
            try:
                for one in self._once():
                    pause = _FIRST_PAUSE_S
                    yield one
            except (Unreachable, Refused) as error:
                if isinstance(error, Refused) and error.status not in _PASSING:
                    raise
                if not self._has_answered:
                    raise
                self._away(str(error))
            else:
                self._away("the gateway ended the stream")
            self._gateway.pause(pause)
            pause = min(pause * 2, _LONGEST_PAUSE_S)

    def _once(self) -> Iterator[Event | Tick]:
        headers = {"Accept": "text/event-stream", **({"Last-Event-ID": self._after} if self._after else {})}
        with self._gateway.stream(_PATH, query=self._query, headers=headers) as lines:
            yield from self._read(lines)

    def _read(self, lines: Iterator[bytes]) -> Iterator[Event | Tick]:
        fields: dict[str, str] = {}
        for raw in lines:
            line = raw.decode(errors="replace").rstrip("\r\n")
            if line.startswith(":"):
                yield self._opened() if "connected" in line else Tick.ALIVE
                continue
            if line:
                if sum(map(len, fields.values())) > _MOST_CHARACTERS:
                    raise Unreachable("an event of the stream has no end")
                name, _, value = line.partition(":")
                fields[name] = (
                    fields[name] + "\n" + value.removeprefix(" ") if name in fields else value.removeprefix(" ")
                )
                continue
            read = self._event(fields)
            fields = {}
            if read is not None:
                yield read

    def _event(self, fields: dict[str, str]) -> Event | Tick | None:
        if fields.get("id"):
            self._after = _header(fields["id"])
        if fields.get("event") == "missed":
            return Tick.MISSED
        try:
            body = json.loads(fields.get("data", ""))
        except (ValueError, RecursionError):
            return None
        return Event(body) if isinstance(part(body, "data"), dict) else None

    def _opened(self) -> Tick:
        self._has_answered = True
        if self._is_away:
            self._is_away = False
            self._trouble(AGAIN)
        return Tick.OPEN

    def _away(self, reason: str) -> None:
        if not self._is_away:
            self._is_away = True
            self._trouble(f"connection lost: {reason}; trying again")


def _header(text: str | None) -> str | None:
    """Return an id that a header can have; None for another one, which cannot be the gateway's."""
    return text if text and text.isascii() and text.isprintable() and len(text) < _LONGEST_ID else None
