"""The program that connects for a confined process, to granted addresses only.

The confined process has no network. Its seccomp filter stops it at ``connect`` and hands the call to this process, which
stays in the host's network. It reads the address once, compares it with the granted ones, connects a socket of its own, and
puts this socket in place of the caller's. The kernel does not read the caller's memory again, so another thread of the caller
cannot exchange the address after the check. Options that the caller sets on its socket before it connects are lost, except
that it does not block.

Started by ``launcher`` as ``python -I -S connector.py <JSON>``: ``channel`` (a socket that delivers the listener of the
filter), ``guard`` (its child), ``reach`` (pairs of address and port; port 0 stands for any). It ends with the guard, with
the same exit status. Source: seccomp_unotify(2).
"""

# ruff: noqa: PTH123
from __future__ import annotations

import errno
import fcntl
import ipaddress
import json
import os
import select
import socket
import struct
import sys
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

_CALL = struct.Struct("=QIIiIQ6Q")  # struct seccomp_notif
_REPLY = struct.Struct("=QqiI")  # struct seccomp_notif_resp
_ADD = struct.Struct("=QIIII")  # struct seccomp_notif_addfd
_READ_WRITE, _WRITE = 3, 1
_ADD_AT_NUMBER = 1
_ADDRESS_BYTES = 128


def _request(direction: int, number: int, size: int) -> int:
    """Return the number of an ioctl of seccomp."""
    return direction << 30 | size << 16 | ord("!") << 8 | number


_RECEIVE = _request(_READ_WRITE, 0, _CALL.size)
_ANSWER = _request(_READ_WRITE, 1, _REPLY.size)
_STILL_WAITS = _request(_WRITE, 2, 8)
_ADD_SOCKET = _request(_WRITE, 3, _ADD.size)


class Connector:
    """Answers the calls of one filter."""

    def __init__(self, listener: int, reach: list[tuple[str, int]]) -> None:
        self._listener = listener
        self._reach = {(_plain(address), port) for address, port in reach}

    def answer_next(self) -> None:
        """Take the next call, and answer it in a thread, because a blocking connect may last minutes."""
        call = bytearray(_CALL.size)
        try:
            fcntl.ioctl(self._listener, _RECEIVE, call)
        except OSError:
            return  # the caller was killed before its call was taken
        threading.Thread(target=self._handle, args=(call,), daemon=True).start()

    def _handle(self, call: bytearray) -> None:
        fields = _CALL.unpack(call)
        number, pid, (fd, address, size) = fields[0], fields[1], fields[6:9]
        try:
            code = self._connect(number, pid, fd, address, min(size, _ADDRESS_BYTES))
        except OSError as error:
            code = error.errno or errno.EACCES
        try:
            fcntl.ioctl(self._listener, _ANSWER, bytearray(_REPLY.pack(number, 0, -code, 0)))
        except OSError:
            return  # the caller was killed meanwhile

    def _connect(self, number: int, pid: int, fd: int, address: int, size: int) -> int:
        """Connect a socket in place of the caller's; return 0 or EINPROGRESS. Raises OSError."""
        with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
            # The number of a process that ended may belong to another one by now.
            fcntl.ioctl(self._listener, _STILL_WAITS, struct.pack("=Q", number))
            raw = os.pread(memory.fileno(), size, address)
        host, port = _parsed(raw)
        if not {(host, port), (host, 0)} & self._reach:
            raise PermissionError(errno.EACCES, "address not granted")
        family = socket.AF_INET if host.version == 4 else socket.AF_INET6
        with socket.socket(family, socket.SOCK_STREAM) as ours:
            ours.setblocking(not _is_nonblocking(pid, fd))
            code = ours.connect_ex((str(host), port))
            if code not in (0, errno.EINPROGRESS):
                raise OSError(code, os.strerror(code))
            at = _ADD.pack(number, _ADD_AT_NUMBER, ours.fileno(), fd, os.O_CLOEXEC)
            fcntl.ioctl(self._listener, _ADD_SOCKET, at)
        return code


def _is_nonblocking(pid: int, fd: int) -> bool:
    """Return whether the descriptor of the process does not block. Raises OSError."""
    with open(f"/proc/{pid}/fdinfo/{fd}") as facts:
        flags = next(int(line.split()[1], 8) for line in facts if line.startswith("flags:"))
    return bool(flags & os.O_NONBLOCK)


def _plain(address: str | bytes) -> Any:
    """Return the address; an IPv4 address inside IPv6 as IPv4."""
    found = ipaddress.ip_address(address)
    return getattr(found, "ipv4_mapped", None) or found


def _parsed(raw: bytes) -> tuple[Any, int]:
    """Return address and port of a ``struct sockaddr``. Raises OSError for another family, AF_UNSPEC among them."""
    family = int.from_bytes(raw[:2], sys.byteorder)
    port = int.from_bytes(raw[2:4], "big")
    if family == socket.AF_INET and len(raw) >= 8:
        return _plain(raw[4:8]), port
    if family == socket.AF_INET6 and len(raw) >= 24:
        return _plain(raw[8:24]), port
    raise OSError(errno.EAFNOSUPPORT, os.strerror(errno.EAFNOSUPPORT))


def main() -> NoReturn:
    """Answer calls until the guard ends; end with its status."""
    given = json.loads(sys.argv[1])
    ended = os.pidfd_open(given["guard"])
    poll = select.poll()
    poll.register(ended, select.POLLIN)
    with socket.socket(fileno=given["channel"]) as channel:
        poll.register(channel, select.POLLIN)
        ready = dict(poll.poll())
        fds = socket.recv_fds(channel, 1, 1)[1] if channel.fileno() in ready else []
        poll.unregister(channel)
    connector = Connector(fds[0], given["reach"]) if fds else None
    if fds:
        poll.register(fds[0], select.POLLIN)
    while connector is not None and ended not in (ready := dict(poll.poll())):
        if ready[fds[0]] & select.POLLIN:
            connector.answer_next()
        else:
            poll.unregister(fds[0])  # the last process with the filter has ended, the guard will
    status = os.waitstatus_to_exitcode(os.waitpid(given["guard"], 0)[1])
    os._exit(status if status >= 0 else 128 - status)


if __name__ == "__main__":
    main()
