"""Converts a request of the v1 API (SOL003 v2.6.1: lists) to the form of v2 (SOL003 v3.3.1: maps)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

SolObject = Mapping[str, Any]
"""A SOL003 object in JSON form. lcm-api has checked it against the standard's types before it sent it."""


def as_v3(request: SolObject) -> dict[str, Any]:
    """Return the request with ``cpConfig`` and ``vimConnectionInfo`` as maps; a v2 request is returned unchanged."""
    changed = dict(request)
    if isinstance(changed.get("extVirtualLinks"), Sequence):
        changed["extVirtualLinks"] = [_link(link) for link in changed["extVirtualLinks"]]
    if isinstance(changed.get("vimConnectionInfo"), list):
        changed["vimConnectionInfo"] = _by_id(changed["vimConnectionInfo"], "id", "vim")
    return changed


def _link(link: SolObject) -> SolObject:
    return {**link, "extCps": [_cp(cp) for cp in link.get("extCps") or ()]}


def _cp(cp: SolObject) -> SolObject:
    config = cp.get("cpConfig")
    if not isinstance(config, list):
        return cp
    # v1 makes the id optional. Without it, the key is the one that lcm-api stores.
    names = [str(item.get("cpInstanceId") or f"{cp.get('cpdId', 'cp')}-{index}") for index, item in enumerate(config)]
    return {**cp, "cpConfig": dict(zip(names, map(dict, config), strict=True))}


def _by_id(items: Sequence[SolObject], name: str, otherwise: str) -> dict[str, object]:
    # v1 makes these ids optional, but a map needs a key for each entry.
    return {str(item.get(name) or f"{otherwise}{number}"): dict(item) for number, item in enumerate(items, start=1)}
