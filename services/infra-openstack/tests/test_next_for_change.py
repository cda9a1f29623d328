"""The next command of a change, by the state of the stack and by the attempt that began its last action."""

from __future__ import annotations

import pytest
from kubevnfm_infra_openstack.domain.stack import NextForChange, Stack, StackState, next_for_change

OURS = "op/step/1"


@pytest.mark.parametrize(
    ("state", "tags", "wanted"),
    [
        (StackState.MAKING, (OURS,), NextForChange.WAIT),
        (StackState.MAKING, ("op/step/0",), NextForChange.WAIT_FOR_OTHER),
        (StackState.READY, (OURS,), NextForChange.READ),
        (StackState.READY, ("op/step/0",), NextForChange.CHANGE),
        (StackState.BROKEN, (OURS,), NextForChange.FAIL),
        (StackState.BROKEN, ("op/step/0",), NextForChange.CHANGE),
        (StackState.GOING, (OURS,), NextForChange.MISSING),
        (StackState.STUCK, (OURS,), NextForChange.MISSING),
        (StackState.GONE, (OURS,), NextForChange.MISSING),
    ],
)
def test_a_change_is_sent_once_and_after_those_of_others(
    state: StackState, tags: tuple[str, ...], wanted: NextForChange
) -> None:
    assert next_for_change(Stack("id", "vnf", state, tags=tags), made_by=OURS) is wanted


def test_a_stack_that_is_not_found_cannot_be_changed() -> None:
    assert next_for_change(None, made_by=OURS) is NextForChange.MISSING
