"""The service with A&AI in its settings: a virtual link of a region is exported (multicloud.md MC-094, MC-110)."""

from __future__ import annotations

from typing import Any, cast

import aiohttp
from kubevnfm_bus.inprocess import InProcessBus
from kubevnfm_clients.multicloud.inventory import HttpInventory
from kubevnfm_clients.multicloud.links import HttpVirtualLinks, LinkRequest
from kubevnfm_clients.multicloud.regions import CloudRegion
from kubevnfm_clients.multicloud.types import Page
from kubevnfm_infra_k8s.adapters.regions import RegionDirectory
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_infra_k8s.settings import Settings
from kubevnfm_infra_k8s.wiring import infra_k8s
from kubevnfm_secrets import KeyRing
from kubevnfm_store.sqlite.store import SqliteStore
from kubevnfm_worker.backends import Backends
from patience import until_true
from pydantic import SecretStr
from servers.aai import PASSWORD, USER, aai
from servers.vnf_networks import networks
from worlds.lcm_world import TwinRegions
from worlds.link_world import OneVim, define


class OneRegion(TwinRegions):
    """The VIM ``vim`` is the region ``op/one``."""

    async def find(self, filters: Any, *, limit: int, after: str | None = None) -> Page[CloudRegion]:
        return Page([each for each in self.by_id.values() if each.vim_id == filters["vim_id"]])


async def test_a_link_of_the_service_comes_to_aai_and_leaves_it(
    site: Any, store: SqliteStore, cluster: Cluster
) -> None:
    await define(cluster, "NetworkAttachmentDefinition")
    ring, regions = KeyRing.from_text(KeyRing.new_key()), OneRegion()
    regions.add("op/one", "vim")
    async with aai() as server, InProcessBus(ring) as bus, aiohttp.ClientSession() as session:
        settings = Settings(
            port=0, internal_token=SecretStr("token"), keys=SecretStr("unused"),
            aai_url=server.url, aai_user=USER, aai_password=SecretStr(PASSWORD),
        )  # fmt: skip
        async with infra_k8s(
            settings,
            Backends(bus, store, ring),
            packages=site.packages,
            charts=site.charts,
            vims=OneVim({"vim": site.vim}),
            identities=site.identities,
            regions=cast("RegionDirectory", regions),
            networks=networks(),
        ) as running:
            url = f"http://127.0.0.1:{running.port}"
            links = HttpVirtualLinks(url, "token", session)
            spec = {"bridge": {"bridge": "br1"}}
            asked = {"cloud_region_id": "op/one", "name": "net", "type": "nad", "spec": spec, "reference": "so"}
            made = await links.create(LinkRequest.model_validate({**asked, "namespaces": ["default"]}), wait_s=50)

            async def is_there() -> bool:
                return server.paths("l3-network") == [f"/network/l3-networks/l3-network/{made.link.id}"]

            async def is_gone() -> bool:
                return not server.paths("l3-network")

            await until_true(is_there)
            await links.release(made.link.id, "so", wait_s=50)
            await until_true(is_gone)
            export = (await HttpInventory(url, "token", session).health()).export
            assert export is not None
            assert export.resync is not None
