"""vim-registry as a running service, with a lab for the VIMs and twins of the other services."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
import pytest
from kubevnfm_bus.inprocess import InProcessBus
from kubevnfm_bus.port import Ack, Delivery, Verdict
from kubevnfm_clients.vims import HttpCloudIdentities, HttpVimDirectory, HttpVims
from kubevnfm_events import Command, Envelope, Message
from kubevnfm_kit.clock import Clock, SystemClock
from kubevnfm_kit.errors import NotFound, OutsideUnavailable
from kubevnfm_lab.kubernetes.cluster import LabCluster
from kubevnfm_lab.lab import Lab
from kubevnfm_secrets import KeyRing, Secret
from kubevnfm_store.sqlite.store import SqliteStore
from kubevnfm_vim_registry.settings import Settings
from kubevnfm_vim_registry.wiring import vim_registry
from kubevnfm_worker.backends import Backends
from pydantic import BaseModel, SecretStr
from servers.ports import free_port
from servers.vnf_networks import LOOPBACK, networks

RING = KeyRing.from_text(KeyRing.new_key())
TOKEN = "internal"


@dataclass
class Users:
    """The twin of lcm-api: the instances that use each VIM."""

    by_vim: dict[str, list[str]] = field(default_factory=dict)
    meanwhile: Callable[[], Awaitable[object]] | None = None
    """This happens before an answer."""

    async def users(self, vim_id: str) -> Sequence[str]:
        if self.meanwhile is not None:
            await self.meanwhile()
        return self.by_vim.get(vim_id, [])


@dataclass
class Operations:
    """The twin of lcm-api: the operation that runs on each instance."""

    by_instance: dict[str, str] = field(default_factory=dict)

    async def running(self, vnf_instance_id: str) -> str | None:
        return self.by_instance.get(vnf_instance_id)


@dataclass
class Credentials:
    """The twin of credentials-receiver."""

    by_id: dict[str, str] = field(default_factory=dict)
    reads_left: int | None = None
    """After so many reads, everything is erased; None: never."""
    silent_for: int = 0
    """So many reads get no answer."""
    breaks: bool = False
    """Whether what it has breaks its reader, in a way that no code expects."""

    async def kubeconfig(self, credentials_id: str) -> Secret:
        if self.breaks:
            raise ValueError("Port out of range 0-65535: swordfish")
        if self.silent_for:
            self.silent_for -= 1
            raise OutsideUnavailable("the receiver does not answer")
        if self.reads_left == 0:
            self.by_id.clear()
        elif self.reads_left is not None:
            self.reads_left -= 1
        if credentials_id not in self.by_id:
            raise NotFound(f"no credentials have the id {credentials_id}")
        return Secret(self.by_id[credentials_id])


M = TypeVar("M", bound=Message)


class Events:
    """The events that the service has published, in order."""

    def __init__(self) -> None:
        self.envelopes: list[Envelope[Message]] = []

    async def __call__(self, delivery: Delivery) -> Verdict:
        self.envelopes.append(delivery.envelope)
        return Ack()

    @property
    def data(self) -> list[Message]:
        return [envelope.data for envelope in self.envelopes]

    async def has(self, count: int) -> None:
        async with asyncio.timeout(300):
            while len(self.envelopes) < count:  # noqa: ASYNC110 - a plain list has no event to wait for
                await asyncio.sleep(0.01)

    async def first(self, form: type[M], *, after: int = 0) -> M:
        """Return the first event of a class; ``after``: behind so many events. The monitor may publish others before it."""
        async with asyncio.timeout(300):
            while True:
                for event in self.data[after:]:
                    if isinstance(event, form):
                        return event
                await asyncio.sleep(0.01)


@dataclass(frozen=True)
class World:
    """The service as seen by its clients, and everything around it."""

    lab: Lab
    vims: HttpVims
    directory: HttpVimDirectory
    identities: HttpCloudIdentities
    session: aiohttp.ClientSession
    url: str
    bus: InProcessBus
    store: SqliteStore
    users: Users
    credentials: Credentials
    events: Events
    operations: Operations

    def openstack(self, **changes: Any) -> dict[str, Any]:
        """Return the request that registers the lab's OpenStack."""
        known = self.lab.endpoints()
        return {
            "name": "cloud",
            "type": "openstack",
            "auth_url": self.lab.auth_url,
            "vim_project": {"name": known["project"], "project_domain_name": known["domain"]},
            "auth_cred": {
                "username": known["username"],
                "password": known["password"],
                "user_domain_name": known["domain"],
                "cert_verify": "False",
            },
            **changes,
        }

    async def until(self, is_true: Callable[[], bool]) -> None:
        """Wait for something that has no event."""
        async with asyncio.timeout(300):
            while not is_true():  # noqa: ASYNC110 - see above
                await asyncio.sleep(0.01)

    async def ask(self, command: Command) -> Message:
        """Send a command and return its answer."""
        count = len(self.events.envelopes)
        await self.bus.publish(
            Envelope(command, source="/kubevnfm/lcm-api", operationid="op", stepid="step", attempt=1)
        )
        await self.events.has(count + 1)
        return self.events.envelopes[count].data


@pytest.fixture
async def lab() -> AsyncIterator[Lab]:
    async with Lab.start() as lab:
        yield lab


@pytest.fixture
async def make_cluster(lab: Lab) -> Callable[..., Awaitable[LabCluster]]:
    async def make(*, version: str = "1.31.4") -> LabCluster:
        return await lab.clusters.create(
            address="127.0.0.1",
            port=free_port(),
            version=version,
            pod_cidr="10.244.0.0/16",
            service_cidr="10.96.0.0/12",
            san=["127.0.0.1"],
        )

    return make


@pytest.fixture
async def cluster(make_cluster: Callable[..., Awaitable[LabCluster]]) -> LabCluster:
    return await make_cluster()


class GivenSettings(Settings):
    """Settings on which the environment has no effect. To read it takes 6 ms at each start."""

    def __init__(self, **given: Any) -> None:
        BaseModel.__init__(self, **given)


@pytest.fixture
def settings() -> Settings:
    return given_settings()


def given_settings() -> Settings:
    """Return settings for tests."""
    return GivenSettings(
        port=0,
        internal_token=SecretStr(TOKEN),
        credentials_token=SecretStr("for kubeconfigs alone"),
        keys=SecretStr("unused"),
        verify_timeout_s=300.0,
        monitor_every_s=0.05,
        monitor_timeout_s=300.0,
        credentials_tries_s=0.0,
    )


@asynccontextmanager
async def running(
    lab: Lab, settings: Settings, folder: Path, *, clock: Clock | None = None, named: str = LOOPBACK
) -> AsyncIterator[World]:
    """Yield the service; ``named``: the setting ``vnf_networks``."""
    users, credentials, events, operations = Users(), Credentials(), Events(), Operations()
    async with (
        SqliteStore.open(folder / "store.db") as store,
        InProcessBus(RING) as bus,
        aiohttp.ClientSession() as session,
    ):
        await bus.consume_events("test", ["vim.#", "service.command.failed"], events)
        async with vim_registry(
            settings,
            Backends(bus, store, RING, clock or SystemClock()),
            users=users,
            credentials=credentials,
            operations=operations,
            networks=networks(named),
        ) as service:
            url = f"http://127.0.0.1:{service.port}"
            yield World(
                lab,
                HttpVims(url, TOKEN, session),
                HttpVimDirectory(url, TOKEN, session),
                HttpCloudIdentities(url, TOKEN, session),
                session,
                url,
                bus,
                store,
                users,
                credentials,
                events,
                operations,
            )


@pytest.fixture
async def world(lab: Lab, settings: Settings, tmp_path: Path) -> AsyncIterator[World]:
    async with running(lab, settings, tmp_path) as world:
        yield world
