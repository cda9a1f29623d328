"""lcm-api as it runs, for the tests of its parts together."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from lcm_world import World, lcm_world


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with lcm_world(tmp_path) as running:
        yield running
