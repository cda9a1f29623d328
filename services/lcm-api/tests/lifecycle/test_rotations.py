"""Credentials of workload clusters that change between operations: what is asked and sent, and what operations wait for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from kubevnfm_bus.port import Ack, Again, Delivery
from kubevnfm_events import Envelope, Message
from kubevnfm_events.capi import KubeconfigFinding, KubeconfigsChanged, WatchKubeconfigs
from kubevnfm_events.credentials import CredentialsSent, SendCredentials
from kubevnfm_lcm_api.lifecycle.core.idle_instances import Questions
from kubevnfm_lcm_api.lifecycle.core.instance import (
    COLLECTION,
    InstanceInternals,
    InstanceRecord,
    Release,
    ReleaseDeployment,
)
from kubevnfm_lcm_api.lifecycle.core.rotation import Rotation
from kubevnfm_lcm_api.lifecycle.core.workload_cluster import CapiParameters, WorkloadInternals
from kubevnfm_lcm_api.lifecycle.workloads.rotations import Rotations
from kubevnfm_sol.vim import VimConnectionInfo
from kubevnfm_store.sqlite.store import SqliteStore
from kubevnfm_worker.outbox import Outbox
from kubevnfm_worker.relay import OutboxRelay
from worlds.engine_world import Life, MortalBus, MortalStore
from worlds.lcm_builders import CREDENTIALS_SENT, RING, WORKLOAD_CLUSTER, an_instance
from worlds.lcm_world import RING as WORLD_RING
from worlds.lcm_world import TwinVims, World, lcm_world
from worlds.workload_world import SCALE, built, machines, sent

SEND = "mgmt.send_credentials"
SENT = CREDENTIALS_SENT.model_copy(update={"secret_resource_version": "10"})
ROTATED = CREDENTIALS_SENT.model_copy(update={"secret_resource_version": "11", "content_sha256": "11"})
SCALE_OUT = {"type": "SCALE_OUT", "aspectId": "workers", "numberOfSteps": 1}


class SetClock:
    """Real time, plus what a test has added."""

    def __init__(self) -> None:
        self.later = timedelta()

    def now(self) -> datetime:
        return datetime.now(UTC) + self.later


@dataclass
class Rotating:
    """A world with a workload cluster whose credentials were read from version 10 of the Secret."""

    world: World
    clock: SetClock
    rotations: Rotations
    instance_id: str = ""

    async def round(self) -> list[WatchKubeconfigs]:
        """Return the questions of one round."""
        self.world.twins.commands.clear()
        await self.rotations.look()
        await self.world.bus.quiet()
        return sent(self.world, WatchKubeconfigs)

    async def internals(self) -> InstanceInternals:
        stored = await self.world.store.get(COLLECTION, self.instance_id)
        assert stored is not None
        return InstanceRecord.from_document(stored.body).internals

    async def find(self, version: str, *, revision: int | None = None, asks: int = 1) -> list[SendCredentials]:
        """Publish what infra-k8s would have found; return what mgmt-executor is asked. ``asks``: so many at least."""
        stored = await self.world.store.get(COLLECTION, self.instance_id)
        assert stored is not None
        finding = KubeconfigFinding(
            vnf_instance_id=self.instance_id, revision=revision or stored.revision, resource_version=version
        )
        self.world.twins.commands.clear()
        await self.world.bus.publish(Envelope(data=KubeconfigsChanged(findings=(finding,)), source="/kubevnfm/twin"))
        return await self.asked(asks)

    async def asked(self, count: int) -> list[SendCredentials]:
        """Return what mgmt-executor was asked: so much at least, and it was answered."""
        await self.world.twins.has_asked(count)
        await self.world.bus.quiet()
        return sent(self.world, SendCredentials)

    def answer(self, version: str, **changes: Any) -> CredentialsSent:
        """Have mgmt-executor answer so; return the event."""
        event = CREDENTIALS_SENT.model_copy(update={"secret_resource_version": version, **changes})
        self.world.twins.answers[SEND] = event
        return event


@asynccontextmanager
async def rotating_in(folder: Path) -> AsyncIterator[Rotating]:
    clock = SetClock()
    async with (
        lcm_world(folder, clock=clock) as world,
        OutboxRelay(world.store, world.bus, collections=[COLLECTION], clock=clock) as relay,
    ):
        rotations = Rotations(
            store=world.store, outbox=Outbox(world.store, relay, WORLD_RING),
            questions=Questions(world.bus, clock, 60.0), vims=world.vims, ring=WORLD_RING, clock=clock,
        )  # fmt: skip
        yield Rotating(world, clock, rotations)


@pytest.fixture
async def rotating(tmp_path: Path) -> AsyncIterator[Rotating]:
    async with rotating_in(tmp_path) as rotating:
        rotating.answer("10")
        rotating.instance_id = await built(rotating.world)
        yield rotating


async def test_a_secret_that_was_written_is_sent_once(rotating: Rotating) -> None:
    """CR-062: as the instance was built, but for the default VIM, which an operator may have changed."""
    (question,) = await rotating.round()
    (expected,) = question.expected
    assert (expected.vnf_instance_id, expected.cluster) == (rotating.instance_id, WORKLOAD_CLUSTER)
    assert expected.resource_version == "10"

    rotated = rotating.answer("11", content_sha256="11")
    (command,) = await rotating.find("11")
    assert (command.is_rotation, command.register_vim, command.vim_default) == (True, True, False)
    assert (command.mode, command.vim_name) == ("service_account", f"workload-{rotating.instance_id[:8]}")
    assert (command.vim.vim_id, command.cluster) == ("k8s", WORKLOAD_CLUSTER)
    internals = await rotating.internals()
    assert internals.rotation is None
    assert internals.workload is not None
    assert internals.workload.credentials == rotated
    # The same finding once more is about an earlier revision.
    assert await rotating.find("11", revision=expected.revision, asks=0) == []
    ((again,),) = [question.expected for question in await rotating.round()]
    assert again.resource_version == "11"


async def test_the_driver_sends_nothing_for_a_package_with_a_sender_of_its_own(rotating: Rotating) -> None:
    """CR-009, CR-062: the driver would replace what the script has sent."""
    workload = (await rotating.internals()).workload
    assert workload is not None
    own = workload.model_copy(update={"capi": workload.capi.model_copy(update={"sender": "package"})})
    document = {"internal/workload": own.model_dump(mode="json", by_alias=True)}
    await rotating.world.store.update(COLLECTION, rotating.instance_id, document)
    assert await rotating.round() == []


async def test_an_operation_waits_for_a_rotation_and_none_begins_beside_it(rotating: Rotating) -> None:
    """CR-062: the operation is accepted at once, and sends nothing before the rotation has ended."""
    world = rotating.world
    world.twins.waiting = {SEND}
    world.twins.answers[SCALE] = world.twins.answers["infra.k8s.apply_objects"]
    world.twins.answers["infra.k8s.await_cluster"] = machines([0, 1])
    (command,) = await rotating.find("11")
    world.twins.commands.clear()
    operation_id = await world.ask(rotating.instance_id, "scale", SCALE_OUT)
    assert (await world.operation(operation_id))["operationState"] == "STARTING"
    await rotating.rotations.look()
    # Not `quiet`: the operation looks again each second.
    assert world.twins.commands == []

    rotating.answer("11")
    await world.twins.release()
    await world.until(lambda: bool(world.twins.commands))
    assert not sent(world, SendCredentials)
    assert command.is_rotation
    internals = await rotating.internals()
    assert internals.rotation is None


async def test_no_rotation_begins_while_an_operation_has_the_instance(rotating: Rotating) -> None:
    """CR-062: also if the question was asked before."""
    world = rotating.world
    (question,) = await rotating.round()
    world.twins.failing = {SCALE}
    operation_id = await world.ask(rotating.instance_id, "scale", SCALE_OUT)
    await world.reached(operation_id, "FAILED_TEMP")
    assert await rotating.find("11", revision=question.expected[0].revision, asks=0) == []
    assert await rotating.round() == []
    assert (await rotating.internals()).rotation is None


async def test_a_rotation_that_failed_is_repeated_with_growing_pauses(rotating: Rotating) -> None:
    """CR-062: with the same id, by which the receiver recognises it; operations do not wait meanwhile."""
    world = rotating.world
    world.twins.failing = {SEND}
    ids: list[str] = []
    for tries, pause_s in ((1, 60), (2, 120), (3, 240)):
        assert await rotating.find("11")
        (envelope,) = (each for each in world.twins.commands if isinstance(each.data, SendCredentials))
        ids.append(envelope.operationid)
        rotation = (await rotating.internals()).rotation
        assert rotation is not None
        assert (rotation.tries, rotation.problem) == (tries, "no host")
        assert rotation.seconds_left(rotating.clock.now()) == 0.0
        rotating.clock.later += timedelta(seconds=pause_s - 5)
        assert await rotating.round() == []
        rotating.clock.later += timedelta(seconds=10)
        assert len(await rotating.round()) == 1
    assert len(set(ids)) == 1
    world.twins.failing = set()
    rotating.answer("11")
    assert await rotating.find("11")
    assert (await rotating.internals()).rotation is None


async def test_a_rotation_that_is_not_answered_holds_no_operation_beyond_its_time(rotating: Rotating) -> None:
    """CR-062: mgmt-executor does not carry its command out any more; an answer that was late counts for nothing."""
    world = rotating.world
    world.twins.waiting = {SEND}
    world.twins.answers[SCALE] = world.twins.answers["infra.k8s.apply_objects"]
    await rotating.find("11")
    (held,) = world.twins.held
    rotation = (await rotating.internals()).rotation
    assert rotation is not None
    assert held.deadline is not None
    assert held.deadline < datetime.fromisoformat(rotation.until)
    rotating.clock.later += timedelta(seconds=rotation.seconds_left(rotating.clock.now()))
    world.twins.commands.clear()
    await world.ask(rotating.instance_id, "scale", SCALE_OUT)
    await world.until(lambda: bool(world.twins.commands))


async def test_credentials_that_the_cluster_refuses_are_looked_for(rotating: Rotating) -> None:
    """CR-062: a token Secret that was deleted in the cluster shows in no Secret of the management cluster."""
    world, vim_id = rotating.world, "vim-2"
    workload = (await rotating.internals()).workload
    assert workload is not None
    assert workload.vim_id == vim_id
    world.vims.add(vim_id, "kubernetes", status="ACTIVE")
    assert len(await rotating.round()) == 1
    world.vims.records[vim_id]["status"] = "ERROR"

    rotating.answer("10", content_sha256="new")
    assert await rotating.round() == []
    (command,) = await rotating.asked(1)
    assert command.is_rotation
    assert (await rotating.internals()).rotation is None
    # The VIM stays in error, and mgmt-executor finds nothing new: it is asked again later, and less and less often.
    rotating.answer("10", is_unchanged=True)
    await rotating.round()
    assert len(await rotating.asked(1)) == 1
    rotation = (await rotating.internals()).rotation
    assert rotation is not None
    assert "has no others" in str(rotation.problem)
    assert await rotating.round() == []
    assert not sent(world, SendCredentials)


async def test_a_termination_forgets_a_rotation(rotating: Rotating) -> None:
    """CR-062."""
    world = rotating.world
    world.twins.failing = {SEND}
    await rotating.find("11")
    assert (await rotating.internals()).rotation is not None
    operation_id = await world.ask(rotating.instance_id, "terminate", {"terminationType": "GRACEFUL"})
    await world.reached(operation_id, "COMPLETED")
    assert (await rotating.internals()).rotation is None


async def test_an_answer_is_recorded_after_the_database_has_come_back(rotating: Rotating) -> None:
    """CR-062: neither the finding nor the answer is lost."""
    world = rotating.world
    world.twins.waiting = {SEND}
    await rotating.find("11")
    (held,) = world.twins.held
    rotated = rotating.answer("11", content_sha256="11")
    reply = Delivery(world.twins.answer(held), 1)
    stored = await world.store.get(COLLECTION, rotating.instance_id)
    assert stored is not None
    finding = KubeconfigFinding(vnf_instance_id=rotating.instance_id, revision=stored.revision, resource_version="12")
    found = Delivery(Envelope(data=KubeconfigsChanged(findings=(finding,)), source="/kubevnfm/twin"), 1)
    world.store.is_down = True
    assert isinstance(await rotating.rotations.record_reply(reply), Again)
    assert isinstance(await rotating.rotations.begin_found(found), Again)
    world.store.is_down = False
    for _ in range(2):
        assert await rotating.rotations.record_reply(reply) == Ack()
        internals = await rotating.internals()
        assert internals.rotation is None
        assert internals.workload is not None
        assert internals.workload.credentials == rotated


# --- kills ------------------------------------------------------------------------------------------------------------


@dataclass
class Lives:
    """State that outlives a run of lcm-api: its documents, and what mgmt-executor was asked and answers."""

    folder: Path
    clock: SetClock
    times: int = 1
    """How often each message is delivered."""
    asked: dict[str, Envelope[Message]] = field(default_factory=dict)
    """By id: a service does the work of a command once."""

    @asynccontextmanager
    async def life(self, ends_at: int | None = None) -> AsyncIterator[tuple[Life, Rotations, MortalStore]]:
        """Yield lcm-api's part, which finds the Secret in version 11; it may be killed at a write or a send."""
        life = Life()
        async with MortalStore.open(self.folder / "store.db") as store:
            store.life = life
            bus = MortalBus(life, times=self.times)
            relay = OutboxRelay(
                store, bus, collections=[COLLECTION], settle_s=0.0, sweep_s=0.05, drain_s=0.0, clock=self.clock
            )
            rotations = Rotations(
                store=store, outbox=Outbox(store, relay, RING), questions=Questions(bus, self.clock, 60.0),
                vims=TwinVims(), ring=RING, clock=self.clock,
            )  # fmt: skip

            async def find(delivery: Delivery) -> Ack:
                command = delivery.envelope.data
                assert isinstance(command, WatchKubeconfigs)
                found = tuple(
                    KubeconfigFinding(
                        vnf_instance_id=each.vnf_instance_id, revision=each.revision, resource_version="11"
                    )
                    for each in command.expected
                    if each.resource_version != "11"
                )
                if found:
                    await bus.publish(delivery.envelope.follow_up(KubeconfigsChanged(findings=found), source="/t"))
                return Ack()

            async def answer(delivery: Delivery) -> Ack:
                self.asked.setdefault(delivery.envelope.id, delivery.envelope)
                await bus.publish(delivery.envelope.follow_up(ROTATED, source="/t"))
                return Ack()

            with suppress(asyncio.CancelledError) if ends_at is not None else nullcontext():
                await bus.consume_commands("infra-k8s", find)
                await bus.consume_commands("mgmt-executor", answer)
                await bus.consume_events("found", ["infra.kubeconfigs.changed"], rotations.begin_found)
                await bus.consume_events("replies", ["mgmt.credentials.sent"], rotations.record_reply)
                relay.start()
                life.ends_at = None if ends_at is None else life.moments + ends_at
                yield life, rotations, store
            life.over.set()
            with suppress(asyncio.CancelledError):
                await relay.close()
            await bus.__aexit__(None, None, None)

    async def put(self) -> None:
        """Store an instance whose credentials were read from version 10."""
        management = VimConnectionInfo(vim_id="k8s", vim_type="ETSINFV.KUBERNETES.V_1")
        record = an_instance(vim_connection_info={"k": management}, instantiation_state="INSTANTIATED")
        workload = WorkloadInternals(capi=CapiParameters(), cluster=WORKLOAD_CLUSTER, credentials=SENT)
        release = ReleaseDeployment(kind="release", vim_key="k", release=Release(namespace="default"))
        record = record.with_internals(workload=workload, deployments=(release,))
        async with SqliteStore.open(self.folder / "store.db") as store:
            await store.insert(COLLECTION, record.vnf.id, record.document(RING))


async def rotated_in(lives: Lives, *, killed_at: int | None = None) -> bool:
    """Look in rounds until the instance knows version 11; return whether the first life was killed before that."""

    async def look(life: Life, rotations: Rotations, store: MortalStore) -> None:
        # A task of its own: in this process a send lasts until the message is taken, and what was killed takes none.
        looking = asyncio.create_task(rotations.look())
        try:
            async with asyncio.timeout(300):
                while not await is_recorded(store):
                    await asyncio.sleep(0.002)
                    life.check()
        finally:
            looking.cancel()
            await asyncio.gather(looking, return_exceptions=True)

    async def is_recorded(store: MortalStore) -> bool:
        stored = await store.get(COLLECTION, "inst-1")
        assert stored is not None
        internals = InstanceRecord.from_document(stored.body).internals
        return (
            internals.rotation is None and internals.workload is not None and internals.workload.credentials == ROTATED
        )

    if killed_at is not None:
        async with lives.life(ends_at=killed_at) as living:
            await look(*living)
        if not living[0].was_killed:
            return False
        # Messages in a bus of this process die with it, those of a broker do not: a later round makes good for them.
        lives.clock.later += timedelta(seconds=600)
    async with lives.life() as living:
        await look(*living)
    return killed_at is not None


async def test_a_kill_between_any_two_writes_or_sends_sends_once_what_counts(tmp_path: Path) -> None:
    """CR-062: whatever is repeated has the id of the same rotation, by which the receiver recognises it."""
    moment = 1
    while True:
        folder = tmp_path / str(moment)
        folder.mkdir()
        lives = Lives(folder, SetClock())
        await lives.put()
        was_killed = await rotated_in(lives, killed_at=moment)
        assert len({each.operationid for each in lives.asked.values()}) == 1, f"killed at {moment}"
        if not was_killed:
            break
        moment += 1
    assert moment > 5


async def test_every_message_delivered_twice_asks_mgmt_executor_once(tmp_path: Path) -> None:
    """CR-062."""
    lives = Lives(tmp_path, SetClock(), times=2)
    await lives.put()
    await rotated_in(lives)
    assert len(lives.asked) == 1


def test_the_pause_ends_growing() -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    late = Rotation(id="r", until="2026-01-01T00:00:00Z", tries=1000, problem="x")
    assert not late.may_begin_again(at + timedelta(seconds=3599))
    assert late.may_begin_again(at + timedelta(seconds=3600))
