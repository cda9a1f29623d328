"""``/multicloud/v1/virtual-links`` over HTTP, and each line of bad input of its chapter (multicloud.md chapter 12)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from kubevnfm_clients.multicloud.networks import AttachRequest
from kubevnfm_clients.multicloud.suspension import Suspension
from kubevnfm_kit.errors import ConflictingInput, Unprocessable
from kubevnfm_lab.kubernetes.cluster import LabCluster
from kubevnfm_lab.kubernetes.objects import Key
from kubevnfm_lcm_api.multicloud.idempotency import COLLECTION
from kubevnfm_store.query import Query
from worlds.lcm_world import Answer
from worlds.link_gateway import LINKS, LinkGateway, link_gateway
from worlds.vim_world import cluster, lab, make_cluster, settings

__all__ = ["cluster", "lab", "make_cluster", "settings"]

_KINDS = ("NetworkAttachmentDefinition", "Network", "ProviderNetwork")


@pytest.fixture
async def gateway(cluster: LabCluster, tmp_path: Path) -> AsyncIterator[LinkGateway]:
    async with link_gateway(cluster, tmp_path, *_KINDS) as running:
        yield running


def pointers(answer: Answer) -> list[str]:
    return [error["pointer"] for error in answer.problem(answer.status)["errors"]]


async def test_a_link_is_made_shared_and_removed(gateway: LinkGateway) -> None:
    """MC-084 to MC-087."""
    made = (await gateway.create(namespaces=["default"], metadata={"userData1": "x"})).must(201)
    link = made.json
    assert made.headers["Location"] == f"{gateway.url}{LINKS}/{link['id']}"
    assert (link["status"], link["use_count"], link["references"], link["reference"]) == ("READY", 1, ["so"], "so")
    assert [(each["kind"], each["name"]) for each in link["resources"]] == [("NetworkAttachmentDefinition", "net")]
    again = (await gateway.create(reference="other", headers={"Prefer": "wait=121"})).must(200)
    assert (again.json["id"], again.json["use_count"]) == (link["id"], 2)
    assert again.headers["Preference-Applied"] == "wait=120"
    one = f"{LINKS}/{link['id']}"
    shown = (await gateway.call("GET", one)).must(200)
    (await gateway.call("GET", one, headers={"If-None-Match": shown.headers["ETag"]})).must(304)
    assert (await gateway.call("GET", f"{one}/references")).must(200).json == [
        {"reference": "so"},
        {"reference": "other"},
    ]
    assert (await gateway.call("PUT", f"{one}/references/third")).must(200).json["use_count"] == 3
    (await gateway.call("DELETE", f"{one}/references/third")).must(200)
    # It is not finished, and waiting for it would not help.
    far = (await gateway.create(reference="far", namespaces=["missing"])).must(202).json
    assert (far["status"], "missing" in far["status_detail"]) == ("PENDING", True)
    (await gateway.call("DELETE", f"{one}?reference=far")).must(200)
    await gateway.world.work.decided(link["id"], within_s=60.0)
    for own in (f"{one}?reference=so", f"{one}/references/so"):
        (await gateway.call("DELETE", own, headers={"If-Match": '"stale"'})).problem(412)
    left = (await gateway.call("DELETE", f"{one}?reference=so")).must(200).json
    assert (left["use_count"], left["status"]) == (1, "READY")
    (await gateway.call("DELETE", f"{one}?reference=other")).must(204)
    (await gateway.call("GET", one)).problem(404)


async def test_interfaces_are_checked_by_the_owner_of_the_links(gateway: LinkGateway) -> None:
    """MC-069, MC-092: the life cycle gets what pods need, and each wrong place with its status."""
    subnet = {"name": "s", "subnet": "10.1.0.0/24"}
    spec = {"ipv4Subnets": [subnet]}
    made = (await gateway.create({"Prefer": "respond-async"}, type="ovn4nfv", spec=spec)).must(202).json
    one = {"vdu_id": "web", "virtual_link_id": made["id"], "ip_address": "10.1.0.5"}

    async def attach(network: Mapping[str, Any]) -> Any:
        wanted = {"vim_id": "vim", "reference": "vnf:1", "networks": [network]}
        return await gateway.client.attach(AttachRequest.model_validate(wanted))

    (found,) = await attach(one)
    assert (found.interface, found.link.name, found.link.definition) == ("net1", "net", "ovn-networkobj")
    with pytest.raises(Unprocessable) as refused:
        await attach({**one, "ip_address": "10.2.0.5", "interface": "eth0"})
    members = ("interface", "ip_address")
    assert [place for place, _ in refused.value.places] == [f"networks[0]/{each}" for each in members]
    await gateway.world.links.hold(made["id"], "vnf:2", [], addresses=["10.1.0.5"])
    with pytest.raises(ConflictingInput, match="in use by vnf:2") as taken:
        await attach(one)
    assert [place for place, _ in taken.value.places] == ["networks[0]/ip_address"]


async def test_a_link_that_is_not_ready_is_answered_at_the_end_of_the_wait(gateway: LinkGateway) -> None:
    """MC-004."""
    spec = {"ipv4Subnets": [{"name": "s", "subnet": "10.1.0.0/24"}]}
    made = (await gateway.create(type="ovn4nfv", spec=spec, headers={"Prefer": "respond-async"})).must(202).json
    assert (made["status"], made["reference"]) == ("PENDING", "so")
    seen = (await gateway.create(type="ovn4nfv", spec=spec, headers={"Prefer": "wait=1"})).must(202).json
    assert "no state yet" in seen["status_detail"]


async def test_a_repeat_under_a_key_is_no_second_user(gateway: LinkGateway) -> None:
    """MC-005: also after a crash between the creation and its answer, when the request has named no reference."""
    key = {"Idempotency-Key": "k"}
    made = (await gateway.create(key, reference=None)).must(201).json
    again = (await gateway.create(key, reference=None)).must(201).json
    assert again == made
    (record,) = await gateway.world.store.find(COLLECTION, Query())
    crashed = {"state": "running", "leaseUntil": "2000-01-01T00:00:00.000Z"}
    await gateway.world.store.update(COLLECTION, record.id, crashed)
    continued = (await gateway.create(key, reference=None)).must(200).json
    assert (continued["id"], continued["references"]) == (made["id"], [made["reference"]])


async def test_lists_have_pages_and_filters(gateway: LinkGateway) -> None:
    """MC-007."""
    assert (await gateway.call("GET", LINKS)).must(200).json == []
    for name in ("a", "b", "c"):
        (await gateway.create(name=name, namespaces=["default"] if name == "a" else [])).must(201)
    first = (await gateway.call("GET", f"{LINKS}?limit=2")).must(200)
    link = first.headers["Link"].partition(">")[0].removeprefix(f"<{gateway.url}")
    second = (await gateway.call("GET", link)).must(200)
    assert sorted(each["name"] for each in [*first.json, *second.json]) == ["a", "b", "c"]
    for query, names in (
        ("name=b", ["b"]),
        ("namespace=default", ["a"]),
        ("status=FAILED", []),
        ("type=nad&name=c", ["c"]),
    ):
        found = (await gateway.call("GET", f"{LINKS}?{query}")).must(200).json
        assert [each["name"] for each in found] == names
    assert len((await gateway.call("GET", f"{LINKS}?cloud_region_id=op/one")).must(200).json) == 3
    (await gateway.call("GET", f"{LINKS}?limit=0")).problem(400)
    (await gateway.call("GET", f"{LINKS}?colour=red")).problem(400)


async def test_nothing_is_written_in_a_suspended_region(gateway: LinkGateway, cluster: LabCluster) -> None:
    """MC-139: users are counted, what needs other objects is refused, and drift is silent until the region is resumed."""
    made = (await gateway.create(namespaces=["default"])).must(201)
    one = f"{LINKS}/{made.json['id']}"
    suspension = Suspension(by="ann", since="2026-11-26T10:00:00.000Z", reason="new switches", scope="region")
    gateway.world.regions.suspended["vim"] = suspension
    seen = (await gateway.call("GET", one)).must(200)
    assert seen.json["suspended"] == suspension.model_dump()
    assert seen.headers["ETag"] != made.headers["ETag"]
    assert (await gateway.call("GET", LINKS)).must(200).json == [seen.json]

    nads = cluster.table.by_name("network-attachment-definitions.k8s.cni.cncf.io")
    assert nads is not None
    cluster.registry.delete(nads, Key("default", "net"))
    await gateway.world.work.look_at_all()
    refused = [
        await gateway.create(name="new"),
        await gateway.call("PUT", f"{one}/references/x", {"namespaces": ["kubevnfm"]}),
        await gateway.call("DELETE", one),
        await gateway.call("DELETE", f"{one}?reference=so"),
        await gateway.call("DELETE", f"{one}/references/so"),
    ]
    for answer in refused:
        problem = answer.problem(409)
        assert problem["type"] == "suspended"
        assert "2026-11-26T10:00:00.000Z by ann: new switches" in problem["detail"]
    assert (await gateway.create(reference="other")).must(200).json["use_count"] == 2
    held = (await gateway.call("PUT", f"{one}/references/third", {"namespaces": ["default"]})).must(200).json
    assert (held["use_count"], held["status"]) == (3, "READY")
    (await gateway.call("DELETE", f"{one}/references/other")).must(200)
    # An operation that ran before ends: its objects follow later.
    assert (await gateway.world.links.hold(made.json["id"], "vnf:1", ["kubevnfm"])).status == "READY"
    await gateway.world.work.bring_all()
    assert cluster.store.get(nads.store_name, Key("default", "net")) is None
    assert [event.status for event in gateway.world.events if event.status == "DEGRADED"] == []

    # While vim-registry is away it is not known whether a region is suspended: links are shown, and nothing is written.
    gateway.world.regions.is_away = True
    await gateway.world.work.bring_all()
    assert "suspended" not in (await gateway.call("GET", one)).must(200).json
    (await gateway.call("DELETE", f"{one}/references/third")).problem(503)
    assert cluster.store.get(nads.store_name, Key("default", "net")) is None
    gateway.world.regions.is_away = False
    gateway.world.regions.suspended.clear()
    await gateway.world.work.bring_all()
    await gateway.world.work.look_at_all()
    left = (await gateway.call("GET", one)).must(200).json
    assert ("suspended" in left, left["use_count"]) == (False, 3)


_V4 = {"ipv4Subnets": [{"name": "s", "subnet": "10.1.0.0/24"}]}
_PROVIDER = {**_V4, "providerNetType": "VLAN"}
_BAD: list[tuple[Mapping[str, Any], list[str]]] = [
    ({"cloud_region_id": "op/none"}, ["/cloud_region_id"]),
    ({"type": "wire"}, ["/type"]),
    ({"name": "Not_a_label"}, ["/name"]),
    ({"colour": "red"}, ["/colour"]),
    ({"type": "kube-ovn", "spec": {"cidrBlock": "10.1.0.0/24", "vlan": {"id": 5, "provider": "thirteenchars", "defaultInterface": "e"}}}, ["/spec/vlan/provider"]),
    ({"spec": {"bridge": {"bridge": "b"}, "wire": 5}}, ["/spec/wire"]),
    ({"type": "ovn4nfv", "spec": {}}, ["/spec/ipv4Subnets"]),
    ({"type": "kube-ovn", "spec": {}}, ["/spec/cidrBlock"]),
    ({"type": "sriov", "spec": {}}, ["/spec/resourceName"]),
    ({"type": "ovs", "spec": {}}, ["/spec/bridge"]),
    ({"spec": {"macvlan": {}}}, ["/spec/macvlan/master"]),
    ({"spec": {}}, ["/spec"]),
    ({"spec": {"bridge": {"bridge": "b"}, "config": {"type": "x"}}}, ["/spec"]),
    ({"spec": {"config": "{"}}, ["/spec/config"]),
    ({"spec": {"config": {"name": "x"}}}, ["/spec/config"]),
    ({"type": "ovn4nfv", "spec": {"ipv4Subnets": [{"name": "s", "subnet": "10.1.0.1/24"}]}}, ["/spec/ipv4Subnets/0/subnet"]),
    ({"type": "ovn4nfv", "spec": {"ipv4Subnets": [{"name": "s", "subnet": "10.1.0.0/24", "gateway": "10.2.0.1"}]}}, ["/spec/ipv4Subnets/0/gateway"]),
    ({"type": "ovn4nfv", "spec": {"ipv4Subnets": [{"name": "s", "subnet": "10.1.0.0/24", "excludeIps": "10.2.0.1"}]}}, ["/spec/ipv4Subnets/0/excludeIps"]),
    ({"type": "ovn4nfv", "spec": {"ipv4Subnets": [*_V4["ipv4Subnets"], {"name": "t", "subnet": "10.1.0.0/25"}]}}, ["/spec/ipv4Subnets/1/subnet"]),
    ({"type": "ovn4nfv", "spec": {**_V4, "routes": [{"dst": "everywhere"}]}}, ["/spec/routes/0/dst"]),
    ({"type": "ovn4nfv", "spec": {**_V4, "dns": {"nameservers": ["ns.example.com"]}}}, ["/spec/dns/nameservers"]),
    ({"type": "ovn4nfv-provider", "spec": {**_PROVIDER, "vlan": {"vlanID": 4095, "providerInterfaceName": "e", "vlanNodeSelector": "all"}}}, ["/spec/vlan/vlanID"]),
    ({"type": "sriov", "spec": {"resourceName": "a.b/c", "vlanQoS": 1, "vlanProto": "802.1q"}}, ["/spec/vlanQoS", "/spec/vlanProto"]),
    ({"type": "sriov", "spec": {"resourceName": "a.b/c", "minTxRate": 2, "maxTxRate": 1}}, ["/spec/minTxRate"]),
    ({"type": "ovs", "spec": {"bridge": "b", "trunk": [{"minID": 9, "maxID": 8}]}}, ["/spec/trunk/0/minID"]),
    ({"type": "udn", "spec": {"scope": "namespace", "topology": "Localnet", "physicalNetworkName": "p", "subnets": ["10.1.0.0/24"]}}, ["/spec/scope"]),
    ({"type": "udn", "spec": {"scope": "cluster", "role": "Primary", "topology": "Localnet", "physicalNetworkName": "p", "subnets": ["10.1.0.0/24"]}}, ["/spec/role"]),
    ({"type": "udn", "spec": {"scope": "cluster", "topology": "Layer3"}}, ["/spec/subnets"]),
    ({"type": "sriov", "spec": {"resourceName": "a.b/c", "dhcp": True}}, ["/spec/dhcp"]),
    ({"type": "sriov", "spec": {"resourceName": "a.b/c", "ipam": {"type": "dhcp"}}}, ["/spec/ipam/type"]),
    ({"reference": ""}, ["/reference"]),
    ({"reference": "x" * 256}, ["/reference"]),
    ({"reference": "a b"}, ["/reference"]),
    ({"reference": "vnf:1"}, ["/reference"]),
    ({"type": "manifests", "spec": {"objects": [{"apiVersion": "a.b/v1", "kind": "K", "metadata": {"name": "x"}}] * 2}}, ["/spec/objects/1"]),
    ({"type": "manifests", "spec": {"objects": [{}] * 51}}, ["/spec/objects"]),
    ({"type": "manifests", "spec": {"objects": [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}}]}}, ["/spec/objects/0/apiVersion"]),
]  # fmt: skip


async def test_what_is_wrong_has_its_pointer_and_leaves_nothing(gateway: LinkGateway) -> None:
    """Each line of bad input that is answered with 422."""
    for changes, expected in _BAD:
        refused = await gateway.create(**changes)
        assert (refused.status, pointers(refused)) == (422, expected), (changes, refused.raw)
    assert (await gateway.call("GET", LINKS)).must(200).json == []


async def test_an_answer_names_at_most_a_hundred_places(gateway: LinkGateway) -> None:
    """MC-006."""
    spec = {"bridge": {"bridge": "br1", **{f"member{n}": n for n in range(300)}}}
    assert len(pointers(await gateway.create(spec=spec))) == 100


async def test_what_the_region_lacks_is_named(gateway: LinkGateway) -> None:
    """MC-090."""
    udn = {"scope": "cluster", "topology": "Layer2", "subnets": ["10.1.0.0/24"]}
    unknown = {"objects": [{"apiVersion": "a.b/v1", "kind": "K", "metadata": {"name": "x"}}]}
    sriov = {"resourceName": "a.b/c", "operator": True}
    for kind, spec, expected in (
        ("udn", udn, ["/type"]),
        ("manifests", unknown, ["/spec/objects/0"]),
        ("sriov", sriov, ["/spec/operator"]),
    ):
        refused = await gateway.create(type=kind, spec=spec)
        assert refused.problem(422)["type"] == "region-lacks"
        assert pointers(refused) == expected


async def test_conflicts_name_the_member_and_the_other_link(gateway: LinkGateway) -> None:
    """MC-084, MC-091, MC-095, MC-087."""
    at_once = {"Prefer": "respond-async"}
    link = (await gateway.create()).must(201).json
    other = await gateway.create(spec={"bridge": {"bridge": "br2"}})
    assert (other.problem(409)["type"], pointers(other)) == ("conflict", ["/spec/bridge/bridge"])
    vlan = {"vlanID": 5, "providerInterfaceName": "eth1", "vlanNodeSelector": "all"}
    provider = {"type": "ovn4nfv-provider", "spec": {**_PROVIDER, "vlan": vlan}}
    (await gateway.create(at_once, name="one", **provider)).must(202)
    overlapping = await gateway.create(at_once, name="two", type="ovn4nfv", spec=_V4)
    assert (overlapping.status, pointers(overlapping)) == (409, ["/spec/ipv4Subnets/0/subnet"])
    same_vlan = await gateway.create(at_once, name="two", allow_overlap=True, **provider)
    assert (same_vlan.status, "VLAN 5 on eth1" in same_vlan.problem(409)["detail"]) == (409, True)
    one = f"{LINKS}/{link['id']}"
    (await gateway.call("PUT", f"{one}/references/mano")).must(200)
    (await gateway.call("DELETE", f"{one}?reference=none")).problem(404)
    used = (await gateway.call("DELETE", one)).problem(409)
    assert (used["type"], used["holders"], used["holder_count"]) == ("in-use", ["so", "mano"], 2)
    for method, path in (
        ("PUT", f"{one}/references/vnf:1"),
        ("DELETE", f"{one}?reference=vnf:1"),
        ("DELETE", f"{one}/references/vnf:1"),
    ):
        refused = await gateway.call(method, path)
        assert (refused.status, pointers(refused)) == (422, ["/reference"])


async def test_a_link_that_is_being_removed_takes_no_user(gateway: LinkGateway, cluster: LabCluster) -> None:
    """MC-088."""
    link = (await gateway.create(namespaces=["default"])).must(201).json
    one = f"{LINKS}/{link['id']}"
    # No pass may begin, as if another process stood still in the middle of one.
    async with gateway.world.links.turns.held(f"link/{link['id']}", within_s=60):
        left = (await gateway.call("DELETE", one, headers={"Prefer": "respond-async"})).must(202).json
        assert left["status"] == "REMOVING"
        for refused in (await gateway.create(), await gateway.call("PUT", f"{one}/references/x")):
            assert refused.problem(409)["type"] == "being-removed"
            assert refused.headers["Retry-After"]
    await asyncio.wait_for(gateway.world.until_gone(link["id"]), 60)
    (await gateway.create(namespaces=["default"])).must(201)
