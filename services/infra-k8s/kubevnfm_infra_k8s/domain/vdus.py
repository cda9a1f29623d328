"""VDUs and the workloads they stand for; the pods of those are the VNFCs (capi.md CR-030 to CR-032)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kubevnfm_events.infra import PodFacts, VduTarget
from kubevnfm_kit.errors import InvalidInput

from kubevnfm_infra_k8s.domain.manifests import FIELD, Manifest
from kubevnfm_infra_k8s.domain.objects import SCALED, WORKLOADS, Body, ObjectKey, at, uid_of


def workload_of_vdus(manifests: Sequence[Manifest], vdus: Sequence[VduTarget]) -> Mapping[Manifest, VduTarget]:
    """Return which workload stands for which VDU. Raises InvalidInput for a VDU without one."""
    found: dict[Manifest, VduTarget] = {}
    for vdu in vdus:
        mine = [each for each in manifests if each.kind in WORKLOADS and each.name == vdu.name]
        if not mine:
            named = ", ".join(sorted(f"{each.kind} {each.name}" for each in manifests if each.kind in WORKLOADS))
            raise InvalidInput(
                FIELD, f"VDU {vdu.vdu_id} stands for a workload {vdu.name!r}; the files have {named or 'no workload'}"
            )
        found[mine[0]] = vdu
    return found


def replicas_of(manifest: Manifest, vdu: VduTarget | None) -> int | None:
    """Return how many replicas the instantiation level sets, None to leave the manifest's own."""
    return vdu.replicas if vdu is not None and manifest.kind in SCALED else None


def pods_of_vdus(
    workloads: Mapping[ObjectKey, tuple[str, str]], *, pods: Sequence[Body], replica_sets: Sequence[Body]
) -> Sequence[PodFacts]:
    """Return the pods that run VDUs, in order of VDU and name.

    ``workloads``: (VDU id, uid) by key. Pods that end, or ended, run nothing.
    """
    deployment_of = {uid_of(each): _owner_uid(each) for each in replica_sets}
    by_uid = {uid: (key, vdu_id) for key, (vdu_id, uid) in workloads.items()}
    facts = [
        _facts(pod, *by_uid[owner])
        for pod in pods
        if _is_running(pod)
        for owner in _owners(pod, deployment_of)
        if owner in by_uid
    ]
    return sorted(facts, key=lambda each: (each.vdu_id, each.name))


def _is_running(pod: Body) -> bool:
    return not at(pod, "metadata", "deletionTimestamp") and at(pod, "status", "phase") not in ("Failed", "Succeeded")


def _owners(pod: Body, deployment_of: Mapping[str, str]) -> Iterator[str]:
    owner = _owner_uid(pod)
    yield uid_of(pod)
    yield owner
    if deployment_of.get(owner):
        yield deployment_of[owner]


def _owner_uid(body: Body) -> str:
    for reference in at(body, "metadata", "ownerReferences") or []:
        if reference.get("controller"):
            return str(reference.get("uid"))
    return ""


def _facts(pod: Body, key: ObjectKey, vdu_id: str) -> PodFacts:
    addresses = [str(each["ip"]) for each in at(pod, "status", "podIPs") or [] if each.get("ip")]
    if not addresses and at(pod, "status", "podIP"):
        addresses = [str(at(pod, "status", "podIP"))]
    return PodFacts(
        vdu_id=vdu_id,
        name=pod["metadata"]["name"],
        namespace=key.namespace,
        uid=uid_of(pod),
        owner_kind=key.kind,
        node=at(pod, "spec", "nodeName"),
        addresses=tuple(addresses),
    )
