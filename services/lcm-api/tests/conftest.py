"""lcm-api as it runs, for the tests of its parts together."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from worlds.lcm_world import World, lcm_world


@pytest.fixture(scope="session", autouse=True)
def trusts_no_authority_of_the_machine() -> Iterator[None]:
    """Tests name the authorities that they trust. Reading those of the machine takes 50 ms at each start."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("SSL_CERT_FILE", os.devnull)
        yield


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with lcm_world(tmp_path) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    """One lcm-api for the refused requests of a module, which change nothing; their tests run in the module's loop."""
    async with lcm_world(tmp_path_factory.mktemp("shared")) as running:
        yield running
