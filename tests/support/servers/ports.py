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
_TAKEN: Final[list[tuple[int, socket.socket]]] = []
"""Descriptor of the lock and socket of each port: both are held until this process ends, for programs that it restarts."""


class PortTaken(AssertionError):
    """A server could not listen, because a program outside of the tests took its port first."""


def free_port() -> int:
    """Return a TCP port on 127.0.0.1 that is free, and that no other process of the tests gets.

    A socket that does not listen keeps the port until this process ends. Servers that set SO_REUSEADDR, as all servers of the
    tests do, can listen beside it; the kernel gives the port to no other program.
    """
    folder = Path(tempfile.gettempdir()) / f"kubevnfm-test-ports-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    # To shuffle all of them takes 5 ms.
    for port in (random.choice(_PORTS) for _ in _PORTS):
        lock = os.open(folder / str(port), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if _is_ours(lock) and (holder := _hold(port)) is not None:
            _TAKEN.append((lock, holder))
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


def _hold(port: int) -> socket.socket | None:
    """Return a socket that keeps the port; None if another program has it."""
    holder = socket.socket()
    try:
        holder.bind(("127.0.0.1", port))
    except OSError:
        holder.close()
        return None
    # Only now: with it, the bind would succeed beside another holder.
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return holder
