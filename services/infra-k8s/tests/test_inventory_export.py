"""The export of the inventory to A&AI, given an A&AI that keeps its rules and can fail (multicloud.md MC-094, MC-109 to MC-111, MC-119)."""

from __future__ import annotations

import asyncio
import math
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from callers.metrics import metrics_text
from kubevnfm_infra_k8s.adapters.export_marks import EXPORTS
from kubevnfm_infra_k8s.adapters.leases import HeldTerm
from kubevnfm_infra_k8s.adapters.stored_exports import NoExport
from kubevnfm_infra_k8s.adapters.stored_inventory import OBJECTS, StoredObjects
from kubevnfm_infra_k8s.adapters.stored_links import LINKS, StoredLinks
from kubevnfm_infra_k8s.domain.inventory.record import ObjectExport, record_id
from kubevnfm_kit.clock import rfc3339
from kubevnfm_store.query import Filter, Query, Stored
from kubevnfm_store.sqlite.catalogue import Catalogue
from kubevnfm_store.sqlite.queries import selects
from kubevnfm_store.sqlite.store import SqliteStore
from patience import until_true
from servers.aai import PASSWORD
from worlds.export_world import REGION, ExportWorld, a_link, addresses, export_world, features
from worlds.set_clock import SetClock

VNF = "/network/generic-vnfs/generic-vnf"


@pytest.fixture
async def world(store: SqliteStore) -> AsyncIterator[ExportWorld]:
    async with export_world(store) as world:
        yield world


async def test_a_pod_is_a_vserver_of_its_vnf_from_creation_to_removal(world: ExportWorld) -> None:
    """MC-109, MC-110: with the region, the tenant and the VNF that it needs, each change, and the VNF's removal after the last object."""
    world.start()
    await world.write("web", kind="Deployment")
    first = addresses("10.0.0.1", "fd00::1")
    await world.write("web-1", node="w1", networks=(first,), vdu_id="VDU1")
    await world.settled()
    assert world.aai.node(REGION) is not None
    shown = await world.vserver("web-1")
    assert shown is not None
    assert (shown["vserver-name"], shown["vserver-name2"], shown["prov-status"]) == ("web-1", "VDU1", "PROV")
    (interface,) = shown["l-interfaces"]["l-interface"]
    assert [each["l3-interface-ipv4-address"] for each in interface["l3-interface-ipv4-address-list"]] == ["10.0.0.1"]
    assert [each["l3-interface-ipv6-address"] for each in interface["l3-interface-ipv6-address-list"]] == ["fd00::1"]
    (edge,) = shown["relationship-list"]["relationship"]
    assert edge["related-link"] == f"/aai/v14{VNF}/vnf-1"

    # Another client's attribute and relationship stay; another address and network replace the first.
    path = world.aai.paths("vserver")[0]
    world.aai.edit(path, in_maint=True)
    second = addresses("10.1.0.7", network="ns/net", interface="net1")
    # Names of interfaces that a region should not have twice.
    odd = addresses(network="first", interface="net1-3"), addresses(network="second", interface="net1")
    await world.write("web-1", node="w1", networks=(addresses("10.0.0.2"), second, *odd), phase="Failed")
    await world.settled()
    changed = await world.vserver("web-1")
    assert changed is not None
    names = {each["interface-name"]: each["network-name"] for each in changed["l-interfaces"]["l-interface"]}
    assert names == {"default": "default", "net1": "ns/net", "net1-3": "first", "net1-3-3": "second"}
    assert changed["prov-status"] == "PREPROV"
    assert (changed["relationship-list"], changed["in-maint"]) == (shown["relationship-list"], True)

    await world.remove("web-1")
    await world.settled()
    assert (world.aai.paths("vserver"), world.aai.paths("generic-vnf")) == ([], [f"{VNF}/vnf-1"])
    await world.remove("web", kind="Deployment")
    await world.settled()
    assert world.aai.paths("generic-vnf") == []
    # Others may have put something there, so the namespace and the region stay.
    assert world.aai.paths("tenant") == [f"{REGION}/tenants/tenant/ns"]
    assert world.aai.collisions == []
    sent = world.aai.headers[-1]
    assert sent["X-FromAppId"] == "kubevnfm"
    assert len({each["X-TransactionId"] for each in world.aai.headers}) == len(world.aai.headers)


async def test_nodes_of_others_are_neither_changed_nor_deleted(world: ExportWorld) -> None:
    """MC-110: a region, a tenant, a VNF and a vserver that A&AI has got from others."""
    world.aai.put(REGION, {"cloud-type": "openstack", "owner-defined-type": "theirs"})
    world.aai.put(f"{REGION}/tenants/tenant/ns", {"tenant-name": "theirs"})
    world.aai.put(f"{VNF}/vnf-1", {"vnf-type": "theirs"})
    pod = record_id("vim", "", "Pod", "ns", "web-1")
    path = f"{REGION}/tenants/tenant/ns/vservers/vserver/{pod}"
    world.aai.put(path, {"vserver-name": "theirs", "vserver-selflink": "https://elsewhere"})
    before = {each: world.aai.node(each) for each in (REGION, f"{VNF}/vnf-1", path)}
    world.start()
    await world.write("web-1")
    await world.write("web-2")
    await world.settled()
    assert await world.vserver("web-2") is not None
    for name in ("web-1", "web-2"):
        await world.remove(name)
    await world.settled()
    region = world.aai.node(REGION)
    assert region is not None
    assert region["owner-defined-type"] == "theirs"
    assert world.aai.node(path) == before[path]
    assert world.aai.node(f"{VNF}/vnf-1") == before[f"{VNF}/vnf-1"]
    assert await world.vserver("web-2") is None


async def test_what_changed_while_aai_was_away_is_there_when_it_is_back(world: ExportWorld) -> None:
    """MC-110, MC-111, MC-136: nothing is written meanwhile, the state and the lag are shown, and only the last states are sent."""
    world.start()
    await world.write("gone")
    await world.write("kept")
    await world.settled()
    world.aai.fault = 503
    for number in range(100):
        await world.write("kept", node=f"w{number}", networks=(addresses(f"10.0.0.{number + 1}"),))
    await world.remove("gone")
    await world.write("new")
    await world.write("short")
    await world.remove("short")

    async def is_away() -> bool:
        return (await world.health()).reachable is False

    await until_true(is_away)
    revisions = {each.id: each.revision for each in await world.objects.page({}, limit=10, after=None)}
    calls = len(world.aai.calls)

    async def is_tried_again() -> bool:
        return len(world.aai.calls) > calls + 8

    await until_true(is_tried_again)
    assert {each.id: each.revision for each in await world.objects.page({}, limit=10, after=None)} == revisions
    health = await world.health()
    assert (health.waiting, health.refused, health.reachable_since is not None) == (4, 0, True)
    assert health.waiting_since is not None
    assert "503" in health.reason
    text = await metrics_text(world.metrics.registry)
    assert "kubevnfm_aai_waiting 4.0" in text
    assert "kubevnfm_aai_reachable 0.0" in text
    assert 'kubevnfm_region_export_lag_seconds{vim_id="vim"}' in text
    assert PASSWORD not in text + health.model_dump_json()

    world.aai.fault = 0
    calls = len(world.aai.calls)
    await world.settled()
    shown = await world.vserver("kept")
    assert shown is not None
    (interface,) = shown["l-interfaces"]["l-interface"]
    assert interface["l3-interface-ipv4-address-list"][0]["l3-interface-ipv4-address"] == "10.0.0.100"
    assert [await world.vserver(name) is not None for name in ("gone", "new", "short")] == [False, True, False]
    assert len(world.aai.calls) - calls < 20

    async def is_back() -> bool:
        return (await world.health()).reachable is True

    await until_true(is_back)


@pytest.mark.parametrize("status", [400, 403])
async def test_one_node_that_is_refused_does_not_hold_up_the_others(world: ExportWorld, status: int) -> None:
    """MC-110, MC-111: it is shown with the reason, and tried again later or when all is sent again."""
    bad = record_id("vim", "", "Pod", "ns", "bad")
    world.aai.refused[bad] = status, 2
    for number in range(40):
        await world.write(f"web-{number}")
    await world.write("bad")
    world.start()

    await until_true(lambda: _is_refused(world, 1))
    await until_true(lambda: _count_is(world, 40))
    (failure,) = (await world.health()).failures
    assert (failure.id, failure.tries) == (bad, 1)
    assert "refused by the test" in failure.reason
    await world.state.resync()
    await world.settled()
    assert len(world.aai.paths("vserver")) == 41
    assert world.aai.collisions == []


async def test_a_link_that_is_refused_is_shown_and_tried_later(world: ExportWorld) -> None:
    """MC-110: not again and again; once it changes, at once."""
    link = a_link(name="bad")
    world.aai.refused[f"l3-network/{link.id}"] = 400, 1000
    link = await world.links.insert(link)
    world.start()
    await until_true(lambda: _is_refused(world, 1))
    (failure,) = (await world.health()).failures
    assert (failure.id, failure.tries) == (f"link:{link.id}", 1)
    assert failure.again_at > rfc3339(world.clock.now() + timedelta(seconds=20))
    world.aai.refused.clear()
    await world.links.replace(link)
    await world.settled()
    assert len(world.aai.paths("l3-network")) == 1


async def test_a_link_that_is_written_while_all_is_sent_again_is_exported_at_once(
    world: ExportWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MC-110: what its writer has announced is not taken for a removal, which would be waited for until a minute has passed."""
    link = a_link(name="young")
    announced = asyncio.Event()
    insert = world.store.insert

    async def late(collection: str, *args: Any, **more: Any) -> Any:
        if collection == LINKS:
            announced.set()
            await until_true(lambda: _all_is_marked(world))
        return await insert(collection, *args, **more)

    monkeypatch.setattr(world.store, "insert", late)
    written = asyncio.create_task(world.links.insert(link))
    await announced.wait()
    world.start()
    await written
    async with asyncio.timeout(30):
        await world.settled()
    assert len(world.aai.paths("l3-network")) == 1


async def test_a_403_for_everything_stops_the_export_with_the_reason(world: ExportWorld) -> None:
    """MC-110: no node is put off; all are sent once A&AI accepts nodes again."""
    world.aai.refused["vservers/vserver"] = 403, 1000
    for number in range(3):
        await world.write(f"web-{number}")
    world.start()

    async def is_away() -> bool:
        return (await world.health()).reachable is False

    await until_true(is_away)
    health = await world.health()
    assert "403" in health.reason
    assert (health.refused, health.waiting) == (0, 3)
    world.aai.refused.clear()
    await world.settled()
    assert len(world.aai.paths("vserver")) == 3
    # Credentials that have lost their role altogether: not even one node is put off.
    world.aai.fault = 403
    await world.write("web-4")
    await until_true(is_away)
    assert (await world.health()).refused == 0


@pytest.mark.parametrize("kind", ["vserver", "l3-network"])
async def test_a_creation_that_arrives_after_its_leader_and_its_object_have_gone_is_taken_back(
    store: SqliteStore, kind: str
) -> None:
    """MC-110: the lease is lost while A&AI works on a creation; the next leader removes what arrives late."""
    clock, link = SetClock(datetime(2030, 1, 1, tzinfo=UTC)), a_link()
    async with export_world(store, clock) as world:
        # Without its VNF, to which it is related, A&AI would refuse the late vserver.
        world.start()
        await world.write("web-2")
        await world.settled()
        await world.stop()
        there = world.aai.paths(kind)
        world.aai.held = f"{kind}s/{kind}/"
        if kind == "vserver":
            await world.write("web-1")
        else:
            await world.links.insert(link)
        world.start()
        await world.aai.holds.wait()
        await world.stop()
        if kind == "vserver":
            await world.remove("web-1")
        else:
            stored = await world.links.get(link.id)
            assert stored is not None
            await world.links.delete(stored)
        before = len(world.aai.reads)
        clock.advance(60)
        world.start()

        async def has_tried() -> bool:
            return any(f"{kind}s/{kind}/" in each for each in world.aai.reads[before:])

        await until_true(has_tried)
        world.aai.let_go.set()
        await until_true(lambda: _is_there(world, kind))
        assert (await world.health()).waiting == 1

        async def is_taken_back() -> bool:
            # Each time: what is put off in this moment is due after a pause from now on, and the clock stands still.
            clock.advance(600)
            return world.aai.paths(kind) == there and (await world.health()).waiting == 0

        await until_true(is_taken_back)


async def _is_there(world: ExportWorld, kind: str) -> bool:
    return len(world.aai.paths(kind)) == (2 if kind == "vserver" else 1)


async def _count_is(world: ExportWorld, count: int) -> bool:
    return len(world.aai.paths("vserver")) == count


async def test_a_race_with_another_client_is_read_again(world: ExportWorld) -> None:
    """MC-110: 412 for a version that has changed between the read and the write."""
    world.start()
    await world.write("web-1")
    await world.settled()
    world.aai.refused["vservers/vserver"] = 412, 2
    await world.write("web-1", phase="Failed")
    await world.settled()
    shown = await world.vserver("web-1")
    assert shown is not None
    assert shown["prov-status"] == "PREPROV"


@pytest.mark.parametrize("method", ["update", "delete", "insert"])
async def test_a_process_that_dies_after_it_has_sent_loses_nothing(world: ExportWorld, method: str) -> None:
    """MC-110: the next one finds what is marked, and A&AI's state by its marks."""
    await world.write("web-1")
    await world.write("gone")
    world.start()
    await world.settled()
    await world.remove("gone")
    await world.write("web-1", phase="Failed")
    await world.links.insert(a_link())
    await world.write("web-2")
    await world.stop()
    world.severed.cut_after = method
    world.start()

    async def has_tried() -> bool:
        return world.severed.is_cut or (await world.health()).waiting == 0

    await until_true(has_tried)
    await world.stop()
    world.severed.is_cut, world.severed.cut_after = False, ""
    world.start()
    await world.settled()
    found = {name: await world.vserver(name) for name in ("web-1", "web-2", "gone")}
    assert found["web-1"] is not None
    assert (found["web-1"]["prov-status"], found["web-2"] is not None, found["gone"]) == ("PREPROV", True, None)
    assert len(world.aai.paths("l3-network")) == 1


async def test_everything_is_sent_again_to_an_aai_that_has_lost_it(world: ExportWorld) -> None:
    """MC-111: objects, links and features; a node that A&AI has as it is, is not written."""
    world.regions.seen = features({"feature.node.kubernetes.io/cpu-cpuid.AVX512F": {"true": 3}})
    world.start()
    for number in range(3):
        await world.write(f"web-{number}", vnf_instance_id=f"vnf-{number}")
    await world.links.insert(a_link())
    await world.features.found("vim", "digest")
    await world.settled()
    kinds = ("vserver", "generic-vnf", "l3-network", "hpa-capability")
    before = [world.aai.paths(kind) for kind in kinds]
    world.aai.calls.clear()
    await world.state.resync()
    await world.settled()
    assert [each for each, _ in world.aai.calls if each != "GET"] == []
    world.aai.clear()
    await world.state.resync()
    await world.settled()
    assert [world.aai.paths(kind) for kind in kinds] == before
    assert all(before)
    resync = (await world.health()).resync
    assert resync is not None
    assert resync.marked == 3


async def test_a_link_is_a_network_of_its_region(world: ExportWorld) -> None:
    """MC-094: with its CNI type and subnets; a change, and its removal."""
    world.start()
    link = await world.links.insert(a_link(type="nad", spec={"macvlan": {"master": "eth0"}}))
    ovn = await world.links.insert(a_link(name="other"))
    await world.settled()
    shown = world.aai.node(f"/network/l3-networks/l3-network/{ovn.id}")
    assert shown is not None
    assert (shown["network-name"], shown["network-type"]) == ("other", "kube-ovn")
    (subnet,) = shown["subnets"]["subnet"]
    assert (subnet["network-start-address"], subnet["cidr-mask"], subnet["ip-version"]) == ("10.9.0.0", "24", "4")
    (edge,) = shown["relationship-list"]["relationship"]
    assert edge["related-link"] == f"/aai/v14{REGION}"
    flat = world.aai.node(f"/network/l3-networks/l3-network/{link.id}")
    assert flat is not None
    assert (flat["network-type"], flat["network-technology"]) == ("macvlan", "nad")

    world.aai.calls.clear()
    ovn = await world.links.replace(ovn.with_holder("another", [], now="2030-01-01T00:00:01.000Z"))
    await world.settled()
    assert world.aai.calls == []
    changed = ovn.model_copy(update={"spec": {"cidrBlock": "10.9.0.0/24,fd00::/64"}})
    ovn = await world.links.replace(changed)
    await world.settled()
    shown = world.aai.node(f"/network/l3-networks/l3-network/{ovn.id}")
    assert shown is not None
    assert sorted(each["ip-version"] for each in shown["subnets"]["subnet"]) == ["4", "6"]
    await world.links.delete(ovn)
    await world.links.delete(link)
    await world.settled()
    assert world.aai.paths("l3-network") == []


async def test_features_of_nodes_are_capabilities_of_the_region(world: ExportWorld) -> None:
    """MC-119: each label of Node Feature Discovery and extended resource; those that have gone are removed, others stay."""
    avx, numa = "feature.node.kubernetes.io/cpu-cpuid.AVX512F", "feature.node.kubernetes.io/memory-numa"
    world.regions.seen = features({avx: {"true": 3}, numa: {"true": 1}}, **{"intel.com/sriov": 12})
    world.start()
    await world.features.found("vim", "one")
    await world.settled()
    world.aai.put(f"{REGION}/hpa-capabilities/hpa-capability/theirs", {"hpa-feature": "theirs"})

    def shown() -> dict[str, list[str]]:
        found = [world.aai.node(path) or {} for path in world.aai.paths("hpa-capability")]
        return {
            each["hpa-feature"]: [one["hpa-attribute-value"] for one in each.get("hpa-feature-attributes", [])]
            for each in found
        }

    assert shown() == {
        avx: ['{"value": "3", "unit": "nodes"}'], numa: ['{"value": "1", "unit": "nodes"}'],
        "intel.com/sriov": ['{"value": "12", "unit": "units"}'], "theirs": [],
    }  # fmt: skip
    world.regions.seen = features({avx: {"true": 2}})
    await world.features.found("vim", "two")
    await world.settled()
    assert shown() == {avx: ['{"value": "2", "unit": "nodes"}'], "theirs": []}


async def test_an_object_of_another_vnf_leaves_the_first_one(world: ExportWorld) -> None:
    """MC-109, MC-110: a label that comes to name another VNF; and a VIM that is no region is not exported."""
    world.start()
    await world.write("web-1")
    await world.settled()
    await world.write("web-1", vnf_instance_id="vnf-2")
    await world.settled()
    assert world.aai.paths("generic-vnf") == [f"{VNF}/vnf-2"]
    shown = await world.vserver("web-1")
    assert shown is not None
    assert [each["related-link"] for each in shown["relationship-list"]["relationship"]] == [f"/aai/v14{VNF}/vnf-2"]
    world.regions.keys.clear()
    await world.write("web-2", vim_id="elsewhere")
    await world.settled()
    assert await world.vserver("web-2") is None


class _SearchedStore(SqliteStore):
    """A store that keeps what it is asked for."""

    searches: list[tuple[str, Query]]

    async def find(self, collection: str, query: Query) -> Sequence[Stored]:
        self.searches.append((collection, query))
        return await super().find(collection, query)

    async def count(self, collection: str, filter: Filter, *, limit: int) -> int:
        self.searches.append((collection, Query(filter, limit=limit)))
        return await super().count(collection, filter, limit=limit)


async def test_no_search_of_the_export_reads_all_objects(tmp_path: Path) -> None:
    """MC-110, MC-111: to find what waits, its number, its age and what was refused, and after a removal."""
    file = tmp_path / "export.db"
    async with _SearchedStore.open(file) as store:
        store.searches = []
        async with export_world(store) as world:
            world.start()
            await world.write("web-1")
            await world.settled()
            world.aai.refused["vservers/vserver"] = 400, 2
            await world.write("web-1", phase="Failed")
            await until_true(lambda: _is_refused(world, 1))
            await metrics_text(world.metrics.registry)
            await world.remove("web-1")
            await world.objects.page({}, limit=10, after="a")
            await world.settled()
            whole: set[str] = set()
            with closing(sqlite3.connect(file)) as connection:
                catalogue = Catalogue(connection)
                for query in [query for collection, query in store.searches if collection == OBJECTS]:
                    paths = catalogue.published(OBJECTS)
                    for select in selects(paths, query) if paths is not None else ():
                        plan = connection.execute(f"EXPLAIN QUERY PLAN {select.text}", select.params).fetchall()
                        whole |= {f"{row[3]}: {query.filter}" for row in plan if f"SCAN documents_{OBJECTS}" in row[3]}
            assert whole == set()
            assert len(store.searches) > 10


async def _is_refused(world: ExportWorld, count: int) -> bool:
    return (await world.health()).refused == count


async def _all_is_marked(world: ExportWorld) -> bool:
    resync = (await world.health()).resync
    return resync is not None and resync.marked_at is not None


async def _is_left(world: ExportWorld, count: int) -> bool:
    health = await world.health()
    return health.refused == health.waiting == count


async def test_wrong_credentials_are_shown_and_never_the_password(
    world: ExportWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    """MC-111: A&AI's 401 is no fault of an entry."""
    world.aai.fault = 401
    world.start()
    await world.write("web-1")

    async def is_away() -> bool:
        return (await world.health()).reachable is False

    await until_true(is_away)
    health = await world.health()
    assert "401" in health.reason
    assert health.refused == 0
    captured = capsys.readouterr()
    assert PASSWORD not in captured.out + captured.err + health.model_dump_json()


@pytest.mark.parametrize("status", [403, 404, 503])
async def test_an_answer_that_is_not_of_aai_loses_no_removal(world: ExportWorld, status: int) -> None:
    """MC-110: a proxy before A&AI that says 404 does not say that there is no such node."""
    world.start()
    await world.write("web-1")
    await world.settled()
    world.aai.fault = status
    await world.remove("web-1")

    async def is_away() -> bool:
        return (await world.health()).reachable is False

    await until_true(is_away)
    world.aai.fault = 0
    await world.settled()
    assert world.aai.paths("vserver") == []


@pytest.mark.parametrize(
    ("text", "is_away"),
    [
        ("<html>Sign in</html>", True),
        ("{}", False),
        ('{"operation-responses": []}', False),
        ('{"operation-responses": [{"response-status-code": 400}]}', False),
        ('{"operation-responses": "' + "x" * 2**20 + '"}', False),
        ('{"a":' * 200 + "1" + "}" * 200, False),
    ],
    ids=["html", "nothing", "no result", "refused inside", "huge", "deep"],
)
async def test_an_answer_without_the_result_of_each_operation_is_no_success(
    world: ExportWorld, text: str, is_away: bool
) -> None:
    """MC-110: what A&AI has not made stays marked."""
    world.aai.odd["bulk/single-transaction"] = text
    world.start()
    await world.write("web-1")

    async def is_seen() -> bool:
        health = await world.health()
        return health.reachable is False if is_away else health.refused == 1

    await until_true(is_seen)
    assert (await world.health()).waiting == 1
    del world.aai.odd["bulk/single-transaction"]
    await world.state.resync()
    await world.settled()
    assert await world.vserver("web-1") is not None


async def test_a_node_that_cannot_be_read_does_not_hold_up_the_others(world: ExportWorld) -> None:
    """MC-110: too much of it, or no version; and regions, tenants and VNFs are read without what is below them."""
    world.start()
    for name in ("web-1", "web-2", "web-3"):
        await world.write(name)
    await world.settled()
    ids = {name: record_id("vim", "", "Pod", "ns", name) for name in ("web-1", "web-2", "web-3")}
    world.aai.odd = {
        ids["web-1"]: '{"a": "' + "x" * 2**20 + '"}',
        ids["web-2"]: '{"vserver-selflink": "/multicloud/v1/"}',
    }
    for name in ("web-1", "web-2", "web-3"):
        await world.write(name, phase="Failed")
    await until_true(lambda: _is_left(world, 2))
    shown = await world.vserver("web-3")
    assert shown is not None
    assert shown["prov-status"] == "PREPROV"
    assert {each.id for each in (await world.health()).failures} == {ids["web-1"], ids["web-2"]}
    world.aai.odd.clear()
    await world.remove("web-3")
    await world.state.resync()
    await world.settled()
    whole = {each.partition("?")[0] for each in world.aai.reads if "depth=all" in each}
    assert whole
    assert all("/vservers/vserver/" in each for each in whole)


async def test_a_record_that_has_no_form_does_not_hold_up_the_others(world: ExportWorld) -> None:
    """MC-110, MC-111: a fault of ours is shown as a refusal; a name that no path can have is not exported."""
    world.start()
    # No reader of clusters lets such an address through.
    await world.write("bad", networks=(addresses("no address"),))
    await world.write("up", namespace="..")
    await world.write("web-1")
    broken = await world.links.insert(a_link(spec={"cidrBlock": "no range"}))
    link = await world.links.insert(a_link(name="other"))
    await until_true(lambda: _is_left(world, 2))
    reasons = {each.reason for each in (await world.health()).failures}
    assert reasons == {"a fault of this manager: ValueError", "a fault of this manager: ValidationError"}
    assert world.aai.paths("l3-network") == [f"/network/l3-networks/l3-network/{link.id}"]
    assert len(world.aai.paths("vserver")) == 1
    await world.links.delete(broken)
    for name in ("bad", "up"):
        await world.remove(name)
    await world.settled()


async def test_a_vnf_that_aai_does_not_remove_is_removed_later(world: ExportWorld) -> None:
    """MC-109, MC-110: what shows that it has to go stays, and its refusal is shown."""
    world.start()
    await world.write("web-1")
    await world.write("web-2")
    await world.settled()
    world.aai.refused["generic-vnf/vnf-1"] = 500, 1
    await world.remove("web-1")
    await world.remove("web-2")
    await until_true(lambda: _is_left(world, 1))
    assert (world.aai.paths("vserver"), world.aai.paths("generic-vnf")) == ([], [f"{VNF}/vnf-1"])
    (failure,) = (await world.health()).failures
    assert "refused by the test" in failure.reason
    await world.state.resync()
    await world.settled()
    assert world.aai.paths("generic-vnf") == []


async def test_what_changed_without_an_export_is_exported_by_the_next_one(world: ExportWorld) -> None:
    """MC-111: `aai_url` was taken away, and is set again; what is off writes once, and nothing without an earlier export."""
    world.start()
    link = await world.links.insert(a_link())
    gone = await world.links.insert(a_link(name="gone"))
    await world.write("web-1")
    await world.settled()
    await world.stop()
    off = asyncio.create_task(NoExport(world.store).run(HeldTerm(2, math.inf)))

    async def is_noted() -> bool:
        stored = await world.store.get(EXPORTS, "state")
        return stored is not None and stored.body["url"] == ""

    await until_true(is_noted)
    off.cancel()
    outbox = world.outbox
    objects, links = StoredObjects(world.store, outbox), StoredLinks(world.store, outbox)
    old = await objects.get(record_id("vim", "", "Pod", "ns", "web-1"))
    assert old is not None
    await objects.write(old, old.model_copy(update={"phase": "Failed", "export": ObjectExport()}))
    await objects.write(
        None, old.model_copy(update={"id": "other", "name": "web-2", "export": ObjectExport(), "revision": 0})
    )
    await links.delete(gone)
    world.start()

    async def is_exported() -> bool:
        return len(world.aai.paths("vserver")) == 2 and len(world.aai.paths("l3-network")) == 1

    await until_true(is_exported)
    await world.settled()
    shown = await world.vserver("web-1")
    assert shown is not None
    assert shown["prov-status"] == "PREPROV"
    assert world.aai.paths("l3-network") == [f"/network/l3-networks/l3-network/{link.id}"]


async def test_features_of_a_region_that_has_gone_leave_aai(world: ExportWorld) -> None:
    """MC-119: they were to be exported when the region was unregistered."""
    world.regions.seen = features({"feature.node.kubernetes.io/memory-numa": {"true": 1}})
    world.start()
    await world.features.found("vim", "one")
    await world.settled()
    assert world.aai.paths("hpa-capability")
    world.regions.seen = None
    await world.features.found("vim", "two")
    await world.settled()
    assert world.aai.paths("hpa-capability") == []


async def test_what_several_vnfs_need_is_created_once(world: ExportWorld) -> None:
    """MC-110: their transactions are sent at the same time, and A&AI may make two regions of two that create one."""
    for number in range(12):
        await world.write(f"web-{number}", vnf_instance_id=f"vnf-{number}")
    world.start()
    await world.settled()
    assert len(world.aai.paths("vserver")) == 12
    assert world.aai.collisions == []
