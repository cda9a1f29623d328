"""The engine is killed between any two writes or sends and restarted; messages are delivered twice, late, or never."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from kubevnfm_events import Envelope, Message
from kubevnfm_kit.traces import read_traceparent
from kubevnfm_lcm_api.lifecycle.core import occurrence as occurrences
from kubevnfm_lcm_api.lifecycle.core.occurrence import OccurrenceRecord
from kubevnfm_lcm_api.lifecycle.core.saga import REPLY_GRACE_S
from kubevnfm_lcm_api.lifecycle.core.sequences import SEQUENCES
from kubevnfm_lcm_api.lifecycle.core.states import IllegalTransition
from kubevnfm_lcm_api.lifecycle.machines.stack_steps import CreateVnfResources
from kubevnfm_sol.lcm import InstantiationState, OperationState
from kubevnfm_store.query import Query
from worlds import cluster_moves
from worlds.cluster_heals import HA, Machines, a_mixed_heal, a_whole_heal, with_storage
from worlds.cluster_moves import GROWN, INSTANCE, Stacks, a_scaling
from worlds.engine_world import COLLECTIONS, EngineWorld, Living
from worlds.lcm_builders import (
    RESOURCES,
    a_cnf_draft,
    a_cnf_terminate_draft,
    a_terminate_draft,
    an_instance,
    an_instantiate_draft,
    an_operation,
)
from worlds.trace_checks import whole_trace

S = OperationState
EVERYTHING = Query()
CREATE = "create_resources"


def never(_: Envelope[Message]) -> bool:
    return False


def the_first_create(command: Envelope[Message]) -> bool:
    return command.stepid == CREATE and command.attempt == 1


def the_vim(command: Envelope[Message]) -> bool:
    return command.stepid == "register_vim" and command.attempt == 1


def the_vim_and_one_undo(command: Envelope[Message]) -> bool:
    """The VIM's registration fails; so does the first deletion of the stack, which is the second attempt of its step."""
    return the_vim(command) or (command.stepid == CREATE and command.attempt == 2)


def an_operation_of(draft: Any, operation_id: str = "op-1") -> OccurrenceRecord:
    return an_operation(draft).with_occ(id=operation_id)


# --- requests of a user: each repeats only what was not accepted before the kill ----------------------------------------


async def instantiate_cluster(user: Living) -> None:
    await user.accept(an_operation_of(an_instantiate_draft()))
    await user.reaches("op-1", S.COMPLETED)


async def instantiate_cnf(user: Living) -> None:
    await user.accept(an_operation_of(a_cnf_draft()))
    await user.reaches("op-1", S.COMPLETED)


async def terminate_cluster(user: Living) -> None:
    await user.accept(an_operation_of(a_terminate_draft()))
    await user.reaches("op-1", S.COMPLETED)


async def terminate_cnf(user: Living) -> None:
    await user.accept(an_operation_of(a_cnf_terminate_draft()))
    await user.reaches("op-1", S.COMPLETED)


async def scale_a_cluster(user: Living) -> None:
    await user.accept(an_operation_of(a_scaling()))
    await user.reaches("op-1", S.COMPLETED)


async def heal_a_mix(user: Living) -> None:
    await user.accept(an_operation_of(a_mixed_heal("server-m1", "server-s1", "server-w1", "server-m3")))
    await user.reaches("op-1", S.COMPLETED)


async def heal_a_whole_cluster(user: Living) -> None:
    await user.accept(an_operation_of(a_whole_heal()))
    await user.reaches("op-1", S.COMPLETED)


async def fail_and_retry(user: Living) -> None:
    await user.accept(an_operation_of(an_instantiate_draft()))
    await user.reaches("op-1", S.FAILED_TEMP, S.COMPLETED)
    await user.ask("retry", "op-1")
    await user.reaches("op-1", S.COMPLETED)


async def fail_and_roll_back(user: Living) -> None:
    await user.accept(an_operation_of(an_instantiate_draft()))
    await user.reaches("op-1", S.FAILED_TEMP, S.ROLLED_BACK)
    await user.ask("rollback", "op-1")
    await user.reaches("op-1", S.FAILED_TEMP, S.ROLLED_BACK)
    await user.ask("rollback", "op-1")
    await user.reaches("op-1", S.ROLLED_BACK)


async def fail_a_terminate(user: Living) -> None:
    await user.accept(an_operation_of(a_terminate_draft()))
    await user.reaches("op-1", S.FAILED_TEMP, S.FAILED)
    await user.ask("fail", "op-1")
    await user.reaches("op-1", S.FAILED)


async def fail_and_delete(user: Living) -> None:
    if await user.instance() is not None:
        await user.accept(an_operation_of(an_instantiate_draft()))
        await user.reaches("op-1", S.FAILED_TEMP, S.FAILED)
        await user.ask("fail", "op-1")
        await user.reaches("op-1", S.FAILED)
        await user.instances.delete("inst-1")
    await user.settles()


async def fail_and_instantiate_again(user: Living) -> None:
    await user.accept(an_operation_of(an_instantiate_draft()))
    await user.reaches("op-1", S.FAILED_TEMP, S.FAILED)
    await user.ask("fail", "op-1")
    await user.reaches("op-1", S.FAILED)
    await user.accept(an_operation_of(a_cnf_draft(remains_of="op-1"), "op-2"))
    await user.reaches("op-2", S.COMPLETED)


NewWorld = Callable[[], EngineWorld]


@pytest.fixture
def new(tmp_path: Path) -> NewWorld:
    """Return a function that makes a world in a folder of its own."""
    count = itertools.count()

    def make() -> EngineWorld:
        folder = tmp_path / str(next(count))
        folder.mkdir()
        return EngineWorld(folder)

    return make


NEW = InstantiationState.NOT_INSTANTIATED
LIVE = InstantiationState.INSTANTIATED


@dataclass(frozen=True)
class Story:
    """The requests of a user, the steps that fail, and the state of the instance at the end."""

    does: Callable[[Living], Awaitable[None]]
    begins: InstantiationState = NEW
    ends: InstantiationState | None = NEW
    """None: the instance is deleted."""
    fails: Callable[[Envelope[Message]], bool] = field(default=never)
    asks: tuple[tuple[str, int], ...] = ()
    """Steps and attempts, sorted: each is sent exactly once, whatever is killed."""
    stack: Callable[[], Stacks] | None = None
    """Makes the stack of a cluster, which changes as commands ask; otherwise its machines stay as they are."""


def replies_of(machines: Stacks) -> Callable[[Envelope[Message]], Envelope[Message]]:
    """Return the replies of services to the operations of a cluster with these machines."""
    return lambda command: cluster_moves.answer(command, machines(command.data))


TURNS = tuple((f"{step}/{turn}", 1) for step in ("heal_start", "heal_resources", "heal_end") for turn in (1, 2))
TERMINATION = (("delete_resources", 1), ("deregister_vim", 1), ("forget_machines", 1))
STORIES = {
    "instantiate a cluster": Story(
        instantiate_cluster, ends=LIVE, asks=((CREATE, 1), ("instantiate_end", 1), ("register_vim", 1))
    ),
    "instantiate a CNF": Story(instantiate_cnf, ends=LIVE, asks=(("apply_objects", 1),)),
    "terminate a cluster": Story(terminate_cluster, begins=LIVE, asks=TERMINATION),
    "terminate a CNF": Story(terminate_cnf, begins=LIVE, asks=(("delete_objects", 1),)),
    "scale out of a cluster": Story(
        scale_a_cluster,
        begins=LIVE,
        ends=LIVE,
        asks=(("scale_end", 1), ("scale_resources", 1)),
        stack=lambda: lambda _: GROWN,
    ),
    "heal two masters, a worker and the storage server": Story(
        heal_a_mix,
        begins=LIVE,
        ends=LIVE,
        asks=tuple(
            sorted(
                (*TURNS, ("heal_start/storage", 1), ("heal_start", 1), ("heal_resources", 1), ("heal_end", 1)),
            )
        ),
        stack=lambda: Machines(with_storage(HA)),
    ),
    "heal a whole cluster": Story(
        heal_a_whole_cluster,
        begins=LIVE,
        ends=LIVE,
        asks=(("heal_end", 1), ("heal_resources", 1), ("register_vim", 1)),
        stack=lambda: Machines(RESOURCES),
    ),
    "retry": Story(
        fail_and_retry,
        ends=LIVE,
        fails=the_first_create,
        asks=((CREATE, 1), (CREATE, 2), ("instantiate_end", 1), ("register_vim", 1)),
    ),
    "roll back, in two tries": Story(
        fail_and_roll_back,
        fails=the_vim_and_one_undo,
        asks=(
            (CREATE, 1),
            (CREATE, 2),
            (CREATE, 3),
            ("instantiate_end", 1),
            ("instantiate_end", 2),
            ("register_vim", 1),
            ("register_vim", 2),
        ),
    ),
    "fail a terminate": Story(
        fail_a_terminate,
        begins=LIVE,
        ends=LIVE,
        fails=lambda command: command.stepid == "delete_resources",
        asks=(("delete_resources", 1),),
    ),
    "fail an instantiate, and delete": Story(
        fail_and_delete, ends=None, fails=the_first_create, asks=((CREATE, 1), (CREATE, 2))
    ),
    "fail an instantiate, and instantiate again": Story(
        fail_and_instantiate_again,
        ends=LIVE,
        fails=the_first_create,
        asks=(("apply_objects", 1), (CREATE, 1), (CREATE, 2)),
    ),
}


async def play(story: Story, world: EngineWorld, *, killed_at: int | None = None) -> bool:
    """Play the story; return whether its first life was ended by a kill.

    Raises AssertionError unless the instance is unclaimed and in the expected state at the end.
    """
    world.twins.fails = story.fails
    if story.stack is not None:
        world.twins.reply = replies_of(story.stack())
    await world.put(an_instance(instantiation_state=story.begins) if story.stack is None else INSTANCE)
    if killed_at is not None:
        async with world.life(ends_at=killed_at) as user:
            await story.does(user)
            await user.settles()
        if not user.life.was_killed:
            return False
    async with world.life() as user:
        await story.does(user)
        await user.settles()
        instance = await user.instance()
        if story.ends is None:
            assert instance is None
        else:
            assert instance is not None
            assert instance.internals.current_operation is None
            assert instance.vnf.instantiation_state is story.ends
        for stored in await user.store.find(occurrences.COLLECTION, EVERYTHING):
            record = OccurrenceRecord.from_document(stored.body)
            made = whole_trace(record)
            assert not any("kubevnfm.unfinished" in span.attributes for span in made)
            world.traces[stored.id] = {span.span_id for span in made}
            if record.occ.operation_state is S.COMPLETED:
                plan = {step.id for step in record.steps if not SEQUENCES.step(step).only_undo}
                assert {span.attributes.get("kubevnfm.step.id") for span in made[1:]} == plan
    assert tuple(sorted(ask[1:] for ask in world.twins.asked())) == story.asks
    return killed_at is not None


def spans(world: EngineWorld) -> dict[tuple[str, str, int], set[str]]:
    """Return by operation, step and attempt the spans that its command and its answer name; each attempt has one."""
    found = dict[tuple[str, str, int], set[str]]()
    for each in [*world.twins.commands, *world.twins.answers.values()]:
        found.setdefault((each.operationid, each.stepid, each.attempt), set()).add(each.traceparent)
    traces = dict[str, set[str]]()
    seen = set[str]()
    for (operation, *_), (one,) in found.items():
        span = read_traceparent(one)
        assert span is not None
        seen.add(span.span_id)
        traces.setdefault(operation, set()).add(span.trace_id)
    assert len(seen) == len(found)
    asked_for = [each for operation, each in traces.items() if operation.startswith("op-")]
    assert all(len(each) == 1 for each in traces.values())
    assert len(set[str]().union(*asked_for)) == len(asked_for)
    # A clean-up stays in the trace of the operation whose remains it removes.
    assert set[str]().union(*traces.values()) == set[str]().union(*asked_for)
    return found


def stories(*in_every_run: str) -> pytest.MarkDecorator:
    """Parametrise a test with all stories; those that are not named use the same code and are ``deep``."""
    names = [name if name in in_every_run else pytest.param(name, marks=pytest.mark.deep) for name in STORIES]
    return pytest.mark.parametrize("name", names)


MOST = [name for name, story in STORIES.items() if story.stack is None]


@stories("instantiate a cluster")
async def test_a_kill_between_any_two_writes_or_sends_does_not_change_the_events(name: str, new: NewWorld) -> None:
    """API-164: the traces are the same too."""
    story = STORIES[name]
    undisturbed = new()
    await play(story, undisturbed)
    moment = 1
    world = new()
    while await play(story, world, killed_at=moment):
        assert world.events() == undisturbed.events(), f"killed at {moment}"
        assert spans(world) == spans(undisturbed), f"killed at {moment}"
        assert world.traces == undisturbed.traces, f"killed at {moment}"
        moment, world = moment + 1, new()
    assert moment > 10


@stories(*MOST)
async def test_every_message_delivered_twice_changes_nothing(name: str, new: NewWorld) -> None:
    undisturbed, world = new(), new()
    world.twice = True
    await play(STORIES[name], undisturbed)
    await play(STORIES[name], world)
    assert world.events() == undisturbed.events()


@stories(*MOST)
async def test_messages_that_are_redelivered_after_the_end_write_nothing(name: str, new: NewWorld) -> None:
    world = new()
    await play(STORIES[name], world)
    async with world.life() as user:
        before = [await user.store.find(collection, EVERYTHING) for collection in COLLECTIONS]
        for message in [*world.wake_ups.values(), *world.twins.answers.values()]:
            await user.bus.publish(message)
        await user.settles()
        assert [await user.store.find(collection, EVERYTHING) for collection in COLLECTIONS] == before


def is_create(command: Envelope[Message]) -> bool:
    return command.stepid == CREATE


async def unanswered(world: EngineWorld, user: Living) -> Envelope[Message]:
    """Have the watch fail an instantiate whose create is never answered; return the create."""
    world.twins.waits = is_create
    await user.accept(an_operation_of(an_instantiate_draft()))
    await user.reaches("op-1", S.PROCESSING)
    await user.settles()
    await user.engine.fail_overdue()
    await user.reaches("op-1", S.PROCESSING)
    world.clock.ahead_s = CreateVnfResources().timeout_s + REPLY_GRACE_S + 1
    await user.engine.fail_overdue()
    await user.reaches("op-1", S.FAILED_TEMP)
    record = await user.record("op-1")
    assert record is not None
    assert record.occ.error is not None
    assert record.occ.error.type == "step-unanswered"
    (create,) = world.twins.commands
    return create


async def test_a_step_without_a_reply_is_failed_and_its_late_reply_changes_nothing(new: NewWorld) -> None:
    world = new()
    await world.put(an_instance())
    async with world.life() as user:
        create = await unanswered(world, user)
        before = await user.record("op-1")
        await user.bus.publish(world.twins.answer(create))
        assert await user.record("op-1") == before
        await user.engine.fail("op-1")
        before = await user.record("op-1")
        await user.bus.publish(world.twins.answer(create))
        assert await user.record("op-1") == before
        with pytest.raises(IllegalTransition):
            await user.engine.fail("op-1")


async def test_a_reply_to_the_first_attempt_does_not_end_the_second(new: NewWorld) -> None:
    world = new()
    await world.put(an_instance())
    async with world.life() as user:
        create = await unanswered(world, user)
        await user.engine.retry("op-1")
        await user.settles()
        await user.bus.publish(world.twins.answer(create))
        await user.reaches("op-1", S.PROCESSING)
        world.twins.waits = never
        await user.bus.publish(world.twins.answer(world.twins.commands[-1]))
        await user.reaches("op-1", S.COMPLETED)


async def test_a_reply_after_a_rollback_changes_nothing(new: NewWorld) -> None:
    world = new()
    await world.put(an_instance())
    async with world.life() as user:
        create = await unanswered(world, user)
        world.twins.waits = never
        await user.engine.rollback("op-1")
        await user.reaches("op-1", S.ROLLED_BACK)
        before = await user.record("op-1")
        await user.bus.publish(world.twins.answer(create))
        assert await user.record("op-1") == before
