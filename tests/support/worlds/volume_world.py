"""The owner of persistent volumes on a lab's cluster, and a gateway before it, both serving HTTP."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import aiohttp
from callers.documented import Documented, our_documents
from healthy import healthy
from kubevnfm_access.gate import Gate
from kubevnfm_access.middleware import Proxies
from kubevnfm_clients.multicloud.volumes import HttpPersistentVolumes
from kubevnfm_infra_k8s.adapters.clusters import KubernetesClusters
from kubevnfm_infra_k8s.adapters.http_volumes import volume_routes
from kubevnfm_infra_k8s.domain.objects import ObjectKey, Resource
from kubevnfm_kit.clock import SystemClock
from kubevnfm_kit.http import serving
from kubevnfm_kit.internal import internal_app
from kubevnfm_lab.faults import CallLedger, FaultBook
from kubevnfm_lab.kubernetes import LabClusters
from kubevnfm_lcm_api.gateway.app import make_app
from kubevnfm_lcm_api.http.context import HttpContext
from kubevnfm_lcm_api.multicloud import routes
from kubevnfm_lcm_api.multicloud.services import DOCUMENT, PREFIX, MultiCloudServices
from kubevnfm_secrets import KeyRing
from kubevnfm_store.sqlite.store import SqliteStore
from real.real_kubernetes import RealKubernetes
from servers.vnf_networks import networks

from worlds.given_usages import GivenUsages
from worlds.health_checks import TwinHealthChecks
from worlds.inventory_world import GivenInventory, GivenProgram, NoDryRuns, SimpleVerdicts
from worlds.lcm_world import Answer, TwinLinks, TwinRegions
from worlds.volume_ground import VolumeGround, volume_ground

VOLUMES: Final = f"{PREFIX}/persistent-volumes"
_TOKEN: Final = "internal-token-of-the-tests"
_NAMESPACES: Final = Resource("v1", "Namespace", "namespaces", namespaced=False)


@dataclass(frozen=True)
class VolumeWorld:
    """The running services."""

    url: str
    session: aiohttp.ClientSession
    document: Documented
    ground: VolumeGround
    client: HttpPersistentVolumes
    """As a step of a VNF's operation has it."""

    async def call(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Call the gateway; the answer is checked against the OpenAPI document of multi-cloud."""
        async with self.session.request(method, f"{self.url}{path}", json=body, headers=headers) as response:
            raw = await response.read()
            self.document.check(method, path, response.status, response.headers, raw)
            return Answer(response.status, response.headers, raw)

    def request(self, **changes: Any) -> dict[str, Any]:
        """Return the body that creates a volume; None leaves a member out."""
        body = {
            "cloud_region_id": "op/edge",
            "name": "data",
            "size": "1Gi",
            "access_modes": ["ReadWriteOnce"],
            "source": {"nfs": {"server": "192.0.2.9", "path": "/data"}},
            **changes,
        }
        return {name: value for name, value in body.items() if value is not None}

    async def create(self, **changes: Any) -> Answer:
        """Create a volume."""
        return await self.call("POST", VOLUMES, self.request(**changes))


@asynccontextmanager
async def volume_world(folder: Path) -> AsyncIterator[VolumeWorld]:
    """Yield the services."""
    ring, clusters = KeyRing.from_text(KeyRing.new_key()), LabClusters(faults=FaultBook(), ledger=CallLedger())
    await clusters.start()
    address = f"127.{secrets.randbelow(100) + 20}.{secrets.randbelow(250)}.{secrets.randbelow(250) + 1}"
    lab = await clusters.create(
        address=address, version="v1.34.10", pod_cidr="10.244.0.0/16", service_cidr="10.96.0.0/12"
    )
    vim, namespace = RealKubernetes(lab.endpoint, lab.admin_token, lab.ca_pem).vim(), f"t{secrets.token_hex(5)}"
    try:
        async with (
            SqliteStore.open(folder / "store.db") as store,
            KubernetesClusters.open(ring, networks()) as connections,
            connections.cluster(vim) as cluster,
        ):
            place = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
            await cluster.create(_NAMESPACES, ObjectKey("v1", "Namespace", "", namespace), place)
            async with (
                volume_ground(store, connections, vim, cluster, namespace, is_real=False) as ground,
                _gateway(ground, store, ring) as world,
            ):
                yield world
    finally:
        await clusters.close()


@asynccontextmanager
async def _gateway(ground: VolumeGround, store: SqliteStore, ring: KeyRing) -> AsyncIterator[VolumeWorld]:
    owner = internal_app(volume_routes(ground.owner), token=_TOKEN)
    async with serving(owner, host="127.0.0.1", port=0) as owner_port, aiohttp.ClientSession() as session:
        client = HttpPersistentVolumes(f"http://127.0.0.1:{owner_port}", _TOKEN, session)
        context = HttpContext(
            store=store, ring=ring, clock=SystemClock(), public_url=None, internal_token=_TOKEN, page_size=100
        )
        no_vnfs: Any = None
        owners = MultiCloudServices(
            TwinRegions(),
            TwinLinks(),
            client,
            GivenInventory(),
            NoDryRuns(),
            SimpleVerdicts(),
            GivenProgram(),
            TwinHealthChecks(),
            GivenUsages(),
        )
        subjects = [
            partial(routes.add_to, services=owners, vnfs=no_vnfs, groups=no_vnfs, ends=no_vnfs, group_parallel=1)
        ]
        app = make_app(subjects, context, healthy, {}, gate=Gate([]), proxies=Proxies())
        document = our_documents()[DOCUMENT.prefix]
        async with serving(app, host="127.0.0.1", port=0) as port:
            yield VolumeWorld(f"http://127.0.0.1:{port}", session, document, ground, client)
