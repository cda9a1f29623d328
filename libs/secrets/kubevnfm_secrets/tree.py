"""Secrets inside free-form JSON (KeyValuePairs): found by attribute name, held as Secret leaves."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import NoneType
from typing import Annotated, Any, Final

from kubevnfm_kit.json_types import JsonObject
from pydantic import BeforeValidator, PlainSerializer, SerializationInfo, WithJsonSchema

from kubevnfm_secrets.keyring import KeyRing
from kubevnfm_secrets.secret import MASK, SEALED_KEY, Secret, ring_of

_SECRET_NAME = re.compile(
    r"(pass(word|wd|phrase)|secret|token|private_?key|client_?key|certificate_?key|access_?key|api_?key|kubeconfig"
    r"|credentials?)$",
    re.IGNORECASE,
)
_CREDENTIALS_IN_URL = re.compile(r"^[a-z][a-z0-9+.-]*://[^/@\s]+@", re.IGNORECASE)
"""``scheme://user:password@host``, as proxy settings carry it."""


_LEAVES: Final = frozenset({str, int, float, bool, NoneType})
"""Types of most nodes of a tree. A set look-up is much faster than isinstance with the abstract Mapping."""


def hide(tree: Any) -> Any:
    """Return the JSON tree with every secret text as a Secret: by attribute name, or a URL with credentials.

    Below a secret name everything is hidden except booleans and nulls: numbers too, and the leaves of objects and arrays.
    """
    return _hide(tree, is_secret=False)


def _hide(node: Any, *, is_secret: bool) -> Any:
    if isinstance(node, Secret) or node is None:
        return node
    if type(node) not in _LEAVES and isinstance(node, Mapping):
        return {
            name: _hide(value, is_secret=is_secret or bool(_SECRET_NAME.search(str(name))))
            for name, value in node.items()
        }
    if isinstance(node, list | tuple):
        return [_hide(value, is_secret=is_secret) for value in node]
    # A boolean below a secret name is a switch and no secret.
    if is_secret and not isinstance(node, bool):
        return Secret(str(node))
    if isinstance(node, str) and _CREDENTIALS_IN_URL.match(node):
        return Secret(node)
    return node


def map_secrets(tree: Any, change: Callable[[Secret], Any]) -> Any:
    """Return the tree with every Secret leaf replaced by ``change`` of it."""
    if type(tree) in _LEAVES:
        return tree
    if isinstance(tree, Secret):
        return change(tree)
    if isinstance(tree, Mapping):
        return {name: map_secrets(value, change) for name, value in tree.items()}
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
        return {name: opened(value) for name, value in tree.items()}
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
        return sealed(tree, ring)
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
