"""A Heat stack as the rules see it, and what is to be done with one that is found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, auto
from typing import Any, Final


class StackState(Enum):
    """Heat's ``stack_status``, less what makes no difference here."""

    MAKING = auto()
    """Heat works on it and will end in READY or BROKEN."""
    READY = auto()
    """CREATE, UPDATE, CHECK ... _COMPLETE: everything that the template wants is there."""
    BROKEN = auto()
    """CREATE, UPDATE ... _FAILED: something is there, not all."""
    GOING = auto()
    """DELETE_IN_PROGRESS."""
    STUCK = auto()
    """DELETE_FAILED: part of it could not be deleted."""
    GONE = auto()
    """DELETE_COMPLETE."""


MADE: Final = frozenset({StackState.READY, StackState.BROKEN, StackState.STUCK})
"""Heat has done with making the stack."""
LEFT: Final = frozenset({StackState.STUCK})
"""Heat has done with deleting the stack, in vain (else it is gone)."""


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
    """Read Heat's ``<ACTION>_<STATUS>``; an unknown status is MAKING, so that it is looked at again."""
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
    """Everything that Heat is given to make a stack."""

    name: str
    template: str | Mapping[str, Any]
    """The top HOT: its text as the package has it, or what was made of it."""
    files: Mapping[str, str]
    """Text by the name under which templates refer to it."""
    parameters: Mapping[str, Any]
    tags: tuple[str, ...]
    timeout_s: float


@dataclass(frozen=True)
class StackDefinition:
    """What a stack was given, as Heat tells it."""

    template: Mapping[str, Any]
    parameters: Mapping[str, Any]
    """As they were given; what the template has defaults for may be missing."""
    files: Mapping[str, str]


@dataclass(frozen=True)
class StackChange:
    """What Heat is given to change a stack."""

    tags: tuple[str, ...]
    timeout_s: float
    template: str | Mapping[str, Any] | None = None
    """None: it stays."""
    files: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    is_whole: bool = False
    """Nothing that is not given here stays (PUT); else files and parameters are laid over those that are there."""


class Next(Enum):
    """What to do with the stack that carries the instance's tag, or with its absence, when one is to be created."""

    MAKE = auto()
    """There is none."""
    WAIT = auto()
    """It is being made: by an earlier delivery of this command."""
    READ = auto()
    """It is ready: read what it holds."""
    FAIL = auto()
    """This very attempt made it and it failed: that is the outcome."""
    REPLACE = auto()
    """An earlier attempt left it broken, or half deleted: delete it, then make it anew."""
    WAIT_GONE = auto()
    """It is being deleted (a rollback before this retry): make it when it is gone."""


def attempt_tag(operation_id: str, step_id: str, attempt: int) -> str:
    """Return the second tag of a stack: which attempt made it. Heat takes tags of up to 80 characters, no comma."""
    return f"{operation_id[:36]}/{step_id[:32]}/{attempt}".replace(",", "_")


_NEXT: Final[Mapping[StackState, Next]] = {
    StackState.MAKING: Next.WAIT,
    StackState.READY: Next.READ,
    StackState.GOING: Next.WAIT_GONE,
    StackState.STUCK: Next.REPLACE,
    StackState.GONE: Next.MAKE,
}


def next_for_creation(found: Stack | None, *, made_by: str) -> Next:
    """Decide; ``made_by`` is the attempt's tag.

    A broken stack is replaced rather than updated: an update would keep what CREATE left behind in unknown state, and
    the parameters of the retry are those of the first try anyway.
    """
    if found is None:
        return Next.MAKE
    if found.state is StackState.BROKEN:
        return Next.FAIL if made_by in found.tags else Next.REPLACE
    return _NEXT[found.state]


class NextForChange(Enum):
    """What to do with the stack that is to be changed."""

    CHANGE = auto()
    """Nobody has changed it for this attempt yet."""
    WAIT = auto()
    """It is being changed, by an earlier delivery of this command."""
    WAIT_FOR_OTHER = auto()
    """Heat works on it for an earlier attempt, or for somebody at the command line: wait until it has done with it."""
    READ = auto()
    """It was changed: read what it holds."""
    FAIL = auto()
    """This very attempt failed: that is the outcome."""
    MISSING = auto()
    """It is gone, or going."""


def next_for_change(found: Stack | None, *, made_by: str) -> NextForChange:
    """Decide; ``made_by`` is the attempt's tag, which Heat takes over in the moment in which it begins the change."""
    if found is None or found.state in (StackState.GOING, StackState.STUCK, StackState.GONE):
        return NextForChange.MISSING
    is_ours = made_by in found.tags
    if found.state is StackState.MAKING:
        return NextForChange.WAIT if is_ours else NextForChange.WAIT_FOR_OTHER
    if not is_ours:
        return NextForChange.CHANGE
    return NextForChange.READ if found.state is StackState.READY else NextForChange.FAIL


@dataclass(frozen=True)
class HeatResource:
    """One resource of a stack or of one nested in it, as Heat's resource list shows it."""

    name: str
    type: str
    physical_id: str
    """Id in Nova, Neutron, Cinder ...; of a group or a nested template: the id of its stack. Empty: never made."""
    status: str
    reason: str
    stack_id: str
    """The (nested) stack that holds it."""
    stack_name: str = ""
    nested_id: str = ""
    """The stack that it is itself, if it is one."""


@dataclass(frozen=True)
class NovaServer:
    """What Nova knows of a server."""

    id: str
    name: str
    host: str | None = None
    zone: str | None = None
    image_id: str | None = None
    flavor: str | None = None
    created_at: datetime | None = None
    volume_ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class NeutronPort:
    """What Neutron knows of a port."""

    id: str
    addresses: tuple[str, ...] = ()
    subnet_ids: tuple[str, ...] = ()
    mac: str | None = None
    network_id: str | None = None
    floating_address: str | None = None


@dataclass(frozen=True)
class FloatingIp:
    """What Neutron knows of a floating IP."""

    id: str
    address: str
    port_id: str | None = None
    network_id: str | None = None


@dataclass(frozen=True)
class StackContents:
    """Raw facts about a stack, from which its StackResources are made."""

    resources: Sequence[HeatResource]
    server_by_id: Mapping[str, NovaServer] = field(default_factory=dict)
    port_by_id: Mapping[str, NeutronPort] = field(default_factory=dict)
    floating_by_id: Mapping[str, FloatingIp] = field(default_factory=dict)
    cidr_by_subnet_id: Mapping[str, str] = field(default_factory=dict)
