"""Helm charts of registries on disk: ``<data dir>/charts/<id>/chart.tgz``."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Final

from kubevnfm_lcm_api.packages.adapters.arrivals import store_arriving
from kubevnfm_lcm_api.packages.adapters.bundling_process import BundleProcesses
from kubevnfm_lcm_api.packages.domain.ports import Upload

_FILE: Final = "chart.tgz"


class DiskChartFiles:
    """`domain.ports.ChartFiles` in a folder."""

    def __init__(self, data_dir: Path, processes: BundleProcesses) -> None:
        self._root, self._processes = data_dir / "charts", processes

    async def store(self, chart_id: str, chunks: AsyncIterator[bytes], *, limit_bytes: int) -> Upload:
        target = self._root / chart_id / _FILE
        return await store_arriving(chunks, target, limit_bytes=limit_bytes, check=self._processes.check)

    async def path(self, chart_id: str) -> Path | None:
        path = self._root / chart_id / _FILE
        return path if await asyncio.to_thread(path.is_file) else None

    async def remove(self, chart_id: str) -> None:
        await asyncio.to_thread(shutil.rmtree, self._root / chart_id, ignore_errors=True)

    async def ids(self) -> Sequence[str]:
        return await asyncio.to_thread(lambda: [each.name for each in self._root.glob("*")])
