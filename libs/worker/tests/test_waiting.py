"""The reports of a worker about a command that waits for something outside, and about one that has changed nothing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from kubevnfm_bus.inprocess import InProcessBus
from kubevnfm_events import CommandFailed, Event
from kubevnfm_events.mgmt import TaskProgressed
from kubevnfm_kit.clock import rfc3339
from kubevnfm_kit.errors import OutsideUnavailable, Unprocessable, VnfmError
from kubevnfm_worker.outcome import Done, NotYet, Outcome, StepContext, nothing_made
from kubevnfm_worker.waits import of_handler
from kubevnfm_worker.worker import CommandWorker
from worlds.worker_world import RING, SERVICE, Heard, MoodyStore, Publisher, Work, Worked, a_command


class Scripted:
    """A handler that fails with the errors, one at each call, and then succeeds; ``safe``: before its first change."""

    def __init__(self, *errors: VnfmError, safe: int = 0) -> None:
        self._errors, self._safe, self.calls = list(errors), safe, 0

    async def __call__(self, command: Work, _: StepContext) -> Outcome:
        self.calls += 1
        if self._errors:
            error = self._errors.pop(0)
            if self.calls <= self._safe:
                with nothing_made():
                    raise error
            raise error
        return Done(Worked(number=command.number))


@pytest.fixture
async def progress(bus: InProcessBus) -> Heard:
    heard = Heard()
    await bus.consume_events("watchers", ["mgmt.task.progressed"], heard)
    return heard


async def outcome(
    store: MoodyStore, bus: InProcessBus, heard: Heard, publish: Publisher, handler: Scripted, **limits: float
) -> Event:
    async with CommandWorker(service=SERVICE, bus=bus, store=store, key_ring=RING, **limits) as worker:  # type: ignore[arg-type]  # floats alone
        worker.handle(Work, handler)
        await worker.start()
        publish(a_command(deadline=datetime.now(UTC) + timedelta(seconds=60)))
        await heard.has(1)
    data = heard.envelopes[0].data
    assert isinstance(data, Event)
    return data


async def test_a_wait_is_reported_with_its_cause_and_since_when_until_it_ends(
    store: MoodyStore, bus: InProcessBus, heard: Heard, publish: Publisher, progress: Heard
) -> None:
    before = datetime.now(UTC)
    handler = Scripted(OutsideUnavailable("Keystone: refused"), OutsideUnavailable("Heat: 503"))
    assert isinstance(await outcome(store, bus, heard, publish, handler), Worked)
    await progress.has(3)
    reports = [envelope.data for envelope in progress.envelopes]
    assert all(isinstance(report, TaskProgressed) and report.task == "wait" for report in reports)
    states = {report.state: report.message for report in reports if isinstance(report, TaskProgressed)}
    assert set(states) == {"started", "progressed", "finished"}
    assert states["started"].endswith("Keystone: refused")
    assert states["progressed"].endswith("Heat: 503")
    since = datetime.fromisoformat(states["progressed"].split()[2].rstrip(":"))
    assert before - timedelta(seconds=1) <= since <= datetime.now(UTC)
    assert progress.envelopes[0].operationid == "op-1"
    assert states["started"].split()[:3] == states["progressed"].split()[:3]
    facts = [
        (each.code, rfc3339(each.since or before), each.tries) for each in reports if isinstance(each, TaskProgressed)
    ]
    assert facts == [("outside-unavailable", rfc3339(since), tries) for tries in (1, 2, None)]


async def test_a_handler_that_waits_by_itself_says_what_for_once(
    store: MoodyStore, bus: InProcessBus, heard: Heard, publish: Publisher, progress: Heard
) -> None:
    class Patient(Scripted):
        async def __call__(self, command: Work, context: StepContext) -> Outcome:
            if self.calls < 2:
                self.calls += 1
                return NotYet(0.01, waits_for="the guests leave")
            return await super().__call__(command, context)

    handler = Patient(OutsideUnavailable("Heat: 503"))
    assert isinstance(await outcome(store, bus, heard, publish, handler), Worked)
    await progress.has(3)
    first, then, last = (each.data for each in progress.envelopes if isinstance(each.data, TaskProgressed))
    assert first.message.endswith(": the guests leave")
    assert [(each.state, each.code) for each in (first, then, last)] == [
        ("started", ""),
        ("progressed", OutsideUnavailable.code),
        ("finished", OutsideUnavailable.code),
    ]
    assert first.since is not None
    assert then.since is not None
    assert first.since < then.since, "the row of errors begins with the first error"


def test_the_words_of_a_handler_that_waits_are_bounded_and_the_same_ones_are_no_news() -> None:
    now = datetime.now(UTC)
    wait = of_handler(None, "guests " * 10_000, now)
    assert wait is not None
    assert len(wait.reason) == 4096
    assert of_handler(wait, "guests " * 10_000, now + timedelta(seconds=9)) is wait
    assert of_handler(wait, "", now) is None


async def test_a_wait_ends_too_when_the_handler_breaks(
    store: MoodyStore, bus: InProcessBus, heard: Heard, publish: Publisher, progress: Heard
) -> None:
    class Breaking(Scripted):
        async def __call__(self, command: Work, context: StepContext) -> Outcome:
            await super().__call__(command, context)
            raise LookupError("a bug")

    failed = await outcome(store, bus, heard, publish, Breaking(OutsideUnavailable("Keystone: refused")))
    assert isinstance(failed, CommandFailed)
    await progress.has(2)
    last = progress.envelopes[-1].data
    assert isinstance(last, TaskProgressed)
    assert (last.task, last.state) == ("wait", "failed")


async def test_a_command_that_does_not_wait_reports_no_wait(
    store: MoodyStore, bus: InProcessBus, heard: Heard, publish: Publisher, progress: Heard
) -> None:
    await outcome(store, bus, heard, publish, Scripted())
    await publish.settled()
    assert progress.envelopes == []


@pytest.mark.parametrize(("safe", "made_nothing"), [(3, True), (2, False), (0, False)])
async def test_a_failure_says_whether_any_try_changed_something(
    store: MoodyStore, bus: InProcessBus, heard: Heard, publish: Publisher, safe: int, made_nothing: bool
) -> None:
    errors = (OutsideUnavailable("a"), OutsideUnavailable("b"), Unprocessable("c", "no"))
    failed = await outcome(store, bus, heard, publish, Scripted(*errors, safe=safe))
    assert isinstance(failed, CommandFailed)
    assert failed.made_nothing is made_nothing


async def test_a_try_whose_process_was_killed_may_have_changed_something(
    store: MoodyStore, bus: InProcessBus, heard: Heard, publish: Publisher
) -> None:
    command = a_command()
    killed = {"type": command.type, "operationId": "op-1", "tries": 0, "state": "claimed", "owner": "gone"}
    expired = {"fencing": 1, "leaseUntil": "2026-01-01T00:00:00.000Z", "madeNothing": False}
    await store.insert("inbox_testing", command.id, {**killed, **expired})
    async with CommandWorker(service=SERVICE, bus=bus, store=store, key_ring=RING) as worker:
        worker.handle(Work, Scripted(Unprocessable("c", "no"), safe=1))
        await worker.start()
        publish(command)
        await heard.has(1)
    failed = heard.envelopes[0].data
    assert isinstance(failed, CommandFailed)
    assert failed.made_nothing is False


async def test_after_its_limit_the_failure_has_the_cause(
    store: MoodyStore, bus: InProcessBus, heard: Heard, publish: Publisher, progress: Heard
) -> None:
    errors = [OutsideUnavailable("Keystone: refused")] * 5
    failed = await outcome(store, bus, heard, publish, Scripted(*errors, safe=5), unavailable_limit_s=0.4)
    assert isinstance(failed, CommandFailed)
    assert (failed.detail, failed.made_nothing) == ("Keystone: refused", True)
    await progress.has(2)
    last = progress.envelopes[-1].data
    assert isinstance(last, TaskProgressed)
    assert last.state == "failed"
