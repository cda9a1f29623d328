"""Compute profiles as requests give them (multicloud.md chapters 6, 10 and 15)."""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal, Self

from kubevnfm_events.compute_profiles import ComputeProfile
from kubevnfm_kit.kubernetes_names import LABEL
from pydantic import Field, StrictBool, StrictInt, StringConstraints, model_validator

from kubevnfm_clients.multicloud.types import LabelKey, LabelValue, MultiCloudRequest

MOST_PROFILES: Final = 100
MOST_REPLICAS: Final = 10_000
_MOST_ENTRIES: Final = 64

_Quantity = Annotated[
    str,
    StringConstraints(
        max_length=32, pattern=r"^([0-9]{1,20}(\.[0-9]{0,9})?|\.[0-9]{1,9})(m|[kMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,2})?$"
    ),
]
"""An amount as Kubernetes writes it, without the suffixes ``n`` and ``u``."""
_PageSize = Annotated[str, StringConstraints(max_length=16, pattern=r"^[1-9][0-9]{0,6}[KMG]i$")]
_Name = Annotated[str, StringConstraints(max_length=63, pattern=f"^{LABEL}$")]
_Subdomain = Annotated[str, StringConstraints(max_length=253, pattern=rf"^{LABEL}(\.{LABEL})*$")]
_Quantities = Annotated[dict[LabelKey, _Quantity], Field(max_length=_MOST_ENTRIES)]
_INTEGER: Final = re.compile(r"-?\d{1,18}")


class AffinityTermRequest(MultiCloudRequest):
    """A condition on the labels of nodes (MC-121)."""

    key: LabelKey
    operator: Literal["In", "NotIn", "Gt", "Lt", "Exists", "DoesNotExist"]
    values: Annotated[tuple[LabelValue, ...], Field(max_length=_MOST_ENTRIES)] = ()

    @model_validator(mode="after")
    def _has_values_of_its_operator(self) -> Self:
        if self.operator in ("Exists", "DoesNotExist") and self.values:
            raise ValueError(f"no values expected with {self.operator}")
        if self.operator in ("In", "NotIn") and not self.values:
            raise ValueError(f"at least one value expected with {self.operator}")
        if self.operator in ("Gt", "Lt") and not (len(self.values) == 1 and _INTEGER.fullmatch(self.values[0])):
            raise ValueError(f"one value, an integer as text, expected with {self.operator}")
        return self


class TolerationRequest(MultiCloudRequest):
    """A taint of nodes that pods tolerate, as in a pod's ``spec.tolerations``."""

    key: LabelKey | Literal[""] = ""
    operator: Literal["Equal", "Exists"] = "Equal"
    value: LabelValue = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute", ""] = ""
    toleration_seconds: Annotated[StrictInt, Field(ge=0, le=2**31 - 1)] | None = None

    @model_validator(mode="after")
    def _is_one_that_kubernetes_takes(self) -> Self:
        if self.operator == "Exists" and self.value:
            raise ValueError("no value expected with Exists")
        if self.operator == "Equal" and not self.key:
            raise ValueError("a key expected, or the operator Exists")
        if self.toleration_seconds is not None and self.effect != "NoExecute":
            raise ValueError("toleration_seconds expected with the effect NoExecute alone")
        return self


class DeviceClaimRequest(MultiCloudRequest):
    """Devices that each pod gets for itself (MC-121)."""

    name: _Name
    device_class: _Subdomain
    count: Annotated[StrictInt, Field(ge=1, le=32)] = 1
    selectors: Annotated[
        tuple[Annotated[str, StringConstraints(min_length=1, max_length=10_240)], ...], Field(max_length=32)
    ] = ()


class ComputeProfileRequest(MultiCloudRequest):
    """Resources and placement of one workload."""

    vdu_id: Annotated[str, StringConstraints(min_length=1, max_length=253)]
    container: _Name | None = None
    replicas: Annotated[StrictInt, Field(ge=0, le=MOST_REPLICAS)] | None = None
    requests: _Quantities = Field(default_factory=dict)
    limits: _Quantities = Field(default_factory=dict)
    hugepages: Annotated[dict[_PageSize, _Quantity], Field(max_length=8)] = Field(default_factory=dict)
    node_selector: Annotated[dict[LabelKey, LabelValue], Field(max_length=_MOST_ENTRIES)] = Field(default_factory=dict)
    affinity: Annotated[tuple[AffinityTermRequest, ...], Field(max_length=_MOST_ENTRIES)] = ()
    tolerations: Annotated[tuple[TolerationRequest, ...], Field(max_length=_MOST_ENTRIES)] = ()
    runtime_class: _Subdomain | None = None
    resource_claims: Annotated[tuple[DeviceClaimRequest, ...], Field(max_length=32)] = ()
    check_features: StrictBool = True
    """Whether a profile that no node of the region satisfies is refused (MC-120)."""

    def facts(self) -> ComputeProfile:
        """Return what is to be applied."""
        return ComputeProfile.model_validate(self.model_dump())
