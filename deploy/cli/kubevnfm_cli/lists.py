"""Lists of the gateway, page by page, and things by id, prefix or name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from kubevnfm_cli.faults import Fault, Refused, UsageFault
from kubevnfm_cli.gateway import Gateway
from kubevnfm_cli.json_types import JsonObject, objects
from kubevnfm_cli.names import nearest
from kubevnfm_cli.nouns import WORDS, Noun, nameless
from kubevnfm_cli.terminal import printable

MOST: Final = 1000
LEAST: Final = 4
"""Characters of the beginning of an id: a shorter word is more likely a name that is no longer there."""
LEAST_TO_END: Final = 8
"""For what cannot be undone: an id can begin with a name such as ``cafe`` or ``db01``."""
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_SHOWN: Final = 10
_COMPARED: Final = 100
"""Things whose names are compared with one that is not known: one page of a list."""
ALL: Final = 10_000_000
_MOST_PAGES: Final = 10_000
"""A list whose pages are empty has an end too."""


_Found = dict[str, object]
"""Names by id."""


class Listed(NamedTuple):
    """The things of a list."""

    body: Any
    """The body of the first page, with the things of all pages."""
    items: list[JsonObject]
    has_more: bool

    def with_items(self, items: list[JsonObject]) -> Listed:
        """Return a list that has these things."""
        return Listed(_whole(self.body, items), items, self.has_more)


def read_list(gateway: Gateway, noun: Noun, query: Mapping[str, str | Sequence[str]], limit: int = MOST) -> Listed:
    """Return a list's things, at most ``limit``. Raises Refused, Unreachable, Fault."""
    reply = gateway.get(noun.list_path, {"limit": str(min(limit, MOST)), **query})
    body = reply.json()
    items = noun.items(body)
    following = reply.next
    for _ in range(_MOST_PAGES):
        if not following or len(items) >= limit:
            break
        reply = gateway.get(following)
        items += noun.items(reply.json())
        following = reply.next
    has_more = bool(following) or len(items) > limit
    return Listed(_whole(body, items[:limit]), items[:limit], has_more)


def _whole(body: Any, items: list[JsonObject]) -> Any:
    if not isinstance(body, dict):
        return items
    return {**{key: value for key, value in body.items() if key != "next"}, "items": items}


def read_one(gateway: Gateway, noun: Noun, identifier: str) -> JsonObject:
    """Return the body of one thing. Raises Refused, Unreachable, Fault."""
    return gateway.get(one_path(noun, identifier)).object()


def read_row(gateway: Gateway, noun: Noun, identifier: str) -> JsonObject:
    """Return a thing as lists show it, which know more than SOL003; without a name, as it is. Raises as `read_one`."""
    if noun.id_in_events and (rows := read_some(gateway, noun, {}, [identifier])):
        return rows[0]
    item = noun.item(read_one(gateway, noun, identifier))
    name = noun.name_of(item)
    if not noun.one_path or not name:
        return item
    rows = read_list(gateway, noun, {"name": str(name)}).items
    return next((row for row in rows if noun.table.id_of(row) == identifier), item)


def read_some(
    gateway: Gateway, noun: Noun, query: Mapping[str, str | Sequence[str]], ids: Sequence[str]
) -> list[JsonObject]:
    """Return the things of a list that have these ids, at most 100. Raises as `read_one`."""
    rows = read_list(gateway, noun, {**query, "id": ids}).items
    # An older gateway returns others too.
    return [row for row in rows if noun.table.id_of(row) in ids]


def one_path(noun: Noun, identifier: str) -> str:
    """Return the path of one thing; the id of a region has a slash, which stays."""
    return f"{noun.one_path or noun.list_path}/{quote(identifier)}"


def changed_path(noun: Noun, identifier: str = "") -> str:
    """Return the path at which things of a kind are created, or one is deleted."""
    base = noun.api_path or noun.one_path or noun.list_path
    return f"{base}/{quote(identifier)}" if identifier else base


def resolve(gateway: Gateway, noun: Noun, text: str, *, least: int = LEAST) -> str:
    """Return the id of what a person calls by id, by at least ``least`` characters of its beginning, or by name.

    Raises UsageFault with the candidates if it is ambiguous, Fault if there is none.
    """
    text = text.removeprefix(f"{noun.name}/")
    if not text:
        raise UsageFault(f"an id or a name of a {noun.name} expected")
    word, _, rest = text.partition("/")
    if word in WORDS and _UUID.fullmatch(rest):  # of -o name
        raise UsageFault(f"{printable(text)}: a {noun.name} expected; a command is about things of one kind")
    if _UUID.fullmatch(text):
        return text.lower()
    exact, begins = _matching(gateway, noun, text)
    found = exact or (begins if len(text) >= least else {})
    if not found:
        short = f" (at least {least} characters of it)" if len(text) < least else ""
        named = f"the name {printable(text)}, or " if noun.name_of is not nameless else ""
        begun = "an id that begins so" if named else f"an id that begins with {printable(text)}"
        way = _near(gateway, noun, text) or f"; kubevnfm get {noun.name} lists what there is"
        raise Refused(404, f"no {noun.name} has {named}{begun}{short}{way}")
    return _only(text, found)


def _near(gateway: Gateway, noun: Noun, text: str) -> str:
    """Return the end of a message about a name that is not known: the nearest one among the newest things; "" if none is."""
    try:
        rows = read_list(gateway, noun, {}, _COMPARED).items
    except Fault:  # the message is about the name
        return ""
    near = nearest(text, [str(name) for row in rows if (name := noun.name_of(row))])
    return f"; did you mean {printable(near)}?" if near else ""


def named(gateway: Gateway, noun: Noun, text: str) -> str | None:
    """Return the id of the thing with that very name, or id; None if there is none. Raises UsageFault if it is ambiguous."""
    exact = _matching(gateway, noun, text)[0] if text else {}
    return _only(text, exact) if exact else None


def _only(text: str, found: _Found) -> str:
    if len(found) > 1:
        shown = ", ".join(f"{one} ({name})" if name else one for one, name in list(found.items())[:_SHOWN])
        more = " and more" if len(found) > _SHOWN else ""
        raise UsageFault(f"{printable(text)} is ambiguous: {printable(shown, 2000)}{more}")
    return next(iter(found))


def _matching(gateway: Gateway, noun: Noun, text: str) -> tuple[_Found, _Found]:
    """Return the one with that id, or those with that name; and those whose id begins so."""
    body = gateway.get("/kubevnfm/v1/search", {"q": text, "kind": noun.searched_as}).object()
    for away in objects(body.get("away")):
        raise Fault(f"{noun.name} {printable(text)} cannot be looked up: {printable(away.get('text'))}")
    hits = objects(body.get("items"))

    def named(found_by: str, *, is_exact: bool) -> dict[str, object]:
        return {
            str(hit.get("id")): hit.get("name")
            for hit in hits
            if hit.get("foundBy") == found_by and hit.get("isExact") is is_exact
        }

    by_name = {} if noun.name == "op" else named("name", is_exact=True)
    exact = named("id", is_exact=True) or by_name or named("vnfdId", is_exact=True)
    return exact, named("id", is_exact=False)


def pairs(words: Sequence[str], option: str) -> dict[str, list[str]]:
    """Return ``NAME=VALUE`` words by name. Raises UsageFault."""
    read: dict[str, list[str]] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise UsageFault(f"{option} {printable(word)}: NAME=VALUE expected")
        read.setdefault(name, []).append(value)
    return read
