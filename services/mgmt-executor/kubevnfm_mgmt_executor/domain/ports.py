"""The ports of the drivers: machines over SSH, a journal, pinned host keys, and a log of output."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True)
class Login:
    """How to log in to a machine: with a password, or with a private key (OpenSSH or PEM text without passphrase)."""

    username: str
    password: str | None = field(default=None, repr=False)
    private_key: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Bastion:
    """A host through which a machine is reached."""

    host: str
    port: int
    login: Login


@dataclass(frozen=True)
class Address:
    """A machine and the address at which its sshd listens."""

    node: str
    """Its host name, for errors and output."""
    vnf_instance_id: str
    vnfc_id: str
    """Host keys are pinned by this id: a rebuilt server has a new id, and may have a new key."""
    host: str
    port: int | None = None
    """None: the port of the service's settings."""
    bastion: Bastion | None = None


Output = Callable[[bytes], None]
"""Receives output as it arrives, standard output and standard error alike."""


class Machine(Protocol):
    """An open session on a machine. Paths are relative to the login's home.

    Every method raises ConnectionLost when the session breaks.
    """

    async def run(
        self, argv: Sequence[str], *, task: str, timeout_s: float, output: Output | None = None, as_root: bool = False
    ) -> int | None:
        """Run a command; return its exit code, None if a signal ended it.

        Its standard input is empty. When its time is over, when the caller is cancelled, and when the session breaks,
        it gets TERM with all processes that it started, and soon after that KILL. Raises CommandTimedOut.
        """
        ...

    async def upload(self, folder: str, files: Mapping[str, bytes]) -> None:
        """Write files (0600) into a private folder (0700) and create the folder; other files in it stay.

        Raises UploadDamaged when a file then has another SHA-256.
        """
        ...

    async def read(self, path: str, *, limit: int) -> bytes:
        """Return a file's content, at most ``limit`` bytes; empty when there is no such file."""
        ...

    async def remove(self, folder: str) -> None:
        """Delete a folder with all files in it; succeed also when it does not exist."""
        ...

    async def close(self) -> None: ...


Waits = Callable[[str], Awaitable[None]]
"""Publishes why a machine is still waited for."""


class Machines(Protocol):
    """Opens sessions."""

    async def reach(self, address: Address, login: Login, *, within_s: float, waits: Waits | None = None) -> Machine:
        """Return a session of a user that can become root; wait for the machine to boot.

        ``waits`` gets the reason, each time when it is another one, once the wait is longer than a boot.
        Raises NodeUnreachable after ``within_s``; LoginRefused, SudoRefused, SudoMissing, HostKeyChanged,
        ForwardingRefused at once.
        """
        ...


@dataclass(frozen=True)
class TaskKey:
    """The identity of a task. A rebuilt server has a new VNFC id, and so an empty journal."""

    vnf_instance_id: str
    vnfc_id: str
    node: str
    task: str


@dataclass(frozen=True)
class Claim:
    """The worker's claim on the command, under which the journal is written."""

    operation_id: str
    message_id: str
    fencing: int


@dataclass(frozen=True)
class Earlier:
    """The journal's record of a task before this try."""

    state: str
    """running (unknown: the task must ask its machine), done, failed."""
    attempts: int
    facts: Mapping[str, object]


class Journal(Protocol):
    """The record of the tasks on each node (collection ``tasks``). Raises ClaimLost."""

    async def last(self, key: TaskKey) -> Earlier | None:
        """Return the record of the last try; nothing is written."""
        ...

    async def begin(self, key: TaskKey, claim: Claim) -> Earlier | None:
        """Write ``running``; return the record before."""
        ...

    async def done(self, key: TaskKey, claim: Claim, *, facts: Mapping[str, object], duration_s: float) -> None:
        """Write ``done``; facts never hold secrets."""
        ...

    async def failed(self, key: TaskKey, claim: Claim, *, error: str, duration_s: float) -> None:
        """Write ``failed``."""
        ...

    async def forget(self, vnf_instance_id: str, *, vnfc_ids: Sequence[str] | None = None) -> None:
        """Delete the instance's records, or those of some of its VNFCs."""
        ...


class HostKeys(Protocol):
    """The host keys that machines and bastions showed on first contact (collection ``host_keys``)."""

    async def pinned(self, vnf_instance_id: str, vnfc_id: str) -> str | None:
        """Return the key (a line in OpenSSH's form)."""
        ...

    async def pin(self, vnf_instance_id: str, vnfc_id: str, key: str) -> str:
        """Store the key unless one is stored already; return the key that is stored."""
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
    """The output of machines, which operators can read (collection ``node_logs``)."""

    async def keep(self, output: CommandOutput) -> None: ...

    async def forget(self, vnf_instance_id: str) -> None: ...
