"""kubevnfm in one process that dies at a write, again and again. Started as ``python mortal_process.py``; the settings are in the environment.

Each life is a fork of this process, which has imported everything once. Requests come on stdin and answers go to stdout, a JSON object a line.
The first line is ``{"endpoints": [..]}``. A life answers the others but the first of them:

    {"do": "live"}                       {"is": "ready"}
    {"do": "arm", "dies_at": <name>, "nth": 2, "is_done": true, "asked": 9}
                                         {"is": "armed", "asked": 9, "writes": [<name>, ..]}: those since it was armed last. They count from now
                                         on; the second one of this name, which may be a pattern, is the last
    {"do": "end"}

A write is one of a document, or a request that changes something at one of the endpoints; ``<id>`` stands for ids and names of pods in it. The process ends
(`os._exit`) before it, or after it and without its answer. Without ``is_done`` it ends before a write that begins while another is not done, and
after another one. Then comes ``{"is": "dead", "at": "before <name>", "writes": [..], "status": 9}``.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import wraps
from pathlib import Path
from typing import Any, Final

import aiohttp
from kubevnfm.settings import Settings
from kubevnfm.single import single_node
from kubevnfm_kit.logging import configure_logging
from kubevnfm_sandbox.process import Sandbox
from kubevnfm_sandbox.runs import Limits, SandboxState
from kubevnfm_store.sqlite.store import SqliteStore

STATUS: Final = 9
_OF_DOCUMENTS: Final = ("insert", "replace", "update", "delete", "delete_many", "clear_outbox")
_READS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_QUESTIONS: Final = ("accessreviews", "tokenreviews", "/token")
"""The ends of paths to which a POST changes nothing."""
_ID: Final = re.compile(
    r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?<=/vnf-)[0-9a-f]{8}|(?<=/test-)[0-9a-f]{8}|(?<=/pods/)[^/]+"
)


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
    dies_at: str = ""
    """A pattern of the name of the last one; "": none is."""
    nth: int = 1
    """Which of those that match."""
    is_done: bool | None = None
    """Whether that one takes place. None: it does if no other one is under way, or else what is stored is not as after the write before it."""
    under_way: int = 0
    death: Callable[[str], None] = print
    """Ends the life; its argument says where."""

    def arm(self, dies_at: str, nth: int, *, is_done: bool | None) -> None:
        """Count from now on."""
        self.writes, self.dies_at, self.nth, self.is_done = [], dies_at, nth, is_done

    async def write(self, name: str, call: Callable[[], Awaitable[Any]]) -> Any:
        """Make a write."""
        name = _ID.sub("<id>", name)
        self.writes.append(name)
        is_last = False
        if self.dies_at and fnmatchcase(name, self.dies_at):
            self.nth -= 1
            is_last = not self.nth
        if is_last and (self.is_done is False or (self.is_done is None and self.under_way)):
            self.death(f"before {name}")
        self.under_way += 1
        try:
            result = await call()
        finally:
            self.under_way -= 1
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
                say(**{"is": "armed", "asked": line["asked"], "writes": fate.writes})
                fate.arm(line["dies_at"], line["nth"], is_done=line["is_done"])
            case _:
                loop.remove_reader(0)
                ended.set()

    async with single_node(Settings()):
        loop.add_reader(0, hear)
        say(**{"is": "ready"})
        await ended.wait()


async def _learn_what_each_life_needs() -> None:
    """Start and end once, so that this process has built what each start builds; try the sandbox for all lives."""
    state = await Sandbox(Limits(trust_packages=True)).state()

    async def known(_: Sandbox) -> tuple[SandboxState, str]:
        return state

    setattr(Sandbox, "state", known)  # noqa: B010
    async with single_node(Settings()):
        pass


def main() -> None:
    """Have lives until the input ends."""
    os.umask(0o077)
    configure_logging("kubevnfm", level=Settings().log_level, form="console")
    asyncio.run(_learn_what_each_life_needs())
    fate = Fate()
    make_mortal(fate, tuple(heard()["endpoints"]))
    while line := heard():
        if line["do"] != "live":
            continue  # it was for a life that has ended
        note = Path(f"{os.environ['KUBEVNFM_DATA_DIR']}.death")
        note.unlink(missing_ok=True)
        pid = os.fork()
        if pid:
            _, status = os.waitpid(pid, 0)
            last = json.loads(note.read_text()) if note.exists() else {"at": "", "writes": []}
            say(**{"is": "dead", "status": os.waitstatus_to_exitcode(status), **last})
            continue

        def death(at: str, note: Path = note) -> None:
            note.write_text(json.dumps({"at": at, "writes": fate.writes}))
            os._exit(STATUS)

        fate.death = death
        asyncio.run(live(fate))
        os._exit(0)


if __name__ == "__main__":
    sys.stdout.flush()
    main()
