"""Content that arrives in chunks, written to a file that is there only once it is complete."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import BinaryIO, Final, ParamSpec, TypeVar

from kubevnfm_kit.errors import VnfmError
from kubevnfm_kit.files import private_folder
from kubevnfm_kit.ids import new_id

from kubevnfm_lcm_api.packages.adapters.unpacking_process import StorageFailed
from kubevnfm_lcm_api.packages.domain.ports import Upload

P = ParamSpec("P")
T = TypeVar("T")

PART: Final = ".part"
_HEAD: Final = 4


class PackageTooLarge(VnfmError, code="package-too-large", title="Package too large", status=413):
    """The content is larger than this VNFM accepts."""


async def store_arriving(
    chunks: AsyncIterator[bytes],
    target: Path,
    *,
    limit_bytes: int,
    check_head: Callable[[bytes], None] | None = None,
    check: Callable[[Path], Awaitable[None]] | None = None,
) -> Upload:
    """Write content to a file, whose folder is made, and which it replaces when it is complete.

    ``check_head``: raises for content that does not begin as expected, and gets its first four bytes or fewer; ``check``: raises
    for a whole content. Raises what these raise, PackageTooLarge, StorageFailed.
    """
    digest, size, head = hashlib.sha256(), 0, b""
    file, part = await on_disk(_new_part, target.parent)
    try:
        async for chunk in chunks:
            size += len(chunk)
            if size > limit_bytes:
                raise PackageTooLarge(f"the package has more than {limit_bytes} bytes, the largest size allowed")
            if check_head is not None and len(head) < _HEAD:
                head = (head + chunk)[:_HEAD]
                check_head(head)
            await on_disk(_write, file, chunk, digest)
        await on_disk(file.close)
        if check is not None:
            await check(part)
        # Renamed only when complete: a reader never finds half an upload, and a failed one does not replace content.
        await on_disk(part.replace, target)
    finally:
        await on_disk(_drop, file, part)
    return Upload(size_bytes=size, sha256=digest.hexdigest())


async def on_disk(work: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
    """Return the result of the work, done in a thread. Raises StorageFailed for an error of the disk."""
    try:
        return await asyncio.to_thread(work, *args, **named)
    except OSError as error:
        raise StorageFailed(error.strerror or type(error).__name__) from error


def _new_part(folder: Path) -> tuple[BinaryIO, Path]:
    """Open a new file for an upload; if there were two at once, one would already be given up."""
    private_folder(folder.parent)
    private_folder(folder)
    for left_behind in folder.glob(f"*{PART}"):
        left_behind.unlink(missing_ok=True)
    part = folder / f"{new_id()}{PART}"
    return part.open("wb"), part


def _drop(file: BinaryIO, part: Path) -> None:
    file.close()
    part.unlink(missing_ok=True)


def _write(file: BinaryIO, chunk: bytes, digest: hashlib._Hash) -> None:
    file.write(chunk)
    digest.update(chunk)
