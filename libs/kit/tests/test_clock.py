"""The steady clock: a machine's clock that is set neither holds up nor ends anything."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from kubevnfm_kit.clock import Reading, SteadyClock, lease_left_s, machine_now, rfc3339

START = datetime(2026, 1, 1, tzinfo=UTC)
HOUR_S = 3600.0


@dataclass
class Machine:
    """A machine whose clock can be set."""

    elapsed_s: float = 0.0
    is_off_s: float = 0.0

    def now(self) -> datetime:
        return START + timedelta(seconds=self.elapsed_s + self.is_off_s)

    def clock(self, *, boot: str = "this", since: Reading | None = None) -> SteadyClock:
        return SteadyClock(self, lambda: self.elapsed_s, boot=boot, since=since)


def seconds(clock: SteadyClock) -> float:
    return (clock.now() - START).total_seconds()


@pytest.mark.parametrize("set_by_s", [-HOUR_S, 3 * HOUR_S])
def test_time_goes_by_what_has_passed_when_the_clock_is_set(set_by_s: float) -> None:
    machine = Machine()
    clock = machine.clock()
    machine.elapsed_s = 10.0
    assert seconds(clock) == 10.0
    machine.is_off_s = set_by_s
    assert seconds(clock) == 10.0
    machine.elapsed_s = 110.0
    assert seconds(clock) == pytest.approx(120.0 if set_by_s > 0 else 100.0)
    assert machine_now(clock) == machine.now()


def test_both_clocks_agree_again_after_a_while() -> None:
    machine = Machine()
    clock = machine.clock()
    machine.is_off_s = -HOUR_S
    earlier = clock.now()
    for _ in range(11 * 60):
        machine.elapsed_s += 60.0
        assert clock.now() > earlier
        earlier = clock.now()
    assert clock.now() == machine.now()


@pytest.mark.parametrize("set_by_s", [-HOUR_S, 3 * HOUR_S])
def test_the_next_process_of_a_boot_goes_on_whatever_was_done_to_the_clock(set_by_s: float) -> None:
    machine = Machine(elapsed_s=100.0)
    stored = machine.clock().reading()
    machine.elapsed_s, machine.is_off_s = 120.0, set_by_s
    assert seconds(machine.clock(since=stored)) == pytest.approx(120.0, abs=2.0)


@pytest.mark.parametrize("boot", ["another", ""])
def test_after_another_boot_time_does_not_go_back(boot: str) -> None:
    machine = Machine(elapsed_s=100.0)
    stored = machine.clock(boot="this").reading()
    machine.elapsed_s, machine.is_off_s = 5.0, -HOUR_S
    assert seconds(machine.clock(boot=boot, since=stored)) == 100.0
    machine.is_off_s = HOUR_S
    assert seconds(machine.clock(boot=boot, since=stored)) == HOUR_S + 5.0


@pytest.mark.parametrize("was_off_s", [-HOUR_S, 3 * HOUR_S])
def test_a_clock_that_alone_is_wrong_is_set(was_off_s: float) -> None:
    """After a boot with a wrong clock that was set right, or a pause of the virtual machine that no clock has counted."""
    machine, other = Machine(is_off_s=was_off_s), Machine(elapsed_s=100.0)
    clock = machine.clock()
    machine.elapsed_s, machine.is_off_s = 110.0, 0.0
    assert seconds(clock) != pytest.approx(110.0, abs=60.0)
    assert clock.agree(other.clock(boot="other").reading(), within_s=30.0)
    assert clock.now() == machine.now()


@pytest.mark.parametrize(
    ("elapsed_s", "other_off_s", "own_off_s"),
    [
        (100.0, 0.0, -HOUR_S),  # this machine's clock alone was set
        (100.0, -HOUR_S, -HOUR_S),  # both were: both clocks go on as they are
        (50.0, 0.0, -20.0),
        (100.0, 0.0, 1.0),
    ],
)
def test_a_clock_is_not_set_without_another_that_confirms_it(
    elapsed_s: float, other_off_s: float, own_off_s: float
) -> None:
    machine, other = Machine(), Machine()
    clock, others = machine.clock(), other.clock(boot="other")
    other.elapsed_s, other.is_off_s = elapsed_s, other_off_s
    machine.elapsed_s, machine.is_off_s = 110.0, own_off_s
    before = seconds(clock)
    assert not clock.agree(others.reading(), within_s=30.0)
    assert seconds(clock) == before


def test_a_stored_time_far_in_the_future_is_not_believed() -> None:
    wrong = Reading("another", 5.0, START + timedelta(days=3650))
    assert seconds(Machine().clock(since=wrong)) == 0.0


@pytest.mark.parametrize(
    ("ends_in_s", "left_s"), [(10.0, 10.0), (0.0, 0.0), (-5.0, 0.0), (16.0, 15.0), (29.0, 15.0), (HOUR_S, 0.0)]
)
def test_a_lease_is_never_longer_than_its_length(ends_in_s: float, left_s: float) -> None:
    assert lease_left_s(rfc3339(START + timedelta(seconds=ends_in_s)), START, 15.0) == left_s
