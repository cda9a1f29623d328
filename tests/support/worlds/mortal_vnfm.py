"""kubevnfm in one process that dies at a chosen write and is started again, a cluster that outlives it, and a user who repeats what was cut."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self
from unittest.mock import patch
from uuid import uuid4

import aiohttp
from callers.user import VERSION, Answer, User
from kubevnfm_lab.faults import CallLedger, FaultBook
from kubevnfm_lab.kubernetes import LabCluster, LabClusters
from kubevnfm_lab.kubernetes.objects import Obj, key_of
from patience import until
from real.real_cluster import RealCluster
from real.real_kubernetes import RealKubernetes
from servers.installations import SUBSCRIBERS
from servers.loopback import next_address
from servers.ports import free_port
from servers.vnf_networks import LOOPBACK

from worlds import mortal_process

_PATIENCE_S: Final = 600.0
"""Also for a start of one of several processes on a busy machine: imports alone take 4 s of processor time."""
_MODULES: Final = Path(mortal_process.__file__).parents[1]


class MortalVnfm:
    """The process. An async context manager; a life that has ended is followed by the next one at once."""

    def __init__(self, folder: Path, endpoints: Sequence[str], **settings: str) -> None:
        """``endpoints``: of the API servers, requests to which are writes."""
        folder.mkdir(parents=True, exist_ok=True)
        self._port, self._endpoints, self.log = free_port(), list(endpoints), folder / "kubevnfm.log"
        self.data = folder / "data"
        self.vnfd_id_by_sample: dict[str, str] = {}
        self._environment = {
            **os.environ,
            "PYTHONPATH": str(_MODULES),
            "KUBEVNFM_PORT": str(self._port),
            "KUBEVNFM_DATA_DIR": str(self.data),
            "KUBEVNFM_CONFIG": os.devnull,
            "KUBEVNFM_TRUST_PACKAGES": "true",
            "KUBEVNFM_ALLOWED_NETWORKS": SUBSCRIBERS,
            "KUBEVNFM_VNF_NETWORKS": LOOPBACK,
            # A comparison in the background would write at another moment in each run.
            "KUBEVNFM_DRIFT_EVERY_S": "0",
            **settings,
        }
        self.deaths: list[str] = []
        """Where each life has ended."""
        self.last_writes: list[str] = []
        """Those of the last life that has ended, since it was armed."""
        self._lives = 0
        self._ready = asyncio.Event()
        self._armed: dict[str, Any] | None = None
        """The answer of a life, which may have died before it could give one."""
        self._news = asyncio.Condition()
        self._is_ending = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    async def __aenter__(self) -> Self:
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", mortal_process.__name__, stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE, stderr=log, env=self._environment,
            )  # fmt: skip
        await self._say(endpoints=self._endpoints)
        self._hearing = asyncio.create_task(self._hear())
        await self._live()
        await self.ready()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._is_ending = True
        if self._process.returncode is None:
            await self._say(do="end")
            assert self._process.stdin is not None
            self._process.stdin.close()
            try:
                await asyncio.wait_for(self._process.wait(), 30)
            except TimeoutError:
                self._process.kill()
        await self._hearing

    async def ready(self) -> None:
        """Return once a life answers."""
        async with asyncio.timeout(_PATIENCE_S):
            await self._ready.wait()

    async def arm(self, dies_at: str = "", nth: int = 1, *, is_done: bool | None = None) -> list[str]:
        """Have the life end at this write from now on: the nth that matches a pattern. "": at none. Return its writes since it was armed last."""
        async with asyncio.timeout(_PATIENCE_S):
            while True:
                await self._ready.wait()
                lives = self._lives
                await self._say(do="arm", dies_at=dies_at, nth=nth, is_done=is_done, asked=lives)
                if (answer := await self._answer_of(lives)) is not None:
                    return list(answer["writes"])

    async def _answer_of(self, life: int) -> dict[str, Any] | None:
        """Return what this life answers; None: it has died before."""
        async with self._news:
            await self._news.wait_for(lambda: self._armed is not None or self._lives > life)
        answer, self._armed = self._armed, None
        return answer if answer is not None and answer["asked"] == life else None

    async def _live(self) -> None:
        await self._say(do="live")
        self._lives += 1

    async def _say(self, **line: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(line).encode() + b"\n")
        await self._process.stdin.drain()

    async def _hear(self) -> None:
        assert self._process.stdout is not None
        async for text in self._process.stdout:
            line = json.loads(text)
            match line["is"]:
                case "ready":
                    self._ready.set()
                case "dead":
                    self._ready.clear()
                    self.deaths.append(line["at"] or f"status {line['status']}")
                    self.last_writes = line["writes"]
                    if not self._is_ending:
                        await self._live()
                case _:
                    self._armed = line
            async with self._news:
                self._news.notify_all()


class PatientUser(User):
    """A user who repeats a request that was cut, with the same ``Idempotency-Key`` if it is a POST."""

    def __init__(self, vnfm: MortalVnfm) -> None:
        super().__init__(vnfm, url=vnfm.url)  # type: ignore[arg-type]  # it has what calls of the gateway need
        self._vnfm = vnfm
        self.cuts = 0
        """How many requests had no answer."""

    async def __aenter__(self) -> Self:
        # aiohttp itself repeats a DELETE or PUT on a connection that it used before.
        timeout, connector = aiohttp.ClientTimeout(total=60, sock_connect=5), aiohttp.TCPConnector(force_close=True)
        self._session = aiohttp.ClientSession(timeout=timeout, connector=connector)
        return self

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        data: bytes | None = None,
    ) -> Answer:
        key = {"Idempotency-Key": str(uuid4())} if method == "POST" and path.startswith("/multicloud/") else {}
        async with asyncio.timeout(_PATIENCE_S):
            while True:
                await self._vnfm.ready()
                try:
                    answer = await super().call(method, path, body, headers={**(headers or {}), **key}, data=data)
                except aiohttp.ClientError:
                    self.cuts += method != "GET"
                    await asyncio.sleep(0.05)
                    continue
                if answer.status == 409 and answer.json["type"] == "request-running":
                    await asyncio.sleep(0.2)
                    continue
                return answer

    async def operate(self, instance_id: str, task: str, body: Mapping[str, Any]) -> None:
        """Carry out an operation by SOL003, which has no ``Idempotency-Key``: if there was no answer, look whether it has begun."""
        listed = f"/vnf_lcm_op_occs?filter=(eq,vnfInstanceId,{instance_id})"

        async def states() -> dict[str, str]:
            return {each["id"]: each["operationState"] for each in (await self.lcm("GET", listed)).must(200).json}

        known = await states()
        async with asyncio.timeout(_PATIENCE_S):
            while not (begun := (await states()).keys() - known.keys()):
                await self._vnfm.ready()
                path, headers = f"/vnflcm/v2/vnf_instances/{instance_id}/{task}", {"Version": VERSION["v2"]}
                try:
                    answer = await super().call("POST", path, body, headers=headers)
                except aiohttp.ClientError:
                    self.cuts += 1
                    continue
                # The one that was cut has claimed the instance, and its occurrence is not stored yet.
                assert answer.status in ({202, 409} if self.cuts else {202}), answer.text
        (operation,) = begun

        async def ended() -> str | None:
            state = (await states())[operation]
            return None if state in {"STARTING", "PROCESSING"} else state

        assert await until(ended, timeout_s=_PATIENCE_S) == "COMPLETED"


@dataclass
class Seen:
    """A cluster of the lab, and what was created in it over its API."""

    lab: LabCluster
    access: RealKubernetes
    created: list[tuple[str, str]] = field(default_factory=list)
    """``<Kind> <namespace>/<name>`` and uid of each object."""

    @property
    def objects(self) -> dict[str, str]:
        """The uid of each object that exists and came over the API, by ``<Kind>/<namespace>/<name>``."""
        return {place: each["uid"] for place, each in self.lab.inventory()["objects"].items()}

    def twice(self) -> list[str]:
        """Return the objects that were created more than once since `forget`."""
        return [place for place, number in Counter(place for place, _ in self.created).items() if number > 1]

    def forget(self) -> None:
        """Forget what was created."""
        self.created.clear()


@asynccontextmanager
async def seen_clusters(count: int) -> AsyncIterator[list[Seen]]:
    """Yield clusters of the lab in this process."""
    labs = LabClusters(faults=FaultBook(), ledger=CallLedger())
    async with AsyncExitStack() as stack:
        stack.push_async_callback(labs.close)
        found = []
        for _ in range(count):
            address = next_address()
            lab = await labs.create(
                address=address, version="v1.33.1", pod_cidr="10.244.0.0/16", service_cidr="10.96.0.0/12"
            )
            await lab.add_node("master", address=address, control_plane=True)
            await lab.add_node("worker", address="127.0.0.8", control_plane=False)
            seen = Seen(lab, RealKubernetes(lab.endpoint, lab.admin_token, lab.ca_pem))
            stack.enter_context(_recording(seen))
            found.append(seen)
        yield found


def _recording(seen: Seen) -> Any:
    create = seen.lab.registry.create

    def recorded(*args: Any, **more: Any) -> Obj:
        made = create(*args, **more)
        if more.get("by_user") and not more.get("dry_run"):
            key = key_of(made)
            seen.created.append((f"{made['kind']} {key.namespace}/{key.name}", made["metadata"]["uid"]))
        return made

    return patch.object(seen.lab.registry, "create", recorded)


@asynccontextmanager
async def mortal_site(
    folder: Path, clusters: int = 1
) -> AsyncIterator[tuple[MortalVnfm, PatientUser, list[Seen], list[RealCluster]]]:
    """Yield the process, its user, and the clusters."""
    async with AsyncExitStack() as stack:
        seen = await stack.enter_async_context(seen_clusters(clusters))
        vnfm = await stack.enter_async_context(MortalVnfm(folder, [each.access.endpoint for each in seen]))
        user = await stack.enter_async_context(PatientUser(vnfm))
        real = [await stack.enter_async_context(RealCluster(each.access)) for each in seen]
        yield vnfm, user, seen, real
