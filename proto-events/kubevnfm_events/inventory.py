"""Messages about the objects of VNFs in regions, as watches see them (multicloud.md MC-051)."""

from __future__ import annotations

from typing import Literal

from kubevnfm_events.base import Event, Facts

ObjectChange = Literal["created", "changed", "vanished"]


class NetworkAddresses(Facts):
    """The addresses of a pod or virtual machine in one network."""

    network: str = ""
    """As the CNI names it; empty: the default network of the cluster."""
    interface: str = ""
    addresses: tuple[str, ...] = ()


class Placement(Facts):
    """Where a pod or virtual machine runs."""

    uid: str
    node: str = ""
    """Empty until it is scheduled."""
    phase: str = ""
    networks: tuple[NetworkAddresses, ...] = ()


class PlacementChanged(Event, kind="infra.placement.changed", by="infra-k8s"):
    """A pod or virtual machine of a VNF was created or has vanished, or has another node, phase or address."""

    change: ObjectChange
    vnf_instance_id: str
    vim_id: str
    vdu_id: str | None = None
    api_version: str
    kind: str
    namespace: str = ""
    name: str
    old: Placement | None = None
    """None: it is new."""
    new: Placement | None = None
    """None: it has vanished."""


class TroubleChanged(Event, kind="infra.trouble.changed", by="infra-k8s"):
    """The trouble of a pod or virtual machine of a VNF has begun, has another reason, or has ended."""

    vnf_instance_id: str
    vim_id: str
    kind: str
    namespace: str = ""
    name: str
    text: str = ""
    """The reason; empty: it works, or has vanished."""
