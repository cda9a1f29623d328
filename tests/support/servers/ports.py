"""Free ports on loopback."""

from __future__ import annotations

import fcntl
import os
import random
import socket
import tempfile
from pathlib import Path
from typing import Final

_PORTS: Final = range(10_000, 20_000)
"""Below the ports of the lab's machines, and below the range from which the kernel takes a port for `bind` to 0 (ip_local_port_range begins at 32768): a program
that is slow to start would find its port taken by any test's server, and the test would talk to that server."""
_TAKEN: Final[list[int]] = []
"""Descriptors of the locks: they are held until this process ends, for programs that it restarts."""


def free_port() -> int:
    """Return a TCP port on 127.0.0.1 that is free, and that no other process of the tests gets."""
    folder = Path(tempfile.gettempdir()) / f"kubevnfm-test-ports-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    for port in random.sample(_PORTS, len(_PORTS)):
        lock = os.open(folder / str(port), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if _is_ours(lock) and _is_free(port):
            _TAKEN.append(lock)
            return port
        os.close(lock)
    raise AssertionError("no free port")


def listens(port: int) -> bool:
    """Return whether a server accepts connections on a TCP port of 127.0.0.1."""
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _is_ours(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
