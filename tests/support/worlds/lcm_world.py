"""A running lcm-api with its own store and bus; twins of the other services answer its commands."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeVar

import aiohttp
from callers.documented import judge
from kubevnfm_bus.inprocess import InProcessBus
from kubevnfm_bus.port import Ack, Delivery, Verdict
from kubevnfm_clients.multicloud.errors import RegionUnavailable
from kubevnfm_clients.multicloud.links import CreatedLink, LinkRequest, LinkSpecs, ReferenceRequest, VirtualLink
from kubevnfm_clients.multicloud.networks import AttachRequest
from kubevnfm_clients.multicloud.region_views import KubernetesObject, RegionFeatures, RegionHealth
from kubevnfm_clients.multicloud.regions import CloudRegion, Kubeconfig, ObjectsWanted, RegionPatch, RegionRequest
from kubevnfm_clients.multicloud.suspension import Suspension, SuspensionRequest
from kubevnfm_clients.multicloud.types import Page
from kubevnfm_clients.multicloud.volumes import (
    CreatedVolume,
    PersistentVolume,
    RemovedVolume,
    VolumeClaim,
    VolumePatch,
    VolumeRequest,
    VolumeUse,
)
from kubevnfm_clients.ports import LogPart, RevisedVim
from kubevnfm_clients.vim_views import VimView
from kubevnfm_csar.pack import pack
from kubevnfm_events import CancelStep, Command, CommandFailed, Envelope, Event, Message
from kubevnfm_events.contract import commands
from kubevnfm_events.lcm import OperationChanged
from kubevnfm_events.objects import AttachedLink, NetworkAttachment
from kubevnfm_infra_k8s.domain.links.types import spec_schemas
from kubevnfm_kit.clock import SystemClock
from kubevnfm_kit.connections import DEFAULT_LIMITS
from kubevnfm_kit.errors import (
    Conflict,
    ConflictingInput,
    NotFound,
    OutsideUnavailable,
    PreconditionFailed,
    Unprocessable,
    VnfmError,
)
from kubevnfm_lcm_api.automation.wiring import AutomationParts
from kubevnfm_lcm_api.multicloud.services import MultiCloudServices
from kubevnfm_lcm_api.settings import Settings
from kubevnfm_lcm_api.wiring import INDEXES, lcm_api
from kubevnfm_secrets import KeyRing
from kubevnfm_store.port import StoreUnavailable
from kubevnfm_store.query import Query, Stored
from kubevnfm_store.sqlite.store import SqliteStore
from kubevnfm_vim_registry.domain.forms import vim_forms
from kubevnfm_worker.backends import Backends
from pydantic import BaseModel
from servers.vnf_networks import LOOPBACK

from worlds.given_usages import GivenUsages
from worlds.health_checks import TwinHealthChecks
from worlds.inventory_world import GivenInventory, GivenProgram, NoDryRuns, SimpleVerdicts
from worlds.lcm_builders import ANSWERS

T = TypeVar("T")

KEY: Final = KeyRing.new_key()
RING: Final = KeyRing.from_text(KEY)
TOKEN: Final = "internal-token-of-the-tests"
SAMPLES: Final = Path(__file__).parents[3] / "deploy/samples"
SERVICES: Final = sorted({command.service for command in commands()} - {"lcm-api"})
JSON_HEADERS: Final = {"Version": "2.0.0"}
ENDS: Final = frozenset({"COMPLETED", "FAILED", "FAILED_TEMP", "ROLLED_BACK"})
OPENSTACK_VIM: Final = {"id": "vim-1", "name": "lab", "type": "openstack", "is_default": True}


LINKED: Final = {
    "flavourId": "simple",
    "extVirtualLinks": [{"id": "external", "resourceId": "net0", "extCps": [{"cpdId": "VDU1_CP1"}]}],
}
"""A request for the sample `vm`, in the form of both versions."""


def sample_request(sample: str, name: str) -> dict[str, Any]:
    """Return a request body of a sample package."""
    body: dict[str, Any] = json.loads((SAMPLES / sample / "requests" / f"{name}.json").read_text(encoding="utf-8"))
    return body


@cache
def _packed(sample: str) -> bytes:
    # Once in each process: to pack and check it takes as long as many a test.
    with TemporaryDirectory() as folder:
        archive = Path(folder) / f"{sample}.zip"
        pack(SAMPLES / sample, archive)
        return archive.read_bytes()


@dataclass(frozen=True)
class Answer:
    """A response, whatever its status."""

    status: int
    headers: Mapping[str, str]
    raw: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.raw)

    @property
    def detail(self) -> str:
        """The ``detail`` of a ProblemDetails."""
        return str(self.json["detail"])

    def must(self, status: int) -> Answer:
        """Return itself when it has the status; raises AssertionError with its body when not."""
        assert self.status == status, f"{status} expected, got {self.status}: {self.raw[:2000]!r}"
        return self

    def problem(self, status: int) -> Any:
        """Return the ProblemDetails. Raises AssertionError if the body is not one, or has another status."""
        self.must(status)
        assert self.headers["Content-Type"].startswith("application/problem+json")
        body = self.json
        assert body["status"] == status
        assert body["detail"]
        return body


class FragileStore(SqliteStore):
    """A store whose reads fail while ``is_down`` is set."""

    is_down = False

    async def get(self, collection: str, doc_id: str) -> Stored | None:
        self._answer()
        return await super().get(collection, doc_id)

    async def get_many(self, collection: str, ids: Sequence[str]) -> Sequence[Stored]:
        self._answer()
        return await super().get_many(collection, ids)

    async def find(self, collection: str, query: Query) -> Sequence[Stored]:
        self._answer()
        return await super().find(collection, query)

    def _answer(self) -> None:
        if self.is_down:
            raise StoreUnavailable("unavailable by request of the test")


class ServiceTwins:
    """The other services: record each command and answer it at once, unless ``failing`` or ``waiting`` has its kind."""

    def __init__(self, bus: InProcessBus) -> None:
        self._bus = bus
        self.commands: list[Envelope[Message]] = []
        self.failing: set[str] = set()
        """Routing keys of the commands that fail, each alone or with ``/<step>``."""
        self.remains: dict[str, object] | None = None
        """The remains that a failure reports."""
        self.remains_of: set[str] | None = None
        """Routing keys of the commands whose failures report them; None: all."""
        self.waiting: set[str] = set()
        """Routing keys of the commands that stay unanswered."""
        self.answers: dict[str, Event] = dict(ANSWERS)
        """By routing key of the command; ``<routing key>/<step>`` takes precedence."""
        self.held: list[Envelope[Message]] = []
        self._arrived = asyncio.Event()

    async def start(self) -> None:
        for service in SERVICES:
            await self._bus.consume_commands(service, self._receive)

    async def has_asked(self, count: int) -> list[Envelope[Message]]:
        """Wait for ``count`` commands; return all commands so far."""
        async with asyncio.timeout(300):
            while len(self.commands) < count:
                self._arrived.clear()
                await self._arrived.wait()
        return self.commands

    def last(self, kind: type[T]) -> T:
        """Return the last command, of this kind."""
        command = self.commands[-1].data
        assert isinstance(command, kind)
        return command

    def asked(self) -> list[str]:
        """Return the routing keys of all commands so far."""
        return [type(command.data).routing_key() for command in self.commands]

    async def _receive(self, delivery: Delivery) -> Verdict:
        command = delivery.envelope
        self.commands.append(command)
        self._arrived.set()
        key = type(command.data).routing_key()
        if isinstance(command.data, CancelStep):
            await self._end(command.data)
        elif key in self.waiting:
            self.held.append(command)
        elif isinstance(command.data, Command) and command.data.reply is not None:
            await self._bus.publish(self.answer(command))
        return Ack()

    async def _end(self, cancel: CancelStep) -> None:
        """Fail the cancelled command, if it is held."""
        for command in [one for one in self.held if one.id == cancel.command["id"]]:
            self.held.remove(command)
            ended = CommandFailed(
                command=command.data.type, code="cancelled", title="Operation cancelled", detail="cancelled", status=409
            )
            await self._bus.publish(command.follow_up(ended, source="/kubevnfm/twin"))

    def answer(self, command: Envelope[Message]) -> Envelope[Message]:
        """Return the event that answers the command under the current settings of the twins."""
        key = type(command.data).routing_key()
        event = self.answers.get(f"{key}/{command.stepid}") or self.answers[key]
        if {key, f"{key}/{command.stepid}"} & self.failing:
            has_remains = self.remains_of is None or key in self.remains_of
            event = CommandFailed(
                command=command.data.type, code="stack-failed", title="Stack creation failed", detail="no host",
                status=422, remains=self.remains if has_remains else None,
            )  # fmt: skip
        return command.follow_up(event, source="/kubevnfm/twin")

    async def release(self) -> None:
        """Answer the held commands, and hold no further ones."""
        self.waiting.clear()
        held, self.held = self.held, []
        for command in held:
            await self._bus.publish(self.answer(command))


_OF_VIM: Final = {"vnf_instance_id": "owner"}
"""The attribute of a VIM's record, for a filter of another name."""


class TwinVims:
    """A stand-in for vim-registry that implements ``kubevnfm_clients.ports.Vims``."""

    def __init__(self) -> None:
        self.records: dict[str, dict[str, Any]] = {"vim-1": dict(OPENSTACK_VIM)}
        self.changes = Counter[str]()

    def add(self, vim_id: str, vim_type: str, **more: Any) -> None:
        self.records[vim_id] = {"id": vim_id, "name": vim_id, "type": vim_type, "is_default": False, **more}

    async def create(self, vim: Mapping[str, Any]) -> Mapping[str, Any]:
        if any(record["name"] == vim.get("name") for record in self.records.values()):
            raise Conflict(f"the tenant already has a VIM named {vim['name']}")
        record = {"id": f"vim-{len(self.records) + 1}", "status": "ACTIVE", **vim}
        self.records[record["id"]] = record
        return record

    async def list(self, filters: Mapping[str, Sequence[str]]) -> Sequence[Mapping[str, Any]]:
        return [
            record
            for record in self.records.values()
            if all(str(record.get(_OF_VIM.get(name, name))) in values for name, values in filters.items())
        ]

    async def get(self, vim_id: str) -> Mapping[str, Any]:
        if vim_id not in self.records:
            raise NotFound(f"VIM {vim_id} does not exist")
        return self.records[vim_id]

    async def revised(self, vim_id: str) -> RevisedVim:
        record = {"updated_at": "2026-11-26T10:00:00.000Z", **await self.get(vim_id)}
        return RevisedVim(vim_id, self.changes[vim_id], record)

    async def update(
        self, vim_id: str, changes: Mapping[str, Any], *, if_revision: int | None = None
    ) -> Mapping[str, Any]:
        await self._check_at(vim_id, if_revision)
        self.records[vim_id].update(changes)
        self.changes[vim_id] += 1
        return self.records[vim_id]

    async def delete(self, vim_id: str, *, if_revision: int | None = None) -> None:
        await self._check_at(vim_id, if_revision)
        del self.records[vim_id]

    async def _check_at(self, vim_id: str, revision: int | None) -> None:
        if revision not in (None, (await self.revised(vim_id)).revision):
            raise PreconditionFailed("the VIM has changed since it was read")

    async def default(self) -> Mapping[str, Any] | None:
        return next((record for record in self.records.values() if record["is_default"]), None)

    async def views(
        self, filters: Mapping[str, str], *, limit: int, after: tuple[str, str] | None = None
    ) -> tuple[Sequence[VimView], tuple[str, str] | None]:
        found = sorted((await asyncio.gather(*map(self.view, self.records))), key=lambda each: (each.name, each.id))
        for name in ("type", "status", "owner"):
            found = [each for each in found if filters.get(name) in {None, getattr(each, name)}]
        for name in ("name", "id"):
            found = [each for each in found if getattr(each, name).startswith(filters.get(name, ""))]
        rest = [each for each in found if after is None or (each.name, each.id) > after]
        return rest[:limit], (rest[limit - 1].name, rest[limit - 1].id) if len(rest) > limit else None

    async def view(self, vim_id: str) -> VimView:
        record = await self.get(vim_id)
        facts = {
            "description": "", "status": "ACTIVE", "status_reason": "", "status_since": "2026-11-26T10:00:00.000Z",
            "endpoint": "https://vim.example", "created_at": "2026-11-26T10:00:00.000Z",
            "updated_at": "2026-11-26T10:00:00.000Z",
        }  # fmt: skip
        known = {name: value for name, value in record.items() if name in VimView.model_fields}
        return VimView.model_validate({**facts, **known})

    async def forms(self) -> Mapping[str, Any]:
        return vim_forms()


class TwinRegions:
    """A stand-in for the regions of vim-registry: there are none until a test adds one. The tests of regions have the service."""

    def __init__(self) -> None:
        self.by_id: dict[str, CloudRegion] = {}
        self.suspended: dict[str, Suspension] = {}
        """By the id of the VIM."""
        self.away: set[str] = set()
        """The ids of those that do not answer."""
        self.refusing: set[str] = set()
        """The ids of those that refuse the access data."""
        self.objects: dict[str, KubernetesObject] = {}
        """By ``<kind>/<name>``: what a region answers for one object."""
        self.seen: RegionFeatures | None = None
        """The features of every region; None: there are no regions to read them of."""

    def add(self, region_id: str, vim_id: str, **changes: Any) -> None:
        owner, _, name = region_id.partition("/")
        facts = {
            "id": region_id, "vim_id": vim_id, "cloud_owner": owner, "cloud_region": name, "endpoint": "https://k", "auth": "token",
            "server_version": "v1.34.0", "sha256": "", "context": "c", "status": "ACTIVE", "status_reason": "",
            "capabilities": (), "missing_permissions": (), "labels": {}, "kv": {}, "default_namespace_labels": {},
            "protected_namespaces": (), "links_namespace": "default", "sriov_namespace": "s",
            "other-connectivity-list": {}, "created_at": "2026-11-26T10:00:00Z", "updated_at": "2026-11-26T10:00:00Z",
        }  # fmt: skip
        self.by_id[region_id] = CloudRegion.model_validate({**facts, **changes})

    async def register(self, wanted: RegionRequest) -> tuple[CloudRegion, bool]:
        raise Unprocessable("kubeconfig", "no cluster answers")

    async def health(self, owner: str, region: str) -> RegionHealth:
        found = await self.get(owner, region)
        is_away = found.id in self.away
        return RegionHealth(reachable=not is_away, reason="no route" if is_away else "", server_version="v1.34.0")

    async def features(self, owner: str, region: str) -> RegionFeatures:
        if self.seen is None:
            raise self._missing(owner, region)
        return self.seen

    async def resources(
        self, owner: str, region: str, wanted: ObjectsWanted, *, limit: int, after: str | None = None
    ) -> Page[KubernetesObject]:
        if (await self.get(owner, region)).id in self.away:
            raise RegionUnavailable(f"cloud region {owner}/{region} does not answer")
        if f"{owner}/{region}" in self.refusing:
            raise Unprocessable("kubeconfig", "the cluster refuses the access data")
        found = self.objects.get(f"{wanted.kind}/{wanted.name}")
        return Page(() if found is None else (found,))

    async def change(self, owner: str, region: str, patch: RegionPatch, *, if_revision: int | None) -> CloudRegion:
        raise self._missing(owner, region)

    async def rotate(self, owner: str, region: str, access: Kubeconfig, *, if_revision: int | None) -> CloudRegion:
        raise self._missing(owner, region)

    async def suspend(self, owner: str, region: str, wanted: SuspensionRequest, *, by: str) -> Suspension:
        raise self._missing(owner, region)

    async def resume(self, owner: str, region: str) -> None:
        raise self._missing(owner, region)

    async def suspensions(self) -> Mapping[str, Suspension]:
        return self.suspended

    async def delete(self, owner: str, region: str, *, if_revision: int | None) -> None:
        raise self._missing(owner, region)

    async def find(self, filters: Mapping[str, str], *, limit: int, after: str | None = None) -> Page[CloudRegion]:
        wanted, vim_id = filters.get("cloud_region_id"), filters.get("vim_id")
        found = [
            one
            for _, one in sorted(self.by_id.items())
            if wanted in {None, one.id, one.cloud_region} and vim_id in {None, one.vim_id}
            if begins(one.id, one.cloud_region, filters)
        ]
        rest = [one for one in found if after is None or one.id > after]
        return Page(rest[:limit], rest[limit - 1].id if len(rest) > limit else None)

    async def get(self, owner: str, region: str) -> CloudRegion:
        if (found := self.by_id.get(f"{owner}/{region}")) is None:
            raise self._missing(owner, region)
        return found

    def _missing(self, owner: str, region: str) -> NotFound:
        return NotFound(f"cloud region {owner}/{region} does not exist")


def begins(identifier: str, name: str, filters: Mapping[str, str]) -> bool:
    """Return whether id and name begin as filters say."""
    return identifier.startswith(filters.get("id_prefix", "")) and name.startswith(filters.get("name_prefix", ""))


class TwinLinks:
    """A stand-in for the virtual links of infra-k8s: there are none until a test adds one, by the id of its VIM.

    Those of ``attachable`` can be named by instances on any VIM; the tests of links have the service itself.
    """

    def __init__(self) -> None:
        self.by_vim: dict[str, VirtualLink] = {}
        self.by_id: dict[str, VirtualLink] = {}
        self.failure: VnfmError | None = None
        """Why they cannot be searched."""
        self.attachable: dict[str, AttachedLink] = {}
        self.asked: list[AttachRequest] = []

    async def find(self, filters: Mapping[str, str], *, limit: int, after: str | None = None) -> Page[VirtualLink]:
        if self.failure is not None:
            raise self.failure
        if {"id_prefix", "name_prefix"} & set(filters):
            return Page([each for each in self.by_id.values() if begins(each.id, each.name, filters)][:limit])
        found = self.by_vim.get(filters.get("vim_id", ""))
        return Page(() if found is None else (found,))

    async def get(self, link_id: str, *, wait_s: float = 0.0) -> VirtualLink:
        if link_id not in self.by_id:
            raise NotFound(f"virtual link {link_id} does not exist")
        return self.by_id[link_id]

    async def create(self, wanted: LinkRequest, *, wait_s: float) -> CreatedLink:
        raise Unprocessable("cloud_region_id", f"cloud region {wanted.cloud_region_id} does not exist")

    async def specs(self) -> LinkSpecs:
        if self.failure is not None:
            raise self.failure
        return spec_schemas()

    async def hold(self, link_id: str, reference: str, wanted: ReferenceRequest, *, wait_s: float) -> VirtualLink:
        return await self.get(link_id)

    async def attach(self, asked: AttachRequest) -> tuple[NetworkAttachment, ...]:
        self.asked.append(asked)
        found: list[NetworkAttachment] = []
        for index, each in enumerate(asked.networks):
            if each.virtual_link_id not in self.attachable:
                raise Unprocessable(f"networks[{index}]/virtual_link_id", "does not exist")
            if each.ip_address == "10.9.9.9":
                raise ConflictingInput(f"networks[{index}]/ip_address", "in use by vnf:other")
            found.append(
                NetworkAttachment(
                    vdu_id=each.vdu_id, virtual_link_id=each.virtual_link_id, interface=f"net{index + 1}",
                    ip_address=each.ip_address, mac_address=each.mac_address,
                    link=self.attachable[each.virtual_link_id],
                )
            )  # fmt: skip
        return tuple(found)

    async def release(
        self, link_id: str, reference: str | None, *, wait_s: float, if_revision: int | None = None
    ) -> VirtualLink | None:
        return await self.get(link_id)


class TwinVolumes:
    """A stand-in for the volumes of infra-k8s: there are none until a test adds one, by the id of its VIM.

    The tests of volumes have the service itself.
    """

    def __init__(self) -> None:
        self.by_vim: dict[str, PersistentVolume] = {}
        self.by_id: dict[str, PersistentVolume] = {}

    async def create(self, wanted: VolumeRequest, *, wait_s: float) -> CreatedVolume:
        raise NotFound("no cloud region")

    async def find(self, filters: Mapping[str, str], *, limit: int, after: str | None = None) -> Page[PersistentVolume]:
        if {"id_prefix", "name_prefix"} & set(filters):
            return Page([each for each in self.by_id.values() if begins(each.id, each.name, filters)][:limit])
        found = self.by_vim.get(filters.get("vim_id", ""))
        return Page(() if found is None else (found,))

    async def get(self, volume_id: str) -> PersistentVolume:
        if volume_id not in self.by_id:
            raise NotFound(f"persistent volume {volume_id} does not exist")
        return self.by_id[volume_id]

    async def change(
        self, volume_id: str, patch: VolumePatch, *, if_revision: int | None, wait_s: float
    ) -> PersistentVolume:
        return await self.get(volume_id)

    async def delete(self, volume_id: str, *, if_revision: int | None, wait_s: float) -> RemovedVolume:
        raise NotFound(f"persistent volume {volume_id} does not exist")

    async def use(self, volume_id: str, reference: str, wanted: VolumeUse, *, wait_s: float) -> VolumeClaim:
        raise NotFound(f"persistent volume {volume_id} does not exist")

    async def leave(self, volume_id: str, reference: str, *, wait_s: float) -> bool:
        return True


class TwinLogs:
    """A stand-in for the output of machines that mgmt-executor stores."""

    def __init__(self) -> None:
        self.printed: list[bytes] = []
        self.is_away = False
        self.asked: list[tuple[str, str | None, str | None]] = []
        self._more, self._read = asyncio.Event(), asyncio.Event()

    async def is_asked(self, times: int) -> None:
        """Wait until it was asked so often for what comes."""
        while len(self.asked) < times:
            self._read.clear()
            await self._read.wait()

    def add(self, text: bytes) -> None:
        """Print."""
        self.printed.append(text)
        self._more.set()

    async def log(self, operation_id: str, *, node: str | None = None, task: str | None = None) -> AsyncIterator[bytes]:
        if self.is_away:
            raise OutsideUnavailable("mgmt-executor does not answer")
        yield f"{operation_id} on {node} in {task}\n".encode()

    async def following(
        self,
        operation_id: str,
        place: Mapping[str, Any],
        wait_s: float,
        *,
        node: str | None = None,
        task: str | None = None,
    ) -> LogPart:
        self.asked.append((operation_id, node, task))
        self._read.set()
        if self.is_away:
            raise OutsideUnavailable("mgmt-executor does not answer")
        begin = place.get("number", 0)
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                while len(self.printed) <= begin and wait_s:
                    self._more.clear()
                    await self._more.wait()
        return LogPart(b"".join(self.printed[begin:]), {"number": len(self.printed)})


@dataclass
class World:
    """A running lcm-api, with helpers that call it and wait for results."""

    url: str
    bus: InProcessBus
    store: FragileStore
    twins: ServiceTwins
    vims: TwinVims
    regions: TwinRegions
    session: aiohttp.ClientSession
    folder: Path
    links: TwinLinks
    volumes: TwinVolumes
    dry_runs: NoDryRuns
    charts: GivenProgram
    playbooks: GivenProgram
    health_checks: TwinHealthChecks
    inventory: GivenInventory
    logs: TwinLogs
    automation: AutomationParts
    usages: GivenUsages
    changes: list[OperationChanged] = field(default_factory=list)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _kept: set[str] = field(default_factory=set)

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        data: Any = None,
        params: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send a request, as v2 unless other headers are given; return the response whatever its status."""
        sent = JSON_HEADERS if headers is None else headers
        async with self.session.request(
            method, f"{self.url}{path}", json=body, data=data, headers=sent, params=params, allow_redirects=False
        ) as response:
            answer = Answer(response.status, response.headers, await response.read())
        # A request that could not be read is refused before it has an application, and the answer holds no data.
        if answer.status < 400:
            assert answer.headers.get("Cache-Control") == "no-store", "no cache keeps data of VNFs"
        judge(method, str(response.url.relative()), answer.status, answer.headers, answer.raw)
        return answer

    async def lcm(self, method: str, path: str, body: Any = None, **more: Any) -> Answer:
        """Call below ``/vnflcm/v2``."""
        return await self.call(method, f"/vnflcm/v2{path}", body, **more)

    async def v1(self, method: str, path: str, body: Any = None, **more: Any) -> Answer:
        """Call below ``/vnflcm/v1``."""
        return await self.call(method, f"/vnflcm/v1{path}", body, **{"headers": {}, **more})

    async def packages(self, method: str, path: str = "", body: Any = None, **more: Any) -> Answer:
        """Call below ``/vnfpkgm/v1/vnf_packages``."""
        return await self.call(method, f"/vnfpkgm/v1/vnf_packages{path}", body, **{"headers": {}, **more})

    async def package_subscriptions(self, method: str, path: str = "", body: Any = None, **more: Any) -> Answer:
        """Call below ``/vnfpkgm/v1/subscriptions``."""
        return await self.call(method, f"/vnfpkgm/v1/subscriptions{path}", body, **{"headers": {}, **more})

    # --- packages -----------------------------------------------------------------------------------------------------

    def zipped(self, sample: str) -> bytes:
        return _packed(sample)

    async def upload(self, content: bytes, package_id: str | None = None) -> dict[str, Any]:
        """Upload into a package, a new one unless given; return it once it was checked."""
        if package_id is None:
            package_id = str((await self.packages("POST", body={})).must(201).json["id"])
        sent = await self.packages(
            "PUT", f"/{package_id}/package_content", data=content, headers={"Content-Type": "application/zip"}
        )
        sent.must(202)
        return await self.onboarded(package_id)

    async def onboarded(self, package_id: str) -> dict[str, Any]:
        """Return the package once its content was fetched and checked, successfully or not."""
        await self.bus.quiet()
        while True:
            package: dict[str, Any] = (await self.packages("GET", f"/{package_id}")).must(200).json
            if package["onboardingState"] not in {"UPLOADING", "PROCESSING"}:
                return package
            await self.bus.quiet()
            await asyncio.sleep(0)

    async def sample(self, name: str = "vm") -> dict[str, Any]:
        """Return a sample package, onboarded."""
        package = await self.upload(self.zipped(name))
        assert package["onboardingState"] == "ONBOARDED", package
        return package

    # --- instances and operations -------------------------------------------------------------------------------------

    async def create(self, sample: str = "vm", **fields: Any) -> str:
        """Create an instance of a sample that is onboarded; return its id."""
        request = {**sample_request(sample, "create"), **fields}
        return str((await self.lcm("POST", "/vnf_instances", request)).must(201).json["id"])

    async def ask(self, instance_id: str, task: str, body: Any) -> str:
        """Start an operation; return the id of its occurrence."""
        accepted = (await self.lcm("POST", f"/vnf_instances/{instance_id}/{task}", body)).must(202)
        assert accepted.raw == b""
        return accepted.headers["Location"].rpartition("/")[2]

    async def instantiate(self, instance_id: str, sample: str = "vm", **changes: Any) -> str:
        """Start an instantiate with the sample's request; return the id of its occurrence."""
        return await self.ask(instance_id, "instantiate", {**sample_request(sample, "instantiate"), **changes})

    async def operation(self, operation_id: str) -> dict[str, Any]:
        shown: dict[str, Any] = (await self.lcm("GET", f"/vnf_lcm_op_occs/{operation_id}")).must(200).json
        return shown

    async def reached(self, operation_id: str, *states: str) -> dict[str, Any]:
        """Wait until the occurrence's newest state is one of these (default: any in `ENDS`); return the occurrence."""
        wanted = frozenset(states) or ENDS

        def newest() -> str | None:
            return next((c.state for c in reversed(self.changes) if c.vnf_lcm_op_occ_id == operation_id), None)

        await self.until(lambda: newest() in wanted)
        return await self.operation(operation_id)

    async def an_operation_in(self, state: str) -> str:
        """Return an instantiate occurrence of a new instance that stays in this state. Needs the vm sample."""
        twins = self.twins
        instance_id = await self.create()
        if state == "PROCESSING":
            twins.waiting.add("infra.openstack.create_resources")
            operation_id = await self.instantiate(instance_id)
        elif state == "COMPLETED":
            operation_id = await self.instantiate(instance_id)
        else:
            twins.failing.add("infra.openstack.create_resources")
            operation_id = await self.instantiate(instance_id)
            await self.reached(operation_id, "FAILED_TEMP")
            if state == "FAILED":
                (await self.lcm("POST", f"/vnf_lcm_op_occs/{operation_id}/fail")).must(200)
            if state in {"ROLLING_BACK", "ROLLED_BACK"}:
                if state == "ROLLING_BACK":
                    twins.waiting.add("infra.openstack.delete_resources")
                (await self.lcm("POST", f"/vnf_lcm_op_occs/{operation_id}/rollback")).must(202)
        await self.reached(operation_id, state)
        twins.failing.clear()
        return operation_id

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition; it is evaluated whenever an event reports that an operation has changed."""
        async with asyncio.timeout(300):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    async def keep(self, delivery: Delivery) -> Verdict:
        """Record a change of an operation, once: an outage of the database has events published again, after later ones."""
        if isinstance(delivery.envelope.data, OperationChanged) and delivery.envelope.id not in self._kept:
            self._kept.add(delivery.envelope.id)
            self.changes.append(delivery.envelope.data)
            self._changed.set()
        return Ack()


class GivenSettings(Settings):
    """Settings on which the environment has no effect. To find its sources takes a millisecond at each start."""

    def __init__(self, **given: Any) -> None:
        BaseModel.__init__(self, **given)


def settings(folder: Path, **changes: Any) -> Settings:
    """Return lcm-api's settings for a folder."""
    given = {
        "port": 0, "internal_token": TOKEN, "keys": KEY, "data_dir": folder / "data", "page_size": 2,
        "test_callbacks": False, "drift_every_s": 0, "vnf_networks": LOOPBACK,
    }  # fmt: skip
    return GivenSettings(**{**given, **changes})


@dataclass(frozen=True)
class Storage:
    """How a world stores documents."""

    ring: KeyRing = RING
    """Encrypts the secrets of the store and of the bus."""
    kind: type[FragileStore] = FragileStore


_empty: list[bytes] = []


async def prepare_database(path: Path) -> None:
    """Write a database with lcm-api's collections and indexes. To create them takes a fifth of each start, so it is done once."""
    if not _empty:
        async with SqliteStore.open(path) as store:
            for collection, indexes in INDEXES.items():
                await store.ensure_indexes(collection, indexes)
        _empty.append(path.read_bytes())
    path.write_bytes(_empty[0])


@asynccontextmanager
async def lcm_world(
    folder: Path,
    storage: Storage = Storage(),
    /,
    *,
    limits: Any = DEFAULT_LIMITS,
    clock: Any = None,
    **changes: Any,
) -> AsyncIterator[World]:
    """Yield a running lcm-api with its data in the folder.

    ``limits`` are those of its listener; ``clock`` defaults to the system clock; ``changes`` are settings.
    """
    vims, regions, links, volumes, starting = TwinVims(), TwinRegions(), TwinLinks(), TwinVolumes(), ExitStack()
    dry_runs, charts, checks = NoDryRuns(), GivenProgram(), TwinHealthChecks()
    playbooks, inventory, logs = GivenProgram(), GivenInventory(), TwinLogs()
    usages = GivenUsages()
    database = folder / "store.db"
    if not database.exists():
        await prepare_database(database)
    async with storage.kind.open(database) as store, InProcessBus(storage.ring, drain_s=1.0) as bus:
        twins = ServiceTwins(bus)
        with starting:
            # Messages left by an earlier life are delivered once all consumers listen.
            starting.enter_context(bus.holding())
            await twins.start()
            configured = settings(folder, **changes)
            async with (
                lcm_api(
                    configured,
                    Backends(bus, store, storage.ring, clock or SystemClock()),
                    vims=vims,
                    node_logs=logs,
                    playbooks=playbooks,
                    multicloud=MultiCloudServices(
                        regions, links, volumes, inventory, dry_runs, SimpleVerdicts(), charts, checks, usages
                    ),
                    limits=limits,
                ) as running,
                aiohttp.ClientSession() as session,
            ):
                url = f"http://127.0.0.1:{running.port}"
                world = World(
                    url,
                    bus,
                    store,
                    twins,
                    vims,
                    regions,
                    session,
                    folder,
                    links,
                    volumes,
                    dry_runs,
                    charts,
                    playbooks,
                    checks,
                    inventory,
                    logs,
                    running.automation,
                    usages,
                )
                await bus.consume_events("tests.changes", ["lcm.operation.changed"], world.keep)
                starting.close()
                yield world
