"""The reports of a process about itself: every 10 s each says over the bus that it runs, and what it lacks."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Final, Protocol

import structlog
from kubevnfm_bus.port import MessageBus
from kubevnfm_events import Envelope, Message
from kubevnfm_events.services import ServiceReported, Trouble
from kubevnfm_kit.errors import VnfmError
from kubevnfm_kit.ids import new_id
from kubevnfm_kit.run import background

log = structlog.get_logger()

EVERY_S: Final = 10.0
"""The time from one report to the next."""
_ANSWER_S: Final = 3.0
"""How long the database may take to say that it is ready, and the disks to say how full they are."""
_PUBLISH_S: Final = 5.0
"""How long the broker may take: a report that is late is worth nothing, so it is not repeated."""
_LAST_S: Final = 2.0
"""How long the end of the process waits for its last report."""
_LEAST_FREE_BYTES: Final = 512 * 2**20
_LEAST_FREE_SHARE: Final = 0.02
_REFUSED: Final = "refused"
_LONGEST: Final = 512


class Reporting(Protocol):
    """The parts of a process that a report is made from."""

    @property
    def bus(self) -> MessageBus: ...

    async def report(self, *, has_ended: bool = False) -> ServiceReported:
        """Return the state of this process now."""
        ...


@dataclass
class Process:
    """The running process, and the services in it."""

    services: list[str] = field(default_factory=list)
    folders: list[Path] = field(default_factory=list)
    """Those that it stores files in."""
    id: str = field(default_factory=new_id)
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    _looking: asyncio.Future[list[Trouble]] | None = None
    """The last look at the disks. The next one waits for its end: on a volume that hangs, each would take a thread for good."""

    async def troubles_of_disks(self) -> list[Trouble]:
        """Return the troubles of disks that are nearly full, or do not answer."""
        looking = self._looking
        if looking is None or looking.done():
            looking = self._looking = _looking_at(tuple(self.folders))
        await asyncio.wait([looking], timeout=_ANSWER_S)
        if looking.done():
            return looking.result()
        named = " or ".join(map(str, self.folders))
        text = f"The disk of {named} has not answered within {_ANSWER_S:.0f} s."
        return [Trouble(part="disk", text=text[:_LONGEST], is_blocking=False)]

    def report(self, troubles: Sequence[Trouble], *, has_ended: bool) -> ServiceReported:
        """Return its report."""
        return ServiceReported(
            process=self.id,
            services=tuple(self.services),
            host=platform.node()[:128],
            pid=os.getpid(),
            version=_version(),
            started_at=self.started_at,
            troubles=tuple(troubles),
            has_ended=has_ended,
        )


@asynccontextmanager
async def reporting(backends: Reporting) -> AsyncIterator[None]:
    """Report while the block lasts, at once and then every 10 s, and once more at its end."""
    try:
        async with background(reports=_report_forever(backends)):
            yield
    finally:
        await _publish(backends, within_s=_LAST_S, has_ended=True)


async def _report_forever(backends: Reporting) -> None:
    loop = asyncio.get_running_loop()
    while True:
        began_at = loop.time()
        await _publish(backends, within_s=_PUBLISH_S + _ANSWER_S, has_ended=False)
        await asyncio.sleep(max(0.0, EVERY_S - (loop.time() - began_at)))


async def _publish(backends: Reporting, *, within_s: float, has_ended: bool) -> None:
    try:
        async with asyncio.timeout(within_s):
            report = await backends.report(has_ended=has_ended)
            source = f"/kubevnfm/{report.services[0]}" if report.services else "/kubevnfm"
            await backends.bus.publish(Envelope[Message](data=report, source=source, subject=report.process))
    # The broker is away, or the bus closes with the process: other processes see that by the missing report.
    except (VnfmError, TimeoutError) as error:
        log.debug("report_not_published", reason=str(error) or type(error).__name__)
    except (
        Exception
    ):  # the edge: a process that works must not be shown away for good, as after a moment without threads
        log.exception("report_failed")


async def troubles_of_store(is_ready: Callable[[], Awaitable[bool]]) -> list[Trouble]:
    """Return the trouble of a database that does not answer."""
    try:
        async with asyncio.timeout(_ANSWER_S):
            if await is_ready():
                return []
    except TimeoutError:
        return [Trouble(part="store", text=f"The database has not answered within {_ANSWER_S:.0f} s.")]
    return [Trouble(part="store", text="The database does not answer.")]


def trouble_of_code(package_code: object) -> Iterator[Trouble]:
    """Yield the trouble of a kernel that does not confine code of packages."""
    if package_code == _REFUSED:
        text = "Code of packages is not run, because the kernel cannot confine it: docs/security.md says what it needs."
        yield Trouble(part="sandbox", text=text, is_blocking=False)


def trouble_of_parked(parked: Sequence[object]) -> Iterator[Trouble]:
    """Yield the trouble of commands that are not handled any more."""
    if parked:
        text = f"{len(parked)} commands that ended the process again and again are not handled any more."
        if len(parked) == 1:
            text = "A command that ended the process again and again is not handled any more."
        yield Trouble(part="parked-commands", text=text, is_blocking=False)


def _looking_at(folders: Sequence[Path]) -> asyncio.Future[list[Trouble]]:
    """Return the troubles of these folders' disks, as soon as they answer.

    The thread is none of the event loop's: the end of a process would wait for them, so for a disk that hangs for ever.
    """
    loop = asyncio.get_running_loop()
    found: asyncio.Future[list[Trouble]] = loop.create_future()

    def look() -> None:
        troubles = _troubles_of_disks(folders)
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(found.set_result, troubles)

    threading.Thread(target=look, name="disks", daemon=True).start()
    return found


def _troubles_of_disks(folders: Sequence[Path]) -> list[Trouble]:
    found: dict[tuple[int, int], Trouble] = {}
    for folder in folders:
        try:
            usage = shutil.disk_usage(folder)
        except OSError:  # not created yet
            continue
        if usage.free < _LEAST_FREE_BYTES or usage.free < usage.total * _LEAST_FREE_SHARE:
            text = f"The disk of {folder} is nearly full: {usage.free / 2**30:.1f} of {usage.total / 2**30:.0f} GiB are free."
            found[usage.total, usage.used] = Trouble(part="disk", text=text[:_LONGEST], is_blocking=False)
    return list(found.values())


@cache
def _version() -> str:
    return version("kubevnfm-worker")
