"""kubevnfm in one process that dies at a write, again and again. Started as ``python mortal_process.py``; the settings are in the environment.

Each life is a fork of this process, which has imported everything once. Requests come on stdin and answers go to stdout, a JSON object a line.
The first line is ``{"endpoints": [..]}``. A life answers the others but the first of them:

    {"do": "live", "ahead_s": 40}                 {"is": "ready"}: its clock is ahead by so much, as if so long had passed since the last life
    {"do": "arm", "dies_at": 7, "is_done": true}  {"is": "armed"}: writes count from now on; a text is a pattern of the name of the last one
    {"do": "count"}                               {"is": "counted", "writes": [<name>, ..]}
    {"do": "end"}

A write is one of a document, or a request that changes something at one of the endpoints. The process ends (`os._exit`) before it, or after it and
without its answer. Then comes ``{"is": "dead", "at": <name>, "status": 9}``.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatch
from functools import wraps
from pathlib import Path
from typing import Any, Final

import aiohttp
from kubevnfm.settings import Settings
from kubevnfm.single import single_node
from kubevnfm_kit.clock import SystemClock
from kubevnfm_kit.logging import configure_logging
from kubevnfm_store.sqlite.store import SqliteStore

STATUS: Final = 9
_OF_DOCUMENTS: Final = ("insert", "replace", "update", "delete", "delete_many", "clear_outbox")
_READS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_QUESTIONS: Final = ("accessreviews", "tokenreviews", "/token")
"""The ends of paths to which a POST changes nothing."""


def say(**line: object) -> None:
    """Write a line for the tests."""
    os.write(1, json.dumps(line).encode() + b"\n")


def heard() -> dict[str, Any]:
    """Return the next line of the tests; {} at the end of the input. Unbuffered, as the next line is for another process."""
    line = bytearray()
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            return {}
        line += byte
    return dict(json.loads(line))


@dataclass
class Fate:
    """When this life ends."""

    writes: list[str] = field(default_factory=list)
    """The names of those since `arm`."""
    dies_at: int | str = 0
    """The number of the last one, from 1, or a pattern of its name; 0: none is."""
    is_done: bool = False
    """Whether that one takes place."""
    death: Callable[[str], None] = print
    """Ends the life; its argument says where."""

    def arm(self, dies_at: int | str, *, is_done: bool) -> None:
        """Count from now on."""
        self.writes, self.dies_at, self.is_done = [], dies_at, is_done

    async def write(self, name: str, call: Callable[[], Awaitable[Any]]) -> Any:
        """Make a write."""
        self.writes.append(name)
        is_last = fnmatch(name, self.dies_at) if isinstance(self.dies_at, str) else len(self.writes) == self.dies_at
        if is_last and not self.is_done:
            self.death(f"before {name}")
        result = await call()
        if is_last:
            self.death(f"after {name}")
        return result


def make_mortal(fate: Fate, endpoints: tuple[str, ...]) -> None:
    """Have all writes of this process go through its fate."""

    def of_store(name: str, method: Any) -> Any:
        @wraps(method)
        async def call(store: Any, collection: str, *args: Any, **more: Any) -> Any:
            return await fate.write(f"{name} {collection}", lambda: method(store, collection, *args, **more))

        return call

    for name in _OF_DOCUMENTS:
        setattr(SqliteStore, name, of_store(name, getattr(SqliteStore, name)))
    send: Any = getattr(aiohttp.ClientSession, "_request")  # noqa: B009

    async def request(session: Any, method: str, url: Any, **more: Any) -> Any:
        text = str(url)
        is_write = (
            method not in _READS and text.startswith(endpoints) and "dryRun" not in f"{text} {more.get('params')}"
        )
        if not is_write or text.partition("?")[0].endswith(_QUESTIONS):
            return await send(session, method, url, **more)
        path = next(text.removeprefix(each) for each in endpoints if text.startswith(each)).partition("?")[0]
        return await fate.write(f"{method} {path}", lambda: send(session, method, url, **more))

    setattr(aiohttp.ClientSession, "_request", request)  # noqa: B010


async def live(fate: Fate) -> None:
    """Live once."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()

    def hear() -> None:
        line = heard()
        match line.get("do"):
            case "arm":
                fate.arm(line["dies_at"], is_done=line["is_done"])
                say(**{"is": "armed"})
            case "count":
                say(**{"is": "counted", "writes": fate.writes})
            case _:
                loop.remove_reader(0)
                ended.set()

    async with single_node(Settings()):
        loop.add_reader(0, hear)
        say(**{"is": "ready"})
        await ended.wait()


def main() -> None:
    """Have lives until the input ends."""
    fate = Fate()
    make_mortal(fate, tuple(heard()["endpoints"]))
    while line := heard():
        ahead = timedelta(seconds=line["ahead_s"])
        note = Path(f"{os.environ['KUBEVNFM_DATA_DIR']}.death")
        note.unlink(missing_ok=True)
        pid = os.fork()
        if pid:
            _, status = os.waitpid(pid, 0)
            at = note.read_text() if note.exists() else ""
            say(**{"is": "dead", "at": at, "status": os.waitstatus_to_exitcode(status)})
            continue

        def now(_: SystemClock, ahead: timedelta = ahead) -> datetime:
            return datetime.now(UTC) + ahead

        def death(at: str, note: Path = note) -> None:
            note.write_text(at)
            os._exit(STATUS)

        setattr(SystemClock, "now", now)  # noqa: B010
        fate.death = death
        os.umask(0o077)
        configure_logging("kubevnfm", level=Settings().log_level, form="console")
        asyncio.run(live(fate))
        os._exit(0)


if __name__ == "__main__":
    sys.stdout.flush()
    main()
