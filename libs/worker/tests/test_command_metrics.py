"""The metrics of commands, outboxes and rounds."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

from callers.metrics import metrics_text
from kubevnfm_bus.inprocess import InProcessBus
from kubevnfm_bus.port import Ack, Delivery, Verdict
from kubevnfm_kit.clock import Clock, SystemClock
from kubevnfm_kit.errors import Conflict, OutsideUnavailable
from kubevnfm_kit.metrics import Metrics
from kubevnfm_kit.owners import Owners
from kubevnfm_store.port import Outgoing
from kubevnfm_worker.backends import Backends
from kubevnfm_worker.outcome import Done, NotYet, Outcome, StepContext
from kubevnfm_worker.relay import OutboxRelay
from kubevnfm_worker.worker import CommandWorker
from patience import until_true
from worlds.set_clock import SetClock
from worlds.worker_world import INBOX, RING, SERVICE, Heard, MoodyStore, Publisher, Unheard, Work, Worked, a_command

OF_WORK = f'service="{SERVICE}",type="{Work.type}"'


@asynccontextmanager
async def measured(
    store: MoodyStore, bus: InProcessBus, answers: Sequence[Outcome | Exception], clock: Clock | None = None
) -> AsyncIterator[Metrics]:
    """A worker whose handler gives these answers one by one."""
    left, metrics = list(answers), Metrics()

    async def handle(_: Work, __: StepContext) -> Outcome:
        answer = left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def direct(_: Delivery) -> Verdict:
        return Ack()

    async with CommandWorker(
        service=SERVICE, bus=bus, store=store, key_ring=RING, metrics=metrics, clock=clock
    ) as worker:
        worker.handle(Work, handle)
        worker.handle_direct(Unheard, direct)
        await worker.start()
        yield metrics


async def test_outcomes_and_tries_are_counted(
    store: MoodyStore, bus: InProcessBus, heard: Heard, publish: Publisher
) -> None:
    done = Done(Worked(number=1))
    answers: list[Outcome | Exception] = [
        NotYet(again_in_s=0.01),
        OutsideUnavailable("away"),
        done,
        Conflict("taken"),
        ValueError(),
    ]
    async with measured(store, bus, answers) as metrics:
        publish(a_command())
        await heard.has(1)
        for number in (2, 3):
            publish(a_command())
            await heard.has(number)
        publish(a_command(data=Unheard()))
        await publish.settled()
        lines = set((await metrics_text(metrics)).splitlines())
    assert {
        f'kubevnfm_commands_total{{outcome="done",{OF_WORK}}} 1.0',
        f'kubevnfm_commands_total{{outcome="failed",{OF_WORK}}} 1.0',
        f'kubevnfm_commands_total{{outcome="broken",{OF_WORK}}} 1.0',
        f'kubevnfm_commands_total{{outcome="done",service="{SERVICE}",type="{Unheard.type}"}} 1.0',
        f'kubevnfm_command_repeats_total{{reason="wait",{OF_WORK}}} 1.0',
        f'kubevnfm_command_repeats_total{{reason="error",{OF_WORK}}} 1.0',
        f"kubevnfm_command_seconds_count{{{OF_WORK}}} 5.0",
        f"kubevnfm_command_start_seconds_count{{{OF_WORK}}} 3.0",
        f'kubevnfm_commands_running{{service="{SERVICE}"}} 0.0',
        f'kubevnfm_inbox_commands{{service="{SERVICE}"}} 0.0',
        f'kubevnfm_commands_parked{{service="{SERVICE}"}} 0.0',
        f'kubevnfm_lease_takeovers_total{{service="{SERVICE}"}} 0.0',
    } <= lines


async def test_a_command_that_waits_is_in_hand_and_one_of_an_ended_worker_was_taken_over(
    store: MoodyStore, bus: InProcessBus, heard: Heard, publish: Publisher
) -> None:
    command = a_command()
    lost = {"type": command.type, "operationId": "op-1", "tries": 0, "owner": "testing/gone", "fencing": 1}
    ago = (datetime.now(UTC) - timedelta(minutes=1)).isoformat()
    await store.insert(INBOX, command.id, {**lost, "state": "claimed", "leaseUntil": ago})
    async with measured(store, bus, [NotYet(again_in_s=600.0)], clock := SetClock(datetime.now(UTC))) as metrics:
        publish(command)

        async def rests() -> bool:
            return f'kubevnfm_command_repeats_total{{reason="wait",{OF_WORK}}} 1.0' in await metrics_text(metrics)

        await until_true(rests)
        clock.at = command.time + timedelta(seconds=7)
        text = await metrics_text(metrics)
    assert f'kubevnfm_lease_takeovers_total{{service="{SERVICE}"}} 1.0' in text
    assert f'kubevnfm_inbox_commands{{service="{SERVICE}"}} 1.0' in text
    assert f'kubevnfm_inbox_oldest_seconds{{service="{SERVICE}"}} 7.0' in text


async def test_an_outbox_shows_the_messages_that_are_late(store: MoodyStore, bus: InProcessBus) -> None:
    left, metrics = a_command(), Metrics()
    clock = SetClock(left.time)
    relay = OutboxRelay(store, bus, collections=["things"], metrics=metrics, clock=clock, drain_s=0.01)
    await store.insert("things", "one", {}, outbox=[Outgoing(id=left.id, document=left.document(RING))])
    await relay.sweep()
    assert 'kubevnfm_outbox_messages{collection="things"} 0.0' in await metrics_text(metrics)
    clock.advance(10.0)
    await relay.sweep()
    text = await metrics_text(metrics)
    await relay.close()
    assert 'kubevnfm_outbox_messages{collection="things"} 1.0' in text
    assert re.search(r'kubevnfm_outbox_oldest_seconds\{collection="things"\} (9\.9|10\.0)', text)


async def test_one_of_two_processes_counts_what_is_stored(store: MoodyStore, bus: InProcessBus) -> None:
    """And the next one as soon as that has ended."""

    class Counts:
        def __init__(self, metrics: Metrics) -> None:
            self.things = metrics.gauge("things", "Things.").series()

        async def count(self) -> None:
            self.things.set(7)

        def clear(self) -> None:
            self.things.set(0)

    processes = [Backends(bus, store, RING, SystemClock(), owners=Owners()) for _ in range(2)]
    for each in processes:
        each.count_stored("counts", [Counts(each.metrics)])
    assert ["things 7.0" in await metrics_text(each.metrics) for each in processes] == [True, False]


async def test_a_round_shows_its_age(store: MoodyStore, bus: InProcessBus) -> None:
    process, done = Backends(bus, store, RING), asyncio.Event()

    async def work() -> None:
        done.set()

    rounds = asyncio.create_task(process.rounds("counting", 60.0).repeat(work))
    await done.wait()

    async def is_shown() -> bool:
        return 'kubevnfm_round_age_seconds{round="counting"}' in await metrics_text(process.metrics)

    await until_true(is_shown)
    rounds.cancel()
    await asyncio.gather(rounds, return_exceptions=True)
