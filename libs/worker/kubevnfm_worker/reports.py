"""The reports of a process about itself: every 10 s each says over the bus that it runs, and what it lacks (`health`)."""

from __future__ import annotations

import asyncio
import os
import platform
from collections.abc import AsyncIterator, Sequence
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

from kubevnfm_worker.certificates import CertificateFile
from kubevnfm_worker.health import Health

log = structlog.get_logger()

EVERY_S: Final = 10.0
"""The time from one report to the next."""
_LEAST_S: Final = 1.0
"""The same after a change, which is reported at once."""
_PUBLISH_S: Final = 5.0
"""How long the broker may take: a report that is late is worth nothing, so it is not repeated."""
_LAST_S: Final = 2.0
"""How long the end of the process waits for its last report."""


class Reporting(Protocol):
    """The parts of a process that a report is made from."""

    @property
    def bus(self) -> MessageBus: ...

    @property
    def health(self) -> Health: ...

    async def report(self, *, has_ended: bool = False) -> ServiceReported:
        """Return the state of this process now."""
        ...


@dataclass
class Process:
    """The running process, and the services in it."""

    services: list[str] = field(default_factory=list)
    folders: list[Path] = field(default_factory=list)
    """Those that it stores files in."""
    certificates: dict[str, CertificateFile] = field(default_factory=dict)
    """Its files with certificates, by the name of their setting."""
    id: str = field(default_factory=new_id)
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))

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
    """Report while the block lasts, at once, after each change and every 10 s, and once more at its end."""
    try:
        async with backends.health.watching(), background(reports=_report_forever(backends)):
            yield
    finally:
        await _publish(backends, within_s=_LAST_S, has_ended=True)


async def _report_forever(backends: Reporting) -> None:
    loop, changed = asyncio.get_running_loop(), backends.health.changed
    while True:
        began_at = loop.time()
        changed.clear()
        await _publish(backends, within_s=_PUBLISH_S, has_ended=False)
        await asyncio.sleep(min(EVERY_S, _LEAST_S))
        with suppress(TimeoutError):
            async with asyncio.timeout_at(began_at + EVERY_S):
                await changed.wait()


async def _publish(backends: Reporting, *, within_s: float, has_ended: bool) -> None:
    try:
        async with asyncio.timeout(within_s):
            report = await backends.report(has_ended=has_ended)
            source = f"/kubevnfm/{report.services[0]}" if report.services else "/kubevnfm"
            await backends.bus.publish(Envelope[Message](data=report, source=source, subject=report.process))
    # The broker is away, or the bus closes with the process: other processes see that by the missing report.
    except (VnfmError, TimeoutError) as error:
        log.debug("report_not_published", reason=str(error) or type(error).__name__)
    except Exception:  # the edge: one that ended the reports would let a process that works be shown away for good
        log.exception("report_failed")


@cache
def _version() -> str:
    return version("kubevnfm-worker")
