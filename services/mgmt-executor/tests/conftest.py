"""The lab behind the handlers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from kubevnfm_lab.machines import MachineSettings
from worlds.mgmt_lab import MgmtLab


@pytest.fixture
def machine_settings() -> MachineSettings:
    return MachineSettings()


@pytest.fixture
async def lab(tmp_path: Path, machine_settings: MachineSettings) -> AsyncIterator[MgmtLab]:
    async with MgmtLab.start(tmp_path, machine_settings) as lab:
        yield lab
