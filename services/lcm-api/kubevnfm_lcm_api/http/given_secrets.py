"""``{"$secret": "text"}``: a value of a request that is secret whatever its name is (multicloud.md MC-030)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kubevnfm_csar.manifest_limits import LONGEST_PROBLEM, MOST_PROBLEMS
from kubevnfm_csar.manifest_values import LARGEST_TEXT
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_kit.json_pointer import Place, escaped
from kubevnfm_secrets import Secret, is_mask

_GIVEN: Final = "$secret"


def with_secrets(document: Any, member: Sequence[str]) -> Any:
    """Return a document with a Secret for each ``{"$secret": "text"}`` in one of its members, which ``member`` leads to.

    An object with more members is left as it is: its name is refused with all others that begin with ``$``.
    Raises Unprocessable naming the first whose value cannot be one, never with it.
    """
    wrong: list[tuple[str, str]] = []
    found = _inside(document, list(member), None, wrong)
    if wrong:
        raise Unprocessable(*wrong[0], *wrong[1:])
    return found


def _inside(node: Any, member: Sequence[str], place: Place | None, wrong: list[tuple[str, str]]) -> Any:
    if not member and isinstance(node, dict):
        # Not the member itself: it has names with values.
        return {name: _replaced(value, Place(place, f"/{escaped(name)}"), wrong) for name, value in node.items()}
    if not member:
        return node
    if not isinstance(node, dict) or member[0] not in node:
        return node
    here = Place(place, member[0] if place is None else f"/{member[0]}")
    return {**node, member[0]: _inside(node[member[0]], member[1:], here, wrong)}


def _replaced(node: Any, place: Place, wrong: list[tuple[str, str]]) -> Any:
    if isinstance(node, list):
        return [_replaced(value, Place(place, f"[{index}]"), wrong) for index, value in enumerate(node)]
    if not isinstance(node, dict):
        return node
    if node.keys() != {_GIVEN}:
        return {name: _replaced(value, Place(place, f"/{escaped(name)}"), wrong) for name, value in node.items()}
    text = node[_GIVEN]
    if not isinstance(text, str) or len(text) > LARGEST_TEXT:
        _note(place, f"a text of at most {LARGEST_TEXT} characters expected", wrong)
    elif is_mask(text):
        # A client sends back what it was shown.
        _note(place, "the value itself expected, not what is shown in its place", wrong)
    return Secret(text) if isinstance(text, str) else None


def _note(place: Place, reason: str, wrong: list[tuple[str, str]]) -> None:
    if len(wrong) < MOST_PROBLEMS:
        wrong.append((place.start(LONGEST_PROBLEM), f"{_GIVEN}: {reason}"))
