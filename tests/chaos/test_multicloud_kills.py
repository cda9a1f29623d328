"""SIGKILL at each write of operations of the multi-cloud API: nothing is made twice, nothing is left, no count is wrong (scenario 11)."""

from __future__ import annotations

import asyncio
import sys
from collections import defaultdict
from functools import partial
from pathlib import Path

import pytest
from worlds.every_death import EveryDeath, EveryForm
from worlds.mortal_sol003 import FURTHER, FurtherGround
from worlds.mortal_vnf import CYCLES, Ground, a_ground

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(7200)]

CHOSEN = (
    ("patch", "POST */jobs", True),
    ("down", "insert vnf_lcm_op_occs", False),
)
"""A hook whose creation has no answer; a bring-down whose operation is not stored yet, although it has claimed the VNF."""

FEWEST_WRITES = 4
"""The suspension of a VNF, that of a region, and their ends; other operations have more."""
SIDE_BY_SIDE = 3
"""Processes with a ground of their own: each waits more than it computes."""
MOST_HARMS = 6
"""After which a test ends."""


async def test_a_process_that_dies_in_an_operation_harms_nothing(tmp_path: Path) -> None:
    """MC-021, MC-037, MC-042, MC-057, MC-086, MC-141 (scenario 11): at chosen writes; the ``deep`` test has all of them."""
    async with a_ground(tmp_path, Ground) as ground:
        for operation, write, is_done in CHOSEN:
            await ground.killed_in(operation, write, is_done=is_done)
        assert len(ground.vnfm.deaths) == len(CHOSEN), ground.vnfm.deaths


@pytest.mark.deep
@pytest.mark.parametrize("operations", CYCLES, ids="-".join)
async def test_a_process_that_dies_at_each_write_of_an_operation_harms_nothing(
    tmp_path: Path, operations: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """MC-021, MC-037, MC-042, MC-057, MC-085 to MC-088, MC-100 to MC-104, MC-139, MC-140, MC-141 (scenario 11): before and after each."""
    await die_everywhere(tmp_path, Ground, operations, defaultdict(EveryDeath), capsys)


@pytest.mark.deep
@pytest.mark.parametrize("operations", FURTHER, ids="-".join)
async def test_a_process_that_dies_at_the_first_write_of_each_name_harms_nothing(
    tmp_path: Path, operations: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """MC-051, MC-071, MC-076 (scenario 11): in scalings, heals and repairs by SOL003, and in the life of a cloud region."""
    deaths: EveryForm = defaultdict(partial(EveryDeath, are_first_enough=True))
    await die_everywhere(tmp_path, FurtherGround, operations, deaths, capsys)


async def die_everywhere(
    folder: Path, kind: type[Ground], operations: tuple[str, ...], deaths: EveryForm, capsys: pytest.CaptureFixture[str]
) -> None:
    """Have processes die, side by side, at all writes of operations; print at how many these were."""
    harms: list[Exception] = []

    async def die_again_and_again(number: int) -> None:
        while len(harms) < MOST_HARMS and (not deaths or not all(each.is_complete for each in deaths.values())):
            try:
                regions = 1 + ("group" in operations)
                async with a_ground(folder / f"{number}-{len(harms)}", kind, regions=regions) as ground:
                    await ground.killed_everywhere(operations, deaths)
            except Exception as harm:  # noqa: BLE001  # the other processes still die where this one would have
                harms.append(harm)

    try:
        async with asyncio.TaskGroup() as several:
            for number in range(SIDE_BY_SIDE):
                several.create_task(die_again_and_again(number))
    finally:
        with capsys.disabled():
            for name, every in deaths.items():
                sys.stdout.write(f"\n{name}: {every.report}")
    if harms:
        raise ExceptionGroup("after deaths", harms)
    for every in deaths.values():
        assert not every.unproven
        assert len(every.killed) >= FEWEST_WRITES
