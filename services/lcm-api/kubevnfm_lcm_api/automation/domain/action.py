"""An automatic action: one heal or scaling that was asked for, and what has become of it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Literal, Self

from kubevnfm_kit.ids import derived_id
from kubevnfm_sol.base import SolType

from kubevnfm_lcm_api.automation.domain.trigger import TriggerKind

COLLECTION: Final = "automatic_actions"
DUE: Final = "internal/dueAt"
"""The path of the time at which an action that has not ended is examined next."""
DECIDED: Final = "internal/decidedAt"
FACTS: Final = "internal/facts"
KEY: Final = "internal/key"
NUMBER: Final = "internal/number"
HEAL_KEY: Final = "HEAL"
ALARM_KEY: Final = "HEAL/alarms"
"""The key of heals that alarms of kubevnfm itself ask for: an alarm must last for a while, and other triggers do not wait for that."""
REPAIR_KEY: Final = "HEAL/workloads"
"""The key of heals of workloads of containers that do not exist any more: the missing objects of the VNF are applied again. No VNFC is
named, because the pods are removed with their workload."""
MOST_TRIGGERS: Final = 1000
"""The most triggers of one action."""
MANY_TRIGGERS: Final = 100
"""From so many on, those that ask for nothing more than the others are not kept: each write has them all."""
_MOST_SHOWN: Final = 10

ActionState = Literal["COLLECTING", "WAITING", "STARTED", "DONE", "NOT_DONE", "TRIAL"]
Direction = Literal["SCALE_OUT", "SCALE_IN"]
WaitsFor = Literal["OPERATION", "COOL_DOWN", "BUDGET", "OTHER"]
PENDING: Final[frozenset[ActionState]] = frozenset({"COLLECTING", "WAITING"})
ENDED: Final[frozenset[ActionState]] = frozenset({"DONE", "NOT_DONE", "TRIAL"})


class AskedBy(SolType):
    """A trigger of an action."""

    kind: TriggerKind
    id: str
    text: str
    at: str
    vnfc_ids: tuple[str, ...] = ()
    """The VNFCs that it names."""


class LeftOut(SolType):
    """A VNFC that a trigger has named and the heal does not include."""

    vnfc_id: str
    reason: str


class Waiting(SolType):
    """The obstacle that an action waits for."""

    what: WaitsFor
    text: str
    since: str
    operation_id: str | None = None


class ActionInternals(SolType):
    """The facts that no view shows."""

    key: str
    """Its effect on its instance: further triggers for the same join it, until it is decided."""
    number: int
    """Among those of the instance with this key, from 1. Its id is derived from it, so that two processes cannot make two."""
    facts: tuple[str, ...] = ()
    """The ids of its triggers, each with the key."""
    collects_until: str
    due_at: str | None = None
    decided_at: str | None = None
    """When it was decided to begin the operation. From then on nothing joins it, and it counts for the budget of the hour."""
    tries: int = 0
    """How often in a row the operation could not begin for a reason that may end."""


class Action(SolType):
    """The document of an automatic action."""

    id: str
    vnf_instance_id: str
    vnf_instance_name: str | None = None
    operation: Literal["HEAL", "SCALE"]
    aspect_id: str | None = None
    direction: Direction | None = None
    state: ActionState
    created_at: str
    state_since: str
    triggers: tuple[AskedBy, ...]
    vnfc_ids: tuple[str, ...] = ()
    """Those that are healed, once that is decided."""
    left_out: tuple[LeftOut, ...] = ()
    waiting: Waiting | None = None
    reason: str | None = None
    """Why it was not done; or what would have been done."""
    operation_id: str | None = None
    operation_state: str | None = None
    ended_at: str | None = None
    internal: ActionInternals

    @classmethod
    def from_document(cls, body: Mapping[str, Any]) -> Self:
        """Read what `body` wrote."""
        return cls.model_validate(body)

    @property
    def body(self) -> dict[str, Any]:
        """The document for the store."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)

    @property
    def is_joinable(self) -> bool:
        """Whether a further trigger can join it."""
        return self.state in PENDING and self.internal.decided_at is None

    def has_all_of(self, asked: AskedBy) -> bool:
        """Return whether it has many triggers, and a further one would change nothing of what is done."""
        if len(self.triggers) < MANY_TRIGGERS:
            return False
        named = {vnfc_id for each in self.triggers for vnfc_id in each.vnfc_ids}
        return asked.kind != "alarm" and named.issuperset(asked.vnfc_ids)

    @property
    def occurrence_id(self) -> str:
        """The id of its operation: derived, so that no process begins a second one."""
        # With the time: once old actions are removed, their numbers come again.
        return derived_id("automatic-operation", self.id, self.created_at)

    @property
    def text(self) -> str:
        """Why it was asked for, in one sentence."""
        more = len(self.triggers) - 1
        return self.triggers[0].text + (f" ({more} further triggers)" if more else "")

    @property
    def subject(self) -> str:
        """The operation in words, for a person."""
        if self.operation == "SCALE":
            return f"{self.direction} of aspect {self.aspect_id} by one step"
        if self.internal.key == REPAIR_KEY:
            return "HEAL of the objects that are missing"
        return f"HEAL of VNFC {shown(self.vnfc_ids)}" if self.vnfc_ids else "HEAL"

    def with_internal(self, **changes: Any) -> Self:
        """Return it with internals changed."""
        return self.model_copy(update={"internal": self.internal.model_copy(update=changes)})

    def entered(self, state: ActionState, now: str, **changes: Any) -> Self:
        """Return it in this state, with further changes."""
        since = now if state != self.state else self.state_since
        return self.model_copy(update={"state": state, "state_since": since, **changes})


def shown(names: Sequence[str]) -> str:
    """Return names in a sentence, the first ones of many."""
    more = len(names) - _MOST_SHOWN
    return ", ".join(names[:_MOST_SHOWN]) + (f" and {more} others" if more > 0 else "")


def scale_key(aspect_id: str, direction: Direction) -> str:
    """Return the key of the scaling of an aspect in a direction."""
    return f"{direction}/{aspect_id}"


def opposite_of(action: Action) -> str | None:
    """Return the key of the scaling that undoes this one; None for a heal."""
    if action.aspect_id is None:
        return None
    return scale_key(action.aspect_id, "SCALE_IN" if action.direction == "SCALE_OUT" else "SCALE_OUT")


def fact_of(instance_id: str, key: str, kind: str, trigger_id: str) -> str:
    """Return the id of what a trigger asks for."""
    return derived_id("automatic-trigger", instance_id, key, kind, trigger_id)


def action_id(instance_id: str, key: str, number: int) -> str:
    """Return the id of an action."""
    return derived_id("automatic-action", instance_id, key, str(number))


def moment(text: str) -> datetime:
    """Return a stored time."""
    return datetime.fromisoformat(text)
