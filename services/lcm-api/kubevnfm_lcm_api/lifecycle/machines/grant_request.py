"""GrantRequest (SOL003 V3.7.1 clause 9.5.2.2): the resources that an operation adds, removes and changes. Pure.

An NFVO and the user data of packages receive it in the same form: the ids of added resources are equal in both, so that
user data find the zone that was granted to a resource.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import singledispatch
from typing import Any, Final

from kubevnfm_csar import Cp, Flavour
from kubevnfm_events.infra import PodFacts, ServerFacts, StackResources
from kubevnfm_sol.lcm import OperationType, VnfLcmOpOcc

from kubevnfm_lcm_api.lifecycle.containers.changing import HealCnfDraft, ScaleCnfDraft
from kubevnfm_lcm_api.lifecycle.containers.drafts import TerminateCnfDraft
from kubevnfm_lcm_api.lifecycle.containers.replacing import ReplaceCnfDraft
from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.core.instantiation import InstantiateDraft, TerminateDraft
from kubevnfm_lcm_api.lifecycle.core.scripted_draft import ScriptedDraft
from kubevnfm_lcm_api.lifecycle.machines.changing import ChangeVmDraft, ConnectVmDraft, OperateVmDraft, ReplaceVmDraft
from kubevnfm_lcm_api.lifecycle.machines.drafts import TerminateVmDraft
from kubevnfm_lcm_api.lifecycle.machines.healing import HealVmDraft
from kubevnfm_lcm_api.lifecycle.workloads.healing import HealWorkloadDraft

Json = dict[str, Any]

_SCOPE: Final = {"nfvi_node": "NFVI_NODE", "zone": "ZONE", "zone_group": "ZONE_GROUP", "nfvi_pop": "NFVI_POP"}
_FLAVOUR_MATTERS: Final = frozenset({OperationType.INSTANTIATE, OperationType.CHANGE_FLAVOUR})


@dataclass(frozen=True)
class Resources:
    """The ResourceDefinitions of one operation."""

    add: list[Json] = field(default_factory=list)
    remove: list[Json] = field(default_factory=list)
    update: list[Json] = field(default_factory=list)
    stay: dict[str, list[str]] = field(default_factory=dict)
    """By VDU, the machines that exist before and after the operation: affinity rules refer to them too."""


def grant_request(
    occ: VnfLcmOpOcc, vnfd_id: str, draft: Draft, flavour: Flavour | None, found: Resources, parameters: Json
) -> Json:
    """Return the request without its links.

    ``vnfd_id``: of the instance; ``flavour``: None if the operation is not made from a flavour; ``found``: its
    resources; ``parameters``: additionalParams.
    """
    level = occ.operation_params.get("instantiationLevelId")
    request: Json = {
        "vnfInstanceId": occ.vnf_instance_id,
        "vnfLcmOpOccId": occ.id,
        "vnfdId": vnfd_id,
        "operation": occ.operation.value,
        "isAutomaticInvocation": occ.is_automatic_invocation,
    }
    if isinstance(draft, ReplaceCnfDraft) or (isinstance(draft, ReplaceVmDraft) and draft.is_new_package):
        request["dstVnfdId"] = draft.package.vnfd_id
    if occ.operation in _FLAVOUR_MATTERS:
        request["flavourId"] = getattr(draft, "flavour_id", "")
    if level is not None and occ.operation in {*_FLAVOUR_MATTERS, OperationType.SCALE_TO_LEVEL}:
        request["instantiationLevelId"] = level
    optional = {
        "addResources": found.add,
        "removeResources": found.remove,
        "updateResources": found.update,
        "placementConstraints": list(_placement(found, flavour, getattr(draft, "vim_key", ""))),
        "additionalParams": parameters,
    }
    return request | {name: value for name, value in optional.items() if value}


def package_grant_request(occ: VnfLcmOpOcc, vnfd_id: str, draft: ScriptedDraft, flavour: Flavour) -> Json:
    """Return the request for the package's user data and scripts, with the same contents as Tacker's (sequences.md 6.4)."""
    found = resource_definitions(draft, flavour)
    if isinstance(draft, ReplaceVmDraft):
        found = _replacement(draft, flavour)
    parameters = occ.operation_params.get("additionalParams") or {}
    request = grant_request(occ, vnfd_id, draft, flavour, found, parameters)
    return {"flavourId": draft.flavour_id, **request} if isinstance(draft, ChangeVmDraft) else request


def _replacement(draft: ReplaceVmDraft, flavour: Flavour) -> Resources:
    """Return the machines that a change of flavour or package changes, as removed and added again."""
    # Tacker's classes find the machines to change in removeResources, and count present + added - removed machines.
    # An NFVO reads updateResources instead (`_change`): Nova rebuilds and resizes these machines in place.
    present = _by_vdu(draft.before.servers)
    changed = {vdu_id: ids for vdu_id, ids in present.items() if draft.changes_vdu(vdu_id)}
    counts = {
        vdu_id: count - len(present.get(vdu_id, ())) + len(changed.get(vdu_id, ()))
        for vdu_id, count in draft.counts.items()
    }
    leaving = [server_id for ids in changed.values() for server_id in ids]
    return Resources(
        add=list(_added(counts, flavour)),
        remove=list(_removed(leaving, draft.before, draft.vim_key)),
        stay={vdu_id: ids for vdu_id, ids in present.items() if vdu_id not in changed},
    )


@singledispatch
def resource_definitions(draft: Draft, flavour: Flavour | None) -> Resources:
    """Return the resources that an operation adds, removes and changes; none for a modification."""
    return Resources()


@resource_definitions.register
def _instantiate(draft: InstantiateDraft, flavour: Flavour | None) -> Resources:
    assert flavour is not None
    managed = getattr(draft, "request", {}).get("extManagedVirtualLinks") or ()
    # A managed link exists already; the VNFM does not create it.
    managed_ids = {link.get("vnfVirtualLinkDescId") for link in managed}
    links = [
        {"id": f"{name}-add-0", "type": "VL", "resourceTemplateId": name}
        for name in flavour.virtual_links
        if name not in managed_ids
    ]
    counts = flavour.initial_counts(draft.instantiation_level_id)
    # The ports of these connection points exist already (linkPortId).
    connected = {
        str(cp.get("cpdId"))
        for link in draft.ext_virtual_links
        for cp in link.get("extCps") or ()
        if any("linkPortId" in (config or {}) for config in (cp.get("cpConfig") or {}).values())
    }
    return Resources(add=[*_added(counts, flavour, connected=connected), *links])


@resource_definitions.register
def _change(draft: ChangeVmDraft, flavour: Flavour | None) -> Resources:
    """Scale, and change of flavour or package; the latter also change the machines that stay."""
    present = draft.before.servers
    leaving = set(getattr(draft, "leaving", ()))
    staying = [server for server in present if server.server_id not in leaving]
    more = {vdu_id: count - sum(one.vdu_id == vdu_id for one in present) for vdu_id, count in draft.counts.items()}
    is_replaced = isinstance(draft, ReplaceVmDraft)
    return Resources(
        add=list(_added(more, flavour)),
        remove=list(_removed(leaving, draft.before, draft.vim_key)),
        update=list(_servers(staying, "update", draft.vim_key)) if is_replaced else [],
        stay=_by_vdu(staying),
    )


@resource_definitions.register
def _heal(draft: HealVmDraft, flavour: Flavour | None) -> Resources:
    present = draft.before.servers
    replaced = {server.server_id for server in present} if draft.is_recreated else set(draft.servers)
    counts = {vdu_id: len(ids) for vdu_id, ids in _by_vdu(s for s in present if s.server_id in replaced).items()}
    volumes = {volume.resource_id for volume in draft.before.volumes} if draft.is_recreated else set(draft.volumes)
    added = _added(
        draft.counts if draft.is_recreated else counts,
        flavour,
        with_storage=bool(volumes),
        with_ports=draft.is_recreated,
    )
    return Resources(
        add=list(added),
        remove=list(_removed(replaced, draft.before, draft.vim_key, volumes=volumes)),
        stay=_by_vdu(s for s in present if s.server_id not in replaced),
    )


@resource_definitions.register
def _scale_cnf(draft: ScaleCnfDraft, flavour: Flavour | None) -> Resources:
    leaving: list[PodFacts] = []
    for vdu_id, difference in draft.vdu_counts.items():
        pods = [pod for pod in draft.before.pods if pod.vdu_id == vdu_id]
        # Kubernetes chooses the pods when it removes them; until then, these stand for their number.
        leaving += pods[max(0, len(pods) + difference) :] if difference < 0 else []
    return Resources(add=list(_added(draft.vdu_counts, flavour)), remove=list(_pods(leaving, draft.vim_key)))


@resource_definitions.register
def _heal_cnf(draft: HealCnfDraft, flavour: Flavour | None) -> Resources:
    # A repair brings back what was granted before.
    pods = draft.before.pods if draft.is_whole else draft.pods
    return _replaced(pods, draft.vim_key, flavour, with_storage=draft.is_whole)


@resource_definitions.register
def _heal_workload(draft: HealWorkloadDraft, flavour: Flavour | None) -> Resources:
    # Without names of VNFCs, only Cluster API knows which Machines are not healthy.
    named = {machine.uid for machine in draft.named}
    pods = [pod for pod in draft.before.pods if pod.uid in named]
    return _replaced(pods, draft.vim_key, flavour)


def _replaced(
    pods: Sequence[PodFacts], vim_key: str, flavour: Flavour | None, *, with_storage: bool = False
) -> Resources:
    counts = Counter(pod.vdu_id for pod in pods)
    return Resources(add=list(_added(counts, flavour, with_storage=with_storage)), remove=list(_pods(pods, vim_key)))


@resource_definitions.register
def _replace_cnf(draft: ReplaceCnfDraft, flavour: Flavour | None) -> Resources:
    # The pods that change are replaced by others; which ones do, only the comparison with the cluster shows.
    pods = [pod for pod in draft.before.pods if not draft.images_of or pod.vdu_id in draft.images_of]
    counts = {vdu.vdu_id: vdu.replicas for vdu in draft.vdus if vdu.replicas is not None}
    present = Counter(pod.vdu_id for pod in pods)
    wanted = present if draft.images_of else Counter({**present, **counts})
    return Resources(add=list(_added(wanted, flavour, with_storage=False)), remove=list(_pods(pods, draft.vim_key)))


@resource_definitions.register
def _connect(draft: ConnectVmDraft, flavour: Flavour | None) -> Resources:
    ports = [port for server in draft.before.servers for port in (*server.ports, *draft.before.ports)]
    touched = {port.resource_id: draft.external_cps[port.name] for port in ports if port.name in draft.external_cps}
    return Resources(
        update=[
            {
                "id": f"{cpd_id}-update-{number}",
                "type": "LINKPORT",
                "resourceTemplateId": cpd_id,
                "resource": {"vimConnectionId": draft.vim_key, "resourceId": port_id},
            }
            for number, (port_id, cpd_id) in enumerate(touched.items())
        ]
    )


@resource_definitions.register
def _operate(draft: OperateVmDraft, flavour: Flavour | None) -> Resources:
    touched = [server for server in draft.before.servers if server.server_id in draft.servers]
    return Resources(update=list(_servers(touched, "update", draft.vim_key)))


@resource_definitions.register
def _terminate(draft: TerminateDraft, flavour: Flavour | None) -> Resources:
    if isinstance(draft, TerminateVmDraft) and draft.resources is not None:
        present = draft.resources
        links = [
            _existing(network.name, number, "VL", network.resource_id, draft.vim_key)
            for number, network in enumerate(present.networks)
        ]
        return Resources(remove=[*_removed({s.server_id for s in present.servers}, present, draft.vim_key), *links])
    if isinstance(draft, TerminateCnfDraft) and draft.release is not None:
        return Resources(remove=list(_pods(draft.release.pods, draft.vim_key)))
    return Resources()


# --- definitions --------------------------------------------------------------------------------------------------------


def _added(
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


def _removed(
    server_ids: Iterable[str], present: StackResources, vim_key: str, *, volumes: set[str] | None = None
) -> Iterator[Json]:
    """Yield the removed machines and volumes; ``volumes``: ids, None for all volumes of the machines."""
    ids = set(server_ids)
    yield from _servers([server for server in present.servers if server.server_id in ids], "remove", vim_key)
    removed_volumes = [
        volume
        for volume in present.volumes
        if (volume.server_id in ids if volumes is None else volume.resource_id in volumes)
    ]
    for number, volume in enumerate(removed_volumes):
        yield _existing(volume.name, number, "STORAGE", volume.resource_id, vim_key)


def _servers(servers: Iterable[ServerFacts], what: str, vim_key: str) -> Iterator[Json]:
    for number, server in enumerate(servers):
        one = _existing(server.vdu_id, number, "COMPUTE", server.server_id, vim_key, what=what)
        yield {**one, "vduId": server.vdu_id}


def _pods(pods: Iterable[PodFacts], vim_key: str) -> Iterator[Json]:
    for number, pod in enumerate(pods):
        yield {**_existing(pod.vdu_id, number, "COMPUTE", pod.name, vim_key), "vduId": pod.vdu_id}


def _existing(name: str, number: int, kind: str, resource_id: str, vim_key: str, *, what: str = "remove") -> Json:
    return {
        "id": f"{name}-{what}-{number}",
        "type": kind,
        "resourceTemplateId": name,
        "resource": {"vimConnectionId": vim_key, "resourceId": resource_id},
    }


def _by_vdu(servers: Iterable[ServerFacts]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for server in servers:
        found.setdefault(server.vdu_id, []).append(server.server_id)
    return found


def _placement(found: Resources, flavour: Flavour | None, vim_key: str) -> Iterator[Json]:
    """Yield the VNFD's affinity rules for added machines, among themselves and with those that stay."""
    for rule in flavour.affinity_rules if flavour is not None else ():
        added = [one["id"] for one in found.add if one["type"] == "COMPUTE" and one["vduId"] in rule.targets]
        staying = [server_id for vdu_id in rule.targets for server_id in found.stay.get(vdu_id, ())]
        scope = _SCOPE.get(rule.scope.lower())
        # SOL003 has no other scope, and a rule about a single machine constrains nothing.
        if scope is None or not added or len(added) + len(staying) < 2:
            continue
        yield {
            "affinityOrAntiAffinity": "AFFINITY" if rule.kind == "affinity" else "ANTI_AFFINITY",
            "scope": scope,
            "resource": [
                *({"idType": "GRANT", "resourceId": one} for one in added),
                *({"idType": "RES_MGMT", "resourceId": one, "vimConnectionId": vim_key} for one in staying),
            ],
        }
