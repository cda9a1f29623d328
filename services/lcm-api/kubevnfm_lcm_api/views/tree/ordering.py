"""Puts problems first, passes them up, and groups what is equal and without a problem."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from kubevnfm_lcm_api.views.tree.model import ORDER, Node, gravest

FEWEST: Final = 11
"""Fewer equal ones are listed one by one."""
_OTHERS: Final = frozenset({"vnf"})
"""A cluster is not ill because a VNF on it is."""
_PLURALS: Final = {"Ingress": "Ingresses", "NetworkPolicy": "NetworkPolicies", "StorageClass": "StorageClasses"}


def arrange(node: Node, *, group: bool) -> None:
    """Put the children of the node, and of all below it, in order; group equal ones if that is wanted; pass healths up."""
    for each in node.children:
        arrange(each, group=group)
    node.health = gravest([node.health, *(each.health for each in node.children if each.kind not in _OTHERS)])
    # `sort` keeps the order of those with the same health.
    node.children.sort(key=lambda each: ORDER.index(each.health))
    if group:
        node.children = _grouped(node.children)


def _grouped(children: Sequence[Node]) -> list[Node]:
    """Return the children with each large group of equal ones as one node, in the place of the first of them."""
    if len(children) < FEWEST:
        return [*children]
    alike: dict[tuple[object, ...], list[Node]] = defaultdict(list)
    for each in children:
        if is_groupable(each):
            alike[_likeness(each)].append(each)
    large = {key: group for key, group in alike.items() if len(group) >= FEWEST}
    shown: list[Node] = []
    for each in children:
        key = _likeness(each) if is_groupable(each) else ()
        if key not in large:
            shown.append(each)
        elif each is large[key][0]:
            shown.append(_group(large[key]))
    return shown


def is_groupable(node: Node) -> bool:
    """Return whether the node may be shown as one of many: neither it nor anything below it has a problem, or changes now."""
    return (
        node.health in {"ok", "unknown"}
        and node.kind not in {"operation", "more", "workload-cluster"}
        and all(is_groupable(each) for each in node.children)
    )


def _likeness(node: Node) -> tuple[object, ...]:
    return node.kind, node.type, node.role, node.state, node.health, node.text, node.node_state


def _group(members: Sequence[Node]) -> Node:
    first = members[0]
    what = "VNFs" if first.kind == "vnf" else plural(first.type or first.kind)
    return Node(
        kind=first.kind,
        name=f"{len(members)} {what}" + (f" of {first.role}" if first.role else ""),
        type=first.type,
        role=first.role,
        state=first.state,
        health=first.health,
        text=first.text,
        count=len(members),
        node_state=first.node_state,
    )


def plural(noun: str) -> str:
    """Return the plural of a kind's name."""
    if noun in _PLURALS:
        return _PLURALS[noun]
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("s", "x", "ch")) else f"{noun}s"
