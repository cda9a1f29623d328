"""A backup in the middle of operations is restored after all that was stored is lost: all operations complete, nothing exists twice."""

from __future__ import annotations

from pathlib import Path

import pytest
from servers.chaos import Chaos
from servers.drill import Drill

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(600)]


def drill(chaos: Chaos, folder: Path) -> Drill:
    return Drill(chaos.installation, chaos.user, chaos.lab, folder)


async def test_one_process_is_restored_in_the_middle_of_operations(single_chaos: Chaos, tmp_path: Path) -> None:
    """Few of them; the ``deep`` tests have twenty."""
    await drill(single_chaos, tmp_path).run(machines=2, ends=1, clusters=0, cnfs=0)


@pytest.mark.deep
async def test_one_process_is_restored_in_the_middle_of_twenty_operations(single_chaos: Chaos, tmp_path: Path) -> None:
    await drill(single_chaos, tmp_path).run(machines=12, ends=4, clusters=2, cnfs=2)


@pytest.mark.deep
async def test_six_services_are_restored_in_the_middle_of_twenty_operations(six_chaos: Chaos, tmp_path: Path) -> None:
    await drill(six_chaos, tmp_path).run(machines=12, ends=4, clusters=2, cnfs=2)
