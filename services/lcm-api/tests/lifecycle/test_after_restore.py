"""After a restore without the broker's messages, each unfinished operation is continued by what is stored of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from kubevnfm_lcm_api.lifecycle.core import instance as instances
from kubevnfm_lcm_api.lifecycle.core import occurrence as occurrences
from kubevnfm_lcm_api.lifecycle.core.after_restore import AfterRestore
from kubevnfm_lcm_api.lifecycle.core.saga import REPLY_GRACE_S
from kubevnfm_sol.lcm import OperationState
from kubevnfm_store.restoring import DONE, LAST, RESTORES, mark_restored
from worlds.engine_world import EngineWorld, Living
from worlds.lcm_builders import RING, an_instance, an_instantiate_draft, an_operation

OPERATION = "op-1"
CREATE = "create_resources"


@pytest.fixture
async def world(tmp_path: Path) -> EngineWorld:
    found = EngineWorld(tmp_path)
    await found.put(an_instance())
    return found


async def asked_again(world: EngineWorld, living: Living, *, is_queue_lost: bool = True) -> int:
    await mark_restored(living.store, cut_at="then", restored_at="now", is_queue_lost=is_queue_lost)
    return await AfterRestore(living.store, living.bus, RING, world.clock).ask_again()


async def begun_and_lost(world: EngineWorld) -> None:
    """Begin the operation; its first command was published, and is lost."""
    world.twins.waits = lambda command: command.stepid == CREATE
    async with world.life() as living:
        await living.accept(an_operation(an_instantiate_draft()).with_occ(id=OPERATION))
        await living.until(lambda: _is_asked(world))
    world.twins.waits = lambda _: False


async def _is_asked(world: EngineWorld) -> bool:
    return any(stepid == CREATE for _, stepid, _ in world.twins.asked())


async def test_the_command_of_a_running_step_is_sent_again_as_the_same_one(world: EngineWorld) -> None:
    await begun_and_lost(world)
    async with world.life() as living:
        assert await asked_again(world, living) == 1
        await living.reaches(OPERATION, OperationState.COMPLETED)
        marked = await living.store.get(RESTORES, LAST)
    assert marked is not None
    assert marked.body["state"] == DONE
    creates = [each for each in world.twins.commands if each.stepid == CREATE]
    assert len(creates) > 1
    assert {(each.id, each.attempt) for each in creates} == {(creates[0].id, 1)}


async def test_the_time_between_backup_and_restore_counts_in_no_deadline(world: EngineWorld) -> None:
    await begun_and_lost(world)
    world.clock.ahead_s = 100_000.0
    async with world.life() as living:
        await asked_again(world, living)
        await living.engine.fail_overdue()
        await living.reaches(OPERATION, OperationState.COMPLETED)
    last = [each for each in world.twins.commands if each.stepid == CREATE][-1]
    assert last.deadline is not None
    assert (last.deadline - world.clock.now()).total_seconds() > REPLY_GRACE_S


async def test_in_one_process_the_outboxes_have_the_commands_and_only_deadlines_move(world: EngineWorld) -> None:
    await begun_and_lost(world)
    before = len(world.twins.commands)
    async with world.life() as living:
        old = await living.record(OPERATION)
        world.clock.ahead_s = 100_000.0
        assert await asked_again(world, living, is_queue_lost=False) == 1
        new = await living.record(OPERATION)
        assert old is not None
        assert new is not None
        assert (old.next_deadline or "") < (new.next_deadline or "")
        living.life.over.set()
    assert len(world.twins.commands) == before


async def test_an_operation_whose_beginning_is_lost_begins(world: EngineWorld) -> None:
    """Its claim and its occurrence are stored; the command that starts it was published."""
    record = an_operation(an_instantiate_draft()).with_occ(id=OPERATION)
    async with world.life() as living:
        await living.store.update(instances.COLLECTION, "inst-1", {"internal/currentOperation": OPERATION})
        await living.store.insert(occurrences.COLLECTION, OPERATION, record.document(RING))
        assert await asked_again(world, living)
        await living.reaches(OPERATION, OperationState.COMPLETED)


async def test_without_a_restore_nothing_is_asked(world: EngineWorld) -> None:
    await begun_and_lost(world)
    before = len(world.twins.commands)
    async with world.life() as living:
        assert await AfterRestore(living.store, living.bus, RING, world.clock).ask_again() == 0
        await asked_again(world, living, is_queue_lost=False)
        assert await AfterRestore(living.store, living.bus, RING, world.clock).ask_again() == 0
    assert len(world.twins.commands) == before
