"""Revisions of a multi-cloud VNF: each accepted change of what its objects are made from (multicloud.md MC-042).

A revision is a part of the operation occurrence that makes the change, stored with it in one write: the draft there has its
inputs, with secrets sealed. So no write grows with the history of an instance, and none can be lost between two documents.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from kubevnfm_events import PackageRef
from kubevnfm_events.lcm import AutomaticReason
from kubevnfm_events.objects import ClaimedVolume, NetworkAttachment
from kubevnfm_secrets import SecretParams
from kubevnfm_sol.base import SolType
from kubevnfm_sol.lcm import OperationState
from pydantic import BaseModel, ConfigDict, Field

Cause = Literal["create", "patch", "rollback", "sol003"]
Result = Literal["READY", "FAILED", "RUNNING"]
NUMBER: Final = "internal/revision/number"
"""Where an occurrence has the number of its revision; those of other operations have none."""
_RESULTS: Final[Mapping[OperationState, Result]] = {
    OperationState.COMPLETED: "READY",
    OperationState.FAILED: "FAILED",
    OperationState.FAILED_TEMP: "FAILED",
    OperationState.ROLLED_BACK: "FAILED",
}


@dataclass(frozen=True)
class Origin:
    """Where a request comes from."""

    by: str = ""
    """The caller."""
    cause: Cause = "sol003"
    rollback_to: int | None = None
    occurrence_id: str | None = None
    """The id of the operation that it begins, if a repeat of the request has to find that; None: a random one."""
    automatic: AutomaticReason | None = None
    """Set if kubevnfm itself asks for the operation."""


SOL003: Final = Origin()
"""A request of which nothing else is known."""


class Inputs(BaseModel):
    """The inputs that the objects of a revision are made from."""

    model_config = ConfigDict(frozen=True)

    package: PackageRef
    parameters: SecretParams = Field(default_factory=dict)
    """additionalParams, with the secret values."""
    networks: tuple[NetworkAttachment, ...] = ()
    volumes: tuple[ClaimedVolume, ...] = ()
    digest: str = ""
    """That of the rendered objects; empty if they are not known before the operation."""


class Revision(SolType):
    """The part of a revision that its occurrence stores beside its draft."""

    number: int
    by: str
    cause: Cause
    rollback_to: int | None = None
    csar_id: str
    digest: str
    """As in its inputs."""


def result_of(state: OperationState) -> Result:
    """Return how the operation of a revision has ended, as far as it has."""
    return _RESULTS.get(state, "RUNNING")
