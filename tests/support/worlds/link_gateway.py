"""The owner of virtual links on a lab's cluster, and a gateway with the multi-cloud API before it, both serving HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
from callers.documented import Documented, our_documents
from healthy import healthy
from kubevnfm_access.gate import Gate
from kubevnfm_access.middleware import Proxies
from kubevnfm_clients.multicloud.inventory import HttpInventory
from kubevnfm_clients.multicloud.links import HttpVirtualLinks
from kubevnfm_events import VimConnection
from kubevnfm_infra_k8s.adapters.clusters import KubernetesClusters
from kubevnfm_infra_k8s.adapters.http import link_routes
from kubevnfm_infra_k8s.adapters.http_inventory import inventory_routes
from kubevnfm_infra_k8s.domain.reconciling.ports import Region
from kubevnfm_kit.clock import SystemClock
from kubevnfm_kit.http import serving
from kubevnfm_kit.internal import internal_app
from kubevnfm_lab.kubernetes.cluster import LabCluster
from kubevnfm_lcm_api.gateway.app import Subject, make_app
from kubevnfm_lcm_api.http.context import HttpContext
from kubevnfm_lcm_api.multicloud import routes
from kubevnfm_lcm_api.multicloud.services import DOCUMENT, PREFIX, MultiCloudServices
from kubevnfm_lcm_api.onap import routes as onap
from kubevnfm_secrets import KeyRing, Secret
from kubevnfm_store.sqlite.store import SqliteStore
from servers.vnf_networks import networks

from worlds.given_usages import GivenUsages
from worlds.health_checks import TwinHealthChecks
from worlds.inventory_world import GivenProgram, NoDryRuns, SimpleVerdicts
from worlds.lcm_world import Answer, TwinRegions, TwinVolumes
from worlds.link_world import LinkWorld, define, link_world

LINKS = f"{PREFIX}/virtual-links"
_TOKEN = "internal-token-of-the-tests"


@dataclass(frozen=True)
class LinkGateway:
    """The running services."""

    url: str
    session: aiohttp.ClientSession
    world: LinkWorld
    document: Documented
    client: HttpVirtualLinks
    """As the life cycle of VNFs has it."""

    async def call(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        *,
        data: bytes | None = None,
    ) -> Answer:
        """Call the gateway; the answer is checked against the OpenAPI document of multi-cloud."""
        sent = self.session.request(method, f"{self.url}{path}", json=body, data=data, headers=headers)
        async with sent as response:
            raw = await response.read()
            self.document.check(method, path, response.status, response.headers, raw)
            return Answer(response.status, response.headers, raw)

    async def create(self, headers: Mapping[str, str] | None = None, **changes: object) -> Answer:
        """Create a link."""
        asked = {"cloud_region_id": "op/one", "name": "net", "type": "nad", "spec": {"bridge": {"bridge": "br1"}}}
        return await self.call("POST", LINKS, {**asked, "reference": "so", **changes}, headers)


@asynccontextmanager
async def link_gateway(
    lab: LabCluster, folder: Path, *kinds: str, aai_url: str | None = None
) -> AsyncIterator[LinkGateway]:
    """Yield the services; the cluster serves these kinds of CNIs. ``aai_url``: the A&AI that the inventory is marked for."""
    ring = KeyRing.from_text(KeyRing.new_key())
    vim = VimConnection(
        vim_id="vim",
        vim_type="ETSINFV.KUBERNETES.V_1",
        interface_info={"endpoint": lab.endpoint, "ssl_ca_cert": lab.ca_pem},
        access_info={"bearer_token": Secret(lab.admin_token)},
    )

    async with (
        SqliteStore.open(folder / "links.db") as store,
        KubernetesClusters.open(ring, networks()) as clusters,
        link_world(store, clusters, {"vim": vim}, {"op/one": Region("vim")}, aai_url=aai_url) as world,
        serving(
            internal_app([*link_routes(world.links), *inventory_routes(world.inventory)], token=_TOKEN),
            host="127.0.0.1",
            port=0,
        ) as owner_port,
        aiohttp.ClientSession() as session,
    ):
        async with clusters.cluster(vim) as cluster:
            await define(cluster, *kinds)
        client = HttpVirtualLinks(f"http://127.0.0.1:{owner_port}", _TOKEN, session)
        inventory = HttpInventory(f"http://127.0.0.1:{owner_port}", _TOKEN, session)
        context = HttpContext(
            store=store, ring=ring, clock=SystemClock(), public_url=None, internal_token=_TOKEN, page_size=100
        )
        no_vnfs: Any = None
        regions = TwinRegions()
        regions.add("op/one", "vim")
        owners = MultiCloudServices(
            regions,
            client,
            TwinVolumes(),
            inventory,
            NoDryRuns(),
            SimpleVerdicts(),
            GivenProgram(),
            TwinHealthChecks(),
            GivenUsages(),
        )
        subjects: list[Subject] = [
            partial(routes.add_to, services=owners, vnfs=no_vnfs, groups=no_vnfs, ends=no_vnfs, group_parallel=1),
            partial(onap.add_to, stored_bundles=no_vnfs),
        ]
        app = make_app(subjects, context, healthy, {}, gate=Gate([]), proxies=Proxies())
        document = our_documents()[DOCUMENT.prefix]
        async with serving(app, host="127.0.0.1", port=0) as port:
            yield LinkGateway(f"http://127.0.0.1:{port}", session, world, document, client)
