"""Health, features and objects of a region, read from its cluster when they are asked for (multicloud.md MC-053, MC-080, MC-118)."""

from __future__ import annotations

from typing import Final, Literal

from kubevnfm_kit.json_types import JsonObject
from pydantic import ConfigDict, Field

from kubevnfm_clients.multicloud.types import MultiCloudType

FEATURE: Final = "feature.node.kubernetes.io/"
"""The prefix of labels of Node Feature Discovery."""


class InventoryHealth(MultiCloudType):
    """The result of the last reading of a region's inventory."""

    since: str
    """From when on it has been so."""
    reason: str = Field(default="", exclude_if=lambda value: not value)
    """The reason why nothing usable could be read: the last copy of the kubeconfig stays in use."""
    lost: bool = False
    """Whether the inventory has no such region any more."""
    control_plane: str = Field(default="", exclude_if=lambda value: not value)
    """The reason of the inventory for calling the control plane unhealthy."""


class RegionWatch(MultiCloudType):
    """The watch of the inventory over a region."""

    state: Literal["none", "current", "stale"]
    """``none``: no VNF has objects there, so nothing is watched."""
    since: str | None = Field(default=None, exclude_if=lambda value: value is None)
    age_s: float | None = Field(default=None, exclude_if=lambda value: value is None)
    """How long it has been in this state."""
    reason: str = Field(default="", exclude_if=lambda value: not value)


class RegionHealth(MultiCloudType):
    """Whether the cluster answers now."""

    reachable: bool
    reason: str = Field(default="", exclude_if=lambda value: not value)
    """The reason why not."""
    server_version: str
    """The last one that was read, if it does not answer."""
    latency_ms: float | None = Field(default=None, exclude_if=lambda value: value is None)
    """The time of one authenticated call."""
    not_after: str | None = Field(default=None, exclude_if=lambda value: value is None)
    days_left: int | None = Field(default=None, exclude_if=lambda value: value is None)
    """Whole days until the first part of the access data expires."""
    inventory: InventoryHealth | None = Field(default=None, exclude_if=lambda value: value is None)
    """Absent: the kubeconfig is not read from an inventory."""
    watch: RegionWatch | None = Field(default=None, exclude_if=lambda value: value is None)
    """The watch of the inventory over it; absent: infra-k8s does not say."""


class NodeFeatures(MultiCloudType):
    """One node."""

    name: str
    labels: dict[str, str]
    """Those of Node Feature Discovery, ``feature.node.kubernetes.io/...``."""
    capacity: dict[str, str]
    allocatable: dict[str, str]


class Device(MultiCloudType):
    """One device that pods can claim."""

    name: str
    attributes: JsonObject
    """Value by name: a text, a number, a boolean, or a version as a text."""
    capacity: dict[str, str]


class DevicePool(MultiCloudType):
    """The ResourceSlices of one pool, of its newest generation."""

    driver: str
    pool: str
    generation: int
    incomplete: bool
    """Whether the driver has not written all of them yet."""
    node: str = Field(default="", exclude_if=lambda value: not value)
    """Absent: other nodes can use the devices too."""
    devices: tuple[Device, ...]


class RegionFeatures(MultiCloudType):
    """The features of the nodes of a region."""

    nodes: tuple[NodeFeatures, ...]
    labels: dict[str, dict[str, int]]
    """Number of nodes by value, by label of Node Feature Discovery."""
    extended_resources: dict[str, int]
    """Sum of what is allocatable on all nodes, by name (``intel.com/sriov``)."""
    devices: tuple[DevicePool, ...]
    device_classes: tuple[str, ...]
    as_of: str


class KubernetesObject(MultiCloudType):
    """An object of any kind, as the API server has it; without ``managedFields``, and ``***`` for the values of a Secret."""

    model_config = ConfigDict(extra="allow")
