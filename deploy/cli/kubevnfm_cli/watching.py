"""Lists that are watched (``get --watch``): what there is, then a line for each change; a restart of the gateway ends nothing."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from kubevnfm_cli.call import Call
from kubevnfm_cli.events import Event, Stream, Tick
from kubevnfm_cli.faults import Fault, Refused, Unreachable
from kubevnfm_cli.gateway import Gateway
from kubevnfm_cli.json_types import JsonObject
from kubevnfm_cli.nouns import Noun
from kubevnfm_cli.output import Column, Grid, csv_text
from kubevnfm_cli.terminal import printable, printable_json, printable_text

_APART_S: Final = 0.5
"""The least time between two reads: an operation on many machines has many events."""
_MOST_IDS: Final = 50
"""Things that are read by their ids; for more, the whole list is read."""
_LOOK_S: Final = 2.0
"""How often a list is read whose changes are no events."""
_UNSTEADY: Final = frozenset({"estimate", "lastCheck", "lastCheckMs", "capacity"})
"""Attributes that are other ones at each look, although nothing has happened."""

Kind = Literal["ADDED", "MODIFIED", "DELETED"]


@dataclass(frozen=True)
class Watched:
    """The things that are watched, and how they are read."""

    noun: Noun
    first: Mapping[str, JsonObject]
    """The things at the begin, by id."""
    sequence: str | None
    """The place of `first` in the event stream; None: changes of these things are no events."""
    read: Callable[[Sequence[str] | None], Mapping[str, JsonObject]]
    """Returns the things by id, or those of them with some ids. Raises Refused, Unreachable."""
    read_one: Callable[[str], JsonObject | None]
    """Returns a thing that is in the list no longer; None if it was deleted. Raises as `read`."""
    ends_without: bool
    """Whether nothing can come after the last thing is deleted: ids were named."""


def watch(call: Call, watched: Watched, *, shows_first: bool, shows_kinds: bool) -> None:
    """Show the things, and then each change, until Ctrl-C. Raises Stopped at the end of the time, Refused."""
    writer = _Writer(call, watched.noun, shows_kinds=shows_kinds)
    known, is_away = dict(watched.first), False
    if shows_first:
        writer.write([("ADDED", one) for one in known.values()])
    missed: list[Event | Tick] = []
    for heard in _moments(call, watched.sequence):
        missed += heard
        try:
            changes = list(_changes(watched, known, _ids_in(missed, watched.noun), writer.is_same))
        except (Unreachable, Refused) as fault:
            if isinstance(fault, Refused) and fault.status < 500 and fault.status != 429:
                raise
            if watched.sequence is None and not is_away:  # the stream of events says so itself
                call.note(f"connection lost: {fault}; trying again")
            is_away = True
            continue  # the next moment shows what has changed meanwhile
        is_away = False
        missed.clear()
        writer.write(changes)
        if watched.ends_without and not known:
            return


def _ids_in(heard: Sequence[Event | Tick], noun: Noun) -> Sequence[str] | None:
    """Return the ids of the things that events are about; None if anything may have changed."""
    found: dict[str, None] = {}
    for one in heard:
        if one in (Tick.ALIVE, Tick.OPEN):
            continue  # after a loss the stream has all events since
        identifier = one.about(noun.id_in_events) if isinstance(one, Event) and noun.id_in_events else ""
        if not identifier:
            return None
        found[identifier] = None
    return list(found) if len(found) <= _MOST_IDS else None


def _changes(
    watched: Watched,
    known: dict[str, JsonObject],
    ids: Sequence[str] | None,
    is_same: Callable[[JsonObject, JsonObject], bool],
) -> Iterator[tuple[Kind, JsonObject]]:
    """Yield what has changed since, and remember it. ``ids``: those of the things that may have; None: any."""
    if ids is not None and not ids:
        return
    there = watched.read(ids)
    left = [identifier for identifier in known if identifier not in there and (ids is None or identifier in ids)]
    # They are read before anything is remembered: if the gateway goes away now, the next look begins again.
    now = {identifier: watched.read_one(identifier) for identifier in left}
    for identifier, one in there.items():
        before = known.get(identifier)
        known[identifier] = one
        if before is None:
            yield "ADDED", one
        elif not is_same(before, one):
            yield "MODIFIED", one
    for identifier, after in now.items():
        before = known.pop(identifier)
        if after is None:
            yield "DELETED", before
        elif not is_same(before, after):
            yield "MODIFIED", after  # it no longer matches --where


def _moments(call: Call, sequence: str | None) -> Iterator[Sequence[Event | Tick]]:
    """Yield what was heard whenever something may have changed. Raises Stopped, Refused."""
    if sequence is None:
        while True:
            call.gateway.pause(_LOOK_S)
            yield [Tick.MISSED]
    heard: queue.SimpleQueue[Event | Tick | Fault] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(call.gateway.another(), sequence, call.note, heard.put), daemon=True).start()
    while True:
        found = [_next(call.gateway, heard)]
        while not heard.empty():  # one look shows what all of them have changed
            found.append(heard.get())
        for one in found:
            if isinstance(one, Fault):
                raise one
        yield [one for one in found if not isinstance(one, Fault)]
        call.gateway.pause(_APART_S)


def _next(gateway: Gateway, heard: queue.SimpleQueue[Event | Tick | Fault]) -> Event | Tick | Fault:
    while True:
        try:
            return heard.get(timeout=_LOOK_S)
        except queue.Empty:
            gateway.pause(0.0)  # raises Stopped at the end of the time


def _listen(
    gateway: Gateway, sequence: str, trouble: Callable[[str], None], put: Callable[[Event | Tick | Fault], None]
) -> None:
    """Put whatever comes from the stream; a fault ends it."""
    try:
        for one in Stream(gateway, {}, after=sequence, trouble=trouble, is_known=True):
            put(one)
    except Fault as fault:
        put(fault)


class _Writer:
    """Writes things in the form of the command, one after the other."""

    def __init__(self, call: Call, noun: Noun, *, shows_kinds: bool) -> None:
        self._call, self._noun, self._shows_kinds = call, noun, shows_kinds
        kinds = [Column("EVENT", lambda one: one.get("type"))] if shows_kinds else []
        inner = [
            Column(one.title, self._of(one.value), one.is_wide, one.is_state, self._of(one.exact or one.value))
            for one in noun.table.columns
        ]
        self._columns = [*kinds, *inner]
        self._has_titles = not call.given.no_headers
        self._grid = Grid(call.out, self._columns, is_wide=call.format.kind == "wide", has_titles=self._has_titles)
        self._shown = [one for one in inner if call.format.kind != "table" or not one.is_wide]
        self._is_first = True

    def is_same(self, one: JsonObject, other: JsonObject) -> bool:
        """Return whether two states of a thing are the same for a reader of this form."""
        steady = [
            {name: value for name, value in self._noun.item(each).items() if name not in _UNSTEADY}
            for each in (one, other)
        ]
        if not self._call.format.is_for_people and self._call.format.kind != "csv":
            return steady[0] == steady[1]
        cells = [[(column.exact or column.value)({"object": each}) for column in self._shown] for each in steady]
        return cells[0] == cells[1]

    def write(self, changes: Sequence[tuple[Kind, JsonObject]]) -> None:
        """Write changes at once."""
        for kind, one in changes:
            if kind == "DELETED" and not self._shows_kinds:
                name = self._noun.name_of(self._noun.item(one))
                about = f" ({printable(name)})" if name else ""
                self._call.note(f"{self._named(one)}{about} is deleted")
        events = [{"type": kind, "object": one} for kind, one in changes if self._shows_kinds or kind != "DELETED"]
        if not events:
            return
        text = self._text(events)
        self._call.out.stream.write(printable_text(text) if self._call.format.kind == "csv" else text)
        self._call.out.stream.flush()
        self._is_first = False

    def _text(self, events: Sequence[JsonObject]) -> str:
        form = self._call.format
        if form.is_for_people:
            return self._grid.text(events)
        if form.kind == "csv":
            return csv_text(events, self._columns, has_titles=self._has_titles and self._is_first)
        if form.kind == "name":
            return "".join(f"{self._named(event['object'])}\n" for event in events)
        return "".join(self._document(one if self._shows_kinds else one["object"]) for one in events)

    def _named(self, one: JsonObject) -> str:
        return f"{self._noun.name}/{printable(self._noun.table.id_of(self._noun.item(one)))}"

    def _document(self, body: JsonObject) -> str:
        form = self._call.format
        if form.kind == "yaml":
            from kubevnfm_cli import yaml_text

            return f"---\n{yaml_text.write(body)}"
        if form.kind == "jsonpath":
            from kubevnfm_cli.jsonpath import evaluate

            found = evaluate(form.expression, body)
            return printable_text(found if found.endswith("\n") else f"{found}\n")
        indent = 2 if form.kind == "json" else None
        return f"{printable_json(json.dumps(body, indent=indent, ensure_ascii=False))}\n"

    def _of(self, value: Callable[[JsonObject], object]) -> Callable[[JsonObject], object]:
        return lambda event: value(self._noun.item(event["object"]))
