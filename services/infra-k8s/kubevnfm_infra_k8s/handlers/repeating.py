"""Has handlers called again: commands about instances continue where an earlier call has ended."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import TypeVar

from kubevnfm_store.port import RevisionConflict
from kubevnfm_worker.outcome import NotYet, Outcome, StepContext

from kubevnfm_infra_k8s.domain.errors import StillWaiting
from kubevnfm_infra_k8s.handlers.frame import AGAIN_S, Handling, OfInstance, Step

H = TypeVar("H", bound=Handling)
C = TypeVar("C", bound=OfInstance)


def repeatable(
    work: Callable[[H, C, StepContext], Awaitable[Outcome]],
) -> Callable[[H, C, StepContext], Awaitable[Outcome]]:
    """Return a handler that is called again if another worker has changed the inventory."""

    @wraps(work)
    async def handle(self: H, command: C, context: StepContext) -> Outcome:
        try:
            return await work(self, command, context)
        except (RevisionConflict, StillWaiting):
            # A worker that lost this command has written the release meanwhile; the next call reads it.
            return NotYet(AGAIN_S)

    return handle


def in_cluster(work: Callable[[H, C, Step], Awaitable[Outcome]]) -> Callable[[H, C, StepContext], Awaitable[Outcome]]:
    """Return the handler of a command about an instance that has objects in a cluster. It raises NotFound if it has none."""

    @wraps(work)
    async def handle(self: H, command: C, context: StepContext) -> Outcome:
        async with self.step(command, context, await self.release_of(command.vnf_instance_id)) as step:
            return await work(self, command, step)

    return repeatable(handle)
