"""A spec of each type of virtual link, with every member that the type has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubevnfm_clients.multicloud.links import LinkType

_IPAM: Final = {
    "type": "host-local",
    "ranges": [[{"subnet": "10.3.0.0/24", "rangeStart": "10.3.0.9", "gateway": "10.3.0.1"}]],
}
_STATIC: Final = {"type": "static", "addresses": [{"address": "10.4.0.5/24"}]}
_DNS: Final = {
    "nameservers": ["10.0.0.53"],
    "domain": "example.com",
    "search": ["a.example.com"],
    "options": ["ndots:2"],
}
_ROUTES: Final = [{"dst": "10.8.0.0/16", "gw": "10.3.0.1"}]
_TUNING: Final = {"type": "tuning", "sysctl": {"net.core.somaxconn": "500"}}
_OVN4NFV: Final = {
    "cniType": "ovn4nfv",
    "ipv4Subnets": [
        {
            "name": "s1",
            "subnet": "172.16.33.0/24",
            "gateway": "172.16.33.1/24",
            "excludeIps": "172.16.33.2 172.16.33.5..172.16.33.10",
        }
    ],
    "ipv6Subnets": [{"name": "s6", "subnet": "fd00:33::/64", "gateway": "fd00:33::1"}],
    "dns": _DNS,
    "routes": [{"dst": "10.8.0.0/16", "gw": "172.16.33.1"}],
}
_SRIOV: Final = {
    "resourceName": "intel.com/intel_sriov_700",
    "vlan": 100,
    "vlanQoS": 3,
    "vlanProto": "802.1ad",
    "spoofChk": True,
    "trust": "off",
    "linkState": "enable",
    "minTxRate": 10,
    "maxTxRate": 100,
    "ipam": _STATIC,
    "capabilities": {"ips": False},
    "metaPlugins": [_TUNING],
}
_OVS: Final = {
    "bridge": "br-ext",
    "vlan": 7,
    "trunk": [{"id": 5}, {"minID": 10, "maxID": 20}],
    "mtu": 9000,
    "interfaceType": "dpdk",
    "ipam": _IPAM,
    "metaPlugins": [_TUNING],
}
_KUBE_OVN: Final = {
    "cidrBlock": ["10.66.0.0/16", "fd66::/112"],
    "gateway": "10.66.0.1,fd66::1",
    "excludeIps": ["10.66.0.2", "10.66.0.10..10.66.0.20", "fd66::5"],
    "vpc": "ovn-cluster",
    "protocol": "Dual",
    "enableDHCP": True,
    "dhcpV4Options": "lease_time=3600",
    "dhcpV6Options": "server_id=00:00:00:00:00:01",
    "mtu": 1400,
    "private": True,
    "allowSubnets": ["10.67.0.0/16"],
    "natOutgoing": False,
    "vlan": {
        "id": 66,
        "provider": "phys66",
        "defaultInterface": "eth1",
        "customInterfaces": [{"interface": "eth2", "nodes": ["node1"]}],
        "excludeNodes": ["node9"],
    },
}

SPECS: Final[Mapping[str, tuple[LinkType, Mapping[str, Any]]]] = {
    "nad bridge": (
        "nad",
        {"bridge": {"bridge": "br1", "vlan": 12, "mtu": 1400, "isGateway": True, "ipMasq": True, "ipam": _IPAM, "dns": _DNS, "routes": _ROUTES}},
    ),
    "nad macvlan": ("nad", {"macvlan": {"master": "eth1", "mode": "bridge", "mtu": 1400, "ipam": _STATIC}}),
    "nad ipvlan": ("nad", {"ipvlan": {"master": "eth1", "mode": "l3", "ipam": _IPAM}}),
    "nad text": ("nad", {"config": '{"cniVersion": "1.0.0", "name": "x", "plugins": [{"type": "vlan", "master": "eth0"}]}'}),
    "nad object": ("nad", {"config": {"cniVersion": "1.0.0", "type": "host-device", "device": "eth3"}}),
    "sriov": ("sriov", {**_SRIOV, "dns": _DNS, "routes": _ROUTES}),
    "sriov operator": ("sriov", {**_SRIOV, "operator": True}),
    "ovs": ("ovs", {**_OVS, "dns": _DNS}),
    "ovs operator": ("ovs", {**_OVS, "operator": True, "resourceName": "openshift.io/ovs_hw"}),
    "ovn4nfv": ("ovn4nfv", _OVN4NFV),
    "ovn4nfv vlan": (
        "ovn4nfv-provider",
        {
            **_OVN4NFV,
            "providerNetType": "VLAN",
            "vlan": {
                "vlanID": 100, "providerInterfaceName": "eth1", "logicalInterfaceName": "eth1.100",
                "vlanNodeSelector": "specific", "nodeLabelList": ["kubernetes.io/hostname=node1"],
            },
        },
    ),
    "ovn4nfv direct": (
        "ovn4nfv-provider",
        {**_OVN4NFV, "providerNetType": "DIRECT", "direct": {"providerInterfaceName": "eth1", "directNodeSelector": "all"}},
    ),
    "kube-ovn": ("kube-ovn", _KUBE_OVN),
    "udn layer2": (
        "udn",
        {"scope": "namespace", "topology": "Layer2", "subnets": ["10.70.0.0/24"], "mtu": 1400, "ipam": {"lifecycle": "Persistent"}},
    ),
    "udn layer3": (
        "udn",
        {"scope": "cluster", "topology": "Layer3", "role": "Primary", "subnets": [{"cidr": "10.71.0.0/16", "hostSubnet": 24}], "joinSubnets": ["100.65.0.0/16"]},
    ),
    "udn localnet": (
        "udn",
        {"scope": "cluster", "topology": "Localnet", "physicalNetworkName": "phys", "subnets": ["10.72.0.0/24"], "vlan": 77},
    ),
    "udn without addresses": ("udn", {"scope": "cluster", "topology": "Layer2", "ipam": {"mode": "Disabled"}}),
    "manifests": (
        "manifests",
        {
            "objects": [
                {"apiVersion": "kubeovn.io/v1", "kind": "Vlan", "metadata": {"name": "manifests-vlan"}, "spec": {"id": 5, "provider": "p"}}
            ]
        },
    ),
}  # fmt: skip
"""By name: the type and the spec."""
