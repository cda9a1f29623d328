"""Where an operation can be held: one place in each step, by a call to the lab that hangs until it is let go."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from lab_process import LabControl


@dataclass(frozen=True)
class Hold:
    """A call of the lab that an operation makes in one of its steps."""

    name: str
    part: str
    verb: str
    node: str = "*"
    """Whose call: a pattern in which ``{id}`` is the VNF instance."""


INSTANTIATE_CLUSTER: Final[Sequence[Hold]] = (
    Hold("asking for the stack", "heat", "stack_create", "vnf-{id}*"),
    Hold("the stack in the making", "nova", "server_create", "vnf-{id}*"),
    Hold("logging in", "ssh", "connect", "vnf-{id}*"),
    Hold("preparing nodes", "program", "apt-get install", "vnf-{id}*"),
    Hold("the first master", "program", "kubeadm init", "vnf-{id}*"),
    Hold("joining", "program", "kubeadm join", "vnf-{id}*"),
    Hold("labels", "program", "kubectl label", "vnf-{id}*"),
    Hold("registering the VIM", "kubernetes", "get /version"),
)
"""In the order in which they are reached."""
TERMINATE_CLUSTER: Final[Sequence[Hold]] = (
    Hold("asking for the stack's deletion", "heat", "stack_delete"),
    Hold("the stack going away", "nova", "server_delete", "vnf-{id}*"),
)
INSTANTIATE_CNF: Final[Sequence[Hold]] = (
    Hold("the first object", "kubernetes", "patch configmaps"),
    Hold("the last object", "kubernetes", "patch poddisruptionbudgets"),
)
TERMINATE_CNF: Final[Sequence[Hold]] = (
    Hold("the first deletion", "kubernetes", "delete poddisruptionbudgets"),
    Hold("the last deletion", "kubernetes", "delete configmaps"),
)


@dataclass
class HeldLab:
    """A lab in which calls hang, one after the other let go by `reached_and_let_go`."""

    lab: LabControl
    _let_go: dict[str, AsyncExitStack] = field(default_factory=dict)

    @classmethod
    @asynccontextmanager
    async def holding(cls, lab: LabControl, holds: Sequence[Hold], instance_id: str) -> AsyncIterator[HeldLab]:
        """Yield with all of the holds in force for one VNF instance."""
        held = cls(lab)
        await lab.forget_calls()
        try:
            for hold in holds:
                stack = AsyncExitStack()
                node = hold.node.format(id=instance_id)
                await stack.enter_async_context(lab.fault(hold.part, hold.verb, node=node, effect="hang"))
                held._let_go[hold.name] = stack
            yield held
        finally:
            await asyncio.gather(*(stack.aclose() for stack in held._let_go.values()))

    async def reached(self, hold: Hold, *, timeout_s: float = 90.0) -> None:
        """Return when the operation hangs there."""
        await self.lab.called(hold.part, hold.verb, timeout_s=timeout_s)

    async def let_go(self, hold: Hold) -> None:
        """Let the operation go on."""
        await self._let_go.pop(hold.name).aclose()
