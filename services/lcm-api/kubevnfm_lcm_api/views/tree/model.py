"""The nodes of a tree."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Literal

from pydantic import Field

from kubevnfm_lcm_api.http.models import Shown
from kubevnfm_lcm_api.views.instance_rows import DriftMark, Health

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


class Node(Shown):
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
    children: list[Node] = Field(default_factory=list)
    """Those with a problem first."""


class TreeView(Shown):
    """The tree of a VNF instance."""

    sequence: str
    """The place in the event stream: sent as ``Last-Event-ID``, the stream goes on from this state."""
    root: Node


def gravest(healths: Iterable[Health]) -> Health:
    """Return the gravest health; ``ok`` of none."""
    return min(healths, key=ORDER.index, default="ok")
