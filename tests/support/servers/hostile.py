"""Servers that answer as no honest one does, and the measure that their answers leave the memory flat."""

from __future__ import annotations

import asyncio
import gc
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

import pytest

MIB: Final = 2**20
BLOCK: Final = 64 * 1024
HEAD: Final = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def memory_mib(name: str, pid: int | str = "self") -> float:
    """Return a line of /proc/<pid>/status in MiB: ``VmRSS`` now, ``VmHWM`` the most since `forget_peak`."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{name}:"))


def forget_peak(pid: int | str = "self") -> None:
    """Let ``VmHWM`` begin again from now (proc(5), clear_refs)."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


@contextmanager
def flat_memory(most_mib: float, pid: int | str = "self") -> Iterator[None]:
    """Fail if the process grows by more than that at any moment within the block."""
    gc.collect()
    forget_peak(pid)
    before = memory_mib("VmRSS", pid)
    yield
    grown = memory_mib("VmHWM", pid) - before
    assert grown < most_mib, f"the process grew by {grown:.0f} MiB"


@dataclass
class Hostile:
    """A hostile server on loopback."""

    port: int
    requests: list[bytes] = field(default_factory=list)
    """The heads of the requests that it got."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


Speech = Callable[[bytes, asyncio.StreamWriter], Awaitable[None]]
"""Writes an answer after the head of a request, or at once if the server waits for none."""


@asynccontextmanager
async def hostile_server(speech: Speech, *, waits: bool = True) -> AsyncIterator[Hostile]:
    """Yield a server. Without ``waits`` it speaks first, as an SSH server does."""
    found = Hostile(0)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n") if waits else b""
                found.requests.append(head)
                length = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
                if length:
                    await reader.readexactly(int(length[0].split(b":")[1]))
                await speech(head, writer)
                if not waits or writer.is_closing():
                    break
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    found.port = server.sockets[0].getsockname()[1]
    try:
        yield found
    finally:
        server.close()


async def write(writer: asyncio.StreamWriter, data: bytes) -> None:
    """Write and wait until the other side takes it, so that the server itself needs no memory."""
    writer.write(data)
    await writer.drain()


def says(data: bytes, *, closes: bool = True) -> Speech:
    """Always the same bytes."""

    async def speak(_: bytes, writer: asyncio.StreamWriter) -> None:
        await write(writer, data)
        if closes:
            writer.close()

    return speak


def answers(body: bytes, *, status: str = "200 OK", headers: bytes = b"") -> Speech:
    """A whole answer with this body, as JSON."""
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n".encode()
    return says(head + headers + b"\r\n" + body, closes=False)


def redirects(target: str, status: str = "307 Temporary Redirect") -> Speech:
    """A redirect to another server."""
    return answers(b"", status=status, headers=f"Location: {target}/elsewhere\r\n".encode())


def endless(first: bytes, block: bytes, *, head: bytes = HEAD + b"Transfer-Encoding: chunked\r\n\r\n") -> Speech:
    """``first``, then the block again and again, in chunks."""

    async def speak(_: bytes, writer: asyncio.StreamWriter) -> None:
        chunked = b"chunked" in head
        writer.write(head)
        for each in _forever(first, block):
            await write(writer, b"%x\r\n%s\r\n" % (len(each), each) if chunked else each)

    return speak


def _forever(first: bytes, block: bytes) -> Iterator[bytes]:
    yield first
    while True:
        yield block


def trickles(data: bytes, *, pause_s: float = 0.02) -> Speech:
    """A byte at a time, so that there is never a silence."""

    async def speak(_: bytes, writer: asyncio.StreamWriter) -> None:
        for byte in data:
            await write(writer, bytes([byte]))
            await asyncio.sleep(pause_s)

    return speak


@cache
def bomb(mib: int = 256) -> bytes:
    """Return gzip of a JSON text of so many MiB."""
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    parts = [packer.compress(b'{"message": "')]
    parts += [packer.compress(b"x" * MIB) for _ in range(mib)]
    return b"".join([*parts, packer.compress(b'"}'), packer.flush()])


_JSON_ATTACKS: Final[Mapping[str, Callable[[str], Speech]]] = {
    "a body without end": lambda _: endless(b'{"message": "', b"x" * BLOCK),
    "a list of 10 GB": lambda _: endless(
        b'{"items": [{}',
        b",{}" * 20_000,
        head=HEAD + b"Content-Length: 10000000000\r\n\r\n",
    ),
    "16 MiB of empty objects": lambda _: answers(b'{"items": [' + b"[]," * (5 * MIB) + b"[]]}"),
    "JSON nested 100,000 deep": lambda _: answers(b"[" * 100_000 + b"]" * 100_000),
    "JSON nested 900 deep": lambda _: answers(b'{"items": ' + b"[" * 900 + b"]" * 900 + b"}"),
    "a gzip bomb": lambda _: answers(bomb(), headers=b"Content-Encoding: gzip\r\n"),
    "broken gzip": lambda _: answers(b"\x1f\x8b\x08\x00nonsense", headers=b"Content-Encoding: gzip\r\n"),
    "a redirect": redirects,
    "a moved permanently": lambda elsewhere: redirects(elsewhere, "301 Moved Permanently"),
    "a body byte by byte": lambda _: trickles(HEAD + b"Content-Length: 100000\r\n\r\n" + b"x" * 100_000),
    "headers byte by byte": lambda _: trickles(HEAD + b"X-More: and more\r\n" * 100_000),
    "headers without end": lambda _: endless(b"", b"X-More: and more\r\n" * 1000, head=HEAD),
    "one header without end": lambda _: endless(b"", b"x" * BLOCK, head=HEAD + b"X-Long: "),
    "100 Continue without end": lambda _: endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100, head=b""),
    "invalid UTF-8": lambda _: answers(b'{"message": "\xff\xfe\x80"}'),
    "half of a surrogate pair": lambda _: answers(b'{"message": "\\ud800", "kind": "\\ud800"}'),
    "a number": lambda _: answers(b"7"),
    "null": lambda _: answers(b"null"),
    "an empty object": lambda _: answers(b"{}"),
    "NaN": lambda _: answers(b'{"metadata": NaN}'),
    "no HTTP at all": lambda _: says(b"\x16\x03\x01 hello\r\n\r\n"),
    "an end within the body": lambda _: says(HEAD + b"Content-Length: 100\r\n\r\n{"),
    "an end without a word": lambda _: says(b""),
    "a wrong length": lambda _: says(HEAD + b"Content-Length: -5\r\n\r\n{}"),
}
"""Each is made when a test asks for it: a bomb takes half a second, and each process that collects tests has their names."""


def json_attack(name: str, elsewhere: str) -> Speech:
    """Return a way in which an answer with JSON can be hostile. ``elsewhere``: the target of redirects."""
    return _JSON_ATTACKS[name](elsewhere)


_QUICK: Final = {"a list of 10 GB", "a redirect", "JSON nested 900 deep", "half of a surrogate pair", "no HTTP at all"}
ATTACKS: Final = [
    pytest.param(name, marks=() if name in _QUICK else pytest.mark.deep) for name in sorted(_JSON_ATTACKS)
]
"""The names of attacks as parameters of a test: a few quick ones in `make test`, all in `make test-attack`."""
