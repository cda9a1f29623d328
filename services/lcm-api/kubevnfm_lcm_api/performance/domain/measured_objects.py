"""The parts of VNF instances that are measured: pods, machines, and connection points, with the ids that reports name them by. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_sol.performance import ObjectType
from kubevnfm_sol.resources import CpProtocolInfo, InstantiatedVnfInfo, VnfcResourceInfo

from kubevnfm_lcm_api.performance.domain.metrics import Wanted

_MACHINES: Final = frozenset({"OS::Nova::Server", "Machine"})
"""The types, as VIMs name them, of compute resources that are no pods."""


@dataclass(frozen=True)
class Pod:
    """A pod: labels of its series."""

    namespace: str
    name: str


@dataclass(frozen=True)
class Vnfc:
    """A VNFC: a pod, or a machine."""

    instance_id: str
    id: str
    pod: Pod | None = None
    addresses: tuple[str, ...] = ()
    """Those of a machine."""


@dataclass(frozen=True)
class Point:
    """A connection point of a machine."""

    instance_id: str
    id: str
    mac_address: str


@dataclass(frozen=True)
class Measured:
    """All that is measured of some instances."""

    vnfcs: tuple[Vnfc, ...] = ()
    points: tuple[Point, ...] = ()
    """Those of machines; pods have interfaces instead, whose names are the ids (as Tacker has it)."""
    without: tuple[str, ...] = ()
    """Why parts are not measured: one sentence each."""


@dataclass(frozen=True)
class Objects:
    """The objects of a measurement, and its metrics."""

    object_type: ObjectType
    instance_ids: Sequence[str]
    sub_ids: Sequence[str]
    wanted: Sequence[Wanted]

    @property
    def is_whole(self) -> bool:
        """Whether an instance has one value, and not each of its parts."""
        return self.object_type == "Vnf" and not self.sub_ids


def measured(object_type: ObjectType, instances: Sequence[tuple[str, InstantiatedVnfInfo | None]]) -> Measured:
    """Return what of the instances is measured for a type of object; None for an instance that is not instantiated."""
    vnfcs: list[Vnfc] = []
    points: list[Point] = []
    without = []
    for instance_id, info in instances:
        if info is None:
            without.append(f"VNF instance {instance_id} is not instantiated")
            continue
        vnfcs += _vnfcs(instance_id, info)
        if object_type == "VnfIntCp":
            points += _internal(instance_id, info)
        elif object_type == "VnfExtCp":
            points += _external(instance_id, info)
    return Measured(tuple(vnfcs), tuple(points), tuple(without))


def _vnfcs(instance_id: str, info: InstantiatedVnfInfo) -> Iterator[Vnfc]:
    resources = {each.id: each for each in info.vnfc_resource_info}
    default = str(info.metadata.get("namespace") or "default")
    for vnfc in info.vnfc_info:
        resource = resources.get(vnfc.vnfc_resource_info_id or "")
        if resource is None:
            continue
        if resource.compute_resource.vim_level_resource_type in _MACHINES:
            yield Vnfc(instance_id, vnfc.id, addresses=tuple(_addresses(resource)))
        else:
            metadata: JsonMapping = resource.metadata or {}
            namespace = str(metadata.get("namespace") or default)
            yield Vnfc(instance_id, vnfc.id, Pod(namespace, resource.compute_resource.resource_id))


def _addresses(resource: VnfcResourceInfo) -> Iterator[str]:
    for cp in resource.vnfc_cp_info or ():
        for protocol in cp.cp_protocol_info:
            for address in protocol.ip_over_ethernet.ip_addresses if protocol.ip_over_ethernet else ():
                yield from address.addresses


def _mac(protocols: Sequence[CpProtocolInfo]) -> str:
    found = (each.ip_over_ethernet.mac_address for each in protocols if each.ip_over_ethernet)
    return next((each.lower() for each in found if each), "")


def _internal(instance_id: str, info: InstantiatedVnfInfo) -> Iterator[Point]:
    for resource in info.vnfc_resource_info:
        for cp in resource.vnfc_cp_info or ():
            if mac := _mac(cp.cp_protocol_info):
                yield Point(instance_id, cp.id, mac)


def _external(instance_id: str, info: InstantiatedVnfInfo) -> Iterator[Point]:
    of_vnfc = {cp.id: _mac(cp.cp_protocol_info) for each in info.vnfc_resource_info for cp in each.vnfc_cp_info or ()}
    for cp in info.ext_cp_info:
        if mac := _mac(cp.cp_protocol_info) or of_vnfc.get(cp.associated_vnfc_cp_id or "", ""):
            yield Point(instance_id, cp.id, mac)
