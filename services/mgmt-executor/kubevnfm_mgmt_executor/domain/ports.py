"""What the drivers need of the world: machines over SSH, a journal, pinned host keys, and a place for output."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True)
class Login:
    """How to get into a machine: a password, a private key (OpenSSH or PEM text), or both."""

    username: str
    password: str | None = field(default=None, repr=False)
    private_key: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Address:
    """Which machine: where it listens, and who it is."""

    node: str
    """Its host name, for errors and output."""
    vnf_instance_id: str
    vnfc_id: str
    """Host keys are pinned for it: a rebuilt server has a new one."""
    host: str


Output = Callable[[bytes], None]
"""Takes output as it arrives, standard output and error alike."""


class Machine(Protocol):
    """An open session on a machine. Paths are relative to the login's home.

    Every method raises ConnectionLost when the session breaks.
    """

    async def run(
        self, argv: Sequence[str], *, task: str, timeout_s: float, output: Output | None = None, as_root: bool = False
    ) -> int | None:
        """Run a command; return its exit code, None if a signal ended it.

        Its standard input is empty. It is killed, with all it started, when it runs out of time, when the caller is
        cancelled and when the session breaks. Raises CommandTimedOut.
        """
        ...

    async def upload(self, folder: str, files: Mapping[str, bytes]) -> None:
        """Put files (0600) into a private folder (0700), making both; files that are there already stay.

        Raises UploadDamaged when what lies there afterwards has another SHA-256.
        """
        ...

    async def read(self, path: str, *, limit: int) -> bytes:
        """Return a file's content, at most ``limit`` bytes; empty when there is no such file."""
        ...

    async def remove(self, folder: str) -> None:
        """Delete a folder with all files in it; nothing happens when there is none."""
        ...

    async def close(self) -> None: ...


class Machines(Protocol):
    """Opens sessions."""

    async def reach(self, address: Address, login: Login, *, within_s: float) -> Machine:
        """Return a session of a user who can become root, waiting for the machine to come up.

        Raises NodeUnreachable after ``within_s``; LoginRefused, SudoRefused, HostKeyChanged at once.
        """
        ...


@dataclass(frozen=True)
class TaskKey:
    """Which task: a rebuilt server has a new VNFC id, so its journal starts anew."""

    vnf_instance_id: str
    vnfc_id: str
    node: str
    task: str


@dataclass(frozen=True)
class Claim:
    """In whose name the journal is written."""

    operation_id: str
    message_id: str
    fencing: int


@dataclass(frozen=True)
class Earlier:
    """What the journal knew of a task before this try."""

    state: str
    """running (unknown: the probe decides), done, failed."""
    attempts: int
    facts: Mapping[str, Any]


class Journal(Protocol):
    """The record of what was done on which node (collection ``tasks``). Raises ClaimLost."""

    async def begin(self, key: TaskKey, claim: Claim) -> Earlier | None:
        """Write ``running``; return what was there before."""
        ...

    async def done(self, key: TaskKey, claim: Claim, *, facts: Mapping[str, Any], duration_s: float) -> None:
        """Write ``done``; facts never hold secrets."""
        ...

    async def failed(self, key: TaskKey, claim: Claim, *, error: str, duration_s: float) -> None:
        """Write ``failed``."""
        ...

    async def forget(self, vnf_instance_id: str, *, vnfc_ids: Sequence[str] | None = None) -> None:
        """Delete the instance's records, or those of some of its VNFCs."""
        ...


class HostKeys(Protocol):
    """The keys that machines showed on first contact (collection ``host_keys``)."""

    async def pinned(self, vnf_instance_id: str, vnfc_id: str) -> str | None:
        """Return the key (a line in OpenSSH's form)."""
        ...

    async def pin(self, vnf_instance_id: str, vnfc_id: str, key: str) -> str:
        """Keep the key unless there is one already; return the one that counts."""
        ...

    async def forget(self, vnf_instance_id: str, *, vnfc_ids: Sequence[str] | None = None) -> None:
        """Delete the instance's keys, or those of some of its VNFCs."""
        ...


@dataclass(frozen=True)
class CommandOutput:
    """The output of one command on one machine, masked."""

    vnf_instance_id: str
    operation_id: str
    node: str
    task: str
    started_at: str
    duration_s: float
    exit_code: int | None
    text: str


class OutputLog(Protocol):
    """Where operators read what the machines said (collection ``node_logs``)."""

    async def keep(self, output: CommandOutput) -> None: ...

    async def forget(self, vnf_instance_id: str) -> None: ...
