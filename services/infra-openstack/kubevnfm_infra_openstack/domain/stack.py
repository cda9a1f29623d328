"""A Heat stack as the rules see it, and the decision what to do with one that exists."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, auto
from typing import Final

from kubevnfm_kit.json_types import JsonObject

from kubevnfm_infra_openstack.domain.hot import Parameters, Template


class StackState(Enum):
    """Heat's ``stack_status``, without the differences that do not matter here."""

    MAKING = auto()
    """Heat is working on the stack; it will become READY or BROKEN."""
    READY = auto()
    """CREATE, UPDATE, CHECK ... _COMPLETE: all resources of the template exist."""
    BROKEN = auto()
    """CREATE, UPDATE ... _FAILED: only some of the resources exist."""
    GOING = auto()
    """DELETE_IN_PROGRESS."""
    STUCK = auto()
    """DELETE_FAILED: some resources could not be deleted."""
    GONE = auto()
    """DELETE_COMPLETE."""


SETTLED: Final = frozenset({StackState.READY, StackState.BROKEN, StackState.STUCK})
"""Heat has finished creating or changing the stack, or never will."""
DELETION_FAILED: Final = frozenset({StackState.STUCK})
"""The end of a deletion that did not succeed; after a success the stack is missing."""


_DELETE: Final[Mapping[str, StackState]] = {
    "IN_PROGRESS": StackState.GOING,
    "COMPLETE": StackState.GONE,
    "FAILED": StackState.STUCK,
}
_OTHER: Final[Mapping[str, StackState]] = {
    "IN_PROGRESS": StackState.MAKING,
    "COMPLETE": StackState.READY,
    "FAILED": StackState.BROKEN,
}


def state_of(status: str) -> StackState:
    """Read Heat's ``<ACTION>_<STATUS>``."""
    # An unknown status counts as MAKING, because then the stack is read again later.
    action, _, outcome = status.partition("_")
    return (_DELETE if action == "DELETE" else _OTHER).get(outcome, StackState.MAKING)


@dataclass(frozen=True)
class Stack:
    """One top stack in Heat."""

    id: str
    name: str
    state: StackState
    reason: str = ""
    """``stack_status_reason``: Heat's sentence about the last action."""
    tags: tuple[str, ...] = ()
    created_at: datetime | None = None


@dataclass(frozen=True)
class StackOrder:
    """Heat's complete input for a new stack."""

    name: str
    template: str | Template
    """The top HOT: the package's text, or a document made from it."""
    files: Mapping[str, str]
    """Text by the name under which templates refer to it."""
    parameters: Parameters
    tags: tuple[str, ...]
    timeout_s: float
    if_unassigned: str = ""
    """The reason to add where Heat refuses the stack because a property has no value."""


@dataclass(frozen=True)
class StackDefinition:
    """The input of an existing stack, as Heat returns it."""

    template: Template
    parameters: Parameters
    """As they were given; parameters with a default may be missing."""
    files: Mapping[str, str]


@dataclass(frozen=True)
class StackChange:
    """Heat's input for a change of a stack."""

    tags: tuple[str, ...]
    timeout_s: float
    template: str | Template | None = None
    """None: the template does not change."""
    files: Mapping[str, str] = field(default_factory=dict)
    parameters: Parameters = field(default_factory=dict)
    is_whole: bool = False
    """The input replaces the present one completely (PUT); otherwise files and parameters are added to it (PATCH)."""


class Next(Enum):
    """The next action of a creation, given the stack that carries the instance's tag, or its absence."""

    MAKE = auto()
    """There is no stack: create it."""
    WAIT = auto()
    """An earlier delivery of this command has started it."""
    READ = auto()
    """The stack is ready: read its content."""
    FAIL = auto()
    """This attempt created the stack, and it failed: that is the outcome."""
    REPLACE = auto()
    """An earlier attempt left it broken or half deleted: delete it, then create a new one."""
    WAIT_GONE = auto()
    """It is being deleted (a rollback before this retry): create a new one after that."""


def attempt_tag(operation_id: str, step_id: str, attempt: int) -> str:
    """Return the second tag of a stack, which names the attempt that created or changed it."""
    # Heat accepts tags of up to 80 characters without a comma. Steps of one operation may begin with the same 32 characters.
    step = step_id if len(step_id) <= 32 else f"{step_id[:23]}-{hashlib.sha256(step_id.encode()).hexdigest()[:8]}"
    return f"{operation_id[:36]}/{step}/{attempt}".replace(",", "_")


_NEXT: Final[Mapping[StackState, Next]] = {
    StackState.MAKING: Next.WAIT,
    StackState.READY: Next.READ,
    StackState.GOING: Next.WAIT_GONE,
    StackState.STUCK: Next.REPLACE,
    StackState.GONE: Next.MAKE,
}


def next_for_creation(found: Stack | None, *, made_by: str) -> Next:
    """Return what to do next; ``made_by`` is the attempt's tag."""
    if found is None:
        return Next.MAKE
    # A broken stack is replaced rather than updated: an update would keep resources that CREATE left in an unknown
    # state, and a retry has the same parameters as the first attempt.
    if found.state is StackState.BROKEN:
        return Next.FAIL if made_by in found.tags else Next.REPLACE
    return _NEXT[found.state]


class NextForChange(Enum):
    """The next action of a change of an existing stack."""

    CHANGE = auto()
    """This attempt has not changed the stack yet."""
    WAIT = auto()
    """An earlier delivery of this command has started the change."""
    WAIT_FOR_OTHER = auto()
    """Heat is working on it for an earlier attempt or for an operator: wait until that has ended."""
    READ = auto()
    """The change is complete: read the stack's content."""
    FAIL = auto()
    """This attempt's change failed: that is the outcome."""
    MISSING = auto()
    """The stack does not exist or is being deleted."""


def next_for_change(found: Stack | None, *, made_by: str) -> NextForChange:
    """Return what to do next; ``made_by`` is the attempt's tag."""
    # Heat replaces the tags at the moment when it begins the change, so the tag proves that our request arrived.
    if found is None or found.state in (StackState.GOING, StackState.STUCK, StackState.GONE):
        return NextForChange.MISSING
    is_ours = made_by in found.tags
    if found.state is StackState.MAKING:
        return NextForChange.WAIT if is_ours else NextForChange.WAIT_FOR_OTHER
    if not is_ours:
        return NextForChange.CHANGE
    return NextForChange.READ if found.state is StackState.READY else NextForChange.FAIL


@dataclass(frozen=True)
class StackNews:
    """Reports of Heat about its present work on a stack."""

    failure: str = ""
    """The newest failure of a resource that Heat may be trying again, and the resource; empty: none."""
    last_at: datetime | None = None
    """When it reported something last; None: not known."""
    silent_s: float = 0.0
    """How long ago that was, by the clock of Heat."""
    in_work: Sequence[str] = ()
    """The names of the resources that it has begun and not ended."""


@dataclass(frozen=True)
class HeatResource:
    """One resource of a stack or of one nested in it, as Heat's resource list shows it."""

    name: str
    type: str
    physical_id: str
    """Id in Nova, Neutron, Cinder ...; for a group or nested template, the id of its stack. Empty: never created."""
    status: str
    reason: str
    stack_id: str
    """The (nested) stack that contains it."""
    stack_name: str = ""
    nested_id: str = ""
    """The id of its own stack, if it is a nested one."""


@dataclass(frozen=True)
class NovaServer:
    """A server's details from Nova."""

    id: str
    name: str
    host: str | None = None
    zone: str | None = None
    image_id: str | None = None
    is_reverted: bool = False
    """Whether the image is the one to which an operation has reverted the server."""
    flavor: str | None = None
    created_at: datetime | None = None
    volume_ids: tuple[str, ...] = ()
    status: str = ""
    """Nova's: ``ACTIVE``, ``SHUTOFF``, ``ERROR`` ..."""


@dataclass(frozen=True)
class NeutronPort:
    """A port's details from Neutron."""

    id: str
    addresses: tuple[str, ...] = ()
    subnet_ids: tuple[str, ...] = ()
    mac: str | None = None
    network_id: str | None = None
    floating_address: str | None = None
    device_id: str = ""
    """The id of the server or router that the port is bound to; empty if it is bound to none."""


@dataclass(frozen=True)
class FloatingIp:
    """A floating IP's details from Neutron."""

    id: str
    address: str
    port_id: str | None = None
    network_id: str | None = None


@dataclass(frozen=True)
class StackContents:
    """A stack's resources with their details, from which its StackResources are made."""

    resources: Sequence[HeatResource]
    server_by_id: Mapping[str, NovaServer] = field(default_factory=dict)
    port_by_id: Mapping[str, NeutronPort] = field(default_factory=dict)
    """The ports among the resources, and all other ports that are bound to the stack's servers."""
    floating_by_id: Mapping[str, FloatingIp] = field(default_factory=dict)
    cidr_by_subnet_id: Mapping[str, str] = field(default_factory=dict)
    replaced: Sequence[HeatResource] = ()
    """Servers that exist although the stack no longer lists them, and their volumes: a replacement that fails leaves the old
    server, which Heat does not list any more. Their details are among those of the others."""
    nfv: JsonObject = field(default_factory=dict)
    """The value of the stack's parameter ``nfv``, in clear; empty if it has none."""
