"""The nodes of A&AI's graph that the inventory is exported as: their paths, and their bodies by A&AI's schema. No I/O.

A node that is kept is marked by its self link, which names a resource of this manager: a node without the mark has another source
and is neither changed nor deleted.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final
from urllib.parse import quote, urlencode

from kubevnfm_clients.multicloud.region_views import RegionFeatures
from kubevnfm_events.inventory import NetworkAddresses
from kubevnfm_kit.ids import derived_id
from kubevnfm_kit.json_types import JsonMapping, JsonObject

from kubevnfm_infra_k8s.domain.inventory.record import ObjectRecord
from kubevnfm_infra_k8s.domain.links.record import Link

_OURS: Final = "/multicloud/v1/"
_MOST_CAPABILITIES: Final = 500
"""The limit for a region: labels of Node Feature Discovery and extended resources with the first names."""
_MOST_VALUES: Final = 100
"""The limit for a capability."""
_LISTS: Final[Mapping[str, tuple[str, str]]] = {
    "l-interfaces": ("l-interface", "interface-name"),
    "subnets": ("subnet", "subnet-id"),
}
"""The children in a container, with their key."""
_BARE_LISTS: Final[Mapping[str, str]] = {
    "l3-interface-ipv4-address-list": "l3-interface-ipv4-address",
    "l3-interface-ipv6-address-list": "l3-interface-ipv6-address",
    "hpa-feature-attributes": "hpa-attribute-key",
}
"""The children without a container, with their key."""
_EDGES: Final = "relationship-list"
_IN_SERVICE: Final[JsonMapping] = {"in-maint": False, "is-closed-loop-disabled": False}


@dataclass(frozen=True)
class RegionKey:
    """A cloud region, as A&AI and this manager name it."""

    owner: str
    name: str

    @property
    def path(self) -> str:
        return f"/cloud-infrastructure/cloud-regions/cloud-region/{_part(self.owner)}/{_part(self.name)}"


@dataclass(frozen=True)
class Node:
    """A node as it is wanted."""

    path: str
    body: JsonMapping
    mark: str = ""
    """The attribute with the self link; "" for a node whose id no other client can have."""
    initial: JsonMapping = field(default_factory=dict)
    """Attributes that belong to others after the creation."""

    @property
    def created(self) -> JsonMapping:
        """The body with which it is created."""
        return {**self.initial, **self.body}

    def is_ours(self, there: JsonMapping) -> bool:
        """Return whether a node that exists was made by this manager."""
        return not self.mark or str(there.get(self.mark, "")).startswith(_OURS)


def cloud_region(key: RegionKey) -> Node:
    """Return the node of a region, as it is created if A&AI does not have it yet."""
    # Later versions of the schema have further attributes, each with a default.
    body = {"cloud-owner": key.owner, "cloud-region-id": key.name, "cloud-type": "k8s"}
    return Node(key.path, body)


def tenant(key: RegionKey, namespace: str) -> Node:
    """Return the node of a namespace."""
    path = f"{key.path}/tenants/tenant/{_part(namespace)}"
    return Node(path, {"tenant-id": namespace, "tenant-name": namespace})


def generic_vnf(vnf_id: str) -> Node:
    """Return the node of a VNF (MC-109)."""
    body = {
        "vnf-id": vnf_id, "vnf-name": vnf_id, "vnf-type": "kubevnfm",
        "selflink": f"{_OURS}vnf_instances/{_part(vnf_id)}",
    }  # fmt: skip
    return Node(f"/network/generic-vnfs/generic-vnf/{_part(vnf_id)}", body, "selflink", _IN_SERVICE)


def vserver_at(key: RegionKey, namespace: str, record_id: str) -> Node:
    """Return the place of a pod or virtual machine, for its removal."""
    path = f"{key.path}/tenants/tenant/{_part(namespace)}/vservers/vserver/{_part(record_id)}"
    return Node(path, {}, "vserver-selflink")


def vserver(key: RegionKey, record: ObjectRecord, *, version: str) -> Node:
    """Return the node of a pod or virtual machine, related to that of its VNF."""
    query = {"kind": record.kind, "namespace": record.namespace, "name": record.name}
    vnf = generic_vnf(record.vnf_instance_id)
    edge = {
        "related-to": "generic-vnf",
        "related-link": f"/aai/{version}{vnf.path}",
        "relationship-data": [{"relationship-key": "generic-vnf.vnf-id", "relationship-value": record.vnf_instance_id}],
    }
    body = {
        "vserver-id": record.id, "vserver-name": record.name, "vserver-name2": record.vdu_id or record.name,
        "prov-status": "PROV" if record.phase == "Running" else "PREPROV",
        "vserver-selflink": f"{_OURS}inventory/resources?{urlencode(query)}",
        "l-interfaces": {"l-interface": _interfaces(record.networks)},
        _EDGES: {"relationship": [edge]},
    }  # fmt: skip
    at = vserver_at(key, record.namespace, record.id)
    return Node(at.path, body, at.mark, _IN_SERVICE)


def _interfaces(networks: Sequence[NetworkAddresses]) -> list[JsonObject]:
    named: dict[str, JsonObject] = {}
    for number, network in enumerate(networks):
        # The default network of a cluster has no name.
        name = network.interface or network.network or "default"
        while name in named:
            name = f"{name}-{number}"
        interface: JsonObject = {"interface-name": name, "network-name": network.network or "default"}
        for family in (4, 6):
            key = f"l3-interface-ipv{family}-address"
            found = [each for each in network.addresses if ipaddress.ip_address(each).version == family]
            interface[f"{key}-list"] = [{key: each} for each in found]
        named[name] = interface
    return list(named.values())


def l3_network_at(link_id: str) -> Node:
    """Return the place of a virtual link, for its removal."""
    return Node(f"/network/l3-networks/l3-network/{_part(link_id)}", {}, "selflink")


def l3_network(key: RegionKey, link: Link, *, version: str) -> Node:
    """Return the node of a virtual link with its CNI type and subnets, related to its region (MC-094)."""
    subnets = [
        {
            "subnet-id": derived_id("aai-subnet", link.id, str(network)), "subnet-name": f"{link.name}-{number}",
            "network-start-address": str(network.network_address), "cidr-mask": str(network.prefixlen),
            "ip-version": str(network.version), "dhcp-enabled": False,
        }
        for number, (_, network) in enumerate(link.read_spec().subnets())
    ]  # fmt: skip
    edge = {
        "related-to": "cloud-region",
        "related-link": f"/aai/{version}{key.path}",
        "relationship-data": [
            {"relationship-key": "cloud-region.cloud-owner", "relationship-value": key.owner},
            {"relationship-key": "cloud-region.cloud-region-id", "relationship-value": key.name},
        ],
    }
    body = {
        "network-id": link.id, "network-name": link.name, "network-type": _cni_type(link), "network-technology": link.type,
        "selflink": f"{_OURS}virtual-links/{_part(link.id)}",
        "is-bound-to-vpn": False, "is-provider-network": False, "is-shared-network": True, "is-external-network": False,
        "subnets": {"subnet": subnets}, _EDGES: {"relationship": [edge]},
    }  # fmt: skip
    at = l3_network_at(link.id)
    return Node(at.path, body, at.mark)


def _cni_type(link: Link) -> str:
    forms = [name for name in ("bridge", "macvlan", "ipvlan") if link.type == "nad" and link.spec.get(name)]
    return forms[0] if forms else link.type


def hpa_capability_at(key: RegionKey, capability_id: str) -> Node:
    """Return the place of a capability of a region."""
    return Node(f"{key.path}/hpa-capabilities/hpa-capability/{_part(capability_id)}", {})


def hpa_capabilities(key: RegionKey, features: RegionFeatures) -> Mapping[str, Node]:
    """Return the features of a region's nodes by the id of the capability (MC-119)."""
    values: dict[str, Iterable[tuple[str, int, str]]] = {
        name: [(value or "true", count, "nodes") for value, count in islice(sorted(counts.items()), _MOST_VALUES)]
        for name, counts in features.labels.items()
    }
    for name, total in features.extended_resources.items():
        values[name] = [("allocatable", total, "units")]
    found: dict[str, Node] = {}
    for name, attributes in islice(sorted(values.items()), _MOST_CAPABILITIES):
        capability_id = derived_id("aai-hpa", key.owner, key.name, name)
        body = {
            "hpa-capability-id": capability_id, "hpa-feature": name, "hpa-version": "v1", "architecture": "generic",
            "hpa-feature-attributes": [
                {"hpa-attribute-key": value, "hpa-attribute-value": json.dumps({"value": str(count), "unit": unit})}
                for value, count, unit in attributes
            ],
        }  # fmt: skip
        found[capability_id] = Node(hpa_capability_at(key, capability_id).path, body)
    return found


def overlaid(there: JsonMapping, wanted: JsonMapping) -> JsonObject:
    """Return a node with what is wanted of it: what others have added, and the versions of children, stay as they are.

    A list of children that is sent replaces the one that is there, so all of its children are ours; relationships are not.
    """
    merged: dict[str, Any] = dict(there)
    for name, value in wanted.items():
        if name in _LISTS:
            inner, key = _LISTS[name]
            merged[name] = {inner: _children(_listed(_inside(there.get(name), inner)), value[inner], key)}
        elif name in _BARE_LISTS:
            merged[name] = _children(_listed(there.get(name)), value, _BARE_LISTS[name])
        elif name == _EDGES:
            merged[name] = {"relationship": _edges(_listed(_inside(there.get(name), "relationship")), value)}
        else:
            merged[name] = value
    return merged


def is_shown(there: JsonMapping, merged: JsonMapping) -> bool:
    """Return whether a node already has everything, so that nothing need be sent."""
    return _without_empty(there) == _without_empty(merged)


def _without_empty(node: object) -> object:
    """Return a node as A&AI shows it, which leaves out lists without a member."""
    if isinstance(node, Mapping):
        inside = {str(name): _without_empty(value) for name, value in node.items()}
        return {name: value for name, value in inside.items() if value not in ([], {})}
    if isinstance(node, list):
        return sorted((_without_empty(each) for each in node), key=lambda each: json.dumps(each, sort_keys=True))
    return node


def _inside(container: object, name: str) -> object:
    return container.get(name) if isinstance(container, Mapping) else None


def _listed(value: object) -> list[JsonMapping]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def _children(there: Sequence[JsonMapping], wanted: Sequence[JsonMapping], key: str) -> list[JsonObject]:
    known = {each.get(key): each for each in there}
    return [overlaid(known.get(each[key], {}), each) for each in wanted]


def _edges(there: Sequence[JsonMapping], wanted: JsonMapping) -> list[JsonMapping]:
    ours: Sequence[JsonMapping] = wanted["relationship"]
    kinds = {each["related-to"] for each in ours}
    links = {_ends(each) for each in ours}
    staying = [each for each in there if each.get("related-to") not in kinds or _ends(each) in links]
    known = {_ends(each) for each in staying}
    return [*staying, *(each for each in ours if _ends(each) not in known)]


def _ends(edge: JsonMapping) -> tuple[str, frozenset[tuple[str, str]]]:
    data = _listed(edge.get("relationship-data"))
    keys = frozenset((str(each.get("relationship-key")), str(each.get("relationship-value"))) for each in data)
    return str(edge.get("related-to")), keys


def is_segment(name: str) -> bool:
    """Return whether a name can be a segment of a path."""
    return name not in {"", ".", ".."}


def _part(text: str) -> str:
    return quote(text, safe="")
