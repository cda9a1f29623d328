"""The nodes of a tree: `Node` as it is made, `TreeNode` as the document describes it.

A VNF may have thousands of parts, and to make one of pydantic's models for each takes ten times as long.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from kubevnfm_clients.multicloud.object_health import Health
from kubevnfm_kit.json_types import JsonObject

from kubevnfm_lcm_api.http.models import Shown
from kubevnfm_lcm_api.views.instance_rows import DriftMark

NodeKind = Literal[
    "vnf",
    "operation",
    "stack",
    "server",
    "network",
    "volume",
    "release",
    "object",
    "hook",
    "pod",
    "workload-cluster",
    "machine",
    "vim",
    "virtual-link",
    "persistent-volume",
    "more",
]
ORDER: Final[Sequence[Health]] = ("problem", "progressing", "unknown", "ok")
"""The gravest first."""


class TreeNode(Shown):
    """A part of a VNF, or something that belongs to it."""

    kind: NodeKind
    """``more``: further ones, which are not listed."""
    id: str | None = None
    name: str
    type: str | None = None
    """The kind of a Kubernetes object, ``Deployment``; of a VNF, ``cluster``; of a VIM, ``kubernetes``."""
    role: str | None = None
    """The role of a machine: ``master``, ``worker``, ``storage``, ``control-plane``; for a pod, an object and any other server, its VDU."""
    state: str | None = None
    """In the words of its owner."""
    health: Health
    """The gravest of its own and of those below it; the VNFs on a VIM do not count."""
    text: str | None = None
    """Why its own health is not ``ok``, in one sentence."""
    since: str | None = None
    """Since when that is so."""
    count: int | None = None
    """So many equal ones without a problem stand in this node."""
    addresses: list[str] | None = None
    place: str | None = None
    """The host of a server, the node of a pod or the Kubernetes node that a machine is."""
    nodeState: Literal["Ready", "NotReady"] | None = None  # noqa: N815  # as it is on the wire
    """The state of a machine as a node of its Kubernetes cluster, as last seen."""
    vimId: str | None = None  # noqa: N815  # as it is on the wire
    """The VIM that it is on."""
    href: str | None = None
    drift: DriftMark | None = None
    children: list[TreeNode]
    """Those with a problem first."""


class TreeView(Shown):
    """The tree of a VNF instance."""

    sequence: str
    """The place in the event stream: sent as ``Last-Event-ID``, the stream goes on from this state."""
    root: TreeNode


@dataclass(slots=True)
class Node:
    """A part of a tree while that is made; the attributes are those of `TreeNode`."""

    kind: NodeKind
    name: str
    health: Health
    id: str | None = None
    type: str | None = None
    role: str | None = None
    state: str | None = None
    text: str | None = None
    since: str | None = None
    count: int | None = None
    addresses: list[str] | None = None
    place: str | None = None
    node_state: Literal["Ready", "NotReady"] | None = None
    vim_id: str | None = None
    href: str | None = None
    drift: DriftMark | None = None
    children: list[Node] = field(default_factory=list)

    def shown(self) -> JsonObject:
        """Return it with all below it as it is on the wire."""
        found: JsonObject = {"kind": self.kind, "name": self.name, "health": self.health}
        for attribute, name in _OPTIONAL:
            if (value := getattr(self, attribute)) is not None:
                found[name] = value
        if self.drift is not None:
            found["drift"] = self.drift.model_dump(mode="json", exclude_none=True)
        found["children"] = [each.shown() for each in self.children]
        return found


_OPTIONAL: Final = (
    *((name, name) for name in ("id", "type", "role", "state", "text", "since", "count", "addresses", "place", "href")),
    ("node_state", "nodeState"),
    ("vim_id", "vimId"),
)
"""Attributes that are left out if they are not known, with their names on the wire."""


def gravest(healths: Iterable[Health]) -> Health:
    """Return the gravest health; ``ok`` of none."""
    return min(healths, key=ORDER.index, default="ok")
