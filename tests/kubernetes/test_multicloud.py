"""The multi-cloud API on a real API server: scenarios of chapter 17 of docs/specification/multicloud.md.

The definitions of the kinds are the projects' own. No controller stands behind them: a test writes the status that one would write.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pytest
from callers.user import User
from patience import until
from real.real_cluster import GIVEN, Body, RealCluster
from real.real_regions import RealRegion, registered
from real.region_packages import MACHINE, ORDERED, PLAIN

pytestmark = pytest.mark.skipif(GIVEN is None, reason="no cluster is given: see docs/real-kubernetes.md")

CODE: Final = "swordfish-12"
READY: Final = {"type": "Ready", "status": "True"}


def network_created(status: str) -> Body:
    """Return what OVN-Kubernetes writes into the status of its networks."""
    condition = {"type": "NetworkCreated", "status": status, "reason": "SyncDone", "message": ""}
    return {"conditions": [{**condition, "lastTransitionTime": "2026-01-01T00:00:00Z"}]}


@pytest.fixture
async def region(user: User, cluster: RealCluster, tmp_path: Path) -> AsyncIterator[RealRegion]:
    """The given cluster as a region of its own for each test."""
    async with registered(user, cluster, tmp_path) as given:
        yield given


async def test_an_ordered_package_waits_fails_changes_and_goes(region: RealRegion) -> None:
    """MC-010, MC-011, MC-013, MC-014, MC-020, MC-022 to MC-031, MC-034, MC-037, MC-039, MC-042, MC-043, MC-049, MC-057, MC-077 (scenarios 1, 5, 10)."""
    package, place = await region.onboard(ORDERED), region.place()
    listed = (await region.call("GET", f"/artifacts/{package}/variables")).must(200).json
    assert {each["name"]: each.get("default") for each in listed} == {
        "code": None, "db.name": None, "db.port": 5432, "tag": "1.27"
    }  # fmt: skip
    wrong = {"db": {"port": 70000}, "code": {"$secret": "short"}}
    asked = {"cloud_region_id": region.id, "csar_id": package, "namespace": place, "values": wrong}
    refused = (await region.call("POST", "/vnf_instances", asked)).must(422)
    assert [each["pointer"] for each in refused.json["errors"]] == ["/values/code", "/values/db/port"]
    assert await region.is_empty(place)

    taken = region.place()
    await region.cluster.make("/api/v1/namespaces", {"metadata": {"name": taken}})
    await region.cluster.make(f"/api/v1/namespaces/{taken}/configmaps", {"metadata": {"name": "settings"}})
    right = {**asked, "namespace": taken, "values": {"db": {"port": 6000}, "code": {"$secret": CODE}}}
    refused = (await region.call("POST", "/vnf_instances", right)).must(409)
    assert refused.json["type"] == "foreign-object"
    assert f"ConfigMap {taken}/settings (" in refused.json["detail"]
    assert (await region.call("GET", f"/vnf_instances?namespace={taken}")).must(200).json == []
    await region.cluster.remove(f"/api/v1/namespaces/{taken}")

    line = f"/apis/k8s.plugin.opnfv.org/v1alpha1/namespaces/{place}/networks/line"
    plane = f"/apis/k8s.ovn.org/v1/namespaces/{place}/userdefinednetworks/plane"
    values = {"db": {"port": 6000}, "code": {"$secret": CODE}}
    failing = await region.start(package, namespace=place, values=values)
    await region.write_status(line, {"state": "Created"})
    await region.write_status(plane, network_created("False"))
    detail = (await region.settled(failing, "FAILED"))["status_detail"]
    assert f"priority 3 of 4: UserDefinedNetwork {place}/plane: failed, as its order says" in detail
    await region.remove(failing)
    assert await region.is_empty(place)

    vnf = await region.start(package, namespace=place, values=values)
    await until_there(region, line)
    for later in (plane, f"/apis/batch/v1/namespaces/{place}/jobs/migrate"):
        assert await region.cluster.get(later) is None
    await region.write_status(line, {"state": "Created"})
    await until_there(region, plane)
    assert await region.cluster.get(f"/apis/apps/v1/namespaces/{place}/deployments/web") is None
    await region.write_status(plane, network_created("True"))
    vnf = await region.settled(vnf)
    assert vnf["vnf_components"] == {
        "configmap": ["settings"], "deployment": ["web"], "job": ["migrate"], "namespace": [place], "network": ["line"],
        "secret": ["login"], "service": ["web"], "userdefinednetwork": ["plane"],
    }  # fmt: skip
    assert not [each for each in vnf["ignored_artifacts"] if each.endswith("values.schema.json")]
    (settings,) = await region.read("v1", "ConfigMap", namespace=place, name="settings")
    assert settings["data"] == {"port": "6000 of main", "script": "echo $HOME"}
    live = (await region.call("GET", f"/vnf_instances/{vnf['vnf_id']}/resources?live=true")).must(200).json
    assert {(each["live"], each["ready"]) for each in live} == {("present", True)}
    status = (await region.call("GET", f"/vnf_instances/{vnf['vnf_id']}/status")).must(200).json
    judged = [(each["judgement"], each["message"]) for each in status["resources"]]
    assert (status["ready"], status["resourceCount"], set(judged)) == (True, len(live), {("Current", "")}), judged
    of_kind = {each["kind"]: each.get("status") for each in status["resources"]}
    assert (of_kind["Network"], of_kind["Secret"]) == ({"state": "Created"}, None)

    refused = (await region.call("DELETE", f"/cloud-regions/{region.id}")).must(409)
    assert (refused.json["type"], refused.json["holders"]) == ("in-use", [vnf["vnf_id"]])

    one = f"/vnf_instances/{vnf['vnf_id']}"
    profile = {"vdu_id": "web", "requests": {"cpu": "125m"}}
    change = {"csar_id": await region.onboard(PLAIN), "compute_profiles": [profile]}
    assert (await region.call("PATCH", one, change)).must(200).json["status"] == "READY"
    assert (await region.cluster.get(line), await region.cluster.get(plane)) == (None, None)
    (web,) = await region.read("apps/v1", "Deployment", namespace=place, name="web")
    assert web["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "125m"}
    await region.remove(vnf)
    assert await region.is_empty(place)
    assert not any(CODE in text for text in region.user.heard)


async def until_there(region: RealRegion, path: str) -> None:
    """Return once an object exists."""

    async def there() -> bool | None:
        return await region.cluster.get(path) is not None or None

    await until(there, timeout_s=60)


async def test_two_vnfs_share_links_until_the_last_goes(region: RealRegion) -> None:
    """MC-035, MC-060, MC-065, MC-069, MC-084 to MC-087, MC-091, MC-093, MC-107, MC-121 (scenario 4)."""
    cluster, name = region.cluster, f"link-{uuid4().hex[:8]}"
    subnet = f"/apis/kubeovn.io/v1/subnets/{name}"
    spec = {"cidrBlock": "10.77.0.0/16", "gateway": "10.77.0.1", "excludeIps": ["10.77.0.1..10.77.0.9"]}
    asked = {"cloud_region_id": region.id, "name": name, "type": "kube-ovn", "spec": spec, "reference": "so"}
    making = asyncio.create_task(region.call("POST", "/virtual-links", asked))
    await region.write_status(subnet, {"conditions": [READY]})
    inner = (await making).must(201).json["id"]
    (await region.call("POST", "/virtual-links", {**asked, "spec": {**spec, "gateway": "10.77.0.2"}})).must(409)
    other = {"macvlan": {"master": "eth1", "mode": "bridge", "ipam": {"type": "static"}}}
    body = {**asked, "name": f"{name}-o", "type": "nad", "spec": other}
    outer = (await region.call("POST", "/virtual-links", body)).must(201).json["id"]

    async def holders(link_id: str) -> list[str]:
        link = (await region.call("GET", f"/virtual-links/{link_id}")).must(200).json
        assert (link["status"], link["use_count"]) == ("READY", len(link["references"]))
        return sorted(link["references"])

    package = await region.onboard(PLAIN)
    members = {
        "networks": [
            {"vdu_id": "web", "virtual_link_id": inner, "interface": "inner"},
            {"vdu_id": "web", "virtual_link_id": outer, "interface": "outer"},
        ],
        "compute_profiles": [
            {"vdu_id": "web", "limits": {"cpu": "250m"}, "node_selector": {"kubernetes.io/os": "linux"}}
        ],
    }
    places = [region.place(), region.place()]
    vnfs = await asyncio.gather(*(region.bring_up(package, namespace=place, **members) for place in places))
    definitions = [
        f"/apis/k8s.cni.cncf.io/v1/namespaces/{each}/network-attachment-definitions/{name}-o" for each in places
    ]
    for place, definition in zip(places, definitions, strict=True):
        (web,) = await region.read("apps/v1", "Deployment", namespace=place, name="web")
        template = web["spec"]["template"]
        assert template["spec"]["containers"][0]["resources"] == {"limits": {"cpu": "250m"}}
        assert json.loads(template["metadata"]["annotations"]["k8s.v1.cni.cncf.io/networks"]) == [
            {"name": name, "namespace": "default", "interface": "inner"},
            {"name": f"{name}-o", "namespace": place, "interface": "outer"},
        ]
        assert await cluster.get(definition) is not None
    users = [f"vnf:{vnf['vnf_id']}" for vnf in vnfs]
    for each in (inner, outer):
        assert await holders(each) == sorted(["so", *users])
    refused = (await region.call("DELETE", f"/virtual-links/{inner}")).must(409).json
    assert (refused["type"], refused["holder_count"]) == ("in-use", 3)

    pod = (await region.seen(2, vnfs[0]))[0]
    written = json.dumps([{"name": name, "interface": "inner", "ips": ["10.77.0.17"], "mac": "02:00:00:00:00:01"}])
    annotated = {"metadata": {"annotations": {"k8s.v1.cni.cncf.io/network-status": written}}}
    await cluster.change(f"/api/v1/namespaces/{pod['namespace']}/pods/{pod['name']}", annotated)
    assert [each["uid"] for each in await found_by(region, "10.77.0.17")] == [pod["uid"]]

    await region.remove(vnfs[0])
    assert (await holders(inner), await holders(outer)) == (["so", users[1]], ["so", users[1]])
    assert await cluster.get(definitions[0]) is None
    for each in (inner, outer):
        (await region.call("DELETE", f"/virtual-links/{each}?reference=so")).must(200)
    assert await cluster.get(subnet) is not None
    await region.remove(vnfs[1])
    await no_links(region)
    for path in (
        subnet,
        definitions[1],
        f"/apis/k8s.cni.cncf.io/v1/namespaces/default/network-attachment-definitions/{name}",
    ):
        assert await cluster.get(path) is None


async def found_by(region: RealRegion, address: str) -> list[Body]:
    """Return what the inventory has with that address, once it has something."""

    async def found() -> list[Body] | None:
        return await region.inventory(ip=address) or None

    return await until(found, timeout_s=30)


async def no_links(region: RealRegion) -> None:
    """Return once the region has no link."""

    async def gone() -> bool | None:
        links = (await region.call("GET", "/virtual-links")).must(200).json
        return not [each for each in links if each["cloud_region_id"] == region.id] or None

    await until(gone, timeout_s=60)


def every_type(mark: str, place: str) -> dict[str, tuple[str, Body, set[str]]]:
    """Return links by name: the type, ``spec``, and the kinds that it makes."""
    opaque = {
        "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
        "metadata": {"name": f"opaque-{mark}", "namespace": place}, "spec": {"config": "{}"},
    }  # fmt: skip
    virtual = {"resourceName": "intel.com/nics", "vlan": 3, "vlanQoS": 2, "spoofChk": True, "trust": False}
    vlan = {
        "vlanID": 100,
        "providerInterfaceName": "eth1",
        "logicalInterfaceName": "eth1.100",
        "vlanNodeSelector": "all",
    }
    return {
        f"subnet-{mark}": (
            "kube-ovn",
            {"cidrBlock": "10.61.0.0/16", "vlan": {"id": 5, "provider": f"p{mark}", "defaultInterface": "eth2"}},
            {"NetworkAttachmentDefinition", "ProviderNetwork", "Subnet", "Vlan"},
        ),
        f"layer2-{mark}": (
            "udn",
            {"scope": "namespace", "topology": "Layer2", "role": "Secondary", "subnets": ["10.62.0.0/16"]},
            {"UserDefinedNetwork"},
        ),
        f"localnet-{mark}": (
            "udn",
            {
                "scope": "cluster", "topology": "Localnet", "role": "Secondary", "physicalNetworkName": "phy",
                "subnets": ["10.63.0.0/16"], "vlan": 9,
            },
            {"ClusterUserDefinedNetwork"},
        ),
        f"plain-{mark}": ("sriov", {**virtual, "ipam": {"type": "static"}}, {"NetworkAttachmentDefinition"}),
        f"virtual-{mark}": (
            "sriov",
            {**virtual, "operator": True, "vlanProto": "802.1ad", "maxTxRate": 10, "metaPlugins": [{"type": "tuning"}]},
            {"SriovNetwork"},
        ),
        f"ovs-{mark}": (
            "ovs",
            {"bridge": "br1", "trunk": [{"id": 4}, {"minID": 10, "maxID": 20}]},
            {"NetworkAttachmentDefinition"},
        ),
        f"offload-{mark}": (
            "ovs",
            {"bridge": "br1", "operator": True, "resourceName": "openshift.io/nics", "interfaceType": "dpdk"},
            {"OVSNetwork"},
        ),
        f"line-{mark}": (
            "ovn4nfv",
            {"ipv4Subnets": [{"name": "a", "subnet": "10.64.0.0/24"}], "dns": {"nameservers": ["192.0.2.1"]}},
            {"Network", "NetworkAttachmentDefinition"},
        ),
        f"provider-{mark}": (
            "ovn4nfv-provider",
            {"ipv4Subnets": [{"name": "a", "subnet": "10.65.0.0/24"}], "providerNetType": "VLAN", "vlan": vlan},
            {"ProviderNetwork", "NetworkAttachmentDefinition"},
        ),
        f"given-{mark}": ("manifests", {"objects": [opaque]}, {"NetworkAttachmentDefinition"}),
    }  # fmt: skip


def controllers_of(mark: str, place: str) -> dict[str, Body]:
    """Return what the controllers of these links write, by the paths of the objects."""
    nodus = "/apis/k8s.plugin.opnfv.org/v1alpha1/namespaces/default"
    return {
        f"/apis/kubeovn.io/v1/subnets/subnet-{mark}": {"conditions": [READY]},
        f"/apis/kubeovn.io/v1/provider-networks/p{mark}": {"ready": True},
        f"/apis/k8s.ovn.org/v1/namespaces/{place}/userdefinednetworks/layer2-{mark}": network_created("True"),
        f"/apis/k8s.ovn.org/v1/clusteruserdefinednetworks/localnet-{mark}": network_created("True"),
        f"{nodus}/networks/line-{mark}": {"state": "Created"},
        f"{nodus}/providernetworks/provider-{mark}": {"state": "Created"},
    }


async def test_each_type_of_link_is_made_and_removed(region: RealRegion) -> None:
    """MC-084, MC-088, MC-090, MC-093, MC-095, MC-096: the real definitions accept each object (scenario 4)."""
    mark, place = uuid4().hex[:6], region.place()
    region.namespaces.append(region.sriov_namespace)
    for each in (place, region.sriov_namespace):
        await region.cluster.make("/api/v1/namespaces", {"metadata": {"name": each}})
    wanted, written = every_type(mark, place), controllers_of(mark, place)

    async def make(name: str, kind: str, spec: Body) -> Body:
        asked = {"cloud_region_id": region.id, "name": name, "type": kind, "spec": spec, "namespaces": [place]}
        link: Body = (await region.call("POST", "/virtual-links", {**asked, "reference": "so"})).must(201).json
        return link

    statuses = asyncio.gather(*(region.write_status(*each) for each in written.items()))
    links = await asyncio.gather(*(make(name, kind, spec) for name, (kind, spec, _) in wanted.items()))
    await statuses
    for link in links:
        kinds = {each["kind"] for each in link["resources"]}
        # One definition of OVN4NFV serves all its links in a namespace.
        assert kinds == wanted[link["name"]][2], link
        assert link["status"] == "READY", link
    for link in links:
        answer = await region.call("DELETE", f"/virtual-links/{link['id']}?reference=so")
        assert answer.status in {202, 204}, answer.text
    await no_links(region)
    left = await region.cluster.get(f"/apis/k8s.cni.cncf.io/v1/namespaces/{place}/network-attachment-definitions")
    assert left is not None
    assert left["items"] == []
    for path in written:
        assert await region.cluster.get(path) is None


async def test_a_virtual_machine_and_a_container_share_a_link(region: RealRegion) -> None:
    """MC-062, MC-063, MC-066, MC-069, MC-107 (scenario 3)."""
    named = {"cloud_region_id": region.id, "name": f"lan-{uuid4().hex[:6]}", "type": "nad", "reference": "so"}
    asked = {**named, "spec": {"bridge": {"bridge": "br1", "vlan": 7}}}
    link = (await region.call("POST", "/virtual-links", asked)).must(201).json
    place, network = region.place(), {"virtual_link_id": link["id"], "interface": "lan"}
    on_it = {**network, "vdu_id": "firewall", "mac_address": "02:00:00:00:00:01"}
    profile = {"vdu_id": "firewall", "requests": {"cpu": "1"}, "limits": {"cpu": "2"}}
    package = await region.onboard(MACHINE)
    machine = await region.start(package, namespace=place, networks=[on_it], compute_profiles=[profile])
    router = region.bring_up(
        await region.onboard(PLAIN), namespace=region.place(), networks=[{**network, "vdu_id": "web"}]
    )
    kubevirt = f"/apis/kubevirt.io/v1/namespaces/{place}"
    await region.write_status(f"{kubevirt}/virtualmachines/firewall", {"printableStatus": "Starting", "created": True})
    made = await region.cluster.get(f"{kubevirt}/virtualmachines/firewall")
    assert made is not None
    template = made["spec"]["template"]
    assert template["spec"]["networks"][1:] == [{"multus": {"networkName": f"{place}/{link['name']}"}, "name": "lan"}]
    assert template["spec"]["domain"]["resources"] == {
        "limits": {"cpu": "2"}, "requests": {"cpu": "1", "memory": "64Mi"}
    }  # fmt: skip
    running: Body = {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": {"name": "firewall", "labels": template["metadata"]["labels"]},
        "spec": template["spec"],
    }
    await region.cluster.make(f"{kubevirt}/virtualmachineinstances", running)
    interface = {"name": "lan", "ipAddress": "10.66.0.5", "mac": "02:00:00:00:00:01"}
    status: dict[str, Any] = {
        "phase": "Running",
        "nodeName": "node-2",
        "interfaces": [interface],
        "conditions": [READY],
    }
    await region.write_status(f"{kubevirt}/virtualmachineinstances/firewall", status)
    ready = {"printableStatus": "Running", "created": True, "ready": True, "conditions": [READY]}
    await region.write_status(f"{kubevirt}/virtualmachines/firewall", ready)
    machine = await region.settled(machine)
    (shown,) = await found_by(region, "10.66.0.5")
    assert (shown["kind"], shown["node"], shown["vnf_id"]) == ("VirtualMachineInstance", "node-2", machine["vnf_id"])
    container = await router
    shown = (await region.call("GET", f"/virtual-links/{link['id']}")).must(200).json
    assert shown["use_count"] == 3
    refused = (await region.call("DELETE", f"/cloud-regions/{region.id}")).must(409).json
    assert (refused["type"], refused["holders"]) == ("in-use", [link["id"]])
    await region.cluster.remove(f"{kubevirt}/virtualmachineinstances/firewall")
    broken = await region.start(package, namespace=region.place())
    false = {"type": "Ready", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes have 64Gi"}
    stuck = {"printableStatus": "ErrorUnschedulable", "created": True, "conditions": [false]}
    path = f"/apis/kubevirt.io/v1/namespaces/{broken['namespace']}/virtualmachines/firewall"
    await region.write_status(path, stuck)
    broken = await region.settled(broken, status="FAILED")
    assert "ErrorUnschedulable: 0/3 nodes have 64Gi" in broken["status_detail"]
    for vnf in (machine, container, broken):
        await region.remove(vnf)
        assert await region.is_empty(vnf["namespace"])
    (await region.call("DELETE", f"/virtual-links/{link['id']}?reference=so")).must(204)
