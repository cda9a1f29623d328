"""The instances on which no operation runs, and questions about them, one for each VIM."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, Generic, TypeVar

from kubevnfm_bus.port import MessageBus
from kubevnfm_events import Command, Envelope, VimConnection
from kubevnfm_kit.clock import Clock
from kubevnfm_kit.ids import new_id
from kubevnfm_sol.lcm import InstantiationState
from kubevnfm_store.port import DocumentStore
from kubevnfm_store.query import AllOf, Compare, Exists, Filter, Op, Query, Stored

from kubevnfm_lcm_api.event_chain import SOURCE
from kubevnfm_lcm_api.lifecycle.core.instance import COLLECTION

_IDLE: Final = (
    Compare("instantiationState", Op.EQ, [InstantiationState.INSTANTIATED]),
    Exists("internal/currentOperation", exists=False),
)

E = TypeVar("E")


async def idle_instances(
    store: DocumentStore, which: Filter, *, page_size: int, exclude: Sequence[str] = ()
) -> AsyncIterator[Stored]:
    """Yield the INSTANTIATED instances without an operation, page by page; ``exclude``: paths that are not read.

    ``which`` needs an index. Raises StoreUnavailable.
    """
    after: tuple[None, str] | None = None
    wanted = AllOf([which, *_IDLE])
    while True:
        page = await store.find(COLLECTION, Query(wanted, after=after, limit=page_size, exclude=exclude))
        for stored in page:
            yield stored
        if len(page) < page_size:
            return
        after = (None, page[-1].id)


@dataclass
class ByVim(Generic[E]):
    """The expectations about instances, by the tenant or cluster that their access data lead to."""

    most: int
    """Instances in one question."""
    _expected: dict[str, list[E]] = field(default_factory=dict)
    _connections: dict[str, VimConnection] = field(default_factory=dict)

    def add(self, vim: VimConnection, expected: E) -> None:
        """Add an instance."""
        place = _place(vim)
        self._connections.setdefault(place, vim)
        self._expected.setdefault(place, []).append(expected)

    def questions(self) -> Iterator[tuple[VimConnection, tuple[E, ...]]]:
        """Yield what one question has at most, each with its VIM."""
        for place, expected in self._expected.items():
            for start in range(0, len(expected), self.most):
                yield self._connections[place], tuple(expected[start : start + self.most])


@dataclass(frozen=True)
class Questions:
    """Sends the questions of rounds."""

    bus: MessageBus
    clock: Clock
    every_s: float
    """From the start of a round to the start of the next, and how long a question holds."""

    async def ask(self, command: Command, vim_id: str | None) -> None:
        """Send a question about instances on a VIM; ``vim_id``: None if it is not registered."""
        deadline = self.clock.now() + timedelta(seconds=self.every_s)
        await self.bus.publish(
            Envelope(data=command, source=SOURCE, id=new_id(), subject=vim_id or "", deadline=deadline)
        )


def _place(connection: VimConnection) -> str:
    """Return a key for what the access data lead to; it contains no secret."""
    given = {**connection.extra, **connection.access_info}
    clear = {name: value for name, value in given.items() if isinstance(value, str)}
    return json.dumps([connection.vim_id, connection.interface_info, clear], sort_keys=True)
