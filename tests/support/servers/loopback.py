"""Addresses of this machine for the clusters of tests."""

from __future__ import annotations

import itertools
import os

_numbers = itertools.count()


def next_address() -> str:
    """Return an address of 127.0.0.0/8 that no test of this process has, and none of a process beside it.

    A process with more than 254 such tests continues in the next network.
    """
    process, number = os.getpid(), next(_numbers)
    return f"127.{110 + process % 100}.{(process // 100 + number // 254) % 256}.{number % 254 + 1}"
