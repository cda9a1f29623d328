"""Compute profiles of a CNF whose package has an order (multicloud.md MC-035): those of a request, and of an instance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

from kubevnfm_clients.multicloud.compute_profiles import MOST_PROFILES, ComputeProfileRequest
from kubevnfm_csar.profiled_workloads import profiled
from kubevnfm_events.compute_profiles import ComputeProfile
from kubevnfm_events.objects import ObjectsOrder
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_sol.wrong_attributes import wrong_attributes
from pydantic import Field, TypeAdapter, ValidationError

from kubevnfm_lcm_api.lifecycle.core.request_parameters import COMPUTE_PROFILES

_PLACE: Final = "additionalParams"
_PROFILES: Final = TypeAdapter(Annotated[tuple[ComputeProfileRequest, ...], Field(max_length=MOST_PROFILES)])
_MOST_FAULTS: Final = 100


def profiles_of(parameters: Mapping[str, Any]) -> tuple[ComputeProfile, ...]:
    """Return the compute profiles that additionalParams have. Raises Unprocessable naming all wrong places."""
    try:
        read = _PROFILES.validate_python(parameters.get(COMPUTE_PROFILES, ()))
    except ValidationError as error:
        first, *more = wrong_attributes(error, ComputeProfileRequest, f"{_PLACE}/{COMPUTE_PROFILES}")
        raise Unprocessable(*first, *more[: _MOST_FAULTS - 1]) from None
    return tuple(each.facts() for each in read)


def check_profiles(bodies: Sequence[Any], wanted: ObjectsOrder) -> None:
    """Raise Unprocessable naming the profiles that the workloads of the manifests cannot have."""
    found = profiled(bodies, wanted.compute_profiles, wanted.vdus)
    faults = [(f"{_PLACE}/{where}", reason) for where, reason in found.faults]
    if faults:
        raise Unprocessable(*faults[0], *faults[1:_MOST_FAULTS])
