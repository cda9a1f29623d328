"""The table of answers of capi.md chapter 10: what a sender does after each."""

from __future__ import annotations

import pytest
from kubevnfm_mgmt_executor.domain.capi.answers import (
    LONGEST_S,
    MOST_TRIES,
    Accepted,
    Again,
    Answer,
    GivenUp,
    Move,
    Refused,
    Silence,
    Tries,
    next_move,
)

NOW = 1_790_000_000.0


def move(answer: Answer | Silence, *, made: int = 1, spent_s: float = 0.0, corrected: bool = False) -> Move:
    return next_move(answer, Tries(made, spent_s, corrected), now=NOW, jitter=1.0)


@pytest.mark.parametrize("status", [200, 201, 202])
def test_stored_credentials_end_the_tries(status: int) -> None:
    assert move(Answer(status)) == Accepted(status)


@pytest.mark.parametrize("status", [301, 307, 400, 403, 404, 405, 409, 413, 415, 422])
def test_a_refusal_is_final_and_names_the_answer(status: int) -> None:
    refused = move(Answer(status, detail="the field x"))
    assert isinstance(refused, Refused)
    assert str(status) in refused.reason
    assert "the field x" in refused.reason or status < 400


def test_a_refused_signature_is_tried_once_more_with_the_receivers_time() -> None:
    again = move(Answer(401, date=NOW + 600))
    assert isinstance(again, Again)
    assert again.clock_offset_s == 600
    assert isinstance(move(Answer(401, date=NOW + 600), made=2, corrected=True), Refused)


def test_a_used_nonce_is_replaced_and_other_conflicts_are_final() -> None:
    again = move(Answer(409, problem_type="nonce-used"))
    assert isinstance(again, Again)
    assert again.pause_s == 0
    for problem in ("idempotency-key-reused", "cluster-name-taken", ""):
        assert isinstance(move(Answer(409, problem_type=problem)), Refused)
    assert isinstance(move(Answer(409, problem_type="nonce-used"), made=MOST_TRIES), Refused)


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_receiver_says_how_long_to_wait(status: int) -> None:
    again = move(Answer(status, retry_after_s=42.0), made=20)
    assert isinstance(again, Again)
    assert again.pause_s == 42
    assert isinstance(move(Answer(status, retry_after_s=42.0), spent_s=LONGEST_S - 41), GivenUp)
    # Without the header it is as any fault of the server.
    assert isinstance(move(Answer(status)), Again)
    assert isinstance(move(Answer(status), made=MOST_TRIES), GivenUp)


@pytest.mark.parametrize("answer", [Answer(408), Answer(500), Answer(502), Answer(504), Silence("it broke off")])
def test_faults_are_retried_with_growing_pauses_and_then_given_up(answer: Answer | Silence) -> None:
    pauses = []
    for made in range(1, MOST_TRIES):
        again = move(answer, made=made)
        assert isinstance(again, Again)
        pauses.append(again.pause_s)
    assert pauses == [1, 2, 4, 8, 16, 30, 30]
    given_up = move(answer, made=MOST_TRIES)
    assert isinstance(given_up, GivenUp)
    assert "8 tries" in given_up.reason
    assert isinstance(move(answer, spent_s=LONGEST_S), GivenUp)


def test_half_of_a_pause_is_random() -> None:
    early = next_move(Silence("x"), Tries(4, 0.0), now=NOW, jitter=0.0)
    assert isinstance(early, Again)
    assert early.pause_s == 4
