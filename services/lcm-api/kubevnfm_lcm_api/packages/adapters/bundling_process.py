"""Reads charts, and makes packages of resource bundles, in processes that can be killed: what an archive contains may cost any time and memory."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Final

import structlog
from kubevnfm_csar.bundle_facts import BundleFacts
from kubevnfm_kit.child_process import ChildProcesses
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_kit.files import private_folder
from kubevnfm_kit.ids import new_id
from pydantic import ValidationError

from kubevnfm_lcm_api.packages.adapters.bundling_exchange import Answer, Request
from kubevnfm_lcm_api.packages.adapters.unpacking_process import StorageFailed

log = structlog.get_logger()

_CHILD: Final = "kubevnfm_lcm_api.packages.adapters.bundling_child"
_MEMORY_MIB: Final = 1024
_ANSWER_BYTES: Final = 2**20
_PARALLEL: Final = 2
_OLD_S: Final = 3600.0
_CPU_S, _WALL_S = 30, 300.0
"""Bodies have up to 8 MiB: these are made in some tenths of a second. By the clock more, as the machine may be busy."""


class BundleProcesses:
    """`domain.ports.BundleArchives`: at most two at the same time."""

    def __init__(self, data_dir: Path) -> None:
        self._root = data_dir / "bundles"
        self._places = asyncio.Semaphore(_PARALLEL)

    def remove_old(self) -> None:
        """Remove what processes that have died have left. At the start; another process may work in a folder of its own."""
        for folder in self._root.glob("*"):
            with suppress(OSError):
                if folder.stat().st_mtime < time.time() - _OLD_S:
                    shutil.rmtree(folder, ignore_errors=True)

    @asynccontextmanager
    async def package(
        self, facts: BundleFacts, content: bytes | None, base: Path | None, chart_name: str
    ) -> AsyncIterator[tuple[Path, str]]:
        async with self._places:
            folder = await asyncio.to_thread(self._prepared, content)
            try:
                given = None if content is None else folder / "given"
                chart, profile = (base, given) if base is not None else (given, None)
                assert chart is not None
                request = Request(
                    chart=chart,
                    chart_name=chart_name,
                    profile=profile,
                    scratch=folder,
                    out=folder / "out.zip",
                    facts=facts,
                    cpu_s=_CPU_S,
                )
                yield request.out, _name_in(await _asked(request))
            finally:
                await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    async def check(self, chart: Path) -> None:
        """Check that a tar.gz has a chart, within the limits of packages. Raises Unprocessable, StorageFailed."""
        async with self._places:
            folder = await asyncio.to_thread(self._prepared, None)
            try:
                request = Request(chart=chart, scratch=folder, out=folder / "out.zip", cpu_s=_CPU_S)
                _name_in(await _asked(request))
            finally:
                await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    def _prepared(self, content: bytes | None) -> Path:
        try:
            private_folder(self._root)
            folder = self._root / new_id()
            folder.mkdir(mode=0o700)
            if content is not None:
                (folder / "given").write_bytes(content)
        except OSError as error:
            raise StorageFailed(error.strerror or type(error).__name__) from error
        return folder


def _name_in(answer: Answer) -> str:
    if answer.disk:
        raise StorageFailed(answer.disk)
    if answer.bug:
        log.error("bundle_reader_failed", traceback=answer.bug)
        raise Unprocessable("", "the archive cannot be read; the log has the details")
    if answer.refused or answer.is_out_of_memory:
        raise Unprocessable("", answer.refused or f"reading it needs more than {_MEMORY_MIB} MiB of memory")
    return answer.chart


async def _asked(request: Request) -> Answer:
    async with _processes().lent() as lent:
        try:
            async with asyncio.timeout(_WALL_S):
                raw = await lent.process.ask(request.model_dump_json().encode(), limit_bytes=_ANSWER_BYTES)
            answer = Answer.model_validate_json(raw)
        except (TimeoutError, EOFError, OSError, ValidationError) as error:
            raise Unprocessable("", f"reading the archive needs more than {_CPU_S} s of processor time") from error
        lent.is_reusable = not (answer.bug or answer.is_out_of_memory)
        return answer


@cache
def _processes() -> ChildProcesses:
    """The processes of every `BundleProcesses` of this process: they keep no state between two bundles."""
    return ChildProcesses(_CHILD, memory_mib=_MEMORY_MIB, most_idle=1)
