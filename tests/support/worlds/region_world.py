"""vim-registry with a lab's clusters, and a gateway with the multi-cloud API before it, both serving HTTP."""

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
from kubevnfm_clients.multicloud.regions import HttpCloudRegions
from kubevnfm_clients.vims import HttpVims
from kubevnfm_kit.clock import Clock, SystemClock
from kubevnfm_kit.http import serving
from kubevnfm_lab.kubernetes.cluster import LabCluster
from kubevnfm_lab.lab import Lab
from kubevnfm_lcm_api.gateway import vims
from kubevnfm_lcm_api.gateway.app import Subject, make_app
from kubevnfm_lcm_api.http.context import HttpContext
from kubevnfm_lcm_api.multicloud import routes
from kubevnfm_lcm_api.multicloud.services import DOCUMENT, PREFIX, MultiCloudServices
from kubevnfm_lcm_api.onap import routes as onap
from kubevnfm_vim_registry.settings import Settings

from worlds.given_usages import GivenUsages
from worlds.health_checks import TwinHealthChecks
from worlds.inventory_world import GivenInventory, GivenProgram, NoDryRuns, SimpleVerdicts
from worlds.kubeconfigs import a_kubeconfig, encoded
from worlds.lcm_world import Answer, TwinLinks, TwinVolumes
from worlds.vim_world import RING, TOKEN, World, running

REGIONS = f"{PREFIX}/cloud-regions"


@dataclass(frozen=True)
class RegionWorld:
    """The running services."""

    url: str
    session: aiohttp.ClientSession
    registry: World
    document: Documented
    links: TwinLinks
    volumes: TwinVolumes

    async def call(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        *,
        data: aiohttp.FormData | bytes | None = None,
    ) -> Answer:
        """Call the gateway; the answer is checked against the OpenAPI document of multi-cloud."""
        sent = self.session.request(method, f"{self.url}{path}", json=body, data=data, headers=headers)
        async with sent as response:
            raw = await response.read()
            self.document.check(method, path, response.status, response.headers, raw)
            return Answer(response.status, response.headers, raw)

    async def region(self, cluster: LabCluster, region: str = "edge", **changes: Any) -> Answer:
        """Register a cluster."""
        return await self.call("POST", REGIONS, a_region(cluster, region, **changes))


def a_region(cluster: LabCluster, region: str = "edge", **changes: Any) -> dict[str, Any]:
    """Return the request that registers a cluster."""
    return {"cloud_owner": "op", "cloud_region": region, "kubeconfig": encoded(a_kubeconfig(cluster)), **changes}


@asynccontextmanager
async def region_world(
    lab: Lab, settings: Settings, folder: Path, *, clock: Clock | None = None
) -> AsyncIterator[RegionWorld]:
    """Yield the services."""

    async with running(lab, settings, folder, clock=clock) as registry, aiohttp.ClientSession() as session:
        client = HttpCloudRegions(registry.url, TOKEN, session, RING)
        context = HttpContext(
            store=registry.store,
            ring=RING,
            clock=clock or SystemClock(),
            public_url=None,
            internal_token=TOKEN,
            page_size=100,
        )
        none: Any = None
        links, volumes = TwinLinks(), TwinVolumes()
        owners = MultiCloudServices(
            client,
            links,
            volumes,
            GivenInventory(),
            NoDryRuns(),
            SimpleVerdicts(),
            GivenProgram(),
            TwinHealthChecks(),
            GivenUsages(),
        )
        subjects: list[Subject] = [
            partial(routes.add_to, services=owners, vnfs=none, groups=none, ends=none, group_parallel=1),
            partial(vims.add_to, vims=HttpVims(registry.url, TOKEN, session), links=links, volumes=volumes),
            partial(onap.add_to, stored_bundles=none),
        ]
        app = make_app(subjects, context, healthy, {}, gate=Gate([]), proxies=Proxies())
        document = our_documents()[DOCUMENT.prefix]
        async with serving(app, host="127.0.0.1", port=0) as port:
            yield RegionWorld(f"http://127.0.0.1:{port}", session, registry, document, links, volumes)
