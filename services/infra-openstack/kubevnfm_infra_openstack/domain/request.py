"""Brings a request of the v1 API (SOL003 v2.6.1: lists) into the shape of v2 (SOL003 v3.3.1: maps)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def as_v3(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the InstantiateVnfRequest with ``cpConfig`` and ``vimConnectionInfo`` as maps; a v2 request as it is."""
    changed = dict(request)
    if isinstance(changed.get("extVirtualLinks"), Sequence):
        changed["extVirtualLinks"] = [_link(link) for link in changed["extVirtualLinks"]]
    if isinstance(changed.get("vimConnectionInfo"), list):
        changed["vimConnectionInfo"] = _by_id(changed["vimConnectionInfo"], "id", "vim")
    return changed


def _link(link: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**link, "extCps": [_cp(cp) for cp in link.get("extCps") or ()]}


def _cp(cp: Mapping[str, Any]) -> Mapping[str, Any]:
    config = cp.get("cpConfig")
    return {**cp, "cpConfig": _by_id(config, "cpInstanceId", "cp")} if isinstance(config, list) else cp


def _by_id(items: Sequence[Mapping[str, Any]], name: str, otherwise: str) -> dict[str, Any]:
    return {str(item.get(name) or f"{otherwise}{number}"): dict(item) for number, item in enumerate(items, start=1)}
