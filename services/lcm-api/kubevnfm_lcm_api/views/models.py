"""The answers of our own views."""

from __future__ import annotations

from kubevnfm_kit.json_types import JsonObject
from kubevnfm_sol.problem import ProblemDetails

from kubevnfm_lcm_api.http.models import Linked, Shown
from kubevnfm_lcm_api.views.causes.models import Cause, Next


class Step(Shown):
    """One step of an operation's plan."""

    name: str
    title: str
    state: str
    attempt: int
    after: list[str]
    """The steps that must have ended first."""
    startedAt: str | None = None  # noqa: N815  # as it is on the wire
    endedAt: str | None = None  # noqa: N815  # as it is on the wire
    error: ProblemDetails | None = None


class Node(Shown):
    """The tasks on one machine."""

    name: str
    tasks: list[JsonObject]


class CleanUp(Shown):
    """The removal of the resources that a failed operation left."""

    id: str
    state: str
    stateEnteredTime: str  # noqa: N815  # as it is on the wire
    error: ProblemDetails | None = None
    steps: list[Step]


class OperationView(Linked):
    """An operation with its steps, its nodes and their tasks."""

    sequence: str
    """The place in the event stream: sent as ``Last-Event-ID``, the stream goes on from this state."""
    id: str
    vnfInstanceId: str  # noqa: N815  # as it is on the wire
    operation: str
    state: str
    startTime: str  # noqa: N815  # as it is on the wire
    stateEnteredTime: str  # noqa: N815  # as it is on the wire
    error: ProblemDetails | None = None
    warnings: list[str] | None = None
    """Parts of the request that are not used."""
    cause: Cause | None = None
    """Why it waits, has failed or is slow."""
    next: list[Next]
    """The tasks that are possible now, the most sensible first; empty once it has ended."""
    steps: list[Step]
    nodes: list[Node]
    tasks: list[JsonObject]
    """Tasks that belong to no machine."""
    cleanUp: CleanUp | None = None  # noqa: N815  # as it is on the wire
