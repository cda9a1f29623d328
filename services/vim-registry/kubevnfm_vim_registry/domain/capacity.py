"""How much a VIM has, from the answers of its API. Pure functions over foreign objects: each text and number has a limit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from kubevnfm_clients.vim_views import VimCapacity, VimNode, VimQuota
from kubevnfm_kit.error_text import bounded
from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_kit.printable import printable

from kubevnfm_vim_registry.domain.foreign import as_map, as_maps

_QUANTITY: Final = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,9})?)([KMGTPE]i|[mkMGTPE])?")
_UNITS: Final = {
    "m": Decimal("0.001"),
    **{unit: Decimal(1000) ** power for power, unit in enumerate("kMGTPE", 1)},
    **{f"{unit}i": Decimal(1024) ** power for power, unit in enumerate("KMGTPE", 1)},
}
_COMPUTE: Final = {
    "instances": ("maxTotalInstances", "totalInstancesUsed"),
    "cores": ("maxTotalCores", "totalCoresUsed"),
    "ram_mib": ("maxTotalRAMSize", "totalRAMUsed"),
}
_STORAGE: Final = {
    "volumes": ("maxTotalVolumes", "totalVolumesUsed"),
    "volume_gib": ("maxTotalVolumeGigabytes", "totalGigabytesUsed"),
}
QUOTAS: Final[Mapping[str, Mapping[str, tuple[str, str]]]] = {"compute": _COMPUTE, "block-storage": _STORAGE}
"""The limits of a project and their use in the answer to ``/limits``, by service."""
_LARGEST: Final = 2**53
_LONGEST: Final = 253
_MOST_ADDRESSES: Final = 8
_REASON_BYTES: Final = 512
_MOST_NOT_READY: Final = 100


@dataclass(frozen=True)
class SeenCapacity:
    """The facts that were read of a VIM."""

    capacity: VimCapacity
    nodes: Sequence[VimNode] = ()
    not_ready: tuple[VimNode, ...] = ()
    """The first of those that are not ready, by name."""


def quotas_of(service: str, answer: object) -> list[VimQuota]:
    """Return the quotas in an answer of a service to ``/limits``; those without a number are left out."""
    absolute = as_map(as_map(as_map(answer).get("limits")).get("absolute"))
    found = []
    for name, (limit_name, used_name) in QUOTAS[service].items():
        limit, used = absolute.get(limit_name), absolute.get(used_name)
        if type(limit) is int and type(used) is int and -1 <= limit < _LARGEST and 0 <= used < _LARGEST:
            found.append(VimQuota(name=name, used=used, limit=None if limit == -1 else limit))
    return found


def cluster_capacity(nodes: Iterable[JsonMapping], *, as_of: str) -> SeenCapacity:
    """Return the sum of what the nodes of a cluster have, and their states."""
    shown, cpu, memory, pods = list[VimNode](), Decimal(0), Decimal(0), Decimal(0)
    for node in nodes:
        status = as_map(node.get("status"))
        allocatable = as_map(status.get("allocatable"))
        cpu += _quantity(allocatable.get("cpu"))
        memory += _quantity(allocatable.get("memory"))
        pods += _quantity(allocatable.get("pods"))
        shown.append(_node(node, status))
    capacity = VimCapacity(
        as_of=as_of,
        nodes=len(shown),
        nodes_ready=sum(each.ready for each in shown),
        cpu=float(round(cpu, 3)),
        memory_bytes=int(memory),
        pods=int(pods),
    )
    not_ready = sorted((each for each in shown if not each.ready), key=lambda each: each.name)
    return SeenCapacity(capacity, shown, tuple(not_ready[:_MOST_NOT_READY]))


def _node(node: JsonMapping, status: JsonMapping) -> VimNode:
    ready = next((each for each in as_maps(status.get("conditions")) if each.get("type") == "Ready"), {})
    is_ready = ready.get("status") == "True"
    reason = ": ".join(filter(None, [_text(ready.get("reason")), printable(str(ready.get("message") or ""))]))
    return VimNode(
        name=_text(as_map(node.get("metadata")).get("name")),
        ready=is_ready,
        reason="" if is_ready else bounded(reason or "its kubelet has not reported yet", _REASON_BYTES),
        since=_text(ready.get("lastTransitionTime")),
        addresses=tuple(
            _text(each.get("address"))
            for each in as_maps(status.get("addresses"))[:_MOST_ADDRESSES]
            if each.get("type") in {"InternalIP", "ExternalIP"}
        ),
        version=_text(as_map(status.get("nodeInfo")).get("kubeletVersion")),
    )


def _quantity(value: object) -> Decimal:
    found = _QUANTITY.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return Decimal(0)
    number, unit = found.groups()
    return Decimal(number) * (_UNITS[unit] if unit else 1)


def _text(value: object) -> str:
    return printable(value[:_LONGEST]) if isinstance(value, str) else ""
