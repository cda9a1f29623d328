"""Places at which a test can hold an operation: in each step, a call to the lab that hangs until it is released."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from clouds.lab_process import LabControl


@dataclass(frozen=True)
class Hold:
    """A call of the lab that an operation makes in one of its steps."""

    name: str
    part: str
    verb: str
    node: str = "*"
    """A pattern for the node that makes the call; ``{id}`` is the VNF instance."""
    after: int = 0
    """How many calls of an earlier step pass before one is held."""


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
_PREPARED: Final = 1 + next(at for at, hold in enumerate(INSTANTIATE_CLUSTER) if hold.name == "preparing nodes")
INSTANTIATE_MASTERS: Final[Sequence[Hold]] = (
    *INSTANTIATE_CLUSTER[:_PREPARED],
    Hold("the balancer", "program", "systemctl reload-or-restart", "vnf-{id}*"),
    *INSTANTIATE_CLUSTER[_PREPARED:],
)
"""Several masters have a balancer each, before the first is initialized."""
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
    """A lab in which the held calls hang until `let_go` releases them, one after the other."""

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
                await stack.enter_async_context(
                    lab.fault(hold.part, hold.verb, node=node, effect="hang", after=hold.after)
                )
                held._let_go[hold.name] = stack
            yield held
        finally:
            await asyncio.gather(*(stack.aclose() for stack in held._let_go.values()))

    async def reached(self, hold: Hold, *, timeout_s: float = 300.0) -> None:
        """Return when the operation has made the call and hangs in it. Raises AssertionError with the name of the hold."""
        try:
            await self.lab.called(hold.part, hold.verb, times=hold.after + 1, timeout_s=timeout_s)
        except TimeoutError as late:
            raise AssertionError(f"not reached within {timeout_s:.0f} s: {hold.name} ({hold.verb})") from late

    async def let_go(self, hold: Hold) -> None:
        """Release the call, so that the operation continues."""
        await self._let_go.pop(hold.name).aclose()
