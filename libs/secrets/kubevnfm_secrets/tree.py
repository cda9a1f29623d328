"""Secrets inside free-form JSON (KeyValuePairs): found by attribute name, held as Secret leaves."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from types import NoneType
from typing import Annotated, Any, Final

from kubevnfm_kit.json_types import JsonObject
from pydantic import BeforeValidator, PlainSerializer, SerializationInfo, WithJsonSchema

from kubevnfm_secrets.keyring import KeyRing
from kubevnfm_secrets.names import is_secret_name
from kubevnfm_secrets.secret import MASK, SEALED_KEY, Secret, names_of, ring_of

SECRET_NAMES: Final = "x_secret_names"  # noqa: S105 - the name of an attribute
"""An attribute of any object of a request: the names of further attributes in and below this object that are secret."""
_CREDENTIALS_IN_URL = re.compile(r"^[a-z][a-z0-9+.-]*://[^/@\s]+@", re.IGNORECASE)
"""``scheme://user:password@host``, as proxy settings carry it."""


_ASSIGNED = re.compile(
    r"(?:^|,)[ \t]{0,8}(?:--)?(\w[\w.\[\]\\/-]{0,255})=([a-z][a-z0-9+.-]{0,30}://[^/@\s]{1,1000}@)?", re.IGNORECASE
)
"""``name=value`` in a text, also several that are separated by commas, as arguments of programs are; the second group: the value is
a URL with credentials."""


_LEAVES: Final = frozenset({str, int, float, bool, NoneType})
"""Types of most nodes of a tree. A set look-up is much faster than isinstance with the abstract Mapping."""


def hide(tree: Any, names: Collection[str] = ()) -> Any:
    """Return the JSON tree with every secret text as a Secret: by attribute name, a URL with credentials, or, in a list, ``name=value``.

    Secret are the names that `is_secret_name` recognises, those in ``names`` (the package marks them), and those that an
    object of the tree lists under ``x_secret_names``. Below a secret name everything is hidden except booleans and nulls:
    numbers too, and the leaves of objects and arrays.
    """
    return _hide(tree, (frozenset(names),), is_secret=False)


def _hide(node: Any, names: tuple[frozenset[str], ...], *, is_secret: bool) -> Any:
    """Return a part of the tree; ``names``: those that each object around it lists, one by one, as a list may be long."""
    if isinstance(node, Secret) or node is None:
        return node
    if type(node) not in _LEAVES and isinstance(node, Mapping):
        listed = _listed(node)
        names = (*names, listed) if listed else names
        return {
            name: value
            if name == SECRET_NAMES
            else _hide(
                value, names, is_secret=is_secret or any(name in each for each in names) or is_secret_name(str(name))
            )
            for name, value in node.items()
        }
    if isinstance(node, list | tuple):
        return [
            Secret(value) if _assigns_secret(value, names) else _hide(value, names, is_secret=is_secret)
            for value in node
        ]
    # A boolean below a secret name is a switch and no secret.
    if is_secret and not isinstance(node, bool):
        return Secret(str(node))
    if isinstance(node, str) and _CREDENTIALS_IN_URL.match(node):
        return Secret(node)
    return node


def _assigns_secret(node: Any, names: tuple[frozenset[str], ...]) -> bool:
    """Return whether an item of a list gives something with a secret name a value, or anything a URL with credentials."""
    if not isinstance(node, str) or "=" not in node:
        return False
    found = _ASSIGNED.findall(node)
    return any(url or is_secret_name(name) or any(name in each for each in names) for name, url in found)


def listed_names(tree: Any) -> frozenset[str]:
    """Return the names that objects of the tree list as secret."""
    return _names_in(tree, _listed)


def _names_in(tree: Any, names_of: Callable[[Mapping[str, Any]], frozenset[str]]) -> frozenset[str]:
    """Return the names that ``names_of`` gives for the objects of the tree."""
    if type(tree) in _LEAVES:
        return frozenset()
    if isinstance(tree, Mapping):
        return names_of(tree).union(*(_names_in(value, names_of) for value in tree.values()))
    inner = tree if isinstance(tree, list | tuple) else ()
    return frozenset().union(*(_names_in(value, names_of) for value in inner))


def _listed(node: Mapping[str, Any]) -> frozenset[str]:
    listed = node.get(SECRET_NAMES)
    if not isinstance(listed, list):
        return frozenset()
    return frozenset(name for name in listed if isinstance(name, str))


def hidden_names(tree: Any) -> frozenset[str]:
    """Return the names of the attributes whose values are Secrets, or lists of them: to find copies of them in other trees."""
    return _names_in(tree, lambda node: frozenset(str(name) for name, value in node.items() if _is_hidden(value)))


def _is_hidden(value: Any) -> bool:
    return isinstance(value, Secret) or (isinstance(value, list | tuple) and any(map(_is_hidden, value)))


def map_secrets(tree: Any, change: Callable[[Secret], Any]) -> Any:
    """Return the tree with every Secret leaf replaced by ``change`` of it."""
    if type(tree) in _LEAVES:
        return tree
    if isinstance(tree, Secret):
        return change(tree)
    if isinstance(tree, Mapping):
        return {name: value if type(value) in _LEAVES else map_secrets(value, change) for name, value in tree.items()}
    if isinstance(tree, list | tuple):
        return [map_secrets(value, change) for value in tree]
    return tree


def mask(tree: Any) -> Any:
    """Return the tree with ``***`` for every secret."""
    return map_secrets(tree, lambda _: MASK)


def sealed(tree: Any, ring: KeyRing) -> Any:
    """Return the tree in the form of documents and messages."""
    return map_secrets(tree, lambda secret: secret.document(ring))


def revealed(tree: Any, ring: KeyRing) -> Any:
    """Return the tree in clear text: for the moment of use only."""
    return map_secrets(tree, lambda secret: secret.reveal(ring))


def opened(tree: Any) -> Any:
    """Return the tree of a document or message with its sealed values as Secret leaves again."""
    if type(tree) in _LEAVES:
        return tree
    if isinstance(tree, Mapping):
        if len(tree) == 1 and isinstance(tree.get(SEALED_KEY), str):
            return Secret.from_sealed(tree[SEALED_KEY])
        # Most values are leaves: calls for them would be three quarters of all.
        return {name: value if type(value) in _LEAVES else opened(value) for name, value in tree.items()}
    if isinstance(tree, list | tuple):
        return [opened(value) for value in tree]
    return tree


def without_secrets(tree: Any) -> Any:
    """Return the tree with its secrets left out (SOL003 V3.7.1 clause 4.4.1: sensitive information)."""
    if type(tree) in _LEAVES:
        return tree
    if isinstance(tree, Mapping):
        return {name: without_secrets(value) for name, value in tree.items() if not isinstance(value, Secret)}
    if isinstance(tree, list | tuple):
        return [without_secrets(value) for value in tree if not isinstance(value, Secret)]
    return tree


def _write(tree: Any, info: SerializationInfo) -> Any:
    ring = ring_of(info)
    if ring is not None:
        names = names_of(info)
        return sealed(hide(tree, names) if names else tree, ring)
    return mask(tree) if info.mode == "json" else tree


SecretParams = Annotated[
    JsonObject,
    BeforeValidator(opened),
    PlainSerializer(_write),
    WithJsonSchema(
        {"type": "object", "description": "KeyValuePairs; secret values are sealed", "additionalProperties": True}
    ),
]
"""KeyValuePairs with Secret leaves: sealed under ``sealing(ring)``, masked in plain JSON."""
