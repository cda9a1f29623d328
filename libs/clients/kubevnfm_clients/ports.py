"""The ports by which services call each other over internal HTTP; `http` has the clients behind them.

Internal APIs listen beside the public one of their service, under ``/internal/v1``, and require
``Authorization: Bearer <internal token>`` (the same random token in every service's settings). Secrets cross them
sealed with the common key ring.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from kubevnfm_events import PackageRef, VimConnection
from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_secrets import Secret

from kubevnfm_clients.awaited import AwaitedCallback
from kubevnfm_clients.cloud_identity import CloudIdentity
from kubevnfm_clients.vim_views import VimView


class Packages(Protocol):
    """Served by lcm-api: ``GET /internal/v1/packages/{id}/archive`` and ``.../files/{path}``."""

    async def folder(self, package: PackageRef) -> Path:
        """Return a local, read-only folder with the package's files, without its VM images.

        Cached by checksum and fetched once for concurrent callers. Raises NotFound, OutsideUnavailable.
        """
        ...

    def stream(self, package: PackageRef, path: str) -> AsyncIterator[bytes]:
        """Yield one file's bytes in chunks: for VM images. Raises NotFound, OutsideUnavailable."""
        ...


class VimDirectory(Protocol):
    """Served by vim-registry: ``GET /internal/v1/vims/{id}/connection``."""

    async def connection(self, vim: VimConnection) -> VimConnection:
        """Return ``vim`` with endpoint and access data: unchanged if it holds them, otherwise from the registry.

        Cached for a few seconds. Raises NotFound (no such VIM), OutsideUnavailable.
        """
        ...

    def forget(self, vim: VimConnection) -> None:
        """Have the next call ask the registry: the VIM does not accept these access data."""
        ...


class CloudIdentities(Protocol):
    """Served by vim-registry: ``/internal/v1/vims/{id}/cloud-identities/{instance}``."""

    async def give(self, vim_id: str, vnf_instance_id: str, *, present: str | None) -> CloudIdentity:
        """Return a login to the OpenStack of a VIM for the workload cluster of an instance.

        The VIM's own application credential; otherwise one that is made for the instance, in the place of an earlier one. ``present``:
        the id of the one that the cluster has, which is kept if Keystone still has it.

        Raises: NotFound, Unprocessable (no OpenStack), OutsideUnavailable; what vim-registry says if the VIM refuses its access data.
        """
        ...

    async def take_back(self, vim_id: str, vnf_instance_id: str) -> int:
        """Delete the application credentials that were made for an instance; return how many there were. Raises as ``give``."""
        ...


class AwaitedCallbacks(Protocol):
    """Served by lcm-api: ``GET /internal/v1/awaited-callbacks?vnfInstanceId=&operation=``."""

    async def awaited(self, vnf_instance_id: str, operation_id: str) -> AwaitedCallback | None:
        """Return the call-back about a workload cluster that an operation or a rotation of the VNF instance awaits now.

        ``operation_id``: the one that the call-back names; "" or any other: the one that runs. None: nothing is awaited, or there is
        no such instance. Raises OutsideUnavailable.
        """
        ...


class InstanceOperations(Protocol):
    """Served by lcm-api: ``GET /internal/v1/instances/{id}``."""

    async def running(self, vnf_instance_id: str) -> str | None:
        """Return the id of the operation that runs on the VNF instance; None if none does, or there is no such instance.

        Raises OutsideUnavailable.
        """
        ...


class VimUsers(Protocol):
    """Served by lcm-api: ``GET /internal/v1/vims/{id}/users``."""

    async def users(self, vim_id: str) -> Sequence[str]:
        """Return the ids of the VNF instances whose vimConnectionInfo names the VIM and that have resources there."""
        ...


@dataclass(frozen=True)
class RevisedVim:
    """A VIM's record, secrets masked, with its revision."""

    id: str
    revision: int
    record: JsonMapping


class Vims(Protocol):
    """Served by vim-registry for the gateway: ``/internal/v1/vims``. Bodies are Tacker's VIM records (api.md 8)."""

    async def create(self, vim: JsonMapping) -> JsonMapping:
        """Verify and register; return the record, secrets masked. Raises InvalidInput, Conflict, OutsideUnavailable."""
        ...

    async def list(self, filters: Mapping[str, Sequence[str]]) -> Sequence[JsonMapping]:
        """Return the records that equal one of the values for each name (id, name, type, is_default, status)."""
        ...

    async def get(self, vim_id: str) -> JsonMapping:
        """Return the record, secrets masked. Raises NotFound."""
        ...

    async def revised(self, vim_id: str) -> RevisedVim:
        """Return the record with its revision. Raises NotFound."""
        ...

    async def update(self, vim_id: str, changes: JsonMapping, *, if_revision: int | None = None) -> JsonMapping:
        """Change name, description, is_default, vim_project, auth_cred.

        ``if_revision``: None: whatever it is. Raises NotFound, InvalidInput, Conflict, PreconditionFailed (another revision).
        """
        ...

    async def delete(self, vim_id: str, *, if_revision: int | None = None) -> None:
        """Remove; ``if_revision`` as above. Raises NotFound, Conflict while instances use it, PreconditionFailed."""
        ...

    async def default(self) -> JsonMapping | None:
        """Return the default VIM's record, or None."""
        ...

    async def views(
        self, filters: Mapping[str, str], *, limit: int, after: tuple[str, str] | None = None
    ) -> tuple[Sequence[VimView], tuple[str, str] | None]:
        """Return a page by name and id, and where the next one begins; no VIM is called.

        ``filters``: ``type``, ``status``, ``name`` (its beginning), ``id`` (its beginning).
        """
        ...

    async def view(self, vim_id: str) -> VimView:
        """Return one with its capacity, which is read from the VIM if what is known is old. Raises NotFound."""
        ...

    async def forms(self) -> JsonMapping:
        """Return JSON Schemas of a VIM: ``new`` of a registration, ``change`` of a change by the type of the VIM."""
        ...


@dataclass(frozen=True)
class LogPart:
    """A part of the output of machines."""

    text: bytes
    place: JsonMapping
    """Where the next part begins."""


class NodeLogs(Protocol):
    """Served by mgmt-executor: ``/internal/v1/operations/{id}/log``."""

    def log(self, operation_id: str, *, node: str | None = None, task: str | None = None) -> AsyncIterator[bytes]:
        """Yield the output that the machines gave during an operation, as text, secrets masked."""
        ...

    async def following(
        self, operation_id: str, place: JsonMapping, wait_s: float, *, node: str | None = None, task: str | None = None
    ) -> LogPart:
        """Return the output after a place, {} for all; waits for some if there is none yet.

        The text is empty if none has come in this time. Raises OutsideUnavailable.
        """
        ...


class CredentialsStore(Protocol):
    """Served by credentials-receiver for vim-registry: ``GET /internal/v1/credentials/{id}``."""

    async def kubeconfig(self, credentials_id: str) -> Secret:
        """Return the kubeconfig that the cluster sent. Raises NotFound, OutsideUnavailable."""
        ...
