"""A gateway for the tests of the command line."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from worlds.lcm_world import World, lcm_world


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with lcm_world(tmp_path) as running:
        yield running
