"""Kernels for tests of the sandbox: this machine's own, and one that refuses a part of the confinement."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import pytest
from kubevnfm_sandbox.process import Limits, Sandbox, SandboxState

CONFINED: Final = "confined"
KERNELS: Final = (CONFINED, "trusted-without-namespaces")


@dataclass(frozen=True)
class Kernel:
    """One of KERNELS."""

    name: str

    def limits(self, **changes: Any) -> Limits:
        """Return limits for this kernel. Skips the test if this machine cannot confine; in CI it fails."""
        if self.name == CONFINED:
            needs_confinement()
            return Limits(**changes)
        return Limits(trust_packages=True, without=frozenset({"namespaces"}), **changes)


def needs_confinement() -> None:
    """Skip the test, loudly, if this machine refuses to confine a process; in CI (``CI`` is set) fail it."""
    reason = _refusal()
    if reason and os.environ.get("CI"):
        pytest.fail(f"this machine cannot confine a process: {reason}")
    if reason:
        pytest.skip(f"NOT TESTED, this machine cannot confine a process: {reason}")


@cache
def _refusal() -> str:
    import asyncio
    import threading

    found: list[tuple[SandboxState, str]] = []
    # A thread, because the test's own loop runs.
    thread = threading.Thread(target=lambda: found.append(asyncio.run(Sandbox(Limits()).state())))
    thread.start()
    thread.join()
    return found[0][1]
