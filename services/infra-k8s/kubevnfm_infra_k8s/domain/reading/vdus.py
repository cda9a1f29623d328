"""Finds the workload of each VDU, and the pods of workloads, which are the VNFCs (capi.md CR-030 to CR-032)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from kubevnfm_events.objects import PodFacts, VduTarget
from kubevnfm_kit.errors import InvalidInput

from kubevnfm_infra_k8s.domain.objects import SCALED, WORKLOADS, Body, ObjectKey, field_at, uid_of
from kubevnfm_infra_k8s.domain.reading.manifests import Manifest

_MAPPING: Final = "additionalParams.vdu_mapping"


def workload_of_vdus(manifests: Sequence[Manifest], vdus: Sequence[VduTarget]) -> Mapping[Manifest, VduTarget]:
    """Return the VDU of each workload that implements one.

    A VDU that no file implements is left out: the request names the files, and it may name some of the package's only.
    Raises: InvalidInput if a workload is missing that the request itself maps to a VDU.
    """
    found: dict[Manifest, VduTarget] = {}
    workloads = [each for each in manifests if each.kind in WORKLOADS]
    names = {vdu.name for vdu in vdus}
    for vdu in vdus:
        mine = _implementations(vdu, workloads, names)
        if mine:
            found[mine[0]] = vdu
        elif vdu.kind is not None:
            named = ", ".join(sorted(f"{each.kind} {each.name}" for each in workloads))
            raise InvalidInput(
                f"{_MAPPING}.{vdu.vdu_id}",
                f"{vdu.kind} {vdu.name} expected in the files, found {named or 'no workload'}",
            )
    return found


def _implementations(vdu: VduTarget, workloads: Sequence[Manifest], names: Collection[str]) -> Sequence[Manifest]:
    """Return the workloads with the name of a VDU; in a chart else those with that name up to their last dash.

    ``names``: those of all VDUs. A workload with the whole name of one (``db-replica``) is not the other's (``db``).
    Raises: InvalidInput if the part of the name fits several.
    """
    fitting = [each for each in workloads if each.kind == (vdu.kind or each.kind)]
    exact = [each for each in fitting if each.name == vdu.name]
    if exact or not vdu.is_in_chart:
        return exact
    partly = [each for each in fitting if each.name not in names and each.name.rpartition("-")[0] == vdu.name]
    if len({each.name for each in partly}) > 1:
        named = ", ".join(sorted(f"{each.kind} {each.name}" for each in partly))
        raise InvalidInput(
            f"{_MAPPING}.{vdu.vdu_id}", f"missing: one of {named} expected, whose names all fit {vdu.name}"
        )
    return partly


def vdus_without_workload(implemented: Collection[VduTarget], vdus: Sequence[VduTarget]) -> Sequence[VduTarget]:
    """Return the VDUs that are not among the implemented ones."""
    return [vdu for vdu in vdus if vdu not in implemented]


def replicas_of(manifest: Manifest, vdu: VduTarget | None) -> int | None:
    """Return the number of replicas of the instantiation level; None if the manifest's own number applies."""
    return vdu.replicas if vdu is not None and manifest.kind in SCALED else None


def pods_of_vdus(
    workloads: Mapping[ObjectKey, tuple[str, str]], *, pods: Sequence[Body], replica_sets: Sequence[Body]
) -> Sequence[PodFacts]:
    """Return the pods of VDUs, sorted by VDU and name; pods that have ended or are being deleted are left out.

    ``workloads``: (VDU id, uid) by key.
    """
    by_uid = {uid: (key, vdu_id) for key, (vdu_id, uid) in workloads.items()}
    facts = [
        _facts(pod, *by_uid[owner])
        for pod, owner in owned_pods(by_uid, pods=pods, replica_sets=replica_sets)
        if is_running(pod)
    ]
    return sorted(facts, key=lambda each: (each.vdu_id, each.name))


def owned_pods(
    uids: Collection[str], *, pods: Sequence[Body], replica_sets: Sequence[Body]
) -> Sequence[tuple[Body, str]]:
    """Return the pods of these workloads, each with the uid of its workload; a pod can be the workload itself."""
    deployment_of = {uid_of(each): owner_uid(each) for each in replica_sets}
    return [(pod, owner) for pod in pods for owner in _owners(pod, deployment_of) if owner in uids]


def is_running(pod: Body) -> bool:
    """Return whether the pod neither has ended nor is being deleted."""
    return not field_at(pod, "metadata", "deletionTimestamp") and field_at(pod, "status", "phase") not in (
        "Failed",
        "Succeeded",
    )


def _owners(pod: Body, deployment_of: Mapping[str, str]) -> Iterator[str]:
    # A pod can be the workload itself; the pods of a Deployment belong to its ReplicaSets.
    owner = owner_uid(pod)
    yield uid_of(pod)
    yield owner
    if deployment_of.get(owner):
        yield deployment_of[owner]


def owner_uid(body: Body) -> str:
    """Return the uid of the object's controller, "" without one."""
    for reference in field_at(body, "metadata", "ownerReferences") or []:
        if reference.get("controller"):
            return str(reference.get("uid"))
    return ""


def _facts(pod: Body, key: ObjectKey, vdu_id: str) -> PodFacts:
    addresses = [str(each["ip"]) for each in field_at(pod, "status", "podIPs") or [] if each.get("ip")]
    if not addresses and field_at(pod, "status", "podIP"):
        addresses = [str(field_at(pod, "status", "podIP"))]
    return PodFacts(
        vdu_id=vdu_id,
        name=pod["metadata"]["name"],
        namespace=key.namespace,
        uid=uid_of(pod),
        owner_kind=key.kind,
        node=field_at(pod, "spec", "nodeName"),
        addresses=tuple(addresses),
    )
