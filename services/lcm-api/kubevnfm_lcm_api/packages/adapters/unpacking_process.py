"""Checks and unpacks packages in processes that can be killed: what a package contains may cost any time and memory.

A process that is idle takes the next package, so that a small package costs no start of Python (0.4 s).
"""

from __future__ import annotations

import asyncio
import signal
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Final

import structlog
from kubevnfm_csar.errors import ExternalMissing, PackageRefused
from kubevnfm_kit.child_process import ChildProcesses
from kubevnfm_kit.errors import OutsideUnavailable
from pydantic import ValidationError

from kubevnfm_lcm_api.packages.adapters.package_folder import CONTENT, drop_scratch
from kubevnfm_lcm_api.packages.adapters.signatures import SignatureRefused
from kubevnfm_lcm_api.packages.adapters.unpacking_exchange import ANSWER_BYTES, Answer, Request
from kubevnfm_lcm_api.packages.domain.ports import OnboardedFiles

log = structlog.get_logger()

_CHILD: Final = "kubevnfm_lcm_api.packages.adapters.unpacking_child"
_MIB: Final = 1024 * 1024
_MEMORY_MIB: Final = 2048
_PARALLEL: Final = 4
_KEPT_IDLE: Final = 2
_WALL_FACTOR, _WALL_S = 10, 60
"""Time by the clock: so many times the processor time, and so much more. The disk may be slow, the machine busy."""


class StorageFailed(OutsideUnavailable, code="storage-failed", title="Storage failed"):
    """The disk rejects the write: it is full, missing or read-only."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the package cannot be stored: {reason}")


class PackageUnreadable(PackageRefused, code="package-unreadable"):
    """The process that read the package ended, or was ended: the package costs too much time or memory."""


@dataclass(frozen=True)
class UnpackingRules:
    """The signers that are trusted, and the limit of what one package may cost."""

    anchors: Path | None = None
    is_signature_required: bool = False
    cpu_s: int = 30
    """Processor time for one package, beside one second for each MiB of the archive."""


class UnpackingProcesses:
    """Checks packages, at most four at the same time."""

    def __init__(self, rules: UnpackingRules) -> None:
        self._rules = rules
        self._places = asyncio.Semaphore(_PARALLEL)

    async def unpack(self, folder: Path) -> OnboardedFiles:
        """Check and unpack the CSAR in this folder.

        Raises: PackageRefused with the file and the rule; ExternalMissing; PackageUnreadable; StorageFailed.
        """
        try:
            archive_bytes = (await asyncio.to_thread((folder / CONTENT).stat)).st_size
        except OSError as error:
            raise StorageFailed(error.strerror or type(error).__name__) from error
        rules = self._rules
        request = Request(
            folder=folder,
            anchors=rules.anchors,
            is_signature_required=rules.is_signature_required,
            cpu_s=rules.cpu_s + archive_bytes // _MIB,
        )
        async with self._places:
            try:
                answer = await _asked(request)
            except PackageUnreadable:
                await asyncio.to_thread(drop_scratch, folder)
                raise
        for entry in answer.logged:
            facts = dict(entry)
            getattr(log, str(facts.pop("level")))(str(facts.pop("event")), **facts)
        return _found(answer)


def _found(answer: Answer) -> OnboardedFiles:
    if answer.found is not None:
        return answer.found
    if answer.missing:
        raise ExternalMissing(answer.missing)
    if answer.refused is not None:
        kind = SignatureRefused if answer.refused.code == SignatureRefused.code else PackageRefused
        raise kind(answer.refused.rule, file=answer.refused.file)
    if answer.disk:
        raise StorageFailed(answer.disk)
    if answer.is_out_of_memory:
        raise PackageUnreadable(f"reading it needs more than the {_MEMORY_MIB} MiB of memory allowed")
    log.error("package_reader_failed", traceback=answer.bug)
    raise PackageUnreadable("reading it failed with an error that is not expected; the log has the details")


async def _asked(request: Request) -> Answer:
    limit_s = request.cpu_s * _WALL_FACTOR + _WALL_S
    async with _processes().lent() as lent:
        try:
            async with asyncio.timeout(limit_s):
                raw = await lent.process.ask(request.model_dump_json().encode(), limit_bytes=2 * ANSWER_BYTES)
                answer = await asyncio.to_thread(partial(Answer.model_validate_json, raw))
        except TimeoutError as error:
            raise PackageUnreadable(f"not read within {limit_s} s") from error
        except (EOFError, OSError, ValidationError) as error:
            status = await asyncio.to_thread(lent.process.end)
            if status == -signal.SIGXCPU:
                raise PackageUnreadable(
                    f"reading it needs more than the {request.cpu_s} s of processor time allowed"
                ) from error
            raise PackageUnreadable(f"the process that read it ended with status {status}") from error
        lent.is_reusable = answer.is_reusable
        return answer


@cache
def _processes() -> ChildProcesses:
    """The processes of every `UnpackingProcesses` of this process: they keep no state between two packages.

    They end with this process, which closes their sockets.
    """
    return ChildProcesses(_CHILD, memory_mib=_MEMORY_MIB, most_idle=_KEPT_IDLE)
