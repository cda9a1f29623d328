"""Virtual links on a cluster: the owner with its work and its stored documents, and definitions of the CNIs' kinds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from kubevnfm_bus.inprocess import InProcessBus
from kubevnfm_bus.port import Ack, Delivery, Verdict
from kubevnfm_clients.multicloud.links import CreatedLink, LinkRequest, VirtualLink
from kubevnfm_clients.multicloud.suspension import Suspension
from kubevnfm_events import VimConnection
from kubevnfm_events.links import VirtualLinkChanged
from kubevnfm_infra_k8s.adapters import stored_inventory, stored_links
from kubevnfm_infra_k8s.adapters import turns as stored_turns
from kubevnfm_infra_k8s.adapters.export_marks import ExportMarks
from kubevnfm_infra_k8s.adapters.stored_exports import StoredExports
from kubevnfm_infra_k8s.adapters.turns import StoredTurns
from kubevnfm_infra_k8s.domain.inventory.owner import StoredInventory
from kubevnfm_infra_k8s.domain.links.bringing import Bringing
from kubevnfm_infra_k8s.domain.links.owner import VirtualLinks
from kubevnfm_infra_k8s.domain.links.record import Link
from kubevnfm_infra_k8s.domain.objects import Body, ObjectKey, Resource
from kubevnfm_infra_k8s.domain.ports import Cluster, Clusters, LinkUse
from kubevnfm_infra_k8s.domain.reconciling.ports import Region
from kubevnfm_infra_k8s.domain.reconciling.work import ReconcilingWork
from kubevnfm_kit.clock import Clock, SystemClock
from kubevnfm_kit.errors import NotFound, OutsideUnavailable
from kubevnfm_kit.owners import Owners
from kubevnfm_secrets import KeyRing
from kubevnfm_store.port import DocumentStore
from kubevnfm_worker.outbox import Outbox
from kubevnfm_worker.relay import OutboxRelay
from patience import until_true

NAD = ("k8s.cni.cncf.io/v1", "NetworkAttachmentDefinition")
NETWORK = ("k8s.plugin.opnfv.org/v1alpha1", "Network")
DEFINITIONS = Resource(
    "apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
)
_KINDS = (
    ("k8s.cni.cncf.io", "v1", "NetworkAttachmentDefinition", "network-attachment-definitions", "Namespaced"),
    ("k8s.plugin.opnfv.org", "v1alpha1", "Network", "networks", "Namespaced"),
    ("k8s.plugin.opnfv.org", "v1alpha1", "ProviderNetwork", "providernetworks", "Namespaced"),
    ("sriovnetwork.openshift.io", "v1", "SriovNetwork", "sriovnetworks", "Namespaced"),
    ("sriovnetwork.openshift.io", "v1", "OVSNetwork", "ovsnetworks", "Namespaced"),
    ("k8s.ovn.org", "v1", "UserDefinedNetwork", "userdefinednetworks", "Namespaced"),
    ("k8s.ovn.org", "v1", "ClusterUserDefinedNetwork", "clusteruserdefinednetworks", "Cluster"),
    ("kubeovn.io", "v1", "Subnet", "subnets", "Cluster"),
    ("kubeovn.io", "v1", "Vlan", "vlans", "Cluster"),
    ("kubeovn.io", "v1", "ProviderNetwork", "provider-networks", "Cluster"),
)


def definition(group: str, version: str, kind: str, plural: str, scope: str) -> Body:
    """Return a definition that takes any object, for clusters without that of the CNI."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    served = {
        "name": version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    names = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
    spec = {"group": group, "names": names, "scope": scope, "versions": [served]}
    return {
        "apiVersion": DEFINITIONS.api_version,
        "kind": DEFINITIONS.kind,
        "metadata": {"name": f"{plural}.{group}"},
        "spec": spec,
    }


async def define(cluster: Cluster, *kinds: str) -> None:
    """Have the kinds (all of them if none is named) served; a definition that exists stays as it is."""
    for group, version, kind, plural, scope in _KINDS:
        if kinds and kind not in kinds:
            continue
        if await cluster.resource(f"{group}/{version}", kind) is None:
            key = ObjectKey(DEFINITIONS.api_version, DEFINITIONS.kind, "", f"{plural}.{group}")
            await cluster.apply(DEFINITIONS, key, definition(group, version, kind, plural, scope))

        async def is_served(api_version: str = f"{group}/{version}", kind: str = kind) -> bool:
            cluster.forget_kinds()
            return await cluster.resource(api_version, kind) is not None

        await until_true(is_served)


@dataclass(frozen=True)
class OneVim:
    """`kubevnfm_clients.ports.VimDirectory` with the VIMs of a test."""

    vims: Mapping[str, VimConnection]

    async def connection(self, vim: VimConnection) -> VimConnection:
        found = self.vims.get(vim.vim_id or "")
        if found is None:
            raise NotFound(f"no VIM has the id {vim.vim_id}")
        return found

    def forget(self, vim: VimConnection) -> None:
        """Nothing is kept."""


@dataclass
class GivenRegions:
    """`domain.reconciling.ports.Regions` with the regions of a test."""

    regions: Mapping[str, Region]
    suspended: dict[str, Suspension] = field(default_factory=dict)
    """By the id of the VIM."""
    is_away: bool = False
    """Whether vim-registry does not say what is suspended."""

    async def suspensions(self) -> Mapping[str, Suspension]:
        if self.is_away:
            raise OutsideUnavailable("vim-registry does not answer")
        return self.suspended

    async def region(self, cloud_region_id: str) -> Region:
        if cloud_region_id not in self.regions:
            raise NotFound(f"cloud region {cloud_region_id} does not exist")
        return self.regions[cloud_region_id]


@dataclass(frozen=True)
class GivenRegionLabels:
    """`domain.ports.RegionLabels`: the same of each VIM."""

    given: Mapping[str, str] = field(default_factory=dict)

    async def labels(self, vim: VimConnection) -> Mapping[str, str]:
        return self.given


class NoLinks:
    """`domain.ports.LinkUses` of instances without networks on virtual links."""

    async def hold(self, vnf_instance_id: str, uses: Mapping[str, LinkUse]) -> None:
        raise AssertionError("no instance of this test has networks")

    async def keep(self, vnf_instance_id: str, uses: Mapping[str, LinkUse]) -> Sequence[str]:
        raise AssertionError("no instance of this test has networks")

    async def leave(self, vnf_instance_id: str, namespaces: Sequence[str], *, vim_id: str, within_s: float) -> None:
        """There is nothing to release."""

    async def waited_for(self, vnf_instance_id: str, uses: Mapping[str, LinkUse], *, within_s: float) -> str:
        raise AssertionError("no instance of this test has networks")


@dataclass
class LinkWorld:
    """The owner of links and its work."""

    links: VirtualLinks
    work: ReconcilingWork[Link]
    records: stored_links.StoredLinks
    store: DocumentStore
    inventory: StoredInventory
    """A test stores its records: no process watches."""
    regions: GivenRegions
    events: list[VirtualLinkChanged] = field(default_factory=list)

    async def create(self, name: str = "net", type: str = "nad", *, wait_s: float = 60.0, **more: Any) -> CreatedLink:
        """Create a link, or take a reference of it."""
        asked = {"cloud_region_id": "op/one", "name": name, "type": type, "spec": {"bridge": {"bridge": "br1"}}}
        return await self.links.create(LinkRequest.model_validate({**asked, **more}), wait_s=wait_s)

    async def shown(self, link_id: str) -> VirtualLink:
        return await self.links.get(link_id)

    async def until_gone(self, link_id: str) -> None:
        """Return when the link is gone."""
        await until_true(lambda: self._is_gone(link_id))

    async def _is_gone(self, link_id: str) -> bool:
        return await self.records.get(link_id) is None


@asynccontextmanager
async def link_world(
    store: DocumentStore,
    clusters: Clusters,
    vims: Mapping[str, VimConnection],
    regions: Mapping[str, Region],
    *,
    clock: Clock | None = None,
    timeout_s: float = 120.0,
    aai_url: str | None = None,
) -> AsyncIterator[LinkWorld]:
    """Yield the owner with its work running; rounds are the test's. ``aai_url``: what is marked for the export to it."""
    ring, clock = KeyRing.from_text(KeyRing.new_key()), clock or SystemClock()
    for collection, indexes in {**stored_links.INDEXES, **stored_turns.INDEXES, **stored_inventory.INDEXES}.items():
        await store.ensure_indexes(collection, indexes)
    events: list[VirtualLinkChanged] = []

    async def keep(delivery: Delivery) -> Verdict:
        assert isinstance(delivery.envelope.data, VirtualLinkChanged)
        events.append(delivery.envelope.data)
        return Ack()

    async with InProcessBus(ring) as bus:
        await bus.consume_events("links", ["infra.link.#"], keep)
        async with OutboxRelay(store, bus, collections=[stored_links.LINKS]) as relay:
            marks = None if aai_url is None else ExportMarks(store, clock)
            export = None if aai_url is None or marks is None else StoredExports(store, clock, marks, aai_url)
            records = stored_links.StoredLinks(store, Outbox(store, relay, ring), marks)
            turns, directory, known = StoredTurns(store, clock, Owners()), OneVim(vims), GivenRegions(regions)
            working = ReconcilingWork[Link](
                "link", records, turns, known, directory, clusters,
                lambda cluster: Bringing(records, turns, cluster, clock, timeout_s), clock,
            )  # fmt: skip
            async with working.running() as work:
                links = VirtualLinks(records, turns, known, directory, clusters, work, clock)
                objects = stored_inventory.StoredObjects(store, Outbox(store, relay, ring))
                inventory = StoredInventory(objects, stored_inventory.StoredRegions(store, clock), known, clock, export)
                yield LinkWorld(links, work, records, store, inventory, known, events)


async def quiet(world: LinkWorld, count: int) -> None:
    """Return when so many events have come."""

    async def have_come() -> bool:
        await asyncio.sleep(0)
        return len(world.events) >= count

    await until_true(have_come)
