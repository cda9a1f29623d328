"""The disk that everything fetched on demand shares: what was least recently used makes room (multicloud.md MC-125)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, Protocol

import structlog
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.errors import VnfmError
from kubevnfm_kit.json_types import JsonMapping

from kubevnfm_lcm_api.packages.domain.ports import Content

log = structlog.get_logger()

_WRITE_EVERY: Final = timedelta(seconds=1)
_TOUCH_AFTER: Final = timedelta(seconds=60)
_KEPT: Final = timedelta(minutes=10)
"""A copy that was used so recently is not removed: the instance that it is used for may not be stored yet."""


class DiskFull(VnfmError, code="artifact-disk-full", title="No room for the package", status=507):
    """All copies together would exceed the limit of the disk, and those that exist are in use."""


@dataclass(frozen=True)
class Copy:
    """A package or a chart that was fetched on demand."""

    id: str
    used_at: str
    size_bytes: int
    """The room that it takes, or will take once its fetch ends."""
    remove: Callable[[], Awaitable[bool]] | None
    """Removes it unless it is in use; returns whether it is gone. None: it is being fetched."""


class Shelf(Protocol):
    """A kind of copies."""

    async def copies(self) -> Sequence[Copy]:
        """Return all of them."""
        ...


@dataclass(frozen=True)
class Room:
    """The limit of all copies together."""

    clock: Clock
    disk_bytes: int
    shelves: list[Shelf] = field(default_factory=list)

    async def make(self, copy_id: str, size_bytes: int) -> None:
        """Remove the copies that were least recently used until this one has room; never one in use. Raises DiskFull."""
        found = [each for shelf in self.shelves for each in await shelf.copies() if each.id != copy_id]
        excess = size_bytes + sum(each.size_bytes for each in found) - self.disk_bytes
        recent = rfc3339(self.clock.now() - _KEPT)
        for each in sorted(found, key=lambda copy: copy.used_at):
            if excess <= 0:
                return
            if each.remove is not None and each.used_at <= recent and await each.remove():
                excess -= each.size_bytes
                log.info("copy_removed", copy_id=each.id)
        if excess > 0:
            raise DiskFull(f"{size_bytes} bytes: the limit of {self.disk_bytes} bytes is reached by copies in use")

    def is_touched(self, used_at: str) -> bool:
        """Return whether the time of its last use need not be written again."""
        return used_at > rfc3339(self.clock.now() - _TOUCH_AFTER)

    async def counted(
        self, content: Content, write: Callable[[JsonMapping], Awaitable[object]]
    ) -> AsyncIterator[bytes]:
        """Yield the content, and write now and then how much of it has arrived: ``done``, and ``total`` if it is known."""
        done, write_at = 0, self.clock.now()
        async for chunk in content.chunks:
            done += len(chunk)
            if self.clock.now() >= write_at:
                await write({"done": done, **({} if content.size_bytes is None else {"total": content.size_bytes})})
                write_at = self.clock.now() + _WRITE_EVERY
            yield chunk
