"""Interfaces on virtual links: what a request may ask for, and what pods and machines get (multicloud.md chapter 10)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest
from kubevnfm_clients.multicloud.links import LinkRequest
from kubevnfm_clients.multicloud.networks import NetworkRequest
from kubevnfm_csar.networked_workloads import network_faults, networked_workloads
from kubevnfm_events import PackageRef, VimConnection
from kubevnfm_events.objects import NetworkAttachment, ObjectsOrder, VduTarget
from kubevnfm_infra_k8s.domain.links.attaching import attachments
from kubevnfm_infra_k8s.domain.links.record import Link
from kubevnfm_infra_k8s.domain.planning.networks import check_networks, with_networks
from kubevnfm_infra_k8s.domain.reconciling.ports import Region
from kubevnfm_kit.errors import ConflictingInput, Unprocessable

_STATIC = {"ipam": {"type": "static", "addresses": [{"address": "10.4.0.9/24", "gateway": "10.4.0.1"}]}}
_OVN = {
    "ipv4Subnets": [
        {"name": "s", "subnet": "10.1.0.0/24", "gateway": "10.1.0.1/24", "excludeIps": "10.1.0.2..10.1.0.9"}
    ]
}
SPECS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "plain": ("nad", {"bridge": {"bridge": "br1"}}),
    "static": ("nad", {"macvlan": {"master": "eth1", **_STATIC}}),
    "ipvlan": ("nad", {"ipvlan": {"master": "eth1"}}),
    "text": ("nad", {"config": {"type": "bridge", "capabilities": {"mac": True}, **_STATIC}}),
    "kube": ("kube-ovn", {"cidrBlock": ["10.2.0.0/24"], "excludeIps": ["10.2.0.7"]}),
    "ovn": ("ovn4nfv", _OVN),
    "vf": ("sriov", {"resourceName": "intel.com/vf", **_STATIC}),
    "operated": ("sriov", {"resourceName": "intel.com/vf", "operator": True}),
    "udn": ("udn", {"scope": "namespace", "topology": "Layer2", "subnets": ["10.5.0.0/24"]}),
    "flat": ("udn", {"scope": "namespace", "topology": "Layer2", "ipam": {"mode": "Disabled"}}),
    "main": ("udn", {"scope": "namespace", "topology": "Layer2", "role": "Primary", "subnets": ["10.6.0.0/24"]}),
    "given": ("manifests", {"objects": [{"apiVersion": "a.b/v1", "kind": "Pool", "metadata": {"name": "p"}}]}),
}


def a_link(name: str, **more: Any) -> Link:
    type_, spec = SPECS[name]
    wanted = LinkRequest.model_validate({"cloud_region_id": "op/one", "name": name, "type": type_, "spec": spec})
    made = Link.from_request(
        wanted, Region("vim", "links"), id=f"id-{name}", reference="so", now="2026-01-01T00:00:00Z"
    )
    return made.model_copy(update={"status": "READY", **more})


LINKS = {f"id-{name}": a_link(name) for name in SPECS}


def asked(link: str = "plain", vdu: str = "web", **more: Any) -> NetworkRequest:
    return NetworkRequest.model_validate({"vdu_id": vdu, "virtual_link_id": f"id-{link}", **more})


def attached(*networks: NetworkRequest, links: Mapping[str, Link] = LINKS) -> tuple[NetworkAttachment, ...]:
    return attachments(networks, links, vim_id="vim", reference="vnf:1")


def a_workload(kind: str = "Deployment", version: str = "apps/v1", *, name: str = "web", **spec: Any) -> dict[str, Any]:
    annotations = spec.pop("annotations", {})
    pod = {"containers": [{"name": "main", "image": "nginx"}], **spec.pop("pod", {})}
    template = {"metadata": {"annotations": annotations}, "spec": pod}
    body = {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": {**spec, "template": template}}
    return {**body, **template, "metadata": {"name": name, **template["metadata"]}} if kind == "Pod" else body


def faults(body: Mapping[str, Any], *networks: NetworkRequest, replicas: int | None = None) -> list[str]:
    vdus = [VduTarget(vdu_id="web", name="web", replicas=replicas)]
    workloads, found = networked_workloads([body], attached(*networks), vdus)
    return [place for place, _ in [*found, *(fault for one in workloads for fault in network_faults(one, vdus))]]


def template_of(body: Mapping[str, Any], *networks: NetworkRequest) -> Mapping[str, Any]:
    ((workload,), _) = networked_workloads([body], attached(*networks), [])
    found = with_networks(body, workload, "ns1")
    for name in workload.path:
        found = found[name]
    return found


def annotations_of(body: Mapping[str, Any], *networks: NetworkRequest) -> dict[str, Any]:
    texts = template_of(body, *networks)["metadata"]["annotations"]
    return {name: json.loads(text) if text[:1] in "[{" else text for name, text in texts.items()}


@pytest.mark.parametrize(
    ("network", "place"),
    [
        (asked("gone"), "virtual_link_id"),
        (asked("given"), "virtual_link_id"),
        (asked(interface="eth0"), "interface"),
        (asked(interface="lo"), "interface"),
        (asked(interface="Net1"), "interface"),
        (asked(interface="a" * 16), "interface"),
        (asked(interface=""), "interface"),
        (asked(mac_address="02:00:00:00:00"), "mac_address"),
        (asked(mac_address="01:00:00:00:00:01"), "mac_address"),
        (asked("ipvlan", mac_address="02:00:00:00:00:01"), "mac_address"),
        (asked("given", mac_address="02:00:00:00:00:01"), "virtual_link_id"),
        (asked(ip_address="10.1.0.5"), "ip_address"),
        (asked("kube", ip_address="10.9.0.5"), "ip_address"),
        (asked("kube", ip_address="10.2.0.7"), "ip_address"),
        (asked("kube", ip_address="10.2.0.1"), "ip_address"),
        (asked("kube", ip_address="ten"), "ip_address"),
        (asked("kube", ip_address="10.2.0.5/24"), "ip_address"),
        (asked("ovn", ip_address="10.1.0.5"), "ip_address"),
        (asked("ovn", ip_address="10.1.0.1"), "ip_address"),
        (asked("static", ip_address="10.4.0.5"), "ip_address"),
        (asked("text", ip_address="10.4.0.5/24"), "ip_address"),
        (asked("udn", ip_address="10.5.0.5"), "ip_address"),
        (asked("main", interface="net1"), "interface"),
        (asked("main", default_gateway=True), "default_gateway"),
        (asked("udn", default_gateway=True), "default_gateway"),
        (asked(binding="slirp"), "binding"),
        (asked(binding="macvtap"), "binding"),
        (asked(binding="passt"), "binding"),
        (asked(binding="masquerade"), "binding"),
        (asked(binding="tap"), "binding"),
        (asked(binding={"plugin": "a", "more": 1}), "binding"),
    ],
)  # fmt: skip
def test_what_a_link_cannot_fulfil_is_refused_with_its_place(network: NetworkRequest, place: str) -> None:
    """MC-066, MC-092, and the bad input of chapter 10."""
    with pytest.raises(Unprocessable) as refused:
        attached(network)
    assert [each for each, _ in refused.value.places] == [f"networks[0]/{place}"]


def test_a_network_that_contradicts_another_one_is_refused() -> None:
    """MC-067, and the bad input of chapter 10."""
    both = asked("kube", ip_address="10.2.0.20", interface="oam", default_gateway=True)
    with pytest.raises(Unprocessable) as refused:
        attached(both, both)
    members = ("interface", "ip_address", "default_gateway")
    assert [place for place, _ in refused.value.places] == [f"networks[1]/{each}" for each in members]
    assert attached(both, asked("kube", "db", ip_address="10.2.0.21", interface="oam", default_gateway=True))


def test_a_link_of_another_region_or_one_that_has_failed_is_refused() -> None:
    """MC-069, and the bad input of chapter 10."""
    with pytest.raises(Unprocessable, match="region op/one") as refused:
        attached(asked(), links={"id-plain": a_link("plain", vim_id="other")})
    assert refused.value.places[0][0] == "networks[0]/virtual_link_id"
    for status in ("FAILED", "REMOVING"):
        with pytest.raises(ConflictingInput, match=status) as lost:
            attached(asked(), links={"id-plain": a_link("plain", status=status)})
        assert lost.value.places[0][0] == "networks[0]/virtual_link_id"


def test_a_link_of_one_namespace_is_refused_in_another() -> None:
    """MC-093, and the bad input of chapter 12."""
    held = a_link("udn").with_holder("vnf:2", ["ns1"], now="2026-01-01T00:00:00Z")
    links, known = {"id-udn": held}, {"vim_id": "vim", "reference": "vnf:1"}
    with pytest.raises(Unprocessable, match="udn serves ns1") as refused:
        attachments([asked("udn")], links, namespace="ns2", **known)
    assert refused.value.places[0][0] == "networks[0]/virtual_link_id"
    assert attachments([asked("udn")], links, namespace="ns1", **known)


def test_an_address_in_use_names_its_holder() -> None:
    held = a_link("kube").with_holder("vnf:2", ["ns"], addresses=["10.2.0.20"], now="2026-01-01T00:00:00Z")
    with pytest.raises(ConflictingInput, match="in use by vnf:2") as refused:
        attached(asked("kube", ip_address="10.2.0.20"), links={"id-kube": held})
    assert refused.value.places[0][0] == "networks[0]/ip_address"
    mine = a_link("kube").with_holder("vnf:1", ["ns"], addresses=["10.2.0.20"], now="2026-01-01T00:00:00Z")
    assert attached(asked("kube", ip_address="10.2.0.20"), links={"id-kube": mine})


@pytest.mark.parametrize(
    ("body", "network", "place"),
    [
        (a_workload(name="other"), asked(), "vdu_id"),
        (a_workload("ConfigMap", "v1"), asked(), "vdu_id"),
        (a_workload(replicas=2), asked("kube", ip_address="10.2.0.20"), "ip_address"),
        (a_workload("DaemonSet"), asked("kube", ip_address="10.2.0.20"), "ip_address"),
        (a_workload("Job", "batch/v1", parallelism=2), asked("kube", ip_address="10.2.0.20"), "ip_address"),
        (a_workload(), asked(binding="bridge"), "binding"),
        (a_workload(annotations={"k8s.v1.cni.cncf.io/networks": "a@oam, ns/b"}), asked(interface="oam"), "interface"),
        (a_workload(annotations={"k8s.v1.cni.cncf.io/networks": "a@oam, ns/b"}), asked(interface="net2"), "interface"),
        (a_workload("VirtualMachine", "kubevirt.io/v1"), asked(binding="sriov"), "binding"),
        (a_workload("VirtualMachine", "kubevirt.io/v1"), asked("vf", binding="bridge"), "binding"),
        (a_workload("VirtualMachine", "kubevirt.io/v1"), asked("ovn"), "virtual_link_id"),
        (a_workload("VirtualMachine", "kubevirt.io/v1"), asked("static", ip_address="10.4.0.5/24"), "ip_address"),
        (a_workload("VirtualMachine", "kubevirt.io/v1"), asked("static", default_gateway=True), "default_gateway"),
        (a_workload("VirtualMachine", "kubevirt.io/v1"), asked(interface="default"), "interface"),
    ],
)  # fmt: skip
def test_what_a_workload_cannot_have_is_refused_with_its_place(
    body: Mapping[str, Any], network: NetworkRequest, place: str
) -> None:
    """MC-066, MC-067, and the bad input of chapter 10."""
    assert faults(body, network) == [f"networks[0]/{place}"]


@pytest.mark.parametrize(
    ("kind", "spec", "reason"),
    [
        ("apps/v1/Deployment", {"replicas": 1}, "spec.template: an object expected in Deployment web"),
        ("apps/v1/Deployment", {"template": {"metadata": {"annotations": ["a"]}}}, "template.metadata.annotations: an"),
        ("batch/v1/CronJob", {"jobTemplate": None}, "spec.jobTemplate.spec.template: an object"),
        ("kubevirt.io/v1/VirtualMachine", {"template": {"spec": {"domain": 1}}}, "template.spec.domain: an object"),
        ("kubevirt.io/v1/VirtualMachine", {"template": {"spec": {"networks": {}}}}, "template.spec.networks: a list"),
    ],
)
def test_a_manifest_of_another_form_is_refused(kind: str, spec: Any, reason: str) -> None:
    """MC-065: nothing can be added to it, at any step."""
    version, _, kind = kind.rpartition("/")
    body = {"apiVersion": version, "kind": kind, "metadata": {"name": "web"}, "spec": spec}
    networks = attached(asked())
    package, vim = PackageRef(package_id="p", vnfd_id="v"), VimConnection(vim_id="vim")
    order = ObjectsOrder(package=package, vim=vim, def_files=(), networks=networks)
    with pytest.raises(Unprocessable, match=re.escape(reason)) as refused:
        check_networks([body], order)
    assert refused.value.places[0][0] == "networks[0]/vdu_id"
    (workload,), _ = networked_workloads([body], networks, [])
    with pytest.raises(Unprocessable, match=re.escape(reason)):
        with_networks(body, workload, "ns")


def test_one_pod_may_have_a_fixed_address_whatever_the_manifest_says() -> None:
    assert not faults(a_workload(replicas=2), asked("kube", ip_address="10.2.0.20"), replicas=1)
    assert faults(a_workload(), asked("kube", ip_address="10.2.0.20"), replicas=2) == ["networks[0]/ip_address"]
    assert not faults(a_workload("VirtualMachine", "kubevirt.io/v1"), asked("kube", ip_address="10.2.0.20"))


def test_pods_get_their_interfaces_in_the_order_of_the_request() -> None:
    """MC-065, MC-067, MC-068, and MC-092's members of the annotation."""
    body = a_workload(annotations={"k8s.v1.cni.cncf.io/networks": "own/first@a", "kept": "yes"})
    networks = (
        asked("plain", mac_address="02:00:00:00:00:0A"),
        asked("static", interface="oam", ip_address="10.4.0.5/24", default_gateway=True),
        asked("operated"),
        asked("main"),
    )
    found = annotations_of(body, *networks)
    assert found == {
        "kept": "yes",
        "k8s.v1.cni.cncf.io/networks": [
            {"name": "first", "namespace": "own", "interface": "a"},
            {"name": "plain", "namespace": "ns1", "interface": "net1", "mac": "02:00:00:00:00:0a"},
            {
                "name": "static",
                "namespace": "ns1",
                "interface": "oam",
                "ips": ["10.4.0.5/24"],
                "default-route": ["10.4.0.1"],
            },
            {"name": "operated-ns1", "namespace": "ns1", "interface": "net3"},
        ],
    }


@pytest.mark.parametrize(
    ("kind", "version"),
    [
        ("Deployment", "apps/v1"), ("StatefulSet", "apps/v1"), ("DaemonSet", "apps/v1"), ("ReplicaSet", "apps/v1"),
        ("Job", "batch/v1"), ("Pod", "v1"),
    ],
)  # fmt: skip
def test_every_workload_has_them_on_its_pods(kind: str, version: str) -> None:
    """MC-065."""
    (entry,) = annotations_of(a_workload(kind, version), asked())["k8s.v1.cni.cncf.io/networks"]
    assert entry == {"name": "plain", "namespace": "ns1", "interface": "net1"}


def test_kube_ovn_and_ovn4nfv_have_annotations_of_their_own() -> None:
    """MC-065, MC-092."""
    found = annotations_of(
        a_workload(),
        asked("kube", ip_address="10.2.0.20", mac_address="02:00:00:00:00:01"),
        asked("ovn", ip_address="10.1.0.20", default_gateway=True),
        asked("ovn", interface="second"),
    )
    assert found == {
        "kube.links.ovn.kubernetes.io/ip_address": "10.2.0.20",
        "kube.links.ovn.kubernetes.io/mac_address": "02:00:00:00:00:01",
        "k8s.v1.cni.cncf.io/networks": [
            {"name": "kube", "namespace": "links", "interface": "net1"},
            {"name": "ovn-networkobj"},
        ],
        "k8s.plugin.opnfv.org/nfn-network": {
            "type": "ovn4nfv",
            "interface": [
                {"name": "ovn", "interface": "net2", "defaultGateway": "true", "ipAddress": "10.1.0.20"},
                {"name": "ovn", "interface": "second", "defaultGateway": "false"},
            ],
        },
    }


def test_a_machine_gets_networks_with_their_interfaces_and_stays_on_that_of_the_pods() -> None:
    """MC-066."""
    body = a_workload("VirtualMachine", "kubevirt.io/v1", pod={"domain": {"devices": {"disks": []}}})
    networks = (
        asked("plain", mac_address="02:00:00:00:00:01"),
        asked("vf", interface="fast"),
        asked("kube", binding={"plugin": "passt"}, ip_address="10.2.0.20"),
    )
    template = template_of(body, *networks)
    assert template["spec"]["networks"] == [
        {"name": "default", "pod": {}},
        {"name": "net1", "multus": {"networkName": "ns1/plain"}},
        {"name": "fast", "multus": {"networkName": "ns1/vf"}},
        {"name": "net3", "multus": {"networkName": "links/kube"}},
    ]
    assert template["spec"]["domain"]["devices"] == {
        "disks": [],
        "interfaces": [
            {"name": "default", "masquerade": {}},
            {"name": "net1", "bridge": {}, "macAddress": "02:00:00:00:00:01"},
            {"name": "fast", "sriov": {}},
            {"name": "net3", "binding": {"name": "passt"}},
        ],
    }
    assert template["metadata"]["annotations"] == {"kube.links.ovn.kubernetes.io/ip_address": "10.2.0.20"}
    apart = a_workload(
        "VirtualMachine", "kubevirt.io/v1", pod={"domain": {"devices": {"autoattachPodInterface": False}}}
    )
    assert [each["name"] for each in template_of(apart, asked())["spec"]["networks"]] == ["net1"]
