"""The text beside the tree of a VNF: its open alarms, and what kubevnfm has done or would have done for it by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kubevnfm_cli import lists
from kubevnfm_cli.faults import Refused
from kubevnfm_cli.gateway import Gateway
from kubevnfm_cli.nouns import ACTION, ALARM, Noun
from kubevnfm_cli.output import Column, table_text
from kubevnfm_cli.terminal import Screen

_MOST_ALARMS: Final = 20
_MOST_ACTIONS: Final = 5


def standing_text(screen: Screen, gateway: Gateway, identifier: str) -> str:
    """Return the open alarms and last automatic actions of a VNF as text; "" if it has none. Raises Refused, Unreachable, Fault."""
    alarms = {"object": identifier, "state": "OPEN"}
    return _listed(screen, gateway, ALARM, alarms, _MOST_ALARMS, "open alarms") + _listed(
        screen, gateway, ACTION, {"vnfInstanceId": identifier}, _MOST_ACTIONS, "automatic actions"
    )


def _listed(screen: Screen, gateway: Gateway, noun: Noun, query: Mapping[str, str], most: int, title: str) -> str:
    try:
        found = lists.read_list(gateway, noun, query, most)
    except Refused as refused:
        if refused.is_older:
            return ""
        raise
    if not found.items:
        return ""
    more = ""
    if found.has_more:
        where = " ".join(f"--where {name}={value}" for name, value in query.items())
        more = f"there are more: kubevnfm get {noun.name} {where}\n"
    columns: Sequence[Column] = [each for each in noun.table.columns if each.title not in ("OF", "VNF")]
    return f"\n{screen.paint(f'{title}:', 'bold')}\n{table_text(screen, found.items, columns, is_wide=False)}{more}"
