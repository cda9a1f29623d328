"""A command whose handling ends the process, as a crash of native code does: beside others, in a real process."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from kubevnfm_events import CommandFailed, Envelope, Message, from_document
from kubevnfm_lcm_api.lifecycle.machines.stack_steps import CreateVnfResources
from kubevnfm_sol.lcm import OperationState
from worlds import ending_process
from worlds.engine_world import EngineWorld
from worlds.lcm_builders import KEY, RING, an_instance, an_instantiate_draft, an_operation

S = OperationState
OTHERS: Final = 8
MOST_LIVES: Final = 8


async def handled(
    folder: Path, commands: Sequence[Envelope[Message]], world: EngineWorld, *, ends: str = ""
) -> tuple[int, dict[str, Any]]:
    """Start the process again and again until all commands have an outcome; return how often, and what it has shown."""
    folder.mkdir(exist_ok=True)
    (folder / "key").write_bytes(KEY)
    answer = world.twins.reply(commands[0])
    cases = [
        {"command": dict(one.document(RING)), "answer": dict(answer.document(RING)), "ends": one.id == ends}
        for one in commands
    ]
    (folder / "cases.json").write_text(json.dumps(cases))
    for life in range(1, MOST_LIVES + 1):
        program = await asyncio.create_subprocess_exec(
            sys.executable,
            ending_process.__file__,
            str(folder),
            str(life),
            env={"PYTHONPATH": str(Path(ending_process.__file__).parent)},
            stderr=asyncio.subprocess.PIPE,
        )
        _, said = await program.communicate()
        if program.returncode == 0:
            return life, json.loads((folder / "seen.json").read_text())
        assert program.returncode == 9, said.decode()
    raise AssertionError("the process ends for ever")


async def test_a_command_that_ends_the_process_is_parked_and_the_others_finish(tmp_path: Path) -> None:
    """Nine commands at once, of which one calls os._exit: the operation is FAILED_TEMP, and a retry works without the fault."""
    world = EngineWorld(tmp_path)
    await world.put(an_instance())
    async with world.life() as user:
        world.twins.waits = lambda command: command.stepid == CreateVnfResources.kind
        await user.accept(an_operation(an_instantiate_draft()).with_occ(id="op-1"))
        await user.reaches("op-1", S.PROCESSING)
        await user.settles()
        (create,) = world.twins.commands
        others = [replace(create, id=f"other-{number}", operationid=f"op-of-{number}") for number in range(OTHERS)]
        lives, seen = await handled(tmp_path / "first", [*others[:4], create, *others[4:]], world, ends=create.id)
        assert lives >= 4, "not handled a fourth time"

        outcomes = {cause: from_document(document) for cause, document in seen["outcomes"].items()}
        failure = outcomes.pop(create.id)
        assert isinstance(failure.data, CommandFailed)
        assert failure.data.code == "handler-ended-process"
        assert not failure.data.made_nothing
        assert {type(one.data) for one in outcomes.values()} == {type(world.twins.reply(create).data)}
        (parked,) = seen["states"]["parkedCommands"]
        assert (parked["service"], parked["command"], parked["operationId"]) == (
            ending_process.SERVICE,
            create.type,
            "op-1",
        )

        await user.bus.publish(failure)
        await user.reaches("op-1", S.FAILED_TEMP)
        record = await user.record("op-1")
        assert record is not None
        assert record.occ.error is not None
        assert record.occ.error.type == "handler-ended-process"
        assert "a retry of the operation tries again" in record.occ.error.detail

        await user.engine.retry("op-1")
        await user.settles()
        again = world.twins.commands[-1]
        assert again.id != create.id
        lives, seen = await handled(tmp_path / "first", [again], world)
        assert lives == 1
        world.twins.waits = lambda _: False
        await user.bus.publish(from_document(seen["outcomes"][again.id]))
        await user.reaches("op-1", S.COMPLETED)
