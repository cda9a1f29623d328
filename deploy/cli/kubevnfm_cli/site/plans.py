"""The plan for one entry: steps that lead from what exists to what the file wants."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from kubevnfm_cli.site.model import Entry
from kubevnfm_cli.site.world import Thing, World


@dataclass(frozen=True)
class Step:
    """One change."""

    verb: str
    """As in ``create``."""
    run: Callable[[], object]
    differences: Sequence[str] = ()
    """The values that are not as they are wanted; without secrets."""
    check: Callable[[], object] | None = None
    """Has the gateway check the request without effect (``dry_run``); None: it cannot. Raises Refused."""
    is_last: bool = False
    """Whether no further step can follow: what it has started goes on by itself."""


@dataclass(frozen=True)
class Plan:
    """The steps for an entry now; after the first one there may be others."""

    thing: Thing
    steps: Sequence[Step] = ()
    refusals: Sequence[str] = ()
    """Wanted changes that nothing makes, and why; nothing is done then."""
    running: Mapping[str, str] = field(default_factory=dict)
    """``id`` and ``operation`` of an operation that runs and is awaited before anything else is done."""
    note: str = ""
    """A remark about an entry that is as it is wanted."""


class Kind(Protocol):
    """The entries of one section."""

    def plan(self, world: World, entry: Entry) -> Plan:
        """Return what is to be done, from what the gateway shows now. Raises Fault."""
        ...

    def removal(self, world: World, entry: Entry) -> Plan:
        """Return what is to be done to remove what this file has made; no steps if there is nothing. Raises Fault."""
        ...


def taken(world: World, noun: str, owner: str | None, thing_id: str) -> str | None:
    """Return why a thing that exists is not this file's; None if it is adopted."""
    if owner:
        return f"it belongs to site {owner} (id {thing_id})"
    if world.options.adopts:
        return None
    return f"a {noun} of this name exists that no site file has made (id {thing_id}); --adopt takes it over"
