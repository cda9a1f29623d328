"""Fixtures of the multi-cloud API."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from kubevnfm_lab.lab import Lab
from kubevnfm_vim_registry.settings import Settings
from worlds.region_world import RegionWorld, region_world
from worlds.vim_world import cluster, lab, make_cluster, settings

__all__ = ["cluster", "lab", "make_cluster", "settings", "world"]


@pytest.fixture
async def world(lab: Lab, settings: Settings, tmp_path: Path) -> AsyncIterator[RegionWorld]:
    async with region_world(lab, settings, tmp_path) as running:
        yield running
