"""The requests of PM jobs and thresholds (SOL003 V3.7.1 clauses 6.5.2.6, 6.5.2.8, 6.5.2.11 and 6.5.2.12), checked by themselves."""

from __future__ import annotations

from typing import Annotated, Self

from kubevnfm_kit.errors import InvalidInput
from kubevnfm_secrets import SecretParams
from kubevnfm_sol.base import SolPatch, SolRequest
from kubevnfm_sol.performance import MOST_OBJECTS, ObjectType, PmJobCriteria, ThresholdCriteria
from pydantic import Field, field_validator, model_validator

from kubevnfm_lcm_api.notifications.domain.callback import Authentication, checked_uri

MOST_PERIODS: int = 500
"""Collection periods of one report: each is a value of each object and metric in it."""
Id = Annotated[str, Field(min_length=1, max_length=255)]


class _Request(SolRequest):
    """The common attributes."""

    object_type: ObjectType
    sub_object_instance_ids: tuple[Id, ...] | None = Field(default=None, min_length=1, max_length=MOST_OBJECTS)
    callback_uri: str = Field(max_length=255, repr=False)
    authentication: Authentication | None = None
    metadata: SecretParams | None = None
    """As Tacker has it: ``monitoring`` names the Prometheus."""

    _is_http = field_validator("callback_uri")(checked_uri)


class CreatePmJobRequest(_Request):
    """Clause 6.5.2.6."""

    object_instance_ids: tuple[Id, ...] = Field(min_length=1, max_length=MOST_OBJECTS)
    criteria: PmJobCriteria

    def check(self) -> None:
        """Check what its attributes say together. Raises InvalidInput."""
        ids, periods = self.object_instance_ids, self.criteria
        if len(set(ids)) != len(ids):
            raise InvalidInput("objectInstanceIds", "each instance once expected")
        if self.sub_object_instance_ids and len(ids) > 1:
            raise InvalidInput("subObjectInstanceIds", "one entry of objectInstanceIds expected with it")
        if periods.reporting_period % periods.collection_period:
            raise InvalidInput("criteria/reportingPeriod", "a multiple of collectionPeriod expected")
        if periods.reporting_period // periods.collection_period > MOST_PERIODS:
            reason = f"at most {MOST_PERIODS} times collectionPeriod expected"
            raise InvalidInput("criteria/reportingPeriod", reason)


class CreateThresholdRequest(_Request):
    """Clause 6.5.2.8."""

    object_instance_id: Id
    criteria: ThresholdCriteria


class CallbackPatch(SolPatch):
    """PmJobModifications and ThresholdModifications: null removes ``authentication``."""

    callback_uri: str | None = Field(default=None, max_length=255, repr=False)
    authentication: Authentication | None = None

    @field_validator("callback_uri")
    @classmethod
    def _is_http(cls, given: str | None) -> str:
        if given is None:
            raise ValueError("null is not permitted")
        return checked_uri(given)

    @model_validator(mode="after")
    def _changes_something(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("callbackUri or authentication expected")
        return self
