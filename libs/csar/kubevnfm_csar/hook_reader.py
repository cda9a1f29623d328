"""Reads the members ``hook``, ``hook_delete`` and ``on`` of an order artifact (multicloud.md MC-141)."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final, TypeVar

from kubevnfm_csar.hooks import APPLIES, OF_ORDERS, USUAL_DELETE, Hook, HookDelete, Occasion, Point, a_hook
from kubevnfm_csar.order_members import ON_IN_YAML, OrderMembers

MEMBERS: Final = ("hook", "hook_delete", "on")
W = TypeVar("W", bound=StrEnum)


def read_hook(members: OrderMembers, body: dict[str, Any]) -> Hook | None:
    """Return the hook that the members of an artifact or object say it is; None if they say nothing of it."""
    if "hook" not in body:
        for name in (*MEMBERS[1:], ON_IN_YAML):
            if name in body:
                members.wrong(members.line(body, name), f"{_shown(name)}: expected with hook alone")
        return None
    point = _word(body["hook"], Point)
    if point not in OF_ORDERS:
        members.wrong(members.line(body, "hook"), f"hook: one of {', '.join(OF_ORDERS)} expected")
        return None
    occasions, delete = frozenset(Occasion), USUAL_DELETE
    on = next((name for name in ("on", ON_IN_YAML) if name in body), None)
    if on is not None:
        occasions = _words(members, body, on, Occasion)
        if point not in APPLIES:
            members.wrong(members.line(body, on), f"on: expected with {' and '.join(sorted(APPLIES))} alone")
    if "hook_delete" in body:
        delete = _words(members, body, "hook_delete", HookDelete)
    return a_hook(point, occasions, delete)


def _words(members: OrderMembers, body: dict[str, Any], name: str, words: type[W]) -> frozenset[W]:
    given = body[name]
    found = [_word(each, words) for each in given] if isinstance(given, list) else []
    if not found or None in found:
        members.wrong(members.line(body, name), f"{_shown(name)}: a list expected with {', '.join(words)}")
    return frozenset(each for each in found if each is not None)


def _word(given: object, words: type[W]) -> W | None:
    return words(given) if isinstance(given, str) and given in list(words) else None


def _shown(name: str) -> str:
    return "on" if name == ON_IN_YAML else name
