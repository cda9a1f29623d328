"""The whole table of states, each cell."""

from __future__ import annotations

import pytest
from kubevnfm_lcm_api.domain.states import TERMINAL, TRANSITIONS, IllegalTransition, allowed_tasks, next_state
from kubevnfm_sol.lcm import OperationState as S
from kubevnfm_sol.lcm import OperationType

TRIGGERS = sorted({trigger for _, trigger in TRANSITIONS})


@pytest.mark.parametrize("trigger", TRIGGERS)
@pytest.mark.parametrize("state", list(S))
def test_only_the_listed_transitions_happen(state: S, trigger: str) -> None:
    if (state, trigger) in TRANSITIONS:
        assert next_state(state, trigger) is TRANSITIONS[state, trigger]
    else:
        with pytest.raises(IllegalTransition):
            next_state(state, trigger)


@pytest.mark.parametrize("state", sorted(TERMINAL))
def test_nothing_leaves_a_terminal_state(state: S) -> None:
    assert not [trigger for (from_state, trigger) in TRANSITIONS if from_state is state]


def test_tasks_by_state_and_operation() -> None:
    assert allowed_tasks(S.FAILED_TEMP, OperationType.INSTANTIATE) == {"retry", "rollback", "fail"}
    assert allowed_tasks(S.FAILED_TEMP, OperationType.TERMINATE) == {"retry", "fail"}
    assert allowed_tasks(S.PROCESSING, OperationType.INSTANTIATE) == frozenset()
