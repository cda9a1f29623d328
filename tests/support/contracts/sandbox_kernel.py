"""Kernels for tests of the sandbox: this machine's own, and one that refuses a part of the confinement."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from kubevnfm_sandbox.process import Sandbox
from kubevnfm_sandbox.runs import Limits, SandboxState
from needs import cannot_have

CONFINED: Final = "confined"
KERNELS: Final = (CONFINED, "trusted-without-namespaces")
ANY_KERNEL: Final = "any"
"""For what does not depend on the kernel: the first of KERNELS that this machine has, so that the test runs everywhere."""


@dataclass(frozen=True)
class Kernel:
    """One of KERNELS, or ANY_KERNEL."""

    name: str

    def __post_init__(self) -> None:
        """Skip the test if this machine cannot confine, where that is asked for; in CI it fails."""
        if self.name == CONFINED:
            needs_confinement()

    def limits(self, **changes: Any) -> Limits:
        """Return limits for this kernel."""
        if self.name == CONFINED or (self.name == ANY_KERNEL and not refusal()):
            return Limits(**changes)
        return Limits(trust_packages=True, without=frozenset({"namespaces"}), **changes)


def needs_confinement() -> None:
    """Skip the test, loudly, if this machine refuses to confine a process; in CI (``CI`` is set) fail it."""
    reason = refusal()
    if reason:
        cannot_have(f"this machine cannot confine a process: {reason}")


@cache
def refusal() -> str:
    """Return why this machine cannot confine a process; empty if it can."""
    found: list[tuple[SandboxState, str]] = []
    # A thread, because the test's own loop runs.
    thread = threading.Thread(target=lambda: found.append(asyncio.run(Sandbox(Limits()).state())))
    thread.start()
    thread.join()
    return found[0][1]


def sandbox_processes() -> list[int]:
    """Return the sandbox's processes that descend from this test process."""
    parents: dict[int, int] = {}
    ours: list[int] = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            words = (path / "cmdline").read_bytes().split(b"\0")
            parents[int(path.name)] = int((path / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue  # it has ended meanwhile
        if any(word.endswith((b"/launcher.py", b"/runner.py", b"/connector.py")) for word in words):
            ours.append(int(path.name))
    return [pid for pid in ours if os.getpid() in _ancestors(pid, parents)]


def _ancestors(pid: int, parents: dict[int, int]) -> set[int]:
    found: set[int] = set()
    while (pid := parents.get(pid, 0)) and pid not in found:
        found.add(pid)
    return found


def files_in_memory(name: str = "printed") -> list[Path]:
    """Return the open files of this name that this process has in memory: ``printed`` has a copy of what a script prints."""
    found = []
    for path in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # it has been closed meanwhile
            if f"memfd:{name}" in str(path.readlink()):
                found.append(path)
    return found


def has_printed() -> bool:
    """Return whether a script that runs has printed something."""
    return any(path.stat().st_size for path in files_in_memory())


async def until(holds: Callable[[], bool]) -> None:
    """Wait until it holds; at most 30 s."""
    async with asyncio.timeout(300):
        while not holds():  # noqa: ASYNC110 - there is no event for another process's end
            await asyncio.sleep(0.01)
