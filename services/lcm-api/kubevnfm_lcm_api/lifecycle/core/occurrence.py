"""An operation occurrence as lcm-api stores it: the public data type, its plan, and its draft."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Self

from kubevnfm_events import ApiVersion
from kubevnfm_events.lcm import AutomaticReason
from kubevnfm_kit.ids import derived_id
from kubevnfm_kit.request_warnings import RequestWarning
from kubevnfm_secrets import KeyRing, sealing
from kubevnfm_sol.lcm import OperationState, OperationType, VnfLcmOpOcc
from kubevnfm_store.query import Compare, Op
from pydantic import BaseModel, ConfigDict

from kubevnfm_lcm_api.event_chain import EventRef
from kubevnfm_lcm_api.lifecycle.core.granting import Granting
from kubevnfm_lcm_api.lifecycle.core.instance import EndedRevision, VnfFacts
from kubevnfm_lcm_api.lifecycle.core.plan import PlannedStep, StepState
from kubevnfm_lcm_api.lifecycle.core.released import upgraded_step
from kubevnfm_lcm_api.lifecycle.core.revision import Revision
from kubevnfm_lcm_api.lifecycle.core.sequences import SEQUENCES
from kubevnfm_lcm_api.lifecycle.core.states import Task

COLLECTION = "vnf_lcm_op_occs"
MOST_STATES: Final = 20
"""An operation may be retried without a limit, and its record stays small."""
MOST_GONE: Final = 100
"""As many of the machines of earlier tries as matter to people."""
PUBLIC: Final = Compare("internal/isInternal", Op.EQ, [False])
"""Finds those that are in lists."""


class EnteredState(BaseModel):
    """A state that the operation was in."""

    model_config = ConfigDict(frozen=True)

    state: OperationState
    at: str
    """When it was entered."""


class OccurrenceRecord(BaseModel):
    """The document of one operation occurrence."""

    model_config = ConfigDict(frozen=True)

    occ: VnfLcmOpOcc
    api_version: ApiVersion
    plan: str
    """The stored name of its sequence (`plans.SEQUENCES`)."""
    steps: tuple[PlannedStep, ...]
    draft: dict[str, Any]
    """The draft as its JSON document, secrets sealed; `SEQUENCES.draft` reads it."""
    facts: VnfFacts = VnfFacts()
    is_internal: bool = False
    """A clean-up that lcm-api started itself: in no list, without notifications."""
    is_reversible: bool = True
    """Whether it can be rolled back, as far as that depends on the request."""
    follows: EventRef | None = None
    """The event about the instance that comes before the event of the present state."""
    ending: Task | None = None
    """The task with which a caller has decided the end. No other task is possible from then on, even after a crash."""
    revision: Revision | None = None
    """The revision of a multi-cloud VNF that it makes; None: it makes none."""
    warnings: tuple[RequestWarning, ...] = ()
    """The parts of the request that are not used; `occ` has the texts, as SOL003 does."""
    granting: Granting | None = None
    """The grant request and the NFVO's answers; None under the local policy."""
    automatic: AutomaticReason | None = None
    """Set if kubevnfm itself has begun it."""
    traceparent: str = ""
    """The span of the caller that has asked for it (W3C Trace Context); empty: the caller has named none."""
    states: tuple[EnteredState, ...] = ()
    """The states before the present one: the newest `MOST_STATES` of them."""
    request_id: str = ""
    """The id of the last request that has begun or moved it; empty: lcm-api itself has begun it."""

    gone_steps: tuple[PlannedStep, ...] = ()
    """The steps with attempts that a repeated reply has not added again: the newest `MOST_GONE` of them, for the trace."""
    trace_due: str | None = None
    """When it ended, or when the next try to export its trace is due; None: it has not ended, or its trace was exported."""

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
            "hasWayBack": self.is_reversible,
            **({"ending": self.ending} if self.ending is not None else {}),
            **({"follows": self.follows.model_dump()} if self.follows is not None else {}),
        }
        if self.warnings:
            body["internal"]["warnings"] = [each.model_dump(exclude_none=True) for each in self.warnings]
        if self.revision is not None:
            body["internal"]["revision"] = self.revision.model_dump(mode="json", by_alias=True, exclude_none=True)
        if self.granting is not None:
            body["internal"]["granting"] = self.granting.document(ring)
        if self.automatic is not None:
            body["internal"]["automatic"] = self.automatic.model_dump(mode="json")
        if self.traceparent:
            body["internal"]["traceparent"] = self.traceparent
        if self.states:
            body["internal"]["states"] = [each.model_dump(mode="json") for each in self.states]
        if self.gone_steps:
            body["internal"]["goneSteps"] = [
                step.model_dump(mode="json", by_alias=True, exclude_none=True, context=sealing(ring))
                for step in self.gone_steps
            ]
        if self.trace_due is not None:
            body["internal"]["traceDue"] = self.trace_due
        if self.request_id:
            body["internal"]["requestId"] = self.request_id
        if self.next_deadline is not None:
            # Stored beside the steps, as the watch for overdue steps needs one sorted field to query.
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
            steps=tuple(_step(step, internal["draft"]) for step in internal["steps"]),
            draft=internal["draft"],
            facts=VnfFacts.model_validate(internal["facts"]),
            is_internal=internal["isInternal"],
            is_reversible=internal.get("hasWayBack", True),
            ending=internal.get("ending"),
            follows=internal.get("follows"),
            revision=internal.get("revision"),
            # Earlier versions have stored the texts alone.
            warnings=tuple(internal.get("warnings") or body.get("warnings") or ()),
            granting=internal.get("granting"),
            automatic=internal.get("automatic"),
            traceparent=internal.get("traceparent", ""),
            states=internal.get("states", ()),
            gone_steps=internal.get("goneSteps", ()),
            trace_due=internal.get("traceDue"),
            request_id=internal.get("requestId", ""),
        )

    def with_warnings(self, further: Sequence[RequestWarning]) -> Self:
        """Return the record with these warnings after its own."""
        warnings = (*self.warnings, *further)
        texts = tuple(each.text for each in warnings) or None
        return self.with_occ(warnings=texts).model_copy(update={"warnings": warnings})

    def with_occ(self, **changes: Any) -> Self:
        """Return the record with attributes of the public part changed."""
        return self.model_copy(update={"occ": self.occ.model_copy(update=changes)})

    def moved_by(self, request_id: str) -> Self:
        """Return the record with what follows from now on belonging to the request; empty: to the same one as before."""
        return self.model_copy(update={"request_id": request_id}) if request_id else self

    @property
    def kept_states(self) -> tuple[EnteredState, ...]:
        """The value of `states` in the next state."""
        present = EnteredState(state=self.occ.operation_state, at=self.occ.state_entered_time)
        return (*self.states, present)[-MOST_STATES:]

    @property
    def running(self) -> tuple[PlannedStep, ...]:
        """The steps that wait for a reply."""
        return tuple(step for step in self.steps if step.is_running)

    @property
    def log_facts(self) -> dict[str, str]:
        """The facts that a line of the log about it has."""
        facts = {
            "operation": self.occ.operation.value,
            "vnf_instance_id": self.occ.vnf_instance_id,
            "operation_id": self.occ.id,
        }
        if self.automatic is None:
            return facts
        return {**facts, "trigger": self.automatic.trigger, "reason": self.automatic.reason}

    @property
    def ended_revision(self) -> EndedRevision | None:
        """The revision that it makes, with its end; None if it makes none."""
        if self.revision is None:
            return None
        return EndedRevision(number=self.revision.number, state=self.occ.operation_state)

    @property
    def next_deadline(self) -> str | None:
        """The earliest deadline of the running steps."""
        return min((step.deadline for step in self.running if step.deadline is not None), default=None)

    def step(self, step_id: str) -> PlannedStep | None:
        """Return the planned step of that id."""
        return next((step for step in self.steps if step.id == step_id), None)

    def with_steps(self, changed: Sequence[PlannedStep]) -> Self:
        """Return the record with these steps in place of those with the same ids."""
        by_id = {step.id: step for step in changed}
        return self.model_copy(update={"steps": tuple(by_id.get(step.id, step) for step in self.steps)})


def clean_up_id(occurrence_id: str) -> str:
    """Return the id of the clean-up of this FAILED occurrence: derived, so that it is found and never started twice."""
    return derived_id("clean-up", occurrence_id)


def _step(step: Mapping[str, Any], draft: Mapping[str, Any]) -> PlannedStep:
    upgraded = upgraded_step(step, draft)
    # 0.1.0 had timeouts in the classes; a step of it that was sent already keeps its stored deadline.
    if "timeoutS" not in upgraded:
        kind = SEQUENCES.kinds[upgraded["kind"]]
        upgraded = {**upgraded, "timeoutS": kind.from_arguments(upgraded["arguments"]).timeout_s}
    return PlannedStep.model_validate(upgraded)


def begins(before: OccurrenceRecord, after: OccurrenceRecord) -> bool:
    """Return whether the operation begins: it is granted, or needs no grant and sends its first steps or ends."""
    states = (before.occ.operation_state, after.occ.operation_state)
    if states[0] is OperationState.STARTING:
        return states[1] is OperationState.PROCESSING
    if before.occ.operation is not OperationType.MODIFY_INFO or _has_sent(before):
        return False
    return states[1] is OperationState.COMPLETED or (states[1] is OperationState.PROCESSING and _has_sent(after))


def _has_sent(record: OccurrenceRecord) -> bool:
    return any(step.state is not StepState.WAITING for step in record.steps)
