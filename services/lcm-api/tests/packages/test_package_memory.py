"""Large packages: what is sent, checked and read back passes through memory in pieces."""

from __future__ import annotations

import asyncio
import hashlib
import os
import tracemalloc
import zipfile
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import pytest
from packages.package_builder import v1_files
from worlds.lcm_world import World

MIB = 1024 * 1024
SIZE_MIB = int(os.environ.get("KUBEVNFM_TEST_PACKAGE_MIB", "300"))
"""The size of the disk image in the package; larger values by hand."""
MOST_MIB = 16
"""Client and server together, which share this process: far below the package, whatever its size."""
IMAGE = "Files/images/large.img"


class Pipe:
    """A file that cannot be sought in: what is written is taken away at once."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []

    def write(self, data: bytes) -> int:
        self.pieces.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        """Nothing is held back."""

    def drain(self) -> Iterator[bytes]:
        pieces, self.pieces = self.pieces, []
        yield from pieces


def large_package(size_mib: int) -> Iterator[bytes]:
    """Yield an archive while it is made, so that it is nowhere as a whole."""
    pipe = Pipe()
    block = bytes(range(256)) * (MIB // 256)
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_STORED) as archive:  # type: ignore[call-overload]  # writing needs no more
        for name, content in v1_files().items():
            archive.writestr(name, content)
        with archive.open(IMAGE, "w", force_zip64=True) as image:
            for _ in range(size_mib):
                image.write(block)
                yield from pipe.drain()
    yield from pipe.drain()


@contextmanager
def bounded_memory() -> Iterator[None]:
    """Fail when more is allocated at once than MOST_MIB; the allocations are counted, not the system's pages."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak - before < MOST_MIB * MIB, f"{(peak - before) / MIB:.0f} MiB at once"


@pytest.mark.parametrize("has_length", [True, False])
async def test_a_large_package_passes_through_in_pieces(world: World, has_length: bool) -> None:
    """API-119, API-110, API-116: sent with its length and without, checked, and read back whole and in part."""
    sent = hashlib.sha256()
    length = sum(map(len, large_package(SIZE_MIB)))

    async def chunks() -> AsyncIterator[bytes]:
        for piece in large_package(SIZE_MIB):
            sent.update(piece)
            yield piece
            await asyncio.sleep(0)

    package_id = str((await world.packages("POST", body={})).must(201).json["id"])
    path = f"/{package_id}/package_content"
    headers = {"Content-Type": "application/zip", **({"Content-Length": str(length)} if has_length else {})}
    with bounded_memory():
        (await world.packages("PUT", path, data=chunks(), headers=headers)).must(202)
        package = await world.onboarded(package_id)
    assert package["onboardingState"] == "ONBOARDED", package
    assert package["checksum"]["hash"] == sent.hexdigest()

    received = hashlib.sha256()
    url = f"{world.url}/vnfpkgm/v1/vnf_packages{path}"
    with bounded_memory():
        async with world.session.get(url) as response:
            assert response.headers["Content-Length"] == str(length)
            async for piece in response.content.iter_chunked(MIB):
                received.update(piece)
        end = await world.packages("GET", path, headers={"Range": "bytes=-22"})
        part = f"bytes={SIZE_MIB * MIB - 256}-{SIZE_MIB * MIB - 1}"
        image = await world.packages("GET", f"/{package_id}/artifacts/{IMAGE}", headers={"Range": part})
    assert received.hexdigest() == sent.hexdigest()
    assert end.must(206).raw.startswith(b"PK\x05\x06")
    assert image.must(206).raw == bytes(range(256))
