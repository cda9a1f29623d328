"""lcm-api as it runs, for the tests of its parts together."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from lcm_world import World, lcm_world


@pytest.fixture(autouse=True)
def trusts_no_authority_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests name the authorities that they trust. Reading those of the machine takes 50 ms at each start."""
    monkeypatch.setenv("SSL_CERT_FILE", os.devnull)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with lcm_world(tmp_path) as running:
        yield running
