"""Compares the stacks that instances show with those that exist in the VIM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kubevnfm_events.common import DriftState
from kubevnfm_events.stacks import ExpectedStack, StackDrift, StackFinding

from kubevnfm_infra_openstack.domain.stack import Stack, StackState

_SHOWN = 3
"""So many servers are named in one reason; the others are only counted."""
_UNSETTLED = frozenset({StackState.MAKING, StackState.GOING})
"""Heat is working on the stack, although no operation is running: the end of the work decides."""


def finding_of(expected: ExpectedStack, stack: Stack | None, statuses: Mapping[str, str]) -> StackFinding | None:
    """Return how the stack differs from what is known; None if there is no news, or none yet.

    ``stack``: None if Heat has none. ``statuses``: Nova's status by id, of servers that exist; any text if it is not ERROR.
    """
    if stack is not None and stack.state in _UNSETTLED:
        return None
    if stack is None or stack.state is StackState.GONE:
        drift = StackDrift(state="MISSING")
        return _news(expected, drift, f"the stack {expected.stack_name} ({expected.stack_id}) does not exist")
    broken = tuple(one for one in expected.servers if statuses.get(one, "ERROR") == "ERROR")
    state: DriftState | None = None if stack.state is StackState.READY else "FAILED"
    if state is None and not broken:
        return _news(expected, None, "the stack and its servers exist")
    reasons = [] if state is None else [f"Heat reports: {stack.reason or 'no reason'}"]
    if broken:
        reasons.append(_of_servers(broken, statuses))
    drift = StackDrift(state=state or "INCOMPLETE", servers=broken)
    return _news(expected, drift, f"the stack {expected.stack_name}: {'; '.join(reasons)}")


def _news(expected: ExpectedStack, drift: StackDrift | None, reason: str) -> StackFinding | None:
    if drift == expected.known:
        return None
    return StackFinding(
        vnf_instance_id=expected.vnf_instance_id, revision=expected.revision, drift=drift, reason=reason
    )


def _of_servers(broken: Sequence[str], statuses: Mapping[str, str]) -> str:
    named = [f"server {one} {'is in state ERROR' if one in statuses else 'does not exist'}" for one in broken[:_SHOWN]]
    more = f" (and {len(broken) - _SHOWN} more)" if len(broken) > _SHOWN else ""
    return ", ".join(named) + more
