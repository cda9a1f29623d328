"""Every cell of the table of states."""

from __future__ import annotations

from pathlib import Path

import pytest
from kubevnfm_lcm_api.lifecycle.core.states import TRANSITIONS, IllegalTransition, allowed_tasks, next_state
from kubevnfm_lcm_api.lifecycle.core.states_page import page
from kubevnfm_sol.lcm import TERMINAL, OperationType
from kubevnfm_sol.lcm import OperationState as S

TRIGGERS = sorted({trigger for _, trigger in TRANSITIONS})


@pytest.mark.parametrize("trigger", TRIGGERS)
@pytest.mark.parametrize("state", list(S))
def test_only_the_listed_transitions_happen(state: S, trigger: str) -> None:
    """API-040."""
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
    assert allowed_tasks(S.PROCESSING, OperationType.INSTANTIATE) == {"cancel"}
    assert allowed_tasks(S.PROCESSING, OperationType.INSTANTIATE, cancel_mode="GRACEFUL") == {"cancel"}
    assert allowed_tasks(S.PROCESSING, OperationType.INSTANTIATE, cancel_mode="FORCEFUL") == frozenset()
    assert allowed_tasks(S.FAILED_TEMP, OperationType.SCALE, is_reversible=False) == {"retry", "fail"}


def test_the_page_in_the_documentation_matches_the_table() -> None:
    """To write it: python -m kubevnfm_lcm_api.lifecycle.core.states_page > docs/operation-states.md."""
    assert (Path(__file__).parents[4] / "docs/operation-states.md").read_text(encoding="utf-8") == page()
