"""SIGKILL at each write of operations of the multi-cloud API: nothing is made twice, nothing is left, no count is wrong (scenario 11)."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest
from worlds.mortal_vnf import OPERATIONS, a_ground

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(7200)]

CHOSEN = (
    ("patch", "POST */jobs", True),
    ("down", "insert vnf_lcm_op_occs", False),
)
"""A hook whose creation has no answer; a bring-down whose operation is not stored yet, although it has claimed the VNF."""

FEWEST_WRITES = 4
"""The suspension of a VNF, that of a region, and their ends; other operations have more."""


async def test_a_process_that_dies_in_an_operation_harms_nothing(tmp_path: Path) -> None:
    """MC-021, MC-037, MC-042, MC-057, MC-086, MC-141 (scenario 11): at chosen writes; the ``deep`` test has all of them."""
    async with a_ground(tmp_path) as ground:
        for operation, write, is_done in CHOSEN:
            await ground.killed_in(operation, write, is_done=is_done)
        assert len(ground.vnfm.deaths) == len(CHOSEN), ground.vnfm.deaths


@pytest.mark.deep
@pytest.mark.parametrize("operation", OPERATIONS)
async def test_a_process_that_dies_at_each_write_of_an_operation_harms_nothing(tmp_path: Path, operation: str) -> None:
    """MC-021, MC-037, MC-042, MC-057, MC-085 to MC-088, MC-100 to MC-104, MC-139, MC-140, MC-141 (scenario 11): before and after each."""
    async with a_ground(tmp_path, regions=2) as ground:
        # The first run has also the last writes of what was made before.
        await ground.killed_in(operation, 0, is_done=False)
        for number in count(1):
            before = len(ground.vnfm.deaths)
            for is_done in (False, True):
                await ground.killed_in(operation, number, is_done=is_done)
            if len(ground.vnfm.deaths) == before:
                break  # both runs had fewer writes
        assert number > FEWEST_WRITES, ground.vnfm.deaths
