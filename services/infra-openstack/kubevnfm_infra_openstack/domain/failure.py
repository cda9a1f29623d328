"""Finds the reason why a stack failed: that of the deepest failed resource, which its parents only repeat."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress

from kubevnfm_events.stacks import StackResources
from kubevnfm_kit.clock import rfc3339
from kubevnfm_kit.errors import VnfmError
from kubevnfm_worker.outcome import NotYet

from kubevnfm_infra_openstack.domain.errors import StackFailed, StackTimedOut
from kubevnfm_infra_openstack.domain.ports import StackPort
from kubevnfm_infra_openstack.domain.stack import SETTLED, HeatResource, Stack, StackNews, StackState

_TIMED_OUT = re.compile(r"timed? ?out", re.IGNORECASE)
_CANCELLED = re.compile(r"(create|update) (aborted|cancelled)|user cancelled", re.IGNORECASE)
_STOPPED = re.compile(r"Stack [A-Z]+ cancelled")
MARK = "replaced by the VNF manager"
"""The reason that Heat shows of a resource that was marked for its replacement."""
_DELETION_VISIBLE_S = 10.0
_NOTICED_S = 5.0
"""After so long a resource that Heat tries again is looked for."""
_NOT_BROKEN = frozenset(StackState) - {StackState.BROKEN}
_SILENT_S = 180.0
"""After so long without an event of Heat, it is said: a machine is made in less time."""
_SHOWN = 3
"""So many causes are named in one error; the others are only counted."""


def failed_resources(resources: Sequence[HeatResource]) -> Sequence[HeatResource]:
    """Return the resources that caused the failure, most deeply nested first.

    Not included: a stack or group that failed because of its content, resources that Heat aborted only because another one
    had failed ("CREATE aborted"), and those that were only marked, which Heat had not come to.
    """
    parent = {r.nested_id: r.stack_id for r in resources if r.nested_id}

    def depth(resource: HeatResource) -> int:
        stack_id, steps = resource.stack_id, 0
        # The limit on the steps ends a loop in the links, should Heat ever return one.
        while stack_id in parent and steps <= len(parent):
            stack_id, steps = parent[stack_id], steps + 1
        return steps

    failed = [r for r in resources if r.status.endswith("_FAILED") and MARK not in r.reason]
    holding = {r.stack_id for r in failed}
    own = [r for r in failed if r.nested_id not in holding or not r.nested_id]
    # If all were aborted (an operator cancelled the stack), the aborted resources are all there is to name.
    causes = [r for r in own if not is_cancelled(r.reason)] or own
    return sorted(causes, key=depth, reverse=True)


def is_cancelled(reason: str) -> bool:
    """Return whether Heat has stopped work on a resource only because of another one, or because it was asked to."""
    return _CANCELLED.search(reason) is not None


def failure_of(
    stack: Stack,
    resources: Sequence[HeatResource],
    *,
    remains: StackResources | None = None,
    failed: type[StackFailed] = StackFailed,
    timed_out: type[StackTimedOut] = StackTimedOut,
) -> VnfmError:
    """Return the error that names why the stack failed; ``remains`` is what the stack holds."""
    causes = [f"{r.name} ({r.type}): {r.reason}" for r in failed_resources(resources) if r.reason]
    more = f" (and {len(causes) - _SHOWN} more)" if len(causes) > _SHOWN else ""
    detail = "; ".join(causes[:_SHOWN]) + more if causes else stack.reason or "Heat reports no reason"
    # Heat reports its own deadline only in the text of the stack's reason, not in a status.
    if _TIMED_OUT.search(stack.reason):
        waiting = [r.name for r in resources if r.status.endswith("_IN_PROGRESS")]
        unfinished = f"; unfinished: {', '.join(waiting[:_SHOWN])}" if waiting else ""
        return timed_out(f"stack {stack.name}: {stack.reason}{unfinished or '; ' + detail}", remains=remains)
    return failed(f"stack {stack.name}: {detail}", remains=remains)


async def is_being_deleted(stacks: StackPort, stack: Stack) -> bool:
    """Return whether a failed stack has failed because its deletion began; waits up to 10 s for it to be seen.

    For a deletion Heat first cancels its present work, and shows the stack as failed for a moment.
    """
    if not _STOPPED.fullmatch(stack.reason):
        return False
    later = await stacks.settle(stack, until=_NOT_BROKEN, within_s=_DELETION_VISIBLE_S)
    return later is None or later.state is not StackState.BROKEN


async def settled(stacks: StackPort, stack: Stack, *, within_s: float) -> Stack | None:
    """Wait until Heat has ended its work on the stack; less long, if it tries again what has failed: the caller shows that."""
    seen = await stacks.settle(stack, until=SETTLED, within_s=min(within_s, _NOTICED_S))
    if seen is None or seen.state is not StackState.MAKING or (await _news(stacks, seen)).failure:
        return seen
    return await stacks.settle(seen, until=SETTLED, within_s=max(0.0, within_s - _NOTICED_S))


async def still_working(stacks: StackPort, stack: Stack | None, again_in_s: float) -> NotYet:
    """Return that Heat is at work on the stack, and what is wrong with it.

    It tries a failed resource again for minutes, and a stack stays in work for ever if the engine that has made it was stopped.
    """
    if stack is None or stack.state is not StackState.MAKING:
        return NotYet(again_in_s)
    return NotYet(again_in_s, waits_for=_obstacle(stack, await _news(stacks, stack)))


def _obstacle(stack: Stack, news: StackNews) -> str:
    if news.failure:
        return f"Heat tries again what has failed: {news.failure}"
    if news.last_at is None or news.silent_s < _SILENT_S:
        return ""
    named = f"; in work: {', '.join(news.in_work[:_SHOWN])}" if news.in_work else ""
    return f"stack {stack.name}: Heat has reported nothing about it since {rfc3339(news.last_at)}{named}"


async def _news(stacks: StackPort, stack: Stack) -> StackNews:
    # They only explain: a cloud that does not show them can still make the stack.
    with suppress(VnfmError):
        return await stacks.news(stack)
    return StackNews()
