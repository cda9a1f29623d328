"""The metrics (ETSI GS NFV-IFA 027 clause 7.2) that can be measured, by type of object, and the reading of those that a request names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

from kubevnfm_kit.errors import InvalidInput
from kubevnfm_kit.nearest import no_such
from kubevnfm_sol.performance import ObjectType

Quantity = Literal["cpu", "memory", "disk", "receive_bytes", "transmit_bytes", "receive_packets", "transmit_packets"]
"""The things that are measured; the last four end the names of series of network interfaces."""
OF_POINTS: Final[tuple[Quantity, ...]] = get_args(Quantity)[3:]


@dataclass(frozen=True)
class Metric:
    """A Measurement Name without sub-counter."""

    name: str
    quantity: Quantity
    is_peak: bool = False


_USAGES: Final[Mapping[str, Quantity]] = {"Cpu": "cpu", "Memory": "memory", "Disk": "disk"}
_OF_COMPUTE: Final = tuple(
    Metric(f"V{name}Usage{kind}Vnf", quantity, is_peak=kind == "Peak")
    for name, quantity in _USAGES.items()
    for kind in ("Mean", "Peak")
)
_TRAFFIC: Final[Mapping[str, Quantity]] = {
    "ByteIncoming": "receive_bytes",
    "ByteOutgoing": "transmit_bytes",
    "PacketIncoming": "receive_packets",
    "PacketOutgoing": "transmit_packets",
}


def _of_point(object_type: str) -> tuple[Metric, ...]:
    return tuple(Metric(f"{name}{object_type}", quantity) for name, quantity in _TRAFFIC.items())


BY_TYPE: Final[Mapping[ObjectType, tuple[Metric, ...]]] = {
    "Vnf": _OF_COMPUTE,
    "Vnfc": _OF_COMPUTE,
    "VnfIntCp": _of_point("VnfIntCp"),
    "VnfExtCp": _of_point("VnfExtCp"),
}
GROUPS: Final[Mapping[ObjectType, str]] = {
    "Vnf": "VirtualisedComputeResource",
    "Vnfc": "VirtualisedComputeResource",
    "VnfIntCp": "VnfInternalCp",
    "VnfExtCp": "VnfExternalCp",
}
"""The Measurement Group that has all metrics of a type of object."""


@dataclass(frozen=True)
class Wanted:
    """A metric as a request names it."""

    name: str
    """As reports have it: perhaps with a sub-counter."""
    metric: Metric
    instance_id: str | None = None
    """The VNF instance that the sub-counter names; None: all of the request."""


def wanted_metrics(
    object_type: ObjectType, names: Sequence[str], groups: Sequence[str], instance_ids: Sequence[str]
) -> tuple[Wanted, ...]:
    """Return the metrics that a request names, each once. Raises InvalidInput that names a wrong one."""
    if not names and not groups:
        raise InvalidInput("criteria", "performanceMetric or performanceMetricGroup expected")
    found = {
        wanted.name: wanted
        for index, name in enumerate(names)
        for wanted in [read_metric(object_type, name, instance_ids, f"criteria/performanceMetric[{index}]")]
    }
    for index, group in enumerate(groups):
        if group != GROUPS[object_type]:
            reason = f"{GROUPS[object_type]} expected with objectType {object_type}"
            raise InvalidInput(f"criteria/performanceMetricGroup[{index}]", reason)
        found.update({wanted.name: wanted for wanted in _of_group(object_type, instance_ids)})
    return tuple(found.values())


def _of_group(object_type: ObjectType, instance_ids: Sequence[str]) -> Iterator[Wanted]:
    # As Tacker names them: those of VNFs and VNFCs with the instance as sub-counter.
    for metric in BY_TYPE[object_type]:
        if metric.quantity in OF_POINTS:
            yield Wanted(metric.name, metric)
        else:
            yield from (Wanted(f"{metric.name}.{each}", metric, each) for each in instance_ids)


def read_metric(object_type: ObjectType, name: str, instance_ids: Sequence[str], place: str) -> Wanted:
    """Return a metric with or without a VNF instance as sub-counter. Raises InvalidInput at ``place``."""
    base, dot, instance_id = name.partition(".")
    metric = next((each for each in BY_TYPE[object_type] if each.name == base), None)
    if metric is None:
        raise InvalidInput(place, _unknown(object_type, base))
    if dot and instance_id not in instance_ids:
        raise InvalidInput(place, f"after {base}. the id of a measured VNF instance expected")
    return Wanted(name, metric, instance_id if dot else None)


def _unknown(object_type: ObjectType, name: str) -> str:
    """Return why a type of object has no such metric."""
    others = [other for other, metrics in BY_TYPE.items() if any(each.name == name for each in metrics)]
    if others:
        return f"objectType {object_type} has no such metric: it is one of objectType {' and '.join(others)}"
    return no_such(name, [each.name for each in BY_TYPE[object_type]], f"metric of objectType {object_type}")
