"""The parts that a process may lack: database, broker, disks, confined code of packages, parked commands."""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from kubevnfm_bus.port import MessageBus
from kubevnfm_store.port import DocumentStore

from kubevnfm_worker.health import Lack, Part

PACKAGE_CODE: Final = "packageCode"
"""The state that says how code of packages is run."""
_REFUSED: Final = "refused"
_LEAST_FREE_BYTES: Final = 512 * 2**20
_LEAST_FREE_SHARE: Final = 0.02
_NO_DATABASE: Final = Lack("The database does not answer.", is_blocking=True, is_vital=True)
_NO_WRITES: Final = Lack(
    "The database stores nothing: its disk is full, or cannot be written.", is_blocking=True, is_vital=True
)
_NOT_CONFINED: Final = Lack(
    "Code of packages is not run, because the kernel cannot confine it: docs/security.md says what it needs."
)


def store_part(store: DocumentStore) -> Part:
    """Return the database."""

    async def look() -> Sequence[Lack]:
        if not await store.is_ready():
            return [_NO_DATABASE]
        return [] if store.takes_writes else [_NO_WRITES]

    return Part("store", look, lambda: _NO_DATABASE)


def broker_part(bus: MessageBus) -> Part:
    """Return the broker.

    It is vital until it was reached: a process with a wrong address must not replace one with the right one. When it is lost
    later, requests are still answered, and what they ask for is stored until the broker is back.
    """
    was_reached = False

    def away() -> Lack:
        return Lack("The message broker does not answer.", is_blocking=True, is_vital=not was_reached)

    async def look() -> Sequence[Lack]:
        nonlocal was_reached
        is_ready = await bus.is_ready()
        was_reached |= is_ready
        return [] if is_ready else [away()]

    return Part("broker", look, away)


def disk_part(folders: Sequence[Path]) -> Part:
    """Return the disks of these folders; others may be added to them later."""

    def silent() -> Lack:
        named = " or ".join(map(str, folders))
        return Lack(f"The disk of {named} does not answer.", "A disk for files does not answer.")

    async def look() -> Sequence[Lack]:
        return await _looking_at(tuple(folders)) if folders else []

    return Part("disk", look, silent)


def sandbox_part(states: Mapping[str, object]) -> Part:
    """Return the confinement of code of packages; ``states`` has `PACKAGE_CODE` if the process runs any."""

    async def look() -> Sequence[Lack]:
        return [_NOT_CONFINED] if states.get(PACKAGE_CODE) == _REFUSED else []

    return Part("sandbox", look, lambda: _NOT_CONFINED)


def parked_part(parked: Callable[[], Iterable[Sequence[object]]]) -> Part:
    """Return the commands that are not handled any more; ``parked`` returns those of each service."""

    def lacks() -> Sequence[Lack]:
        count = sum(map(len, parked()))
        if not count:
            return []
        if count == 1:
            return [Lack("A command that ended the process again and again is not handled any more.")]
        return [Lack(f"{count} commands that ended the process again and again are not handled any more.")]

    async def look() -> Sequence[Lack]:
        return lacks()

    return Part("parked-commands", look, lambda: Lack("The commands that are not handled any more cannot be counted."))


def _looking_at(folders: Sequence[Path]) -> asyncio.Future[Sequence[Lack]]:
    """Return what these folders' disks lack, as soon as they answer.

    The thread is none of the event loop's: the end of a process would wait for them, so for a disk that hangs for ever.
    """
    loop = asyncio.get_running_loop()
    found: asyncio.Future[Sequence[Lack]] = loop.create_future()

    def end(lacks: Sequence[Lack]) -> None:
        if not found.done():  # cancelled meanwhile
            found.set_result(lacks)

    def look() -> None:
        lacks = _lacks_of_disks(folders)
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(end, lacks)

    threading.Thread(target=look, name="disks", daemon=True).start()
    return found


def _lacks_of_disks(folders: Sequence[Path]) -> Sequence[Lack]:
    found: dict[tuple[int, int], Lack] = {}
    for folder in folders:
        try:
            usage = shutil.disk_usage(folder)
        except OSError:  # not created yet
            continue
        if usage.free < _LEAST_FREE_BYTES or usage.free < usage.total * _LEAST_FREE_SHARE:
            text = f"The disk of {folder} is nearly full: {usage.free / 2**30:.1f} of {usage.total / 2**30:.0f} GiB are free."
            found[usage.total, usage.used] = Lack(text, "A disk for files is nearly full.")
    return list(found.values())
