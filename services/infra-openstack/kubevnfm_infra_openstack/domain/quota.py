"""Estimates from its templates what a stack will use of the tenant's quotas, and compares it with what is free.

The estimate is never too high: a count that only Heat knows, a condition, or a flavor that is not listed counts as
nothing. So a stack that fits is never rejected here, and Heat has the last word.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kubevnfm_infra_openstack.domain.errors import QuotaExceeded
from kubevnfm_infra_openstack.domain.hot import (
    AUTO_SCALING_GROUP,
    FLOATING_IP,
    PORT,
    RESOURCE_GROUP,
    SERVER,
    UNKNOWN,
    VOLUME,
    Parameters,
    Template,
    Templates,
    bound,
    properties_of,
    resolve,
    resources_of,
    whole_number,
)

SERVERS: Final = "servers"
CORES: Final = "cores"
RAM: Final = "RAM (MiB)"
PORTS: Final = "ports"
FLOATING_IPS: Final = "floating IPs"
VOLUMES: Final = "volumes"
VOLUME_GIB: Final = "volume capacity (GiB)"
VOLUME_SNAPSHOTS: Final = "volume snapshots"

Demand = Mapping[str, int]
"""The amount that is needed, by one of the names above; only positive amounts."""

_DEEPEST: Final = 6
"""Heat's default for ``max_nested_stack_depth`` is 5. Without a limit, a template that contains itself would never end."""


@dataclass(frozen=True)
class Flavor:
    """A Nova flavor's size."""

    vcpus: int
    ram_mib: int
    disk_gib: int = 0
    """0: as large as the image."""
    is_of_a_stack: bool = False
    """Whether a stack of kubevnfm has made it for its own servers, and deletes it with them."""


def demand_of(
    template: Template,
    nested: Templates,
    parameters: Parameters,
    flavors: Mapping[str, Flavor],
) -> Demand:
    """Count what the stack uses; ``nested`` are the templates by file name, ``flavors`` by id and by name."""
    total: Counter[str] = Counter()
    _count(template, parameters, nested, flavors, 1, total, _DEEPEST)
    return {name: amount for name, amount in total.items() if amount > 0}


def check(demand: Demand, free: Mapping[str, int]) -> None:
    """Raise QuotaExceeded for the first resource that exceeds what is free. Unlimited resources are missing in ``free``."""
    for name, wanted in demand.items():
        if name in free and wanted > free[name]:
            raise QuotaExceeded(name, wanted=wanted, free=max(free[name], 0))


def _count(
    template: Template,
    given: Parameters,
    nested: Templates,
    flavors: Mapping[str, Flavor],
    times: int,
    total: Counter[str],
    depth: int,
) -> None:
    values = bound(template, given)
    for resource in resources_of(template).values():
        _count_one(resource, values, nested, flavors, times, total, depth)


def _count_one(
    resource: Template,
    values: Parameters,
    nested: Templates,
    flavors: Mapping[str, Flavor],
    times: int,
    total: Counter[str],
    depth: int,
) -> None:
    kind, properties = resource.get("type"), properties_of(resource)
    # Whether a condition holds is Heat's to evaluate; counting the resource could reject a stack that fits.
    if "condition" in resource or depth == 0 or not isinstance(kind, str):
        return
    if kind in (AUTO_SCALING_GROUP, RESOURCE_GROUP):
        size = _group_size(kind, properties, values)
        member = properties.get("resource" if kind == AUTO_SCALING_GROUP else "resource_def")
        if size and isinstance(member, Mapping):
            _count_one(member, values, nested, flavors, times * size, total, depth - 1)
    elif kind == SERVER:
        total[SERVERS] += times
        total[PORTS] += times * _implicit_ports(properties.get("networks"))
        flavor = flavors.get(str(resolve(properties.get("flavor"), values)))
        if flavor is not None:
            total[CORES] += times * flavor.vcpus
            total[RAM] += times * flavor.ram_mib
    elif kind == PORT:
        total[PORTS] += times
    elif kind == FLOATING_IP:
        total[FLOATING_IPS] += times
    elif kind == VOLUME:
        total[VOLUMES] += times
        total[VOLUME_GIB] += times * (whole_number(resolve(properties.get("size"), values)) or 0)
    elif (inner := nested.get(kind.removeprefix("file://"))) is not None:
        given = {name: resolve(value, values) for name, value in properties.items()}
        known = {name: value for name, value in given.items() if value is not UNKNOWN}
        _count(inner, known, nested, flavors, times, total, depth - 1)


def _group_size(kind: str, properties: Template, values: Parameters) -> int | None:
    if kind == RESOURCE_GROUP:
        return whole_number(resolve(properties.get("count", 1), values))
    # Heat starts a group with min_size members if desired_capacity is absent.
    desired = whole_number(resolve(properties.get("desired_capacity"), values))
    return desired if desired is not None else whole_number(resolve(properties.get("min_size", 0), values))


def _implicit_ports(networks: object) -> int:
    """Return how many ports Nova creates itself: one for each network entry that names no port."""
    entries: Sequence[object] = networks if isinstance(networks, list) else []
    return sum(1 for entry in entries if isinstance(entry, Mapping) and "port" not in entry and "network" in entry)
