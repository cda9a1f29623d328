"""An operation occurrence as lcm-api keeps it: the public data type, its plan, and the draft that grows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Literal, Self

from kubevnfm_secrets import KeyRing, sealing
from kubevnfm_sol.base import SolType
from kubevnfm_sol.lcm import VnfLcmOpOcc
from kubevnfm_sol.problem import ProblemDetails
from pydantic import BaseModel, ConfigDict

from kubevnfm_lcm_api.event_chain import NewsRef
from kubevnfm_lcm_api.lifecycle.domain.granting import Granting
from kubevnfm_lcm_api.lifecycle.domain.instance import VnfFacts
from kubevnfm_lcm_api.lifecycle.domain.states import Task

COLLECTION = "vnf_lcm_op_occs"


class StepState(StrEnum):
    """Where a step of a plan stands."""

    WAITING = "waiting"
    """Not asked; waits for the steps it comes after."""
    ASKED = "asked"
    """Its command is out; waits for the reply."""
    DONE = "done"
    FAILED = "failed"
    UNDOING = "undoing"
    """Its compensation is out; waits for the reply."""
    UNDONE = "undone"


class PlannedStep(SolType):
    """One step of a stored plan."""

    name: str
    after: tuple[str, ...] = ()
    """The steps that must be done before."""
    state: StepState = StepState.WAITING
    attempt: int = 0
    """How often it (or its compensation) was asked; replies to older attempts are ignored."""
    started_at: str | None = None
    ended_at: str | None = None
    deadline: str | None = None
    """While it is asked: when its time is over."""
    error: ProblemDetails | None = None


class OccurrenceRecord(BaseModel):
    """The document of one operation occurrence."""

    model_config = ConfigDict(frozen=True)

    occ: VnfLcmOpOcc
    api_version: Literal["v1", "v2"]
    plan: str
    """The plan's name in `plans.PLANS`."""
    steps: tuple[PlannedStep, ...]
    draft: dict[str, Any]
    """The plan's draft as its JSON document, secrets sealed; `plans` reads and writes it."""
    facts: VnfFacts = VnfFacts()
    is_internal: bool = False
    """A clean-up of ours: in no list, without notifications."""
    has_way_back: bool = True
    """Whether it can be rolled back, as far as that depends on what was asked."""
    follows: NewsRef | None = None
    """The event about the instance before that of the present state."""
    ending: Task | None = None
    """The task by which a person has decided the end: from then on no other task is possible, a crash or not."""
    granting: Granting | None = None
    """What an external NFVO was asked and has answered; None under the local policy."""

    def document(self, ring: KeyRing) -> dict[str, Any]:
        """Return the body for the store: VnfLcmOpOcc's attributes at the top, so that filters find them."""
        body = self.occ.document(ring)
        body["internal"] = {
            "apiVersion": self.api_version,
            "plan": self.plan,
            "steps": [
                step.model_dump(mode="json", by_alias=True, exclude_none=True, context=sealing(ring))
                for step in self.steps
            ],
            "draft": self.draft,
            "facts": self.facts.model_dump(mode="json", by_alias=True),
            "isInternal": self.is_internal,
            "hasWayBack": self.has_way_back,
            **({"ending": self.ending} if self.ending is not None else {}),
            **({"follows": self.follows.model_dump()} if self.follows is not None else {}),
        }
        if self.granting is not None:
            body["internal"]["granting"] = self.granting.document(ring)
        if self.next_deadline is not None:
            body["internal"]["deadline"] = self.next_deadline
        return body

    @classmethod
    def from_document(cls, body: Mapping[str, Any]) -> Self:
        """Read what ``document`` wrote."""
        internal = body["internal"]
        return cls(
            occ=VnfLcmOpOcc.model_validate(body),
            api_version=internal["apiVersion"],
            plan=internal["plan"],
            steps=tuple(PlannedStep.model_validate(step) for step in internal["steps"]),
            draft=internal["draft"],
            facts=VnfFacts.model_validate(internal["facts"]),
            is_internal=internal["isInternal"],
            has_way_back=internal.get("hasWayBack", True),
            ending=internal.get("ending"),
            follows=internal.get("follows"),
            granting=internal.get("granting"),
        )

    def with_occ(self, **changes: Any) -> Self:
        """Return the record with attributes of the public part changed."""
        return self.model_copy(update={"occ": self.occ.model_copy(update=changes)})

    @property
    def running(self) -> tuple[PlannedStep, ...]:
        """The steps whose command, or compensation, is out."""
        return tuple(step for step in self.steps if step.state in {StepState.ASKED, StepState.UNDOING})

    @property
    def next_deadline(self) -> str | None:
        """When the first of the running steps' time is over."""
        return min((step.deadline for step in self.running if step.deadline is not None), default=None)

    def step(self, name: str) -> PlannedStep | None:
        """Return the planned step of that name."""
        return next((step for step in self.steps if step.name == name), None)

    def with_steps(self, changed: Sequence[PlannedStep]) -> Self:
        """Return the record with these steps in place of those of the same names."""
        by_name = {step.name: step for step in changed}
        return self.model_copy(update={"steps": tuple(by_name.get(step.name, step) for step in self.steps)})
