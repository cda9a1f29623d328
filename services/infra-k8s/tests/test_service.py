"""The service on a bus: commands in, events out, each once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from kubevnfm_bus.inprocess import InProcessBus
from kubevnfm_bus.port import Ack, Delivery, Verdict
from kubevnfm_clients.multicloud.errors import RegionLacks
from kubevnfm_clients.multicloud.links import HttpVirtualLinks, LinkRequest, ReferenceRequest
from kubevnfm_clients.multicloud.region_views import RegionFeatures
from kubevnfm_clients.multicloud.regions import CloudRegion
from kubevnfm_clients.multicloud.suspension import Suspension
from kubevnfm_clients.multicloud.types import Page
from kubevnfm_events import CommandFailed, Envelope, Event
from kubevnfm_events.links import VirtualLinkChanged
from kubevnfm_events.objects import ApplyObjects, DeleteObjects, ObjectsApplied, ObjectsDeleted
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_infra_k8s.settings import Settings
from kubevnfm_infra_k8s.wiring import infra_k8s
from kubevnfm_kit.errors import ConflictingInput, InUse, InvalidInput, NotFound, PreconditionFailed, Unprocessable
from kubevnfm_lab.kubernetes import LabCluster
from kubevnfm_secrets import KeyRing
from kubevnfm_store.sqlite.store import SqliteStore
from kubevnfm_worker.backends import Backends
from pydantic import SecretStr
from servers.vnf_networks import networks
from worlds.link_world import OneVim, define

Make = Callable[..., dict[str, Any]]


class NoRegions:
    """The regions of vim-registry: there are none, and links name a VIM."""

    async def get(self, owner: str, region: str) -> CloudRegion:
        raise NotFound(f"cloud region {owner}/{region} does not exist")

    async def find(self, filters: Mapping[str, str], *, limit: int, after: str | None = None) -> Page[CloudRegion]:
        return Page(())

    async def features(self, owner: str, region: str) -> RegionFeatures:
        raise NotFound(f"cloud region {owner}/{region} does not exist")

    async def suspensions(self) -> Mapping[str, Suspension]:
        return {}


async def test_a_virtual_link_is_made_and_removed_over_the_internal_api(
    site: Any, store: SqliteStore, lab: LabCluster, cluster: Cluster
) -> None:
    """MC-084 to MC-088: as the gateway and the steps of VNFs call it."""
    await define(cluster, "NetworkAttachmentDefinition")
    ring = KeyRing.from_text(KeyRing.new_key())
    settings = Settings(port=0, internal_token=SecretStr("token"), keys=SecretStr("unused"))
    async with InProcessBus(ring) as bus, aiohttp.ClientSession() as session:
        events: asyncio.Queue[Event] = asyncio.Queue()

        async def changed(delivery: Delivery) -> Verdict:
            assert isinstance(delivery.envelope.data, Event)
            events.put_nowait(delivery.envelope.data)
            return Ack()

        await bus.consume_events("test", ["infra.link.changed"], changed)
        async with infra_k8s(
            settings,
            Backends(bus, store, ring),
            packages=site.packages,
            charts=site.charts,
            vims=OneVim({"vim": site.vim}),
            identities=site.identities,
            regions=NoRegions(),
            networks=networks(),
        ) as running:
            links = HttpVirtualLinks(f"http://127.0.0.1:{running.port}", "token", session)
            spec = {"bridge": {"bridge": "br1"}}
            asked = {"cloud_region_id": "vim", "name": "net", "type": "nad", "spec": spec, "reference": "so"}
            wanted = LinkRequest.model_validate({**asked, "namespaces": ["default"]})
            made = await links.create(wanted, wait_s=50)
            async with session.get(f"http://127.0.0.1:{running.port}/metrics") as response:
                text = await response.text()
            assert f'kubevnfm_region_virtual_links{{status="{made.link.status}",vim_id="vim"}} 1.0' in text
            assert 'kubevnfm_region_objects_total{result="applied",vim_id="vim"}' in text
            assert (made.is_new, made.link.status, made.reference) == (True, "READY", "so")
            assert isinstance(await events.get(), VirtualLinkChanged)
            taken = await links.hold(made.link.id, "vnf:1", ReferenceRequest(), wait_s=50)
            assert (taken.use_count, taken.references) == (2, ("so", "vnf:1"))
            page = await links.find({"namespace": "default", "status": "READY"}, limit=1)
            assert ([each.id for each in page.items], page.next_after) == ([made.link.id], None)
            assert not (await links.find({"name": "other"}, limit=1)).items
            for beginning, count in (("name_prefix", 1), ("id_prefix", 1), ("name", 0)):
                text = made.link.id[:9] if beginning == "id_prefix" else "ne"
                assert len((await links.find({beginning: text}, limit=1)).items) == count
            with pytest.raises(InvalidInput, match="unknown filter"):
                await links.find({"colour": "red"}, limit=1)
            with pytest.raises(InUse) as used:
                await links.release(made.link.id, None, wait_s=0)
            assert used.value.holders == ("so", "vnf:1")
            with pytest.raises(PreconditionFailed, match="has changed since it was read"):
                await links.release(made.link.id, "so", wait_s=0, if_revision=1)
            with pytest.raises(Unprocessable) as refused:
                await links.create(wanted.model_copy(update={"cloud_region_id": "op/none"}), wait_s=0)
            assert refused.value.field == "cloud_region_id"
            with pytest.raises(ConflictingInput) as differs:
                await links.create(wanted.model_copy(update={"spec": {"bridge": {"bridge": "br2"}}}), wait_s=0)
            assert differs.value.field == "spec/bridge/bridge"
            with pytest.raises(RegionLacks):
                await links.create(wanted.model_copy(update={"name": "udn", **_UDN}), wait_s=0)
            left = await links.release(made.link.id, "so", wait_s=50)
            assert left is not None
            assert left.use_count == 1
            assert await links.release(made.link.id, "vnf:1", wait_s=50) is None
            with pytest.raises(NotFound):
                await links.get(made.link.id)


_UDN = {"type": "udn", "spec": {"scope": "cluster", "topology": "Layer2", "subnets": ["10.1.0.0/24"]}}


async def test_a_cnf_is_applied_and_deleted_by_commands(
    site: Any, store: SqliteStore, lab: LabCluster, workload: Make, tmp_path: Path
) -> None:
    answers: asyncio.Queue[Event] = asyncio.Queue()

    async def answered(delivery: Delivery) -> Verdict:
        event = delivery.envelope.data
        assert isinstance(event, Event)
        answers.put_nowait(event)
        return Ack()

    ring = KeyRing.from_text(KeyRing.new_key())
    package = site.packages.add({"f.yaml": workload(name="web")})
    async with InProcessBus(ring) as bus:
        await bus.consume_events("test", ["infra.#", "service.#"], answered)
        async with infra_k8s(
            Settings(port=0, settle_s=0.1, internal_token=SecretStr("token"), keys=SecretStr("unused")),
            Backends(bus, store, ring),
            packages=site.packages,
            charts=site.charts,
            vims=site.handlers.vims,
            identities=site.identities,
            regions=NoRegions(),
            networks=networks(),
        ):
            apply = ApplyObjects(vnf_instance_id="i1", package=package, vim=site.vim, def_files=("f.yaml",))
            command = Envelope(apply, source="/t", subject="i1", operationid="op1", stepid="apply", attempt=1)
            async with asyncio.timeout(300):
                await bus.publish(command)
                await bus.publish(command)
                applied = await answers.get()
                assert isinstance(applied, ObjectsApplied)
                assert len(lab.inventory()["objects"]) == 1
                bad = ApplyObjects(vnf_instance_id="i2", package=package, vim=site.vim, def_files=("none.yaml",))
                await bus.publish(Envelope(bad, source="/t", operationid="op2", stepid="apply", attempt=1))
                failed = await answers.get()
                while isinstance(failed, ObjectsApplied):  # the repeated answer of the doubled command
                    assert failed == applied
                    failed = await answers.get()
                assert isinstance(failed, CommandFailed)
                assert (failed.code, failed.status) == ("invalid-input", 400)
                assert "none.yaml" in failed.detail
                delete = DeleteObjects(vnf_instance_id="i1", vim=site.vim)
                await bus.publish(Envelope(delete, source="/t", operationid="op3", stepid="delete", attempt=1))
                assert await answers.get() == ObjectsDeleted(count=1)
    assert lab.inventory()["objects"] == {}


@pytest.mark.parametrize(("former", "value"), [("host", "0.0.0.0"), ("port", "9894")])
def test_the_former_settings_of_the_listener_name_those_that_replaced_them(
    monkeypatch: pytest.MonkeyPatch, former: str, value: str
) -> None:
    for name, given in (("INTERNAL_TOKEN", "t"), ("KEYS", "k"), (f"HEALTH_{former.upper()}", value)):
        monkeypatch.setenv(f"KUBEVNFM_INFRA_K8S_{name}", given)
    with pytest.raises(SystemExit) as ended:
        Settings.read_or_exit()
    assert str(ended.value).startswith(f"health_{former}: replaced by {former}")
