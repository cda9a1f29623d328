"""Commands whose handling ends the process are found among those that were handled beside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from kubevnfm_bus.inprocess import InProcessBus
from kubevnfm_events import Envelope, Message
from kubevnfm_worker.inbox import Claim, Finished, Inbox, Queued, Taken
from kubevnfm_worker.relay import OutboxRelay
from kubevnfm_worker.suspects import PARKED_AT_LAST, Suspects
from worlds.set_clock import SetClock
from worlds.worker_world import INBOX, RING, SERVICE, MoodyStore, Worked, a_command

LEASE_S = 15.0
Live = Callable[[str], Inbox]


@pytest.fixture
def clock() -> SetClock:
    return SetClock(datetime(2026, 1, 1, tzinfo=UTC))


@pytest.fixture
def live(store: MoodyStore, bus: InProcessBus, clock: SetClock) -> Live:
    """Return the inbox of a new process; it begins after the leases of the one before have expired."""

    def seconds() -> float:
        return clock.at.timestamp()

    def start(owner: str) -> Inbox:
        clock.advance(LEASE_S + 1)
        relay = OutboxRelay(store, bus, collections=[INBOX])
        return Inbox(
            store, relay, RING, collection=INBOX, owner=owner, lease_s=LEASE_S, clock=clock, suspects=Suspects(seconds)
        )

    return start


async def claimed(inbox: Inbox, command: Envelope[Message]) -> Claim:
    claim = await inbox.claim(command)
    assert isinstance(claim, Claim), claim
    return claim


def commands(count: int) -> Sequence[Envelope[Message]]:
    return [replace(a_command(), id=f"command-{number}") for number in range(count)]


@pytest.mark.parametrize("place", [0, 31, 63])
async def test_of_64_commands_only_the_one_that_ends_the_process_is_parked(live: Live, place: int) -> None:
    """All of them are handled at once when it ends; ``place``: of the guilty one in the queue."""
    waiting = list(commands(64))
    guilty = waiting[place].id
    parked: list[str] = []
    lives = 0
    while waiting:
        lives += 1
        inbox = live(f"life-{lives}")
        while waiting:
            # As a broker that delivers 64 at a time, and a handler that takes longer than all of the deliveries.
            found = [(command, await inbox.claim(command)) for command in waiting]
            claims = [(command, claim) for command, claim in found if isinstance(claim, Claim)]
            assert claims, "some command always has its turn"
            parked += [command.id for command, claim in claims if claim.is_parked]
            running = [(command, claim) for command, claim in claims if not claim.is_parked]
            if any(command.id == guilty for command, _ in running):
                assert lives < 3 or len(running) == 1, "a suspect is alone"
                waiting = [command for command in waiting if command.id not in parked]
                break
            for command, claim in claims:
                await inbox.finish(claim, command, Worked(number=1), source="/test")
                inbox._suspects.leave(command.id)
                waiting.remove(command)
    assert parked == [guilty]
    assert lives == 4


async def test_a_retried_command_begins_a_new_row(live: Live) -> None:
    (command,) = commands(1)
    for life in range(3):
        assert not (await claimed(live(f"life-{life}"), command)).is_parked
    assert (await claimed(live("life-3"), command)).is_parked
    again = await claimed(live("life-4"), replace(command, id="attempt-2"))
    assert (again.ends, again.is_parked) == (0, False)


async def test_what_is_parked_is_shown_for_a_day(live: Live, clock: SetClock) -> None:
    (command,) = commands(1)
    for life in range(3):
        await claimed(live(f"life-{life}"), command)
    inbox = live("life-3")
    claim = await claimed(inbox, command)
    assert list(await inbox.parked()) == []
    await inbox.finish(claim, command, Worked(), source="/test")
    (shown,) = await inbox.parked()
    assert (shown["command"], shown["operationId"]) == (command.type, "op-1")
    assert isinstance(await inbox.claim(command), Finished)
    clock.advance(25 * 3600)
    assert list(await inbox.parked()) == []


@pytest.mark.parametrize("is_outcome", [True, False], ids=["an answer", "an orderly shutdown"])
async def test_a_claim_that_was_released_does_not_count(live: Live, is_outcome: bool) -> None:
    (command,) = commands(1)
    await claimed(live("killed"), command)
    for life in range(12):
        inbox = live(f"life-{life}")
        claim = await claimed(inbox, command)
        assert (claim.ends, claim.is_parked) == (0 if is_outcome and life else 1, False)
        await inbox.rest(claim, tries=0, is_outcome=is_outcome)


async def test_a_lease_that_the_same_process_has_lost_does_not_count(live: Live, clock: SetClock) -> None:
    """The database was away for longer than the lease, again and again."""
    (command,) = commands(1)
    inbox = live("one")
    for _ in range(12):
        assert (await claimed(inbox, command)).ends == 0
        clock.advance(LEASE_S + 1)


async def test_a_lease_that_a_living_process_has_lost_to_another_does_not_count(live: Live) -> None:
    """It reports that it lives as soon as the database answers, before or after the takeover."""
    (command,) = commands(1)
    before = live("life-0")
    claim = await claimed(before, command)
    for life in range(1, 12):
        if life % 2:
            await before.survived(claim)
        inbox = live(f"life-{life}")
        taken = await claimed(inbox, command)
        if not life % 2:
            assert taken.ends == 1
            await before.survived(claim)
        before, claim = inbox, taken
        assert claim.ends <= 1
    await before.survived(claim)
    assert (await claimed(live("last"), command)).ends == 0


async def test_the_note_that_a_process_lives_does_not_end_its_later_claim(live: Live, clock: SetClock) -> None:
    (command,) = commands(1)
    inbox = live("alive")
    lost = await claimed(inbox, command)
    clock.advance(LEASE_S + 1)
    later = await claimed(inbox, command)
    await inbox.survived(lost)
    await inbox.renew(later, unavailable_since=None)


async def test_a_claim_that_brings_the_work_further_begins_a_new_row(live: Live) -> None:
    """As a phase on machines whose process is killed at each task, by a person or a test: no end of it is the command's fault."""
    (command,) = commands(1)
    for completed in range(1, 12):
        inbox = live(f"life-{completed}")
        claim = await claimed(inbox, command)
        assert (claim.ends, claim.is_parked) == (min(1, completed - 1), False)
        await inbox.renew(claim, unavailable_since=None, completed=completed, is_alone=False)
    # The same tasks once more are no progress.
    for life in range(3):
        inbox = live(f"stuck-{life}")
        claim = await claimed(inbox, command)
        assert not claim.is_parked or life == 2
        if not claim.is_parked:
            alone = inbox._suspects.is_alone(command.id)
            await inbox.renew(claim, unavailable_since=None, completed=11, is_alone=alone)
    assert claim.is_parked


async def test_an_end_with_others_beside_it_does_not_park(live: Live) -> None:
    """A suspect that has survived its time alone; the limit is then ten."""
    (command,) = commands(1)
    for life in range(PARKED_AT_LAST):
        inbox = live(f"life-{life}")
        claim = await claimed(inbox, command)
        assert not claim.is_parked
        await inbox.renew(claim, unavailable_since=None, is_alone=False)
    assert (await claimed(live("last"), command)).is_parked


async def test_a_command_whose_deadline_has_passed_waits_for_no_suspect(live: Live) -> None:
    first, second = commands(2)
    for life in range(2):
        inbox = live(f"life-{life}")
        await claimed(inbox, first)
        await claimed(inbox, second)
    inbox = live("life-2")
    await claimed(inbox, first)
    assert isinstance(await inbox.claim(second), Queued)
    assert isinstance(await inbox.claim(second, in_any_case=True), Claim)
    assert isinstance(await inbox.claim(second), Taken)


async def test_a_record_of_an_earlier_release_is_read(live: Live, store: MoodyStore) -> None:
    (command,) = commands(1)
    stored = {
        "type": command.type, "operationId": "op-1", "tries": 0, "state": "claimed", "owner": f"{SERVICE}/old",
        "fencing": 3, "leaseUntil": "2020-01-01T00:00:00.000000Z",
    }  # fmt: skip
    await store.insert(INBOX, command.id, stored)
    claim = await claimed(live("new"), command)
    assert (claim.fencing, claim.ends, claim.best, claim.is_parked) == (4, 1, 0, False)


def test_a_suspect_is_alone_for_a_time_that_doubles_with_each_end() -> None:
    now = [0.0]
    for ends, alone_s in ((2, 60.0), (3, 120.0), (4, 240.0), (20, 3600.0)):
        suspects = Suspects(now=lambda: now[0])
        assert suspects.enter("suspect", ends)
        assert not suspects.enter("after-one-end", 1)
        assert not suspects.enter("another", 2)
        assert suspects.enter("new", 0)
        now[0] += alone_s - 1
        assert suspects.is_alone("suspect")
        now[0] += 2
        assert not suspects.is_alone("suspect")
        suspects.share("suspect")
        assert suspects.enter("another", 2)
        assert not suspects.is_alone("another"), "the first one still runs"


def test_a_suspect_waits_for_the_first_minute_of_commands_after_one_end() -> None:
    now = [0.0]
    suspects = Suspects(now=lambda: now[0])
    assert suspects.enter("one", 1)
    assert suspects.enter("two", 1)
    assert not suspects.enter("suspect", 2)
    suspects.leave("one")
    now[0] += 61
    assert suspects.enter("suspect", 2)
    assert not suspects.is_alone("suspect"), "an end may be the other one's"
