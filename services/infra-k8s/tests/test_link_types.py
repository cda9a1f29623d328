"""The types of virtual links: pure functions from a spec to objects, and what is refused (multicloud.md chapter 12)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from ipaddress import ip_network
from typing import Any

import pytest
from kubevnfm_infra_k8s.domain.links.judging import changed_members, readiness
from kubevnfm_infra_k8s.domain.links.spec import Places
from kubevnfm_infra_k8s.domain.links.subnets import overlaps_among, overlaps_with
from kubevnfm_infra_k8s.domain.links.types import TYPES, read_spec
from kubevnfm_infra_k8s.domain.objects import Body
from kubevnfm_kit.clock import SystemClock
from kubevnfm_kit.errors import Unprocessable
from worlds.link_specs import SPECS

PLACES = Places(("ns1", "ns2"), "links", "operator")
SUBNET = {"name": "s", "subnet": "10.1.0.0/24"}


def _manifest(**metadata: object) -> Mapping[str, Any]:
    return {"objects": [{"apiVersion": "a/v1", "kind": "K", "metadata": {"name": "x", **metadata}}]}


def objects(name: str, places: Places = PLACES) -> list[Body]:
    return [each.body for each in read_spec(*SPECS[name]).objects("net", places)]


def configs(name: str) -> list[Mapping[str, Any]]:
    return [json.loads(each["spec"]["config"]) for each in objects(name)]


def test_every_type_has_a_spec_here() -> None:
    assert {kind for kind, _ in SPECS.values()} == set(TYPES)


def test_a_bridge_is_a_configuration_with_addresses_routes_and_names() -> None:
    """MC-092: DNS and routes reach the CNI object."""
    first, second = configs("nad bridge")
    assert first == second
    assert (first["type"], first["vlan"], first["isGateway"], first["name"]) == ("bridge", 12, True, "net")
    assert first["dns"]["nameservers"] == ["10.0.0.53"]
    assert first["ipam"]["routes"] == [{"dst": "10.8.0.0/16", "gw": "10.3.0.1"}]
    assert [each["metadata"]["namespace"] for each in objects("nad bridge")] == ["ns1", "ns2"]


def test_pods_may_ask_for_addresses_and_macs_where_the_cni_has_them() -> None:
    """MC-092."""
    assert configs("nad macvlan")[0]["capabilities"] == {"ips": True, "mac": True}
    assert configs("nad bridge")[0]["capabilities"] == {"mac": True}
    assert "capabilities" not in configs("nad ipvlan")[0]


def test_a_configuration_is_a_text_in_its_object() -> None:
    """MC-084."""
    assert objects("nad text")[0]["spec"]["config"] == SPECS["nad text"][1]["config"]
    assert configs("nad object")[0] == SPECS["nad object"][1]["config"]


def test_sriov_without_an_operator_is_a_nad_with_the_resource() -> None:
    """MC-084."""
    (one, _), (config, _) = objects("sriov"), configs("sriov")
    assert one["metadata"]["annotations"] == {"k8s.v1.cni.cncf.io/resourceName": "intel.com/intel_sriov_700"}
    plugin, tuning = config["plugins"]
    assert tuning["type"] == "tuning"
    assert {name: plugin[name] for name in ("type", "vlan", "vlanQoS", "vlanProto", "spoofchk", "trust")} == {
        "type": "sriov", "vlan": 100, "vlanQoS": 3, "vlanProto": "802.1ad", "spoofchk": "on", "trust": "off",
    }  # fmt: skip
    assert (plugin["link_state"], plugin["min_tx_rate"], plugin["max_tx_rate"]) == ("enable", 10, 100)
    assert plugin["capabilities"] == {"ips": False, "mac": True}


def test_the_object_of_the_operator_has_texts_and_names_its_namespace() -> None:
    """MC-084, MC-093."""
    made = objects("sriov operator")
    assert [(each["kind"], each["metadata"]["namespace"], each["metadata"]["name"]) for each in made] == [
        ("SriovNetwork", "operator", "net-ns1"),
        ("SriovNetwork", "operator", "net-ns2"),
    ]
    spec = made[0]["spec"]
    assert (spec["networkNamespace"], spec["resourceName"]) == ("ns1", "intel_sriov_700")
    assert (spec["spoofChk"], spec["trust"], spec["vlan"]) == ("on", "off", 100)
    assert json.loads(spec["ipam"])["type"] == "static"
    assert json.loads(spec["capabilities"]) == {"ips": False, "mac": True}
    assert json.loads(spec["metaPlugins"])["type"] == "tuning"


def test_open_vswitch_names_its_bridge_as_the_resource() -> None:
    one, config = objects("ovs")[0], configs("ovs")[0]
    resource = one["metadata"]["annotations"]["k8s.v1.cni.cncf.io/resourceName"]
    assert resource == "ovs-cni.network.kubevirt.io/br-ext"
    assert config["plugins"][0]["trunk"] == [{"id": 5}, {"minID": 10, "maxID": 20}]
    assert objects("ovs operator")[0]["spec"]["resourceName"] == "ovs_hw"


def test_a_network_of_ovn4nfv_and_one_nad_for_each_namespace() -> None:
    """MC-093."""
    network, *shared = objects("ovn4nfv")
    assert (network["kind"], network["metadata"]["namespace"]) == ("Network", "links")
    assert network["spec"]["ipv4Subnets"][0]["excludeIps"] == "172.16.33.2 172.16.33.5..172.16.33.10"
    assert network["spec"]["dns"]["search"] == ["a.example.com"]
    assert [(each["metadata"]["name"], each["metadata"]["namespace"]) for each in shared] == [
        ("ovn-networkobj", "ns1"),
        ("ovn-networkobj", "ns2"),
    ]


def test_the_vlan_of_a_provider_network_is_a_text() -> None:
    """MC-095."""
    network = objects("ovn4nfv vlan")[0]
    assert network["kind"] == "ProviderNetwork"
    assert network["spec"]["vlan"]["vlanId"] == "100"
    assert "vlanID" not in network["spec"]["vlan"]
    assert objects("ovn4nfv direct")[0]["spec"]["direct"] == {
        "providerInterfaceName": "eth1",
        "directNodeSelector": "all",
    }


def test_a_subnet_of_kube_ovn_has_a_nad_and_its_underlay() -> None:
    """MC-093."""
    provider, vlan, attachment, subnet = objects("kube-ovn")
    assert (provider["metadata"]["name"], provider["spec"]["defaultInterface"]) == ("phys66", "eth1")
    assert vlan["spec"] == {"id": 66, "provider": "phys66"}
    assert json.loads(attachment["spec"]["config"])["provider"] == "net.links.ovn"
    assert attachment["metadata"]["namespace"] == "links"
    spec = subnet["spec"]
    assert (spec["provider"], spec["cidrBlock"], spec["vlan"]) == ("net.links.ovn", "10.66.0.0/16,fd66::/112", "net")
    assert (spec["protocol"], spec["gateway"]) == ("Dual", "10.66.0.1,fd66::1")


def test_user_defined_networks_have_the_members_of_their_topology() -> None:
    (one,) = objects("udn layer2", Places(("ns1",)))
    assert (one["kind"], one["metadata"]["namespace"]) == ("UserDefinedNetwork", "ns1")
    assert one["spec"]["layer2"]["subnets"] == ["10.70.0.0/24"]
    (layer3,) = objects("udn layer3")
    assert layer3["spec"]["network"]["layer3"]["subnets"] == [{"cidr": "10.71.0.0/16", "hostSubnet": 24}]
    assert layer3["spec"]["namespaceSelector"] == {"matchLabels": {"links.kubevnfm.io/net": "true"}}
    (localnet,) = objects("udn localnet")
    assert localnet["spec"]["network"]["localnet"]["vlan"] == {"mode": "Access", "access": {"id": 77}}


PROVIDER: Mapping[str, Any] = {"ipv4Subnets": [SUBNET], "providerNetType": "VLAN"}
VLAN: Mapping[str, Any] = {"vlanID": 1, "providerInterfaceName": "eth1", "vlanNodeSelector": "any"}
UDN: Mapping[str, Any] = {"scope": "cluster", "topology": "Layer2", "subnets": ["10.1.0.0/24"]}
REFUSED = [
    ("nad", {}, ["spec"]),
    ("nad", {"bridge": {"bridge": "b"}, "macvlan": {"master": "e"}}, ["spec"]),
    ("nad", {"config": "no json"}, ["spec/config"]),
    ("nad", {"config": {"name": "x"}}, ["spec/config"]),
    ("nad", {"config": {"plugins": [{"name": "x"}]}}, ["spec/config"]),
    ("nad", {"macvlan": {"master": "e", "mode": "sideways"}}, ["spec/macvlan/mode"]),
    ("nad", {"macvlan": {}}, ["spec/macvlan/master"]),
    ("nad", {"bridge": {"bridge": "b", "vlan": 4095}}, ["spec/bridge/vlan"]),
    ("nad", {"bridge": {"bridge": "b", "vlan": "7"}}, ["spec/bridge/vlan"]),
    ("nad", {"bridge": {"bridge": "b", "dhcp": True}}, ["spec/bridge/dhcp"]),
    ("nad", {"ipvlan": {"master": "e", "ipam": {"type": "dhcp"}}}, ["spec/ipvlan/ipam/type"]),
    ("nad", {"bridge": {"bridge": "b", "ipam": {"type": "host-local", "subnet": "10.1.0.5/24"}}}, ["spec/bridge/ipam/subnet"]),
    ("nad", {"bridge": {"bridge": "b", "ipam": {"type": "host-local", "subnet": "10.1.0.0/24", "gateway": "10.2.0.1"}}}, ["spec/bridge/ipam/gateway"]),
    ("nad", {"bridge": {"bridge": "b", "ipam": {"type": "host-local", "ranges": [[{"subnet": 5}]]}}}, ["spec/bridge/ipam/ranges[0][0]/subnet"]),
    ("nad", {"bridge": {"bridge": "b", "ipam": {"type": "host-local", "ranges": "x"}}}, ["spec/bridge/ipam/ranges"]),
    ("nad", {"bridge": {"bridge": "b", "ipam": {}}}, ["spec/bridge/ipam/type"]),
    ("nad", {"config": {"type": "x", "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.1.0.0/24"}] * 513]}}}, ["spec"]),
    ("nad", {"bridge": {"bridge": "b", "ipam": {"type": "whereabouts", "range": "10.1.0.5-10.1.0.9"}}}, ["spec/bridge/ipam/range"]),
    ("nad", {"bridge": {"bridge": "b", "routes": [{"dst": "10.0.0.0/8"}]}}, ["spec/bridge/routes"]),
    ("nad", {"bridge": {"bridge": "b", "routes": [{"dst": "10.0.0.1/8"}]}}, ["spec/bridge/routes[0]/dst"]),
    ("nad", {"bridge": {"bridge": "b", "dns": {"nameservers": ["dns.example.com"]}}}, ["spec/bridge/dns/nameservers"]),
    ("sriov", {}, ["spec/resourceName"]),
    ("sriov", {"resourceName": "no_prefix"}, ["spec/resourceName"]),
    ("sriov", {"resourceName": "a.b/c", "dhcp": True}, ["spec/dhcp"]),
    ("sriov", {"resourceName": "a.b/c", "ipam": {"type": "dhcp"}}, ["spec/ipam/type"]),
    ("sriov", {"resourceName": "a.b/c", "vlan": 4095}, ["spec/vlan"]),
    ("sriov", {"resourceName": "a.b/c", "vlanQoS": 3, "vlanProto": "802.1q"}, ["spec/vlanQoS", "spec/vlanProto"]),
    ("sriov", {"resourceName": "a.b/c", "vlan": 0, "vlanQoS": 3}, ["spec/vlanQoS"]),
    ("sriov", {"resourceName": "a.b/c", "vlan": 5, "vlanQoS": 8}, ["spec/vlanQoS"]),
    ("sriov", {"resourceName": "a.b/c", "minTxRate": 5, "maxTxRate": 4}, ["spec/minTxRate"]),
    ("sriov", {"resourceName": "a.b/c", "operator": True, "dns": {"domain": "x"}}, ["spec/dns"]),
    ("sriov", {"resourceName": "a.b/c", "spoofChk": "maybe"}, ["spec/spoofChk"]),
    ("sriov", {"resourceName": "a.b/c", "metaPlugins": [{"name": "x"}]}, ["spec/metaPlugins"]),
    ("ovs", {}, ["spec/bridge"]),
    ("ovs", {"bridge": "b", "operator": True}, ["spec/resourceName"]),
    ("ovs", {"bridge": "b", "trunk": [{"minID": 5, "maxID": 4}]}, ["spec/trunk[0]/minID"]),
    ("ovs", {"bridge": "b", "trunk": [{"minID": 5}, {}]}, ["spec/trunk[0]", "spec/trunk[1]"]),
    ("ovn4nfv", {}, ["spec/ipv4Subnets"]),
    ("ovn4nfv", {"ipv6Subnets": [{"name": "s", "subnet": "fd00::/64"}]}, ["spec/ipv4Subnets"]),
    ("ovn4nfv", {"ipv4Subnets": [{"name": "s", "subnet": "10.1.0.1/24"}]}, ["spec/ipv4Subnets[0]/subnet"]),
    ("ovn4nfv", {"ipv4Subnets": [{**SUBNET, "gateway": "10.2.0.1"}]}, ["spec/ipv4Subnets[0]/gateway"]),
    ("ovn4nfv", {"ipv4Subnets": [{**SUBNET, "excludeIps": "10.1.0.2 10.1.0.9..10.1.0.5"}]}, ["spec/ipv4Subnets[0]/excludeIps"]),
    ("ovn4nfv", {"ipv4Subnets": [{**SUBNET, "excludeIps": "10.1.1.2"}]}, ["spec/ipv4Subnets[0]/excludeIps"]),
    ("ovn4nfv", {"ipv4Subnets": [SUBNET, {"name": "t", "subnet": "10.1.0.128/25"}]}, ["spec/ipv4Subnets[1]/subnet"]),
    ("ovn4nfv", {"ipv4Subnets": [SUBNET, {"name": "s", "subnet": "10.2.0.0/24"}]}, ["spec/ipv4Subnets[1]/name"]),
    ("ovn4nfv", {"ipv4Subnets": [{"name": "s", "subnet": "fd00::/64"}]}, ["spec/ipv4Subnets[0]/subnet"]),
    ("ovn4nfv", {"ipv4Subnets": [SUBNET], "userData1": "x"}, ["spec/userData1"]),
    ("ovn4nfv-provider", {"ipv4Subnets": [SUBNET]}, ["spec/providerNetType"]),
    ("ovn4nfv-provider", PROVIDER, ["spec/vlan"]),
    ("ovn4nfv-provider", {**PROVIDER, "vlan": {**VLAN, "vlanID": 0}}, ["spec/vlan/vlanID"]),
    ("ovn4nfv-provider", {**PROVIDER, "vlan": {**VLAN, "vlanID": 4095}}, ["spec/vlan/vlanID"]),
    ("ovn4nfv-provider", {**PROVIDER, "vlan": {**VLAN, "vlanNodeSelector": "specific"}}, ["spec/vlan/nodeLabelList"]),
    ("ovn4nfv-provider", {**PROVIDER, "vlan": VLAN, "direct": {"providerInterfaceName": "e", "directNodeSelector": "all"}}, ["spec/direct"]),
    ("kube-ovn", {}, ["spec/cidrBlock"]),
    ("kube-ovn", {"cidrBlock": "10.1.0.1/24"}, ["spec/cidrBlock"]),
    ("kube-ovn", {"cidrBlock": ["10.1.0.0/24", "10.2.0.0/24"]}, ["spec/cidrBlock"]),
    ("kube-ovn", {"cidrBlock": "10.1.0.0/24", "gateway": "10.2.0.1"}, ["spec/gateway"]),
    ("kube-ovn", {"cidrBlock": "10.1.0.0/24", "excludeIps": ["10.1.0.9..10.1.1.5"]}, ["spec/excludeIps"]),
    ("kube-ovn", {"cidrBlock": "10.1.0.0/24", "protocol": "IPv6"}, ["spec/protocol"]),
    ("kube-ovn", {"cidrBlock": "10.1.0.0/24", "vlan": {"id": 5, "provider": "thirteenchars", "defaultInterface": "e"}}, ["spec/vlan/provider"]),
    ("kube-ovn", {"cidrBlock": "10.1.0.0/24", "vlan": {"id": 0, "provider": "p"}}, ["spec/vlan/id"]),
    ("kube-ovn", {"cidrBlock": "10.1.0.0/24", "dns": {}}, ["spec/dns"]),
    ("udn", {"topology": "Layer2"}, ["spec/scope"]),
    ("udn", {**UDN, "scope": "namespace", "topology": "Localnet", "physicalNetworkName": "p"}, ["spec/scope"]),
    ("udn", {**UDN, "role": "Primary", "topology": "Localnet", "physicalNetworkName": "p"}, ["spec/role"]),
    ("udn", {"scope": "cluster", "topology": "Layer3"}, ["spec/subnets"]),
    ("udn", {"scope": "cluster", "topology": "Layer2"}, ["spec/subnets"]),
    ("udn", {**UDN, "ipam": {"mode": "Disabled"}}, ["spec/subnets"]),
    ("udn", {**UDN, "joinSubnets": ["100.65.0.0/16"]}, ["spec/joinSubnets"]),
    ("udn", {**UDN, "vlan": 5}, ["spec/vlan"]),
    ("udn", {**UDN, "subnets": ["10.1.0.0/24", "10.1.0.0/25"]}, ["spec/subnets[1]"]),
    ("udn", {**UDN, "subnets": ["10.1.0.3/24"]}, ["spec/subnets[0]/cidr"]),
    ("manifests", {}, ["spec/objects"]),
    ("manifests", {"objects": [{}] * 51}, ["spec/objects"]),
    ("manifests", {"objects": [{"apiVersion": "a/v1"}]}, ["spec/objects[0]/kind", "spec/objects[0]/metadata/name"]),
    ("manifests", {"objects": [{"apiVersion": "a/v1", "kind": "K", "metadata": {"name": "x"}}] * 2}, ["spec/objects[1]"]),
    ("manifests", _manifest(name="a/../b"), ["spec/objects[0]/metadata/name"]),
    ("manifests", _manifest(namespace=5), ["spec/objects[0]/metadata/namespace"]),
    ("manifests", _manifest(namespace="a/b"), ["spec/objects[0]/metadata/namespace"]),
    ("manifests", _manifest(finalizers=["a/b"], ownerReferences=[]), ["spec/objects[0]/metadata/finalizers", "spec/objects[0]/metadata/ownerReferences"]),
    ("manifests", _manifest(labels={"kubevnfm.io/vnf-instance-id": "x"}), ["spec/objects[0]/metadata/labels"]),
    ("manifests", _manifest(annotations={"k8splugin.io/rb-instance-id": "x"}), ["spec/objects[0]/metadata/annotations"]),
    ("manifests", _manifest(labels={"a": 5}), ["spec/objects[0]/metadata/labels"]),
    ("manifests", _manifest(annotations="x"), ["spec/objects[0]/metadata/annotations"]),
    ("manifests", {"objects": [{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}}]}, ["spec/objects[0]/apiVersion"]),
]  # fmt: skip


@pytest.mark.parametrize("ranges", [5, "x", {"a": 1}, [5, [5]], None])
def test_a_configuration_as_given_has_the_subnets_that_can_be_read(ranges: object) -> None:
    """MC-091: else no other link could be compared with it."""
    ipam = {"type": "host-local", "subnet": "10.1.0.0/24", "ranges": ranges}
    found = read_spec("nad", {"config": {"type": "x", "ipam": ipam}}).subnets()
    assert [str(network) for _, network in found] == ["10.1.0.0/24"]


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (("10.0.0.0/24", "10.0.1.0/24", "fd00::/64"), []),
        (("10.0.0.0/24", "10.0.0.0/24"), [("1", "overlaps with 10.0.0.0/24 of 0")]),
        (("10.0.0.0/24", "10.0.0.0/16"), [("1", "overlaps with 10.0.0.0/24 of 0")]),
        (("10.1.0.0/24", "10.0.0.0/8", "10.2.0.0/24"), [("1", "overlaps with 10.1.0.0/24 of 0"), ("2", "overlaps with 10.0.0.0/8 of 1")]),
        (("fd00::/64", "10.0.0.0/24", "fd00::/80"), [("2", "overlaps with fd00::/64 of 0")]),
    ],
)  # fmt: skip
def test_subnets_of_one_link_do_not_overlap(given: tuple[str, ...], found: list[tuple[str, str]]) -> None:
    """MC-091."""
    assert list(overlaps_among([(str(place), ip_network(each)) for place, each in enumerate(given)])) == found


def test_subnets_overlap_if_they_have_an_address_in_common() -> None:
    """MC-091."""
    others = [ip_network(each) for each in ("10.0.0.0/8", "10.1.0.0/24", "192.168.7.0/24", "fd00::/64")]
    given = ("10.200.0.0/16", "10.1.0.128/25", "11.0.0.0/8", "192.168.0.0/16", "9.0.0.0/8", "fd00::/48", "fd01::/64")
    found = overlaps_with([(each, ip_network(each)) for each in given], others)
    assert {place: str(other) for place, other in found} == {
        "10.200.0.0/16": "10.0.0.0/8",
        "10.1.0.128/25": "10.0.0.0/8",
        "192.168.0.0/16": "192.168.7.0/24",
        "fd00::/48": "fd00::/64",
    }


@pytest.mark.parametrize(("type", "spec", "places"), REFUSED)
def test_what_is_wrong_is_named(type: Any, spec: Mapping[str, Any], places: list[str]) -> None:
    """MC-091, MC-092, MC-095."""
    with pytest.raises(Unprocessable) as refused:
        read_spec(type, spec)
    assert [place for place, _ in refused.value.places] == places


READY = [
    ({"apiVersion": "k8s.plugin.opnfv.org/v1alpha1", "kind": "Network"}, "InProgress"),
    ({"apiVersion": "k8s.plugin.opnfv.org/v1alpha1", "kind": "Network", "status": {"state": "Created"}}, "Current"),
    ({"apiVersion": "k8s.plugin.opnfv.org/v1alpha1", "kind": "Network", "status": {"state": "DeleteInternalError"}}, "Failed"),
    ({"apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition"}, "Current"),
    ({"apiVersion": "sriovnetwork.openshift.io/v1", "kind": "SriovNetwork"}, "Current"),
    ({"apiVersion": "sriovnetwork.openshift.io/v1", "kind": "SriovNetwork", "status": {"conditions": [{"type": "Ready", "status": "False"}]}}, "InProgress"),
    ({"apiVersion": "k8s.ovn.org/v1", "kind": "UserDefinedNetwork"}, "InProgress"),
    ({"apiVersion": "k8s.ovn.org/v1", "kind": "UserDefinedNetwork", "status": {"conditions": [{"type": "NetworkCreated", "status": "True"}]}}, "Current"),
    ({"apiVersion": "k8s.ovn.org/v1", "kind": "UserDefinedNetwork", "status": {"conditions": [{"type": "NetworkCreated", "status": "True"}, {"type": "NetworkAllocationSucceeded", "status": "False"}]}}, "InProgress"),
    ({"apiVersion": "kubeovn.io/v1", "kind": "Subnet", "status": {"conditions": [{"type": "Ready", "status": "True"}]}}, "Current"),
    ({"apiVersion": "kubeovn.io/v1", "kind": "Subnet", "status": {"conditions": [{"type": "Validated", "status": "False"}]}}, "Failed"),
    ({"apiVersion": "kubeovn.io/v1", "kind": "Subnet"}, "InProgress"),
    ({"apiVersion": "kubeovn.io/v1", "kind": "Vlan", "status": {"conflict": True}}, "Failed"),
    ({"apiVersion": "kubeovn.io/v1", "kind": "Vlan"}, "Current"),
    ({"apiVersion": "kubeovn.io/v1", "kind": "ProviderNetwork", "status": {"ready": True}}, "Current"),
    ({"apiVersion": "kubeovn.io/v1", "kind": "ProviderNetwork"}, "InProgress"),
    ({"apiVersion": "kubeovn.io/v1", "kind": "Vlan", "metadata": {"deletionTimestamp": "now"}}, "Terminating"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "status"), READY)
def test_an_object_is_judged_by_its_own_status(body: Body, status: str) -> None:
    """MC-096."""
    assert readiness(body, SystemClock().now()).status == status


def test_members_of_controllers_are_no_drift() -> None:
    """MC-098."""
    wanted = {"spec": {"cidrBlock": "10.1.0.0/24", "excludeIps": ["10.1.0.2"]}}
    there = {"spec": {**wanted["spec"], "gateway": "10.1.0.1"}, "status": {}}
    assert changed_members(wanted, there) == []
    assert changed_members(wanted, {"spec": {**wanted["spec"], "excludeIps": []}}) == ["spec/excludeIps"]
    assert changed_members({"spec": {"config": '{"a": 1, "b": 2}'}}, {"spec": {"config": '{"b":2,"a":1}'}}) == []
