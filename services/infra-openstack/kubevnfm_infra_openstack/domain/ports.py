"""The interfaces that the handlers need: stacks, images, quotas and servers of a tenant, packages, user data."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

from kubevnfm_csar.hot import BaseHot
from kubevnfm_csar.vnfd.model import Flavour
from kubevnfm_events import PackageRef, VimConnection
from kubevnfm_events.stacks import UserData

from kubevnfm_infra_openstack.domain.asked_ports import NetworkView
from kubevnfm_infra_openstack.domain.hot import Parameters, Template
from kubevnfm_infra_openstack.domain.kuryr import KuryrPort
from kubevnfm_infra_openstack.domain.quota import Flavor
from kubevnfm_infra_openstack.domain.request import SolObject
from kubevnfm_infra_openstack.domain.snapshot_ports import SnapshotPort
from kubevnfm_infra_openstack.domain.stack import (
    HeatResource,
    Stack,
    StackChange,
    StackContents,
    StackDefinition,
    StackNews,
    StackOrder,
    StackState,
)

POLL_PAUSES_S: Final = (0.0, 0.05, 0.1, 0.2, 0.5, 1.0)
"""Pauses between looks at what the VIM is changing; after the last one a handler puts its command back."""


class StackPort(Protocol):
    """The stacks of one tenant in one VIM. Every method may raise VimUnavailable and VimRefused."""

    async def find(self, name: str, *, tag: str, is_ending_too: bool = False) -> Stack | None:
        """Return the stack of this name unless it is deleted. Raises StackNameTaken if it does not carry the tag.

        ``is_ending_too``: also one that is GONE and still listed: its deletion may fail yet.
        """
        ...

    async def all(self) -> Mapping[str, Stack]:
        """Return all stacks of the tenant by id, by one call. Deleted and nested stacks are left out."""
        ...

    async def by_id(self, ids: Sequence[str]) -> Mapping[str, Stack]:
        """Return the stacks with these ids that exist, by id."""
        ...

    async def create(self, order: StackOrder) -> Stack:
        """Start to create a stack. Raises StackRefused, and StackNameTaken if the name is in use."""
        ...

    async def check(self, name: str, definition: StackDefinition) -> None:
        """Have Heat validate what a stack of this name is to be, without making anything. Raises StackRefused."""
        ...

    async def definition(self, stack: Stack) -> StackDefinition:
        """Return the stack's template, parameters and files."""
        ...

    async def change(self, stack: Stack, change: StackChange) -> Stack:
        """Start to change the stack; return its state after that. Raises StackUpdateRefused."""
        ...

    async def mark_unhealthy(self, resource: HeatResource, reason: str) -> None:
        """Have the next change replace the resource. A missing resource is no error. Raises ResourceBusy."""
        ...

    async def stop_change(self, stack: Stack) -> None:
        """Have Heat start no further resource of its present work. A stack without work in progress is no error."""
        ...

    async def delete(self, stack: Stack) -> None:
        """Start to delete the stack. A missing stack, or one that is being deleted, is no error."""
        ...

    async def settle(self, stack: Stack, *, until: frozenset[StackState], within_s: float) -> Stack | None:
        """Wait until the stack is in one of the states, at most ``within_s``; return it as last seen.

        Returns None if the stack no longer exists.
        """
        ...

    async def resources(self, stack: Stack) -> Sequence[HeatResource]:
        """Return the resources of the stack and of all nested stacks."""
        ...

    async def news(self, stack: Stack) -> StackNews:
        """Return what Heat reports about its present work on the stack."""
        ...

    async def contents(self, stack: Stack, shown: Sequence[HeatResource] = ()) -> StackContents:
        """Return the same resources with their details from Nova and Neutron.

        ``shown``: servers and volumes that were seen earlier; those that exist without being listed are ``replaced``.
        """
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
        """Return the id of the image with this name and tag; it is uploaded first if it is missing or incomplete.

        Raises what ``content`` raises, before any image is created.
        """
        ...

    async def tagged(self, tag: str) -> Mapping[str, str]:
        """Return the ids, by name, of the complete images that carry the tag."""
        ...

    async def delete_tagged(self, tag: str) -> int:
        """Delete every image that carries the tag; return their number."""
        ...


class CapacityPort(Protocol):
    """Flavors, zones and free quotas of one tenant."""

    async def flavors(self) -> Mapping[str, Flavor]:
        """Return Nova's flavors, by id and by name."""
        ...

    async def zones(self) -> Sequence[str]:
        """Return Nova's availability zones that are available; none if the tenant may not see them."""
        ...

    async def free(self, resources: Sequence[str]) -> Mapping[str, int]:
        """Return the free amount of those resources (names of ``quota.Demand``) whose limit the VIM shows."""
        ...


class ServerPort(Protocol):
    """Nova servers of one tenant."""

    async def statuses(self, ids: Sequence[str]) -> Mapping[str, str]:
        """Return Nova's status (``ACTIVE``, ``SHUTOFF`` ...) by id; missing servers are left out."""
        ...

    async def all_statuses(self) -> Mapping[str, str]:
        """Return ERROR or an empty text for each server of the tenant, by id: a cheap list for many servers."""
        ...

    async def start(self, id: str) -> None:
        """Begin to start the server, unless Nova is working on it already. Raises ServerNotOperable."""
        ...

    async def stop(self, id: str) -> None:
        """Begin to stop the server, unless Nova is working on it already. Raises ServerNotOperable."""
        ...

    async def delete(self, id: str) -> None:
        """Begin to delete the server. A missing server is no error. Raises ServerNotOperable."""
        ...

    async def delete_finally(self, id: str) -> None:
        """Delete a server in status SOFT_DELETED, which some clouds keep for a while. Raises ServerNotOperable."""
        ...


class NetworkPort(Protocol):
    """Neutron networks that one tenant sees, by name or id."""

    async def find(self, name_or_id: str) -> NetworkView | None:
        """Return a network with its subnets, and the used addresses that the tenant sees."""
        ...

    async def id_of(self, name_or_id: str) -> str | None:
        """Return the id of a network."""
        ...

    async def subnet_id_of(self, name_or_id: str) -> str | None:
        """Return the id of a subnet."""
        ...

    async def network_of_port(self, port_id: str) -> str | None:
        """Return the id of the network that a port is on; None: the tenant sees no such port."""
        ...


@dataclass(frozen=True)
class Cloud:
    """One tenant of one VIM."""

    stacks: StackPort
    images: ImagePort
    capacity: CapacityPort
    servers: ServerPort
    kuryr: KuryrPort
    networks: NetworkPort
    snapshots: SnapshotPort


class Clouds(Protocol):
    """The tenants of all VIMs."""

    def cloud(self, vim: VimConnection) -> Cloud:
        """Return the tenant that the access data name. Raises VimAccessDataMissing."""
        ...


VnfdTree = Mapping[str, Any]
"""A service template as plain data: whatever YAML the package's author wrote."""


@dataclass(frozen=True)
class PackageFlavour:
    """One deployment flavour of a package. Cached and shared between callers, so it must not be modified."""

    folder: Path
    """The package's files without its images, read-only."""
    hot: BaseHot | None
    """None: the package has no Heat template for the flavour; one is made from its topology."""
    vnfd: Flavour
    service_template: VnfdTree


class PackageFlavours(Protocol):
    """The parts of VNF packages that a stack needs."""

    async def flavour(self, package: PackageRef, flavour_id: str) -> PackageFlavour:
        """Return the package's flavour.

        Raises UnknownFlavour, PackageRefused, NotFound, OutsideUnavailable.
        """
        ...

    def stream(self, package: PackageRef, path: str) -> AsyncIterator[bytes]:
        """Yield one file's bytes. Raises NotFound, OutsideUnavailable."""
        ...


@dataclass(frozen=True)
class UserDataInput:
    """The input of LCM operation user data, in SOL003 v3 form (maps), values in clear."""

    api_version: str
    request: SolObject
    instance: SolObject
    grant_request: SolObject
    grant: SolObject
    """Its ``vimAssets`` include the images that were uploaded from the package."""
    service_template: VnfdTree
    """v1's ``vnfd_dict``: granted flavors and the images' Glance ids in place of the VNFD's names."""
    image_by_vdu: Mapping[str, str]
    """Glance id by VDU: v1's ``grant_info``."""
    secrets: frozenset[str] = frozenset()
    """Values that must not appear in an error."""
    parameters: Parameters = field(default_factory=dict)
    """Those of the stack before the operation: v1's ``param``."""
    servers: Sequence[str] = ()
    """The servers that a heal replaces: v1's ``vnfc_resource_info``."""
    group_size: int | None = None
    """The machines that the scaled aspect's VDU is to have: v1's ``resource_number``. None: no aspect is scaled."""


@dataclass(frozen=True)
class HeatInput:
    """Heat's input for a new stack."""

    parameters: Parameters
    template: str | Template
    """The top HOT: the text of the package or its user data, or a document made from it."""
    files: Mapping[str, str]
    """Text of the nested templates by file name."""


@dataclass(frozen=True)
class HeatPatch:
    """The result of a user data class for an operation on an existing stack."""

    parameters: Parameters = field(default_factory=dict)
    """A merge patch (RFC 7396) for the stack's parameters."""
    has_whole_values: bool = False
    """Each parameter has its new value instead, as classes of v1 return it."""
    template: str | None = None
    """HOT text, a merge patch for the stack's template."""
    files: Mapping[str, str] = field(default_factory=dict)
    attached: Mapping[str, str] = field(default_factory=dict)
    """Files of the package that its templates read, which the class does not return."""
    is_whole: bool = False
    """The result is complete and replaces the stack's present input (``existing: False``)."""


class UserDataPort(Protocol):
    """Runs a package's user data class in a process of its own."""

    async def instantiate(self, user_data: UserData, folder: Path, hot: BaseHot, given: UserDataInput) -> HeatInput:
        """Call the class's ``instantiate``; templates that it does not return are those of the package.

        Raises UserDataFailed, UserDataTimedOut, and Unprocessable if the package has no such file.
        """
        ...

    async def change(
        self, user_data: UserData | None, method: str, folder: Path, hot: BaseHot, given: UserDataInput
    ) -> HeatPatch | None:
        """Call the class's method of that name; return None if it has none for the request.

        ``user_data`` None: the ready-made StandardUserData. Raises the same as ``instantiate``.
        """
        ...
