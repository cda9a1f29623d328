from __future__ import annotations

import pytest
from kubevnfm_bus.attempt import REDELIVERY
from kubevnfm_bus.headers import Past, dead_headers, first_delay, reason_of


@pytest.mark.parametrize(
    ("delay_s", "step_s", "rest_s"),
    [(1.0, 1, 0.0), (1.9, 1, 0.9), (7.0, 5, 2.0), (299.0, 60, 239.0), (900.0, 300, 600.0)],
)
def test_a_delay_takes_the_longest_queue_delay_that_is_not_longer(delay_s: float, step_s: int, rest_s: float) -> None:
    chosen, rest = first_delay(delay_s)
    assert chosen == step_s
    assert rest == pytest.approx(rest_s)


def test_a_past_survives_its_headers() -> None:
    past = Past(failures=3, rest_s=1.25)
    assert Past.from_headers(past.headers()) == past


@pytest.mark.parametrize("headers", [{}, {"kubevnfm-failures": "many"}, {"kubevnfm-failures": -1}])
def test_headers_that_say_nothing_of_use_are_no_past(headers: dict[str, object]) -> None:
    assert Past.from_headers(headers) == Past()


def test_the_reason_of_a_death_is_ours_or_the_brokers() -> None:
    assert reason_of(dead_headers("no driver")) == "no driver"
    assert "too often" in reason_of({"x-first-death-reason": "delivery_limit"})
    assert reason_of({}) == "unknown"


def test_pauses_after_failures_double_up_to_a_minute() -> None:
    assert [REDELIVERY.after(failures) for failures in range(1, 9)] == [1, 2, 4, 8, 16, 32, 60, 60]
