"""Compute resources and placement of the workloads of a VNF (multicloud.md MC-035, MC-070, MC-121)."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from kubevnfm_events.base import Facts

Quantities = Mapping[str, str]
"""Amounts as Kubernetes writes them (``500m``, ``2Gi``), by resource."""


class AffinityTerm(Facts):
    """A condition on the labels of a node; ``operator``: In, NotIn, Gt, Lt, Exists or DoesNotExist."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class Toleration(Facts):
    """A taint of nodes that pods tolerate; an empty ``key``: any."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    """NoSchedule, PreferNoSchedule or NoExecute; empty: all of them."""
    toleration_seconds: int | None = None
    """How long pods stay on a node that gets the taint NoExecute; None: for ever."""


class DeviceClaim(Facts):
    """Devices of a node that each pod gets for itself (dynamic resource allocation, ``resource.k8s.io/v1``)."""

    name: str
    device_class: str
    count: int = 1
    selectors: tuple[str, ...] = ()
    """CEL expressions on a device, all of which have to hold."""


class ComputeProfile(Facts):
    """The profile of one workload."""

    vdu_id: str
    container: str | None = None
    """Which one gets the resources; None: the first."""
    replicas: int | None = None
    """None: as in the manifest."""
    requests: Quantities = Field(default_factory=dict)
    limits: Quantities = Field(default_factory=dict)
    hugepages: Quantities = Field(default_factory=dict)
    """By size of a page (``2Mi``)."""
    node_selector: Mapping[str, str] = Field(default_factory=dict)
    affinity: tuple[AffinityTerm, ...] = ()
    """All of them have to hold."""
    tolerations: tuple[Toleration, ...] = ()
    runtime_class: str | None = None
    resource_claims: tuple[DeviceClaim, ...] = ()
