"""What the handlers need of the world."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from kubevnfm_csar import BaseHot, Flavour
from kubevnfm_events import PackageRef, VimConnection
from kubevnfm_events.infra import UserData

from kubevnfm_infra_openstack.domain.quota import Flavor
from kubevnfm_infra_openstack.domain.stack import (
    HeatResource,
    Stack,
    StackChange,
    StackContents,
    StackDefinition,
    StackOrder,
    StackState,
)


class StackPort(Protocol):
    """The stacks of one tenant in one VIM. Every method may raise VimUnavailable and VimRefused."""

    async def find(self, name: str, *, tag: str) -> Stack | None:
        """Return the living stack of this name. Raises StackNameTaken when it does not carry the tag."""
        ...

    async def create(self, order: StackOrder) -> Stack:
        """Start making a stack. Raises StackRefused, or StackNameTaken when somebody was faster."""
        ...

    async def definition(self, stack: Stack) -> StackDefinition:
        """Return what the stack was given."""
        ...

    async def change(self, stack: Stack, change: StackChange) -> Stack:
        """Start changing it; return it as it is then. Raises StackUpdateRefused."""
        ...

    async def mark_unhealthy(self, resource: HeatResource, reason: str) -> None:
        """Have the next change make the resource anew. Raises ResourceBusy; one that is gone is fine."""
        ...

    async def stop_change(self, stack: Stack) -> None:
        """Have Heat begin nothing more of what it does to the stack; one that is settled already is fine."""
        ...

    async def delete(self, stack: Stack) -> None:
        """Start deleting it; one that is gone or going already is fine."""
        ...

    async def settle(self, stack: Stack, *, until: frozenset[StackState], within_s: float) -> Stack | None:
        """Wait until the stack is in one of the states; return it as it is then, or as it is after ``within_s``.

        None: it is gone.
        """
        ...

    async def resources(self, stack: Stack) -> Sequence[HeatResource]:
        """Return its resources through all nested stacks."""
        ...

    async def contents(self, stack: Stack) -> StackContents:
        """Return its resources with what Nova and Neutron know of them."""
        ...


class ImagePort(Protocol):
    """Glance images of one tenant that carry an instance's tag."""

    async def ensure(
        self,
        name: str,
        *,
        tag: str,
        disk_format: str,
        container_format: str,
        content: Callable[[], AsyncIterator[bytes]],
    ) -> str:
        """Return the id of the image of this name and tag, uploading it first if it is not there in full.

        Raises what ``content`` raises before anything was made.
        """
        ...

    async def tagged(self, tag: str) -> Mapping[str, str]:
        """Return the ids, by name, of the complete images that carry the tag."""
        ...

    async def delete_tagged(self, tag: str) -> int:
        """Delete every image that carries the tag; return how many there were."""
        ...


class CapacityPort(Protocol):
    """What a tenant may still use."""

    async def flavors(self) -> Mapping[str, Flavor]:
        """Return Nova's flavors, by id and by name."""
        ...

    async def free(self, resources: Sequence[str]) -> Mapping[str, int]:
        """Return what is free of those resources (names of ``quota.Demand``) that the VIM limits and tells."""
        ...


class ServerPort(Protocol):
    """Nova servers of one tenant."""

    async def statuses(self, ids: Sequence[str]) -> Mapping[str, str]:
        """Return Nova's status (``ACTIVE``, ``SHUTOFF`` ...) by id, of those that exist."""
        ...

    async def start(self, id: str) -> None:
        """Begin to start it; one that is in between states is left alone. Raises ServerNotOperable."""
        ...

    async def stop(self, id: str) -> None:
        """Begin to stop it; one that is in between states is left alone. Raises ServerNotOperable."""
        ...


@dataclass(frozen=True)
class Cloud:
    """One tenant of one VIM."""

    stacks: StackPort
    images: ImagePort
    capacity: CapacityPort
    servers: ServerPort


class Clouds(Protocol):
    """Every VIM, by its connection data."""

    def cloud(self, vim: VimConnection) -> Cloud:
        """Return the tenant that the access data lead to. Raises VimAccessDataMissing."""
        ...


@dataclass(frozen=True)
class PackageFlavour:
    """What a package says about one deployment flavour. Shared between callers: nobody changes it."""

    folder: Path
    """The package's files without its images, read-only."""
    hot: BaseHot | None
    """None: the package has no Heat template for the flavour; its topology is made into one."""
    vnfd: Flavour
    service_template: Mapping[str, Any]
    """The flavour's service template as plain data."""


class PackageFlavours(Protocol):
    """VNF packages, as far as a stack needs them."""

    async def flavour(self, package: PackageRef, flavour_id: str) -> PackageFlavour:
        """Return what the package says about the flavour.

        Raises UnknownFlavour, PackageRefused, NotFound, OutsideUnavailable.
        """
        ...

    def stream(self, package: PackageRef, path: str) -> AsyncIterator[bytes]:
        """Yield one file's bytes. Raises NotFound, OutsideUnavailable."""
        ...


@dataclass(frozen=True)
class UserDataInput:
    """What LCM operation user data is given, in SOL003 v3 shape (maps), values in clear."""

    api_version: str
    request: Mapping[str, Any]
    instance: Mapping[str, Any]
    grant_request: Mapping[str, Any]
    grant: Mapping[str, Any]
    """With the images that were made from the package among its ``vimAssets``."""
    service_template: Mapping[str, Any]
    """v1's ``vnfd_dict``: granted flavors and the images' Glance ids in place of the VNFD's names."""
    image_by_vdu: Mapping[str, str]
    """Glance id by VDU: v1's ``grant_info``."""
    secrets: frozenset[str] = frozenset()
    """Values that must not show in an error."""


@dataclass(frozen=True)
class HeatInput:
    """What Heat is to be given for a VNF."""

    parameters: Mapping[str, Any]
    template: str | Mapping[str, Any]
    """The top HOT: text as the package or its user data has it, or what was made of it."""
    files: Mapping[str, str]
    """Text of the nested templates by file name."""


@dataclass(frozen=True)
class HeatPatch:
    """What a user data class answers for an operation on a stack that exists."""

    parameters: Mapping[str, Any] = field(default_factory=dict)
    """A merge patch (RFC 7396) over the stack's."""
    template: str | None = None
    """HOT text, a merge patch over the stack's."""
    files: Mapping[str, str] = field(default_factory=dict)
    is_whole: bool = False
    """The class answers everything; nothing of before stays (``existing: False``)."""


class UserDataPort(Protocol):
    """Runs foreign code apart from the service."""

    async def instantiate(self, user_data: UserData, folder: Path, hot: BaseHot, given: UserDataInput) -> HeatInput:
        """Call the class's ``instantiate``; templates that it does not answer are the package's.

        Raises UserDataFailed, UserDataTimedOut, and Unprocessable when the package has no such file.
        """
        ...

    async def change(
        self, user_data: UserData, method: str, folder: Path, hot: BaseHot, given: UserDataInput
    ) -> HeatPatch | None:
        """Call the class's method of that name; None when it has none, as v1 classes have not.

        Raises as ``instantiate``.
        """
        ...
