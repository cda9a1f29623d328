"""ResourceDefinitions (SOL003 clause 9.5.3.2): the resources that an operation adds, removes and changes. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kubevnfm_csar.vnfd.model import Cp, Flavour
from kubevnfm_events.objects import PodFacts
from kubevnfm_events.stacks import ServerFacts, StackResources

Json = dict[str, Any]


@dataclass(frozen=True)
class Resources:
    """The ResourceDefinitions of one operation."""

    add: list[Json] = field(default_factory=list)
    remove: list[Json] = field(default_factory=list)
    update: list[Json] = field(default_factory=list)
    stay: dict[str, list[str]] = field(default_factory=dict)
    """By VDU, the machines that exist before and after the operation: affinity rules refer to them too."""


def added(
    counts: Mapping[str, int],
    flavour: Flavour | None,
    *,
    with_storage: bool = True,
    with_ports: bool = True,
    connected: Collection[str] = (),
) -> Iterator[Json]:
    """Yield machines with their ports and volumes; ``connected``: connection points whose ports exist already."""
    for vdu_id, count in counts.items():
        storages, cps = _parts(vdu_id, flavour)
        parts = [("LINKPORT", cp) for cp in cps if with_ports and cp not in connected]
        parts += [("STORAGE", storage) for storage in storages if with_storage]
        for number in range(count):
            yield {"id": f"{vdu_id}-add-{number}", "type": "COMPUTE", "vduId": vdu_id, "resourceTemplateId": vdu_id}
            for kind, name in parts:
                yield {"id": f"{vdu_id}-{name}-add-{number}", "type": kind, "resourceTemplateId": name}


def _parts(vdu_id: str, flavour: Flavour | None) -> tuple[Sequence[str], Sequence[str]]:
    """Return the names of a VDU's storages and connection points."""
    if flavour is None or vdu_id not in flavour.vdus:
        return (), ()
    return flavour.vdus[vdu_id].storages, [cp.cp_id for cp in flavour.cps.values() if _is_bound(cp, vdu_id)]


def _is_bound(cp: Cp, vdu_id: str) -> bool:
    # Only a connection point of a VDU is a port; an external one only gives it a name.
    return cp.kind == "vdu" and cp.vdu_id == vdu_id


def removed_servers(
    server_ids: Iterable[str], present: StackResources, vim_key: str, *, volumes: set[str] | None = None
) -> Iterator[Json]:
    """Yield the removed machines and volumes; ``volumes``: ids, None for all volumes of the machines."""
    ids = set(server_ids)
    yield from existing_servers([server for server in present.servers if server.server_id in ids], "remove", vim_key)
    removed_volumes = [
        volume
        for volume in present.volumes
        if (volume.server_id in ids if volumes is None else volume.resource_id in volumes)
    ]
    for number, volume in enumerate(removed_volumes):
        yield existing(volume.storage_id, number, "STORAGE", volume.resource_id, vim_key)


def existing_servers(servers: Iterable[ServerFacts], what: str, vim_key: str) -> Iterator[Json]:
    for number, server in enumerate(servers):
        one = existing(server.vdu_id, number, "COMPUTE", server.server_id, vim_key, what=what)
        yield {**one, "vduId": server.vdu_id}


def removed_pods(pods: Iterable[PodFacts], vim_key: str) -> Iterator[Json]:
    for number, pod in enumerate(pods):
        yield {**existing(pod.vdu_id, number, "COMPUTE", pod.name, vim_key), "vduId": pod.vdu_id}


def existing(name: str, number: int, kind: str, resource_id: str, vim_key: str, *, what: str = "remove") -> Json:
    return {
        "id": f"{name}-{what}-{number}",
        "type": kind,
        "resourceTemplateId": name,
        "resource": {"vimConnectionId": vim_key, "resourceId": resource_id},
    }


def by_vdu(servers: Iterable[ServerFacts]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for server in servers:
        found.setdefault(server.vdu_id, []).append(server.server_id)
    return found


def replaced(
    pods: Sequence[PodFacts], vim_key: str, flavour: Flavour | None, *, with_storage: bool = False
) -> Resources:
    """Return pods as removed, and as many as added."""
    counts = Counter(pod.vdu_id for pod in pods)
    return Resources(
        add=list(added(counts, flavour, with_storage=with_storage)), remove=list(removed_pods(pods, vim_key))
    )
