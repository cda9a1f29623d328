"""Variables in the scalars of manifests (multicloud.md chapter 5): ``$name``, ``${name.member}`` and ``${name:-default}``.

The documents are parsed first, so a value can break neither the structure of a manifest nor its quoting.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, Final

from kubevnfm_kit.errors import Unprocessable
from kubevnfm_kit.foreign_yaml.kubernetes import plain_value
from kubevnfm_kit.json_pointer import Place, escaped

from kubevnfm_csar.manifest_limits import LONGEST_PROBLEM, MOST_CHARACTERS, MOST_NODES, MOST_PROBLEMS

VALUES: Final = "additionalParams/values"
"""The field of the request that gives the values."""
SUBSTITUTE_ANNOTATION: Final = "kubevnfm.io/substitute"
NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
"""Also those of charts in a chart, such as ``nginx-ingress``; ``$name`` ends before a ``-``, ``${name}`` does not."""
RESERVED: Final = (
    "namespace", "vnf_id", "vnf_instance_name", "cloud_owner", "cloud_region", "cloud_region_id", "csar_id",
)  # fmt: skip
"""The names that are always defined (MC-028)."""
LARGEST_TEXT: Final = 2**20
"""Characters of a text among the values."""
_SECRET_PLACES: Final = frozenset({"data", "stringData"})
"""The members of a Secret whose values are never shown; its name and labels are in lists and events."""
VARIABLE: Final = re.compile(
    r"\$(?:(?P<escaped>\$)|(?P<braced>\{(?P<path>[A-Za-z_][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*)(?::-(?P<default>[^{}]*))?\})"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<wrong>\{))"
)
"""``$(`` and other characters after a ``$`` are none of its forms, and stay.

A default has no brace: a text of nothing but ``${a:-`` would otherwise be read to its end once for each of them.
"""


@dataclass(frozen=True)
class Hidden:
    """A secret value, in clear while it is filled in."""

    text: str = field(repr=False)


@dataclass(frozen=True)
class _Size:
    """The amount that a value adds to a manifest."""

    nodes: int
    characters: int
    is_secret: bool
    """Whether a secret value is in it."""


def merged(defaults: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values with those given in the place of defaults; maps are merged member by member."""
    found = dict(defaults)
    for name, value in given.items():
        before = found.get(name)
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            found[name] = merged(before, value)
        else:
            found[name] = value
    return found


@dataclass
class Filling:
    """Replaces the variables of one set of manifests, and collects what is wrong with all of them."""

    values: Mapping[str, Any]
    """By name; secret ones are `Hidden`."""
    named: set[str] = field(default_factory=set)
    """The variables that are there."""
    _problems: dict[str, None] = field(default_factory=dict)
    _sizes: dict[str, _Size] = field(default_factory=dict)
    """By name, because a large value may be in thousands of places."""
    _characters: int = 0
    _nodes: int = 0
    _is_full: bool = False

    def filled(self, body: Any, place: str) -> Any:
        """Return a manifest with its variables replaced; ``place``: its file and document, for messages."""
        if not isinstance(body, Mapping) or is_switched_off(body):
            return body
        is_secret = (body.get("apiVersion"), body.get("kind")) == ("v1", "Secret")
        return self._map(body, place, None, secret_in=_SECRET_PLACES if is_secret else frozenset())

    def check(self) -> None:
        """Raise Unprocessable naming all places that could not be filled in; never with a value."""
        if self._problems:
            first, *more = ((VALUES, problem) for problem in self._problems)
            raise Unprocessable(*first, *more)

    def _node(self, node: Any, place: str, path: Place, *, is_secret: bool) -> Any:
        if isinstance(node, str):
            return self._scalar(node, place, path, is_secret=is_secret) if "$" in node else node
        if isinstance(node, Mapping):
            return self._map(node, place, path, secret_in=node.keys() if is_secret else frozenset())
        if isinstance(node, list):
            return [self._node(value, place, Place(path, f"/{n}"), is_secret=is_secret) for n, value in enumerate(node)]
        return node

    def _map(self, node: Mapping[str, Any], place: str, path: Place | None, *, secret_in: Set[str]) -> dict[str, Any]:
        """Return a map with its variables replaced; ``secret_in``: the members that may have secret values."""
        found: dict[str, Any] = {}
        for name, value in node.items():
            here = Place(path, f"/{escaped(name)}")
            # Errors and lists of changes name keys, so no key is secret.
            key = self._inserted(name, place, here, is_secret=False) if "$" in name else name
            if key in found:
                self._note(place, here, "this key is there twice once the variables are filled in")
            found[key] = self._node(value, place, here, is_secret=name in secret_in)
        return found

    def _scalar(self, text: str, place: str, path: Place, *, is_secret: bool) -> Any:
        whole = VARIABLE.fullmatch(text)
        if whole is None or whole["escaped"] or whole["wrong"]:
            return self._inserted(text, place, path, is_secret=is_secret)
        # The value keeps its type.
        return _opened(self._value(whole, place, path, is_secret=is_secret))

    def _inserted(self, text: str, place: str, path: Place, *, is_secret: bool) -> str:
        def insert(found: re.Match[str]) -> str:
            if found["escaped"]:
                return "$"
            if found["wrong"]:
                rest = text[found.start() : found.start() + 40].partition("\n")[0]
                self._note(place, path, f"{rest} is not understood; ${{name}} or $${{ expected")
                return ""
            value = self._value(found, place, path, is_secret=is_secret)
            if isinstance(value, Mapping | list):
                self._note(place, path, f"{name_in(found)} is a list or an object, which cannot be part of a text")
                return ""
            return _text(_opened(value))

        return VARIABLE.sub(insert, text)

    def _value(self, found: re.Match[str], place: str, path: Place, *, is_secret: bool) -> Any:
        name = name_in(found)
        self.named.add(name)
        try:
            value = _at(self.values, name.split("."))
        except KeyError:
            default = found["default"]
            if default is None:
                self._note(place, path, f"no value for {name}")
                return ""
            return _as_written(default)
        size = self._sizes.get(name)
        if size is None:
            size = self._sizes[name] = _size(value)
        if size.is_secret and not is_secret:
            self._note(
                place, path, f"{name} is secret, and a secret value may be in data and stringData of a Secret alone"
            )
            return ""
        return value if self._has_room(size, place, path) else ""

    def _has_room(self, size: _Size, place: str, path: Place) -> bool:
        """Count a value that is filled in; return whether all of them together are within the limits."""
        self._characters += size.characters
        self._nodes += size.nodes
        if self._characters <= MOST_CHARACTERS and self._nodes <= MOST_NODES:
            return True
        if not self._is_full:
            self._is_full = True
            self._note(
                place,
                path,
                f"more than {MOST_CHARACTERS} characters or {MOST_NODES} members of lists and objects"
                " once the variables are filled in",
            )
        return False

    def _note(self, place: str, path: Place, problem: str) -> None:
        if len(self._problems) < MOST_PROBLEMS:
            self._problems[f"{place}: {path.start(LONGEST_PROBLEM)}: {problem}"[:LONGEST_PROBLEM]] = None


def check_values(given: object) -> Mapping[str, Any]:
    """Return the values that a request gives. Raises Unprocessable naming each that is not as expected; never with a value."""
    if not isinstance(given, Mapping):
        raise Unprocessable(VALUES, "an object with one member for each variable expected")
    wrong: list[tuple[str, str]] = []
    for name, value in given.items():
        place = f"{VALUES}/{name}"
        if NAME.fullmatch(name) is None:
            wrong.append((place, "a name of letters, digits, _ and - expected, not first a digit or a -"))
        elif name in RESERVED and name != "namespace":
            wrong.append((place, "a reserved name, which is always defined: leave it out"))
        elif _longest(value) > LARGEST_TEXT:
            wrong.append((place, f"a text of at most {LARGEST_TEXT} characters expected"))
    if wrong:
        raise Unprocessable(*wrong[0], *wrong[1:MOST_PROBLEMS])
    return given


def _at(values: Mapping[str, Any], path: Sequence[str]) -> Any:
    node: Any = values
    for name in path:
        if not isinstance(node, Mapping) or name not in node:
            raise KeyError(name)
        node = node[name]
    return node


def name_in(found: re.Match[str]) -> str:
    """Return the name of a variable; "" for what is none."""
    return found["path"] or found["name"] or ""


def is_switched_off(body: Mapping[str, Any]) -> bool:
    """Return whether an object says that nothing in it is replaced (MC-027)."""
    metadata = body.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    return isinstance(annotations, Mapping) and annotations.get(SUBSTITUTE_ANNOTATION) == "false"


def _as_written(default: str) -> Any:
    """Return a default as kubectl reads a scalar without quotes."""
    try:
        return plain_value(default) if default else ""
    except ValueError:
        return default


def _text(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _size(value: Any) -> _Size:
    if isinstance(value, Hidden):
        return _Size(0, len(value.text), is_secret=True)
    if isinstance(value, Mapping):
        sizes = [_size(each) for each in value.values()]
        names = sum(map(len, value))
    elif isinstance(value, list | tuple):
        sizes, names = [_size(each) for each in value], 0
    else:
        return _Size(0, len(_text(value)), is_secret=False)
    return _Size(
        len(sizes) + sum(each.nodes for each in sizes),
        names + sum(each.characters for each in sizes),
        is_secret=any(each.is_secret for each in sizes),
    )


def _opened(value: Any) -> Any:
    """Return a value as it is in a manifest."""
    if isinstance(value, Mapping):
        return {name: _opened(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_opened(each) for each in value]
    return value.text if isinstance(value, Hidden) else value


def _longest(value: Any) -> int:
    if isinstance(value, Mapping):
        return max((_longest(each) for each in value.values()), default=0)
    if isinstance(value, list | tuple):
        return max((_longest(each) for each in value), default=0)
    return len(value) if isinstance(value, str) else 0
