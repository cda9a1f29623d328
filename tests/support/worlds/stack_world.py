"""A twin of a VIM's tenant, which keeps state and can be slow, full, down or failing, and the commands to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar, cast

from kubevnfm_cluster.kuryr import Kind
from kubevnfm_events import Event, PackageRef, VimConnection
from kubevnfm_events.kuryr import KuryrLogin
from kubevnfm_events.stacks import CreateResources, DeleteResources, StackCommand
from kubevnfm_infra_openstack.domain.asked_ports import NetworkView
from kubevnfm_infra_openstack.domain.errors import (
    StackNameTaken,
    StackRefused,
    StackUpdateRefused,
    VimRefused,
    VimUnavailable,
)
from kubevnfm_infra_openstack.domain.kuryr import LoadBalancer, Removed, Subnet
from kubevnfm_infra_openstack.domain.ports import Cloud
from kubevnfm_infra_openstack.domain.quota import Flavor
from kubevnfm_infra_openstack.domain.snapshot_ports import SnapshotPort
from kubevnfm_infra_openstack.domain.stack import (
    HeatResource,
    NovaServer,
    Stack,
    StackChange,
    StackContents,
    StackDefinition,
    StackNews,
    StackOrder,
    StackState,
)
from kubevnfm_kit.errors import NotFound
from kubevnfm_kit.ids import new_id
from kubevnfm_secrets import Secret, hide
from kubevnfm_worker.outcome import StepContext

PACKAGE = Path(__file__).parents[3] / "services/infra-openstack/tests/package"
"""A VNF package of one master, a group of two workers and a volume."""
C = TypeVar("C", bound=StackCommand)
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class TwinStacks:
    """Stacks that are complete, or deleted, at the next wait for them, unless an attribute says otherwise."""

    stacks: dict[str, Stack] = field(default_factory=dict)
    orders: list[StackOrder] = field(default_factory=list)
    deletions: list[str] = field(default_factory=list)
    definitions: dict[str, StackDefinition] = field(default_factory=dict)
    changes: list[StackChange] = field(default_factory=list)
    marked: list[str] = field(default_factory=list)
    """Names of the resources that were marked unhealthy."""
    stopped: list[str] = field(default_factory=list)
    is_slow: bool = False
    """Heat's work never ends."""
    is_down: bool = False
    refuses: str = ""
    """Heat's reason for rejecting every template."""
    breaks: str = ""
    """The reason why the next stack fails; only once."""
    fails_again: str = ""
    """The failure after which Heat tries again."""
    silent_s: float = 0.0
    """How long Heat has reported nothing."""
    hides_failures: bool = False
    """Heat does not show its events to this user."""
    found: Stack | None = None
    """The stack of every search, as it was before others have changed it."""
    sticks: int = 0
    """How many of the next deletions fail."""
    is_still_listed: bool = False
    """Deleted stacks stay in the list."""
    resource_list: tuple[HeatResource, ...] = ()
    hidden_for: int = 0
    """How many of the next searches miss an existing stack, as if its creation was still on the way."""
    lost_servers: set[str] = field(default_factory=set)
    """Servers that Heat still lists although Nova has lost them."""

    async def find(self, name: str, *, tag: str, is_ending_too: bool = False) -> Stack | None:
        self._answer()
        if self.hidden_for:
            self.hidden_for -= 1
            return None
        if self.found is not None:
            return self.found
        for stack in self.stacks.values():
            if stack.name == name:
                if stack.state is StackState.GONE:
                    return stack if is_ending_too and tag in stack.tags else None
                if tag not in stack.tags:
                    raise StackNameTaken(name)
                return stack
        return None

    async def all(self) -> Mapping[str, Stack]:
        self._answer()
        return dict(self.stacks)

    async def by_id(self, ids: Sequence[str]) -> Mapping[str, Stack]:
        self._answer()
        return {one: self.stacks[one] for one in ids if one in self.stacks}

    async def create(self, order: StackOrder) -> Stack:
        self._answer()
        if self.refuses:
            raise StackRefused(self.refuses)
        if any(stack.name == order.name for stack in self.stacks.values()):
            raise StackNameTaken(order.name)
        self.orders.append(order)
        stack = Stack(new_id(), order.name, StackState.MAKING, tags=order.tags, created_at=EPOCH)
        self.stacks[stack.id] = stack
        return stack

    async def check(self, name: str, definition: StackDefinition) -> None:
        self._answer()
        if self.refuses:
            raise StackRefused(self.refuses)

    async def definition(self, stack: Stack) -> StackDefinition:
        self._answer()
        return self.definitions.get(stack.id, StackDefinition({}, {}, {}))

    async def change(self, stack: Stack, change: StackChange) -> Stack:
        self._answer()
        if self.refuses:
            raise StackUpdateRefused(self.refuses)
        self.changes.append(change)
        changed = self.stacks[stack.id] = replace(stack, state=StackState.MAKING, tags=change.tags)
        return changed

    async def mark_unhealthy(self, resource: HeatResource, reason: str) -> None:
        self._answer()
        self.marked.append(resource.name)

    async def stop_change(self, stack: Stack) -> None:
        self._answer()
        if self.stacks[stack.id].state is StackState.MAKING:
            self.stopped.append(stack.id)
            self.stacks[stack.id] = replace(self.stacks[stack.id], state=StackState.BROKEN, reason="cancelled")

    async def delete(self, stack: Stack) -> None:
        self._answer()
        if stack.id in self.stacks:
            self.deletions.append(stack.id)
            self.stacks[stack.id] = replace(self.stacks[stack.id], state=StackState.GOING)

    async def settle(self, stack: Stack, *, until: frozenset[StackState], within_s: float) -> Stack | None:
        self._answer()
        await asyncio.sleep(0)
        now = self.stacks.get(stack.id)
        if now is None or self.is_slow:
            return now
        if now.state is StackState.GOING and self.sticks:
            self.sticks -= 1
            now = self.stacks[stack.id] = replace(now, state=StackState.STUCK, reason="volume is in use")
        elif now.state is StackState.GOING and self.is_still_listed:
            now = self.stacks[stack.id] = replace(now, state=StackState.GONE)
        elif now.state is StackState.GOING:
            del self.stacks[stack.id]
            return None
        elif now.state is StackState.MAKING:
            state = StackState.BROKEN if self.breaks else StackState.READY
            now = self.stacks[stack.id] = replace(now, state=state, reason=self.breaks)
            self.breaks = ""
        return now

    async def resources(self, stack: Stack) -> Sequence[HeatResource]:
        self._answer()
        return [replace(r, stack_id=r.stack_id or stack.id) for r in self.resource_list]

    async def news(self, stack: Stack) -> StackNews:
        self._answer()
        if self.hides_failures:
            raise VimRefused("Heat", "GET /events: 403 Forbidden")
        return StackNews(failure=self.fails_again, last_at=EPOCH, silent_s=self.silent_s, in_work=("VDU1",))

    async def contents(self, stack: Stack, shown: Sequence[HeatResource] = ()) -> StackContents:
        resources = await self.resources(stack)
        servers = {r.physical_id: NovaServer(r.physical_id, r.name, created_at=EPOCH) for r in resources}
        for lost in self.lost_servers:
            servers.pop(lost, None)
        return StackContents(resources=resources, server_by_id=servers)

    def _answer(self) -> None:
        if self.is_down:
            raise VimUnavailable("Heat", "connection refused")


@dataclass
class TwinImages:
    """Images by tag and name, and the content of each upload."""

    by_tag: dict[str, dict[str, str]] = field(default_factory=dict)
    uploads: list[bytes] = field(default_factory=list)

    async def ensure(
        self,
        name: str,
        *,
        tag: str,
        disk_format: str,
        container_format: str,
        content: Callable[[], AsyncIterator[bytes]],
    ) -> str:
        images = self.by_tag.setdefault(tag, {})
        if name not in images:
            self.uploads.append(b"".join([chunk async for chunk in content()]))
            images[name] = new_id()
        return images[name]

    async def tagged(self, tag: str) -> Mapping[str, str]:
        return self.by_tag.get(tag, {})

    async def delete_tagged(self, tag: str) -> int:
        return len(self.by_tag.pop(tag, {}))


@dataclass
class TwinCapacity:
    """Free amounts by resource; resources that are not listed are unlimited."""

    free_by_name: dict[str, int] = field(default_factory=dict)
    available: tuple[str, ...] = ("nova",)
    """Zones."""
    asked_zones: int = 0
    """How often the zones were asked for."""

    async def zones(self) -> Sequence[str]:
        self.asked_zones += 1
        return self.available

    async def flavors(self) -> Mapping[str, Flavor]:
        return {"m1.small": Flavor(vcpus=1, ram_mib=2048)}

    async def free(self, resources: Sequence[str]) -> Mapping[str, int]:
        return {name: amount for name, amount in self.free_by_name.items() if name in resources}


@dataclass
class TwinServers:
    """Servers that take one poll to change their state."""

    status_by_id: dict[str, str] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)

    async def statuses(self, ids: Sequence[str]) -> Mapping[str, str]:
        statuses = {one: self.status_by_id[one] for one in ids if one in self.status_by_id}
        for server_id, action in self.asked:
            self.status_by_id[server_id] = "ACTIVE" if action == "start" else "SHUTOFF"
        return statuses

    async def all_statuses(self) -> Mapping[str, str]:
        return {one: "ERROR" if status == "ERROR" else "" for one, status in self.status_by_id.items()}

    async def start(self, id: str) -> None:
        self.asked.append((id, "start"))

    async def stop(self, id: str) -> None:
        self.asked.append((id, "stop"))

    async def delete(self, id: str) -> None:
        self.status_by_id.pop(id, None)

    async def delete_finally(self, id: str) -> None:
        self.status_by_id.pop(id, None)


@dataclass
class TwinKuryr:
    """A network with an entity of every id, unless an attribute says otherwise."""

    missing: set[str] = field(default_factory=set)
    subnets: dict[str, Subnet] = field(default_factory=dict)
    balancers: dict[str, LoadBalancer] = field(default_factory=dict)
    trunk_by_server: dict[str, str] = field(default_factory=dict)
    logins: list[str] = field(default_factory=list)
    tagged: list[Removed] = field(default_factory=list)
    """The findings of the next looks."""

    async def project_id(self) -> str:
        return "project"

    async def exists(self, kind: Kind, id: str) -> bool:
        return id not in self.missing

    async def subnet(self, id: str) -> Subnet:
        return self.subnets[id]

    async def load_balancer(self, id: str) -> LoadBalancer:
        return self.balancers[id]

    async def trunks(self, servers: Sequence[str]) -> Mapping[str, str]:
        return {one: self.trunk_by_server[one] for one in servers if one in self.trunk_by_server}

    async def login(self, name: str) -> KuryrLogin:
        self.logins.append(name)
        return KuryrLogin(auth_url="http://k/v3", credential_id=name, credential_secret=Secret("s"))

    async def delete_login(self, name: str) -> None:
        if name in self.logins:
            self.logins.remove(name)

    async def remove_tagged(self, tag: str) -> Removed:
        return self.tagged.pop(0) if self.tagged else Removed()


@dataclass
class TwinNetworks:
    """Networks by the names and ids that requests have; each other name is an id."""

    by_name: dict[str, NetworkView] = field(default_factory=dict)
    network_by_port: dict[str, str] = field(default_factory=dict)
    missing: set[str] = field(default_factory=set)
    is_silent: bool = False

    async def find(self, name_or_id: str) -> NetworkView | None:
        if self.is_silent:
            await asyncio.Event().wait()
        return None if name_or_id in self.missing else self.by_name.get(name_or_id, NetworkView(name_or_id))

    async def network_of_port(self, port_id: str) -> str | None:
        return self.network_by_port.get(port_id)

    async def id_of(self, name_or_id: str) -> str | None:
        found = self.by_name.get(name_or_id)
        return found.network_id if found is not None else name_or_id

    async def subnet_id_of(self, name_or_id: str) -> str | None:
        subnets = [subnet for network in self.by_name.values() for subnet in network.subnets]
        return next((one.subnet_id for one in subnets if name_or_id in (one.subnet_id, one.name)), None)


@dataclass
class TwinClouds:
    """The same tenant for all access data."""

    stacks: TwinStacks = field(default_factory=TwinStacks)
    images: TwinImages = field(default_factory=TwinImages)
    capacity: TwinCapacity = field(default_factory=TwinCapacity)
    servers: TwinServers = field(default_factory=TwinServers)
    kuryr: TwinKuryr = field(default_factory=TwinKuryr)
    networks: TwinNetworks = field(default_factory=TwinNetworks)

    def cloud(self, vim: VimConnection) -> Cloud:
        # Snapshots are tried in the lab, which has all of their services.
        return Cloud(
            self.stacks, self.images, self.capacity, self.servers, self.kuryr, self.networks, cast("SnapshotPort", None)
        )


@dataclass
class FolderPackages:
    """A package directory that serves every package, with image files by path in the CSAR."""

    root: Path = PACKAGE
    images: dict[str, bytes] = field(default_factory=dict)

    async def folder(self, package: PackageRef) -> Path:
        return self.root

    async def stream(self, package: PackageRef, path: str) -> AsyncIterator[bytes]:
        if path not in self.images:
            raise NotFound(path)
        yield self.images[path]


def openstack_vim(auth_url: str, **changes: str) -> VimConnection:
    """Return the connection of the lab's first user, which is the same as that of the real test bed."""
    access = {"username": "nfv", "password": "nfv", "project": "nfv", "projectDomain": "Default"}
    return VimConnection(
        vim_type="ETSINFV.OPENSTACK_KEYSTONE.V_3",
        interface_info={"endpoint": auth_url},
        access_info=hide({**access, "userDomain": "Default", "region": "RegionOne", **changes}),
    )


def a_context(*, attempt: int = 1, operation_id: str = "op-1", step_id: str = "create_vnf_resources") -> StepContext:
    async def publish(_: Event) -> None:
        return None

    return StepContext(
        message_id=new_id(),
        operation_id=operation_id,
        step_id=step_id,
        attempt=attempt,
        subject="inst-1",
        deadline=None,
        fencing=1,
        publish=publish,
    )


def links(network: str = "net0") -> list[dict[str, Any]]:
    """Return external virtual links for the package's two connection points, in v3 form."""
    cps: list[dict[str, Any]] = [
        {"cpdId": name, "cpConfig": {"1": {}}} for name in ("masterNode_CP1", "workerNode_CP1")
    ]
    return [{"id": "vl-1", "resourceId": network, "extCps": cps}]


def a_create(vim: VimConnection | None = None, **changes: Any) -> CreateResources:
    facts: dict[str, Any] = {
        "vnf_instance_id": "inst-1",
        "tag": "inst-1",
        "stack_name": "vnf-inst-1",
        "package": PackageRef(package_id="pkg-1", vnfd_id="vnfd-1", checksum="ab"),
        "vim": vim or VimConnection(vim_type="ETSINFV.OPENSTACK_KEYSTONE.V_3"),
        "flavour_id": "simple",
        "request": {"flavourId": "simple", "extVirtualLinks": links()},
    }
    return CreateResources(**{**facts, **changes})


def a_change(command: type[C], vim: VimConnection | None = None, **changes: Any) -> C:
    """Return a command that changes the stack of `a_create`."""
    facts: dict[str, Any] = {
        "vnf_instance_id": "inst-1",
        "tag": "inst-1",
        "stack_name": "vnf-inst-1",
        "package": PackageRef(package_id="pkg-1", vnfd_id="vnfd-1", checksum="ab"),
        "vim": vim or VimConnection(vim_type="ETSINFV.OPENSTACK_KEYSTONE.V_3"),
        "flavour_id": "simple",
        "connections": {"extVirtualLinks": links()},
    }
    return command(**{**facts, **changes})


def a_delete(vim: VimConnection | None = None, **changes: Any) -> DeleteResources:
    facts: dict[str, Any] = {
        "vnf_instance_id": "inst-1",
        "tag": "inst-1",
        "stack_name": "vnf-inst-1",
        "vim": vim or VimConnection(vim_type="ETSINFV.OPENSTACK_KEYSTONE.V_3"),
    }
    return DeleteResources(**{**facts, **changes})
