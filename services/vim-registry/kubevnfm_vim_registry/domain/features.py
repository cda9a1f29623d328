"""The features of the nodes of a region, from the lists of its API server (multicloud.md MC-118). Pure functions over foreign objects."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from kubevnfm_clients.multicloud.region_views import FEATURE, Device, DevicePool, NodeFeatures, RegionFeatures
from kubevnfm_kit.json_types import JsonMapping, JsonObject
from kubevnfm_secrets import MASK

from kubevnfm_vim_registry.domain.foreign import as_map, as_maps

_OVS: Final = "ovs-cni.network.kubevirt.io/"
_SRIOV: Final = "feature.node.kubernetes.io/network-sriov.capable"
_VALUES: Final = ("string", "int", "bool", "version")
"""The members of an attribute of a device, one of which has its value."""


def features_of(
    nodes: Iterable[JsonMapping], slices: Iterable[JsonMapping], classes: Iterable[JsonMapping], *, as_of: str
) -> RegionFeatures:
    """Return the features of a region."""
    shown = tuple(_node(node) for node in nodes)
    counted: defaultdict[str, Counter[str]] = defaultdict(Counter)
    extended: Counter[str] = Counter()
    for node in shown:
        for name, value in node.labels.items():
            counted[name][value] += 1
        for name, value in node.allocatable.items():
            # Extended resources have a domain, and are whole numbers.
            if "/" in name and value.isascii() and value.isdigit() and len(value) < 16:
                extended[name] += int(value)
    return RegionFeatures(
        nodes=shown,
        labels={name: dict(sorted(counts.items())) for name, counts in sorted(counted.items())},
        extended_resources=dict(sorted(extended.items())),
        devices=tuple(_pools(slices)),
        device_classes=tuple(sorted(_name(one) for one in classes)),
        as_of=as_of,
    )


def node_capabilities(nodes: Iterable[JsonMapping]) -> frozenset[str]:
    """Return the capabilities that nodes show, although no API group stands for them."""
    found = set[str]()
    for node in map(_node, nodes):
        if node.labels:
            found.add("nfd")
        if node.labels.get(_SRIOV) == "true":
            found.add("sriov")
        if any(name.startswith(_OVS) for name in node.allocatable):
            found.add("ovs")
    return frozenset(found)


def readable(item: JsonMapping) -> JsonObject:
    """Return an object without ``managedFields``, a Secret without its values (multicloud.md chapter 8)."""
    metadata = {name: value for name, value in as_map(item.get("metadata")).items() if name != "managedFields"}
    shown = {**item, "metadata": metadata}
    if item.get("kind") == "Secret" and item.get("apiVersion") == "v1":
        # An annotation may have the whole manifest.
        if "annotations" in metadata:
            metadata["annotations"] = dict.fromkeys(as_map(metadata["annotations"]), MASK)
        for name in ("data", "stringData"):
            if name in shown:
                shown[name] = dict.fromkeys(as_map(shown[name]), MASK)
    return shown


def _node(node: JsonMapping) -> NodeFeatures:
    labels = _texts(as_map(node.get("metadata")).get("labels"))
    status = as_map(node.get("status"))
    return NodeFeatures(
        name=_name(node),
        labels={name: value for name, value in labels.items() if name.startswith(FEATURE)},
        capacity=_texts(status.get("capacity")),
        allocatable=_texts(status.get("allocatable")),
    )


def _pools(slices: Iterable[JsonMapping]) -> Iterator[DevicePool]:
    by_pool: defaultdict[tuple[str, str], list[JsonMapping]] = defaultdict(list)
    for one in slices:
        spec = as_map(one.get("spec"))
        by_pool[str(spec.get("driver", "")), str(as_map(spec.get("pool")).get("name", ""))].append(spec)
    for (driver, pool), specs in sorted(by_pool.items()):
        generation = max(_number(as_map(spec.get("pool")).get("generation")) for spec in specs)
        newest = [spec for spec in specs if _number(as_map(spec.get("pool")).get("generation")) == generation]
        wanted = max(_number(as_map(spec.get("pool")).get("resourceSliceCount")) for spec in newest)
        yield DevicePool(
            driver=driver,
            pool=pool,
            generation=generation,
            incomplete=len(newest) < wanted,
            node=str(newest[0].get("nodeName") or ""),
            devices=tuple(_device(device) for spec in newest for device in as_maps(spec.get("devices"))),
        )


def _device(device: JsonMapping) -> Device:
    attributes = {
        name: next((value[kind] for kind in _VALUES if kind in value), None)
        for name, value in as_map(device.get("attributes")).items()
        if isinstance(value, Mapping)
    }
    capacity = {
        name: str(value.get("value", ""))
        for name, value in as_map(device.get("capacity")).items()
        if isinstance(value, Mapping)
    }
    return Device(name=str(device.get("name", "")), attributes=attributes, capacity=capacity)


def _name(item: JsonMapping) -> str:
    return str(as_map(item.get("metadata")).get("name", ""))


def _texts(value: object) -> dict[str, str]:
    return {str(name): str(text) for name, text in as_map(value).items()}


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
