"""Two lines for an outage, whatever number of calls meets it."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from kubevnfm_kit.errors import OutsideUnavailable, VnfmError
from kubevnfm_kit.outages import Outage, unless_said
from kubevnfm_kit.run import repeat
from structlog.testing import capture_logs


class Away(OutsideUnavailable, code="away", is_said=True):
    """Its outage is said where it is found."""


def failing(outage: Outage, times: int) -> None:
    for number in range(times):
        with pytest.raises(Away), outage.watched(Away):
            raise Away(f"connection refused: {number}")


def test_an_outage_is_two_lines_with_its_duration_and_its_tries() -> None:
    outage = Outage("database", name="one")
    with capture_logs() as lines:
        with outage.watched(Away):
            pass
        failing(outage, 50)
        assert outage.is_on
        for _ in range(3):
            with outage.watched(Away):
                pass
        failing(outage, 1)
    assert lines[1].pop("duration_s") >= 0
    facts: dict[str, Any] = {"system": "database", "name": "one"}
    assert lines == [
        {"event": "outage_began", "log_level": "warning", "reason": "connection refused: 0", **facts},
        {"event": "outage_ended", "log_level": "info", "failed_tries": 50, **facts},
        {"event": "outage_began", "log_level": "warning", "reason": "connection refused: 0", **facts},
    ]


def test_an_answer_to_a_call_from_before_the_last_failure_ends_no_outage() -> None:
    outage = Outage("vim")
    with capture_logs() as lines:
        with outage.watched(Away):
            failing(outage, 1)
        assert outage.is_on
        outage.answered(asked_at=time.monotonic())
    assert [line["event"] for line in lines] == ["outage_began", "outage_ended"]


def test_other_errors_say_nothing_about_the_system() -> None:
    outage = Outage("vim")
    with capture_logs() as lines:
        failing(outage, 1)
        with pytest.raises(LookupError), outage.watched(Away):
            raise LookupError
        assert outage.is_on
    assert len(lines) == 1


def test_a_long_reason_is_cut_and_one_without_text_has_its_kind() -> None:
    with capture_logs() as lines:
        Outage("vim").failed("x" * 1_000_000)
        Outage("vim").failed(TimeoutError())
    assert len(lines[0]["reason"]) < 1100
    assert lines[1]["reason"] == "TimeoutError"


@pytest.mark.parametrize(("error", "level"), [(Away("x"), "debug"), (OutsideUnavailable("x"), "warning")])
def test_what_is_said_already_is_a_debug_line(error: VnfmError, level: str) -> None:
    with capture_logs() as lines:
        unless_said(error).warning("not_stored", reason=str(error))
    assert lines == [{"event": "not_stored", "reason": "x", "log_level": level}]


@pytest.mark.parametrize(
    ("kind", "events"), [(OutsideUnavailable, ["outage_began", "outage_ended"]), (Away, ["round_postponed"] * 3)]
)
async def test_rounds_that_fail_are_one_outage(kind: type[VnfmError], events: list[str]) -> None:
    rounds, done = 0, asyncio.Event()

    async def work() -> None:
        nonlocal rounds
        rounds += 1
        if rounds <= 3:
            raise kind("the sibling does not answer")
        done.set()

    with capture_logs() as lines:
        task = asyncio.create_task(repeat(work, every_s=0.0), name="drift")
        await done.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert [line["event"] for line in lines] == events
    assert {line["name"] for line in lines} == {"drift"}
