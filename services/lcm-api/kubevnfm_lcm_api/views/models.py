"""The answers of our own views."""

from __future__ import annotations

from typing import Literal

from kubevnfm_kit.request_warnings import RequestWarning
from kubevnfm_sol.problem import ProblemDetails

from kubevnfm_lcm_api.http.models import Linked, Shown
from kubevnfm_lcm_api.views.causes.models import Cause, Next
from kubevnfm_lcm_api.views.lists import ListPage


class Step(Shown):
    """One step of an operation's plan."""

    name: str
    """Its id, unique in the plan."""
    kind: str
    title: str
    state: Literal["waiting", "asked", "done", "failed", "undoing", "undone", "skipped"]
    attempt: int
    """How often it, or its compensation, was sent."""
    after: list[str]
    """The steps that must have ended first."""
    timeoutS: float  # noqa: N815  # as it is on the wire
    usualS: float | None = None  # noqa: N815  # as it is on the wire
    """How long it took in earlier runs."""
    startedAt: str | None = None  # noqa: N815  # as it is on the wire
    endedAt: str | None = None  # noqa: N815  # as it is on the wire
    error: ProblemDetails | None = None


class Task(Shown):
    """A task of a step: on one machine, or of the step as a whole."""

    step: str
    """The id of its step."""
    attempt: int
    """That of its step."""
    task: str
    """Its stable name."""
    state: Literal["started", "progressed", "finished", "failed", "skipped", "cancelled"]
    message: str
    """How far it is, what it waits for, or why it has failed."""
    startedAt: str | None = None  # noqa: N815  # as it is on the wire
    updatedAt: str  # noqa: N815  # as it is on the wire
    """Its end, if it has ended."""
    saidAt: str | None = None  # noqa: N815  # as it is on the wire
    """Since when it has this message."""
    durationS: float | None = None  # noqa: N815  # as it is on the wire
    done: int | None = None
    total: int | None = None
    code: str | None = None
    """The code of the error with which it failed, or because of which its command is tried again."""
    since: str | None = None
    """When the wait began, of the task ``wait``."""
    tries: int | None = None
    """How often the command was tried in a row, of the task ``wait``."""
    obstacles: list[str] | None = None
    """The first ones of the objects that it waits for now, each with its state."""


class Node(Shown):
    """The tasks on one machine."""

    name: str
    tasks: list[Task]


class CleanUp(Shown):
    """The removal of the resources that a failed operation left."""

    id: str
    state: str
    stateEnteredTime: str  # noqa: N815  # as it is on the wire
    error: ProblemDetails | None = None
    steps: list[Step]


class Estimate(Shown):
    """How long an operation will still take, from earlier runs of the same plan."""

    remainingS: int  # noqa: N815  # as it is on the wire
    fromRuns: int  # noqa: N815  # as it is on the wire
    """The number of earlier runs that it is made from."""


class StepCounts(Shown):
    """How far an operation's plan is."""

    done: int
    total: int
    """It grows while replies add steps."""
    current: list[str]
    """The titles of running steps, at most ten."""


class Wait(Shown):
    """Something that a running operation waits for."""

    step: str | None = None
    """The id of the step that waits; without it the operation has not begun."""
    node: str | None = None
    task: str | None = None
    text: str
    since: str
    lastError: str | None = None  # noqa: N815  # as it is on the wire
    """Why the last try has failed, if it is tried again."""
    code: str | None = None
    """The code of the last error."""
    attempts: int | None = None
    """The tries without success so far."""


class AutomaticReason(Shown):
    """Why kubevnfm itself has begun an operation."""

    trigger: Literal["alarm", "threshold", "auto-healing", "auto-scaling", "server-notification"]
    """The kind of the fact that has asked for it."""
    triggerId: str  # noqa: N815  # as it is on the wire
    """The id of the first fact that has asked for it."""
    reason: str
    """One sentence."""
    actionId: str  # noqa: N815  # as it is on the wire
    """The automatic action that was carried out by it."""


class OperationHead(Linked):
    """An operation in short."""

    id: str
    vnfInstanceId: str  # noqa: N815  # as it is on the wire
    vnfInstanceName: str | None = None  # noqa: N815  # as it is on the wire
    """As it was when the operation was accepted."""
    operation: str
    state: str
    startTime: str  # noqa: N815  # as it is on the wire
    stateEnteredTime: str  # noqa: N815  # as it is on the wire
    endTime: str | None = None  # noqa: N815  # as it is on the wire
    error: ProblemDetails | None = None
    automatic: AutomaticReason | None = None
    """Only of operations that kubevnfm itself has begun."""
    cause: Cause | None = None
    """Why it waits, has failed or is slow."""
    next: list[Next] | None = None
    """The tasks that are possible now, the most sensible first; without one that has ended."""
    estimate: Estimate | None = None
    """Only where earlier runs are known."""


class OperationSummary(OperationHead):
    """An operation in a list; `cause` and `next` of those that are open."""

    steps: StepCounts
    warningCount: int  # noqa: N815  # as it is on the wire


class OperationList(ListPage):
    """A page of operations: open ones first, in each group the newest first."""

    items: list[OperationSummary]


class OperationView(OperationHead):
    """An operation with its steps, its nodes and their tasks."""

    sequence: str
    """The place in the event stream: sent as ``Last-Event-ID``, the stream goes on from this state."""
    isReversible: bool  # noqa: N815  # as it is on the wire
    """Whether it can be rolled back."""
    traceId: str  # noqa: N815  # as it is on the wire
    """The trace that it belongs to: that of the request's `traceparent` or B3 headers, else one of its own."""
    warnings: list[RequestWarning] | None = None
    """Parts of the request that are not used."""
    waits: list[Wait]
    """Everything that it waits for now, the longest first; at most 100 are listed."""
    moreWaits: int | None = None  # noqa: N815  # as it is on the wire
    """The number of those that are not listed."""
    steps: list[Step]
    nodes: list[Node]
    tasks: list[Task]
    """Tasks that belong to no machine."""
    cleanUp: CleanUp | None = None  # noqa: N815  # as it is on the wire
