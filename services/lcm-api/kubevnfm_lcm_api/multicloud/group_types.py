"""The requests and answers about groups of regions (multicloud.md MC-140)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal, Self

from kubevnfm_clients.multicloud.compute_profiles import AffinityTermRequest
from kubevnfm_clients.multicloud.types import LabelKey, Labels, LabelValue, MultiCloudRequest, MultiCloudType
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_secrets import SecretParams
from kubevnfm_sol.problem import ProblemDetails
from kubevnfm_sol.wrong_attributes import wrong_attributes
from pydantic import Field, RootModel, TypeAdapter, ValidationError, model_validator

from kubevnfm_lcm_api.multicloud.group_schema import MOST_REGIONS
from kubevnfm_lcm_api.multicloud.vnf_types import RegionId, VnfInstance

REGIONS: Final = "regions"
_MOST_CONDITIONS: Final = 64
GroupStatus = Literal["RUNNING", "COMPLETED", "PARTLY_FAILED", "STOPPED", "CANCELLED"]
RegionState = Literal["WAITING", "RUNNING", "READY", "FAILED", "NOT_STARTED"]


class GroupRegion(MultiCloudRequest):
    """A region of a list."""

    cloud_region_id: RegionId
    values: Annotated[SecretParams, Field(default_factory=dict)]
    """Over the common ones."""


class LabelRequirement(MultiCloudRequest):
    """A condition on a label of regions."""

    key: LabelKey
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: Annotated[tuple[LabelValue, ...], Field(max_length=_MOST_CONDITIONS)] = ()

    @model_validator(mode="after")
    def _has_values_of_its_operator(self) -> Self:
        if bool(self.values) is not (self.operator in ("In", "NotIn")):
            raise ValueError("values expected with In and NotIn, and with no other operator")
        return self

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Return whether labels fulfil the condition, as Kubernetes judges label selectors."""
        match self.operator:
            case "Exists":
                return self.key in labels
            case "DoesNotExist":
                return self.key not in labels
            case "In":
                return labels.get(self.key) in self.values
        return labels.get(self.key) not in self.values


class RegionSelector(MultiCloudRequest):
    """Conditions that a region fulfils, all of them."""

    match_labels: Annotated[Labels, Field(max_length=_MOST_CONDITIONS)] = Field(default_factory=dict)
    match_expressions: Annotated[tuple[LabelRequirement, ...], Field(max_length=_MOST_CONDITIONS)] = ()
    features: Annotated[tuple[AffinityTermRequest, ...], Field(max_length=_MOST_CONDITIONS)] = ()
    """On labels of nodes: one node of the region fulfils all of them."""

    @model_validator(mode="after")
    def _has_a_condition(self) -> Self:
        if not (self.match_labels or self.match_expressions or self.features):
            raise ValueError("at least one condition expected")
        return self

    def fits(self, labels: Mapping[str, str]) -> bool:
        """Return whether the labels of a region fulfil the conditions on them."""
        return all(labels.get(key) == value for key, value in self.match_labels.items()) and all(
            each.holds(labels) for each in self.match_expressions
        )


class RegionsBySelector(MultiCloudRequest):
    """The regions that fulfil conditions when the request comes."""

    selector: RegionSelector


_LIST: Final = TypeAdapter(Annotated[tuple[GroupRegion, ...], Field(min_length=1, max_length=MOST_REGIONS)])


def read_regions(given: object) -> tuple[GroupRegion, ...] | RegionSelector:
    """Return the member ``regions`` of a request. Raises Unprocessable naming all wrong places."""
    try:
        if isinstance(given, Mapping):
            return RegionsBySelector.model_validate(given).selector
        return _LIST.validate_python(given)
    except ValidationError as error:
        model = RegionsBySelector if isinstance(given, Mapping) else GroupRegion
        first, *more = wrong_attributes(error, model, REGIONS)
        raise Unprocessable(*first, *more) from None


class GroupCounts(MultiCloudType):
    """The numbers of regions by their states."""

    waiting: int
    running: int
    ready: int
    failed: int
    not_started: int


class GroupRegionResult(MultiCloudType):
    """A region of a group operation."""

    cloud_region_id: str
    state: RegionState
    vnf_id: str | None = None
    operation: str | None = None
    """The link of the operation of its VNF."""
    error: ProblemDetails | None = None


class GroupOperation(MultiCloudType):
    """The bring-up of a VNF in each of several regions."""

    id: str
    status: GroupStatus
    parallel: int
    stop_after_failures: int
    counts: GroupCounts
    regions: tuple[GroupRegionResult, ...]
    created_at: str


class BegunVnf(RootModel[VnfInstance | GroupOperation]):
    """A VNF, or with ``regions`` the group operation that brings one up in each."""
