"""The tree of a VNF as lines, as ``clusterctl describe`` draws one: problems first (the gateway has sorted it), equal things grouped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubevnfm_cli.json_types import JsonObject, objects, part
from kubevnfm_cli.nouns import ago
from kubevnfm_cli.output import colour_of
from kubevnfm_cli.terminal import Screen, printable, width_of

_MARKS: Final = {"problem": ("✗", "red"), "progressing": ("▸", "yellow"), "unknown": ("?", "dim"), "ok": ("✓", "green")}
_DEEPEST: Final = 32
_TEXT: Final = 500
_LONGEST_NAME: Final = 48
_END: Final = 26
"""The end of a long name, which is what differs among its siblings."""


def tree_text(screen: Screen, root: JsonObject) -> str:
    """Return a tree: name, state, since when, place and addresses, and why a part is not well."""
    rows = list(_rows(root, "", "", 0))
    names = max((width_of(f"{stem}{_name(node)}") for stem, node in rows), default=0)
    states = max((len(_state(node)) for _, node in rows), default=0)
    lines = []
    for stem, node in rows:
        mark, colour = _MARKS.get(str(node.get("health")), _MARKS["unknown"])
        name, state = _name(node), _state(node)
        padding = " " * (names - width_of(f"{stem}{name}"))
        shown_state = screen.paint(state, colour if node.get("health") != "ok" else colour_of(state))
        since = ago(node.get("since")) or ""
        line = (
            f"{screen.paint(stem, 'dim')}{screen.paint(mark, colour)} {name}{padding}  {shown_state}"
            f"{' ' * (states - len(state))}  {since:<6}  {_facts(node)}"
        ).rstrip()
        lines.append(line)
        if node.get("text"):
            lines.append(f"{' ' * (len(stem) + 4)}{screen.paint(printable(node['text'], _TEXT), colour)}")
        if node.get("drift"):
            said = part(node, "drift", "reason") or part(node, "drift", "state") or "drifted"
            lines.append(f"{' ' * (len(stem) + 4)}{screen.paint(f'drift: {printable(said, _TEXT)}', 'yellow')}")
    return "".join(f"{line}\n" for line in lines)


def _rows(node: JsonObject, stem: str, below: str, depth: int) -> Iterator[tuple[str, JsonObject]]:
    yield stem, node
    if depth >= _DEEPEST:
        return
    children = objects(node.get("children"))
    for place, child in enumerate(children, 1):
        is_last = place == len(children)
        yield from _rows(child, f"{below}{'└─' if is_last else '├─'}", f"{below}{'  ' if is_last else '│ '}", depth + 1)


def _name(node: JsonObject) -> str:
    # `OS::Nova::Server` is a server.
    kind = printable(node.get("type") or node.get("kind")).rpartition("::")[2]
    name = printable(node.get("name"))
    if len(name) > _LONGEST_NAME:
        name = f"{name[: _LONGEST_NAME - _END - 1]}…{name[-_END:]}"
    count = node.get("count")
    return f"{count} {kind}s {name}" if isinstance(count, int) else f"{kind}/{name}"


def _state(node: JsonObject) -> str:
    return printable(node.get("state") or node.get("health") or "", 60)


def _facts(node: JsonObject) -> str:
    addresses = node.get("addresses")
    facts = [
        printable(node["role"]) if node.get("role") else "",
        f"node {printable(node['nodeState'])}" if node.get("nodeState") else "",
        f"on {printable(node['place'])}" if node.get("place") else "",
        ", ".join(printable(one) for one in addresses[:4]) if isinstance(addresses, list) else "",
    ]
    return "  ".join(fact for fact in facts if fact)
