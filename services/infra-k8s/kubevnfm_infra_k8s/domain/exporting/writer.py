"""Writes nodes to A&AI by its rules of concurrency: what exists is read, changed and written with the version that was read.

A creation has no version, and is refused (412) if the node exists; a change or removal has the one that is there, and is refused if
another one is there by now. Several operations are one transaction, which makes all of them or none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlencode
from weakref import WeakValueDictionary

from cachetools import LRUCache

from kubevnfm_infra_k8s.domain.exporting.nodes import Node, is_shown, overlaid
from kubevnfm_infra_k8s.domain.exporting.ports import AaiRefused, Graph, Operation

_LOST: Final = 5
"""How often a change is read and sent again, after another client was faster."""
_READS: Final = 4
"""Nodes that are read side by side."""
_VERSION: Final = "resource-version"
_MOST_KNOWN: Final = 10_000


@dataclass
class NodeWriter:
    """The writing of nodes."""

    graph: Graph
    check: Callable[[], None]
    """Called before each change. Raises LeaseLost if another process may export by now."""
    _known: LRUCache[str, bool] = field(default_factory=lambda: LRUCache(_MOST_KNOWN))
    """The nodes that others need and that exist."""
    _turns: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)
    """By path. A&AI may make two nodes of one that is created twice at the same time."""

    async def ensure(self, *nodes: Node) -> None:
        """Create the nodes that do not exist, in this order, and leave the others as they are."""
        for node in nodes:
            if node.path in self._known:
                continue
            async with self._turn(node):
                if node.path not in self._known:
                    await self._create(node)
                    self._known[node.path] = True

    async def _create(self, node: Node) -> None:
        if await self.graph.head(node.path) is not None:
            return
        try:
            await self._send([Operation("put", node.path, node.created)])
        except AaiRefused as error:
            # Another client has created it since.
            if error.answered != 412 or await self.graph.head(node.path) is None:
                raise

    def _turn(self, node: Node) -> asyncio.Lock:
        return self._turns.setdefault(node.path, asyncio.Lock())

    def forget(self, *nodes: Node) -> None:
        """Have `ensure` look for these again."""
        for node in nodes:
            self._known.pop(node.path, None)

    async def put(self, node: Node) -> None:
        """Create a node, or change it to what is wanted. A node that others have made stays as it is."""
        await self._tried(lambda: self.change(node))

    async def remove(self, node: Node) -> None:
        """Delete a node, unless others have made it."""
        async with self._turn(node):
            self.forget(node)
            await self._tried(lambda: self.removal(node))

    async def change(self, node: Node) -> Operation | None:
        """Return the operation that brings a node about; None if there is nothing to do."""
        there = await self.graph.get(node.path)
        if there is None:
            return Operation("put", node.path, node.created)
        if not node.is_ours(there):
            return None
        merged = overlaid(there, node.body)
        return None if is_shown(there, merged) else Operation("put", node.path, merged)

    async def removal(self, node: Node) -> Operation | None:
        """Return the operation that deletes a node; None if there is nothing to do."""
        there = await self.graph.head(node.path)
        if there is None or not node.is_ours(there):
            return None
        version = urlencode({_VERSION: str(there.get(_VERSION, ""))})
        return Operation("delete", f"{node.path}?{version}", {})

    async def operations(
        self, wanted: Sequence[Callable[[], Awaitable[Operation | None]]]
    ) -> Sequence[Operation | None]:
        """Return the operations that bring changes about, some of them read side by side."""
        found: list[Operation | None] = []
        for begin in range(0, len(wanted), _READS):
            found += await asyncio.gather(*(each() for each in wanted[begin : begin + _READS]))
        return found

    async def send(self, operations: Sequence[Operation | None]) -> None:
        """Make all changes in one transaction. Raises AaiRefused if A&AI refuses one; then none was made."""
        made = [each for each in operations if each is not None]
        if made:
            await self._send(made)

    async def _tried(self, wanted: Callable[[], Awaitable[Operation | None]]) -> None:
        for attempt in range(_LOST):
            operation = await wanted()
            if operation is None:
                return
            try:
                await self._send([operation])
            except AaiRefused as error:
                gone = error.answered == 404 and operation.action == "delete"
                if attempt == _LOST - 1 or not (gone or error.answered in (409, 412)):
                    raise
            else:
                return

    async def _send(self, operations: Sequence[Operation]) -> None:
        self.check()
        await self.graph.transact(operations)
