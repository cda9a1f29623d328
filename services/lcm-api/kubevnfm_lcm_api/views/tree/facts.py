"""All that a tree is made of: what is stored, and what was asked of others; what could not be asked says why. Pure data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, TypeAlias, TypeVar

from kubevnfm_clients.multicloud.inventory import InventoryResource
from kubevnfm_clients.multicloud.links import VirtualLink
from kubevnfm_clients.multicloud.volumes import PersistentVolume
from kubevnfm_clients.vim_views import VimNode
from kubevnfm_kit.json_types import JsonMapping

from kubevnfm_lcm_api.alarm_marks import ExternalMark
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord
from kubevnfm_lcm_api.views.instance_rows import InstanceSummary

T = TypeVar("T")
PLACED_KINDS: Final = ("Pod", "VirtualMachineInstance")
"""The kinds that have a node and addresses."""


@dataclass(frozen=True)
class Away:
    """It could not be read now."""

    reason: str


@dataclass(frozen=True)
class Gone:
    """Its owner does not have it."""

    reason: str


Known: TypeAlias = T | Away | Gone


@dataclass(frozen=True)
class Placed:
    """The pods and virtual machines of a VNF that the inventory has; before its first operation has ended, its other objects too."""

    resources: Sequence[InventoryResource]
    are_more: bool = False


@dataclass(frozen=True)
class OnVim:
    """The VNFs that have resources on the VIM which a cluster became."""

    rows: Sequence[InstanceSummary]
    are_more: bool = False


@dataclass(frozen=True)
class TreeFacts:
    """The facts about one instance."""

    record: InstanceRecord
    """With the stack as the operation has seen it last."""
    document: JsonMapping
    """The same as it is stored."""
    operation: JsonMapping | None
    """The document of the operation that has claimed it."""
    now: datetime
    root: str
    """The root of links."""
    node_names: Mapping[str, str] = field(default_factory=dict)
    """The Kubernetes nodes that an operation has made so far, by VNFC."""
    vims: Mapping[str, Known[JsonMapping]] = field(default_factory=dict)
    """By id: those that it stands on, and the one that its cluster became; as vim-registry shows them."""
    placed: Known[Placed] = field(default_factory=lambda: Placed(()))
    links: Mapping[str, Known[VirtualLink]] = field(default_factory=dict)
    volumes: Mapping[str, Known[PersistentVolume]] = field(default_factory=dict)
    nodes: Known[Sequence[VimNode]] = field(default_factory=lambda: Away("nothing has asked"))
    """The nodes of its own cluster."""
    alarm: ExternalMark | None = None
    """The mark of its open alarms of monitoring systems."""
    on_vim: OnVim = field(default_factory=lambda: OnVim(()))
