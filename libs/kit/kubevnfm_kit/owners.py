"""Names of the owners of leases that show whether the owner's process has ended.

A process that was killed does not release its leases. The next one need not wait for their ends, if it knows that the owner has
ended: because it is the only process of its database, or because the system of the machine on which both run says so.
"""

from __future__ import annotations

import os
import platform
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from kubevnfm_kit.clock import boot_id
from kubevnfm_kit.ids import new_id

_PROC: Final = Path("/proc")
_ENDED: Final = ("Z", "X")
"""The states of a process that has ended, and whose parent has not asked yet how."""
_ID: Final = "[0-9a-f]{64}"
_UID: Final = "[0-9a-f]{8}(?:[-_]?[0-9a-f]{4}){3}[-_]?[0-9a-f]{12}"
_OF_POD: Final = re.compile(f"/pods/({_UID})/containers/([^/ ]+)/")
_OF_CONTAINER: Final = re.compile(f"/({_ID})/(?:[^/ ]+/)*(?:hosts|hostname|resolv.conf) ")
"""A file that the engine mounts from a container's own folder, in a line of mountinfo: Docker, Podman, nerdctl."""


@dataclass(frozen=True)
class ProcessName:
    """The facts that no other process shares, at any time and on any machine."""

    host: str
    container: str
    """The same after it is started again, and that of no other container; empty if it is not known.

    The host name is no such fact: the pods of one node share it with ``hostNetwork``, replicas with ``hostname``.
    """
    boot: str
    """The boot of the machine's system; the containers of a machine have it in common."""
    namespace: str
    """The one of its process ids: each start of a container has its own."""
    pid: int
    started: str
    """In ticks since the boot: process ids are used again."""

    @classmethod
    def of_this(cls) -> Self:
        """Return the name of the running process."""
        pid = os.getpid()
        return cls(platform.node(), _container(), boot_id(), _namespace(), pid, _started(pid))

    @classmethod
    def read(cls, text: str) -> Self | None:
        """Return the name that `__str__` has written; None if the text is none, as in leases of earlier releases."""
        parts = text.split("|")
        if len(parts) != 6 or not parts[4].isdecimal():
            return None
        return cls(parts[0], parts[1], parts[2], parts[3], int(parts[4]), parts[5])

    def __str__(self) -> str:
        host = self.host.replace("|", "")
        return "|".join([host, self.container, self.boot, self.namespace, str(self.pid), self.started])

    def has_seen_end_of(self, other: ProcessName) -> bool:
        """Return whether this process can know, and knows, that the other one has ended."""
        # Virtual machines that were copied while they ran have their boot in common, but hardly their host name.
        if not other.boot or not other.namespace or (other.boot, other.host) != (self.boot, self.host):
            return False
        if other.namespace == self.namespace:
            return _has_ended(other)
        # All processes of a container have ended before it is started again.
        return bool(other.container) and (other.container, other.pid) == (self.container, self.pid)


class Owners:
    """Makes the names of the owners of one process's leases, and judges those of others."""

    def __init__(self, *, is_alone: bool = False, this: ProcessName | None = None) -> None:
        """``is_alone``: no other process uses the database, so all other owners have ended."""
        self.is_alone, self._this = is_alone, this or ProcessName.of_this()

    def new(self) -> str:
        """Return the name of another owner in this process."""
        return f"{new_id()}@{self._this}"

    def has_ended(self, owner: str) -> bool:
        """Return whether the owner of a lease is known to have ended."""
        process = owner.partition("@")[2]
        if process == str(self._this):
            return False
        if self.is_alone:
            return True
        name = ProcessName.read(process)
        return name is not None and self._this.has_seen_end_of(name)


def _namespace() -> str:
    try:
        if (_PROC / "self").readlink() != Path(str(os.getpid())):  # /proc shows the processes of another namespace
            return ""
        return str((_PROC / "self" / "ns" / "pid").readlink())
    except OSError:
        return ""


def _container() -> str:
    try:
        return container_in((_PROC / "self" / "mountinfo").read_text(errors="replace"))
    except OSError:
        return ""


def container_in(mountinfo: str) -> str:
    """Return what names this container in the paths of its mounts: the pod and the container in it, or the engine's id of it."""
    of_pod = {"/".join(found) for found in _OF_POD.findall(mountinfo)}
    # The folder of an engine may be that of a pod's sandbox, which all containers of the pod share.
    names = of_pod or (set() if "/pods/" in mountinfo else set(_OF_CONTAINER.findall(mountinfo)))
    # A container that sees the folders of others, as an agent of the node does, has several.
    return names.pop() if len(names) == 1 else ""


def _started(pid: int) -> str:
    return _facts(pid)[1]


def _facts(pid: int) -> tuple[str, str]:
    """Return the state of a process and when it was started; empty texts if the system does not show them."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return "", ""
    # The name of the program, in parentheses, may contain anything.
    fields = stat.rpartition(")")[2].split()
    return fields[0], fields[19]


def _has_ended(process: ProcessName) -> bool:
    try:
        os.kill(process.pid, 0)
    except ProcessLookupError:
        return True
    except OSError:  # it belongs to another user
        return False
    state, started = _facts(process.pid)
    return state in _ENDED or (bool(started and process.started) and started != process.started)
