"""Outputs of VNFs (multicloud.md MC-138): values that are read from their objects."""

from __future__ import annotations

from kubevnfm_secrets import SecretParams
from pydantic import Field

from kubevnfm_events.base import Event, Facts


class WantedOutput(Facts):
    """A named value of an object."""

    name: str
    api_version: str | None = None
    """None: that of the one object with this kind and name."""
    kind: str
    namespace: str | None = None
    """None: the namespace of the instance, or none for a kind that has no namespaces."""
    object_name: str
    jsonpath: str
    """One value, as ``kubectl wait`` reads the path."""


class OutputsRead(Facts):
    """The values of all outputs of an instance, as they were at one moment."""

    number: int
    """Larger than that of every earlier reading with other values."""
    values: SecretParams = Field(default_factory=dict)
    """By name; null: the path has no value, or one that is too large."""


class ObjectOutputsChanged(Event, kind="infra.outputs.changed", by="infra-k8s"):
    """The objects of an instance have other values at the paths of its outputs."""

    vnf_instance_id: str
    read: OutputsRead


class OutputsChanged(Event, kind="lcm.outputs.changed", by="lcm-api"):
    """A VNF instance shows other outputs."""

    vnf_instance_id: str
    vim_ids: tuple[str, ...] = ()
    """The registered VIMs that its objects are on, or were on before they were deleted."""
    outputs: SecretParams = Field(default_factory=dict)
    """All of them, by name."""
    changed: tuple[str, ...] = ()
    """The names of those that are new, gone, or have other values."""
