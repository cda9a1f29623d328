"""Finds the workload of each VDU, and its pods or virtual machines, which are the VNFCs (capi.md CR-030 to CR-032)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kubevnfm_csar.pod_templates import MACHINE_TEMPLATES, REPLICATED
from kubevnfm_events.objects import PodFacts, VduTarget
from kubevnfm_kit.errors import InvalidInput

from kubevnfm_infra_k8s.domain.objects import (
    MACHINE_INSTANCES,
    PODS,
    SCALED,
    WORKLOADS,
    Body,
    ObjectKey,
    Resource,
    field_at,
    group_of,
    uid_of,
)
from kubevnfm_infra_k8s.domain.reading.manifests import Manifest

_MAPPING: Final = "additionalParams.vdu_mapping"


@dataclass(frozen=True)
class RunningParts:
    """The pods and virtual machines of an instance, those that end included, and what connects them with workloads."""

    pods: Sequence[Body] = ()
    replica_sets: Sequence[Body] = ()
    """They connect pods with Deployments."""
    machines: Sequence[Body] = ()
    """VirtualMachineInstances."""
    pooled: Sequence[Body] = ()
    """The VirtualMachines that connect them with VirtualMachinePools."""


def bears_machines(key: ObjectKey) -> bool:
    """Return whether the object is a virtual machine of KubeVirt, or has some."""
    return key.group_kind in MACHINE_TEMPLATES


def workload_of_vdus(manifests: Sequence[Manifest], vdus: Sequence[VduTarget]) -> Mapping[Manifest, VduTarget]:
    """Return the VDU of each workload that implements one.

    A VDU that no file implements is left out: the request names the files, and it may name some of the package's only.
    Raises: InvalidInput if a workload is missing that the request itself maps to a VDU.
    """
    found: dict[Manifest, VduTarget] = {}
    workloads = [each for each in manifests if is_workload(_group_kind(each))]
    names = {vdu.name for vdu in vdus}
    for vdu in vdus:
        mine = _implementations(vdu, workloads, names)
        if mine:
            found[mine[0]] = vdu
        elif vdu.kind is not None:
            named = ", ".join(sorted(f"{each.kind} {each.name}" for each in workloads))
            place = "the files" if vdu.release_name is None else f"release {vdu.release_name}"
            raise InvalidInput(
                f"{_MAPPING}.{vdu.vdu_id}",
                f"{vdu.kind} {vdu.name} expected in {place}, found {named or 'no workload'}",
            )
    return found


def is_workload(group_kind: tuple[str, str]) -> bool:
    """Return whether a kind can implement a VDU; a custom kind with the name of one of Kubernetes cannot."""
    return group_kind in WORKLOADS or group_kind in MACHINE_TEMPLATES


def _group_kind(manifest: Manifest) -> tuple[str, str]:
    return group_of(manifest.api_version), manifest.kind


def _implementations(vdu: VduTarget, workloads: Sequence[Manifest], names: Collection[str]) -> Sequence[Manifest]:
    """Return the workloads with the name of a VDU; in a chart else those with that name up to their last dash.

    ``names``: those of all VDUs. A workload with the whole name of one (``db-replica``) is not the other's (``db``).
    Raises: InvalidInput if the part of the name fits several.
    """
    fitting = [
        each for each in workloads if each.kind == (vdu.kind or each.kind) and vdu.release_name in (None, each.release)
    ]
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
    """Return the number of replicas of the instantiation level; None if the manifest's own number applies.

    Raises: InvalidInput for a number that a virtual machine, which is one, cannot have.
    """
    if vdu is None:
        return None
    if _group_kind(manifest) in SCALED or _group_kind(manifest) in REPLICATED:
        return vdu.replicas
    if _group_kind(manifest) in MACHINE_TEMPLATES and vdu.replicas not in (None, 1):
        raise InvalidInput(
            "instantiationLevelId",
            f"a level with one VNFC of VDU {vdu.vdu_id} expected, found {vdu.replicas}: "
            f"the {manifest.kind} {manifest.name} is one machine",
        )
    return None


def vnfcs_of_vdus(workloads: Mapping[ObjectKey, tuple[str, str]], running: RunningParts) -> Sequence[PodFacts]:
    """Return the VNFCs, sorted by VDU and name; pods and machines that have ended or are being deleted are left out.

    ``workloads``: (VDU id, uid) by key.
    """
    by_uid = {uid_of_workload: (key, vdu_id) for key, (vdu_id, uid_of_workload) in workloads.items()}
    facts = [_facts(body, *by_uid[owner]) for body, owner in owned_parts(by_uid, running) if is_running(body)]
    return sorted(facts, key=lambda each: (each.vdu_id, each.name))


def owned_parts(uids: Collection[str], running: RunningParts) -> Sequence[tuple[Body, str]]:
    """Return the pods and machines of these workloads, each with the uid of its workload, which it can be itself."""
    above = {uid_of(each): owner_uid(each) for each in (*running.replica_sets, *running.pooled)}
    # The pod in which a virtual machine runs is no part of its own.
    pods = [each for each in running.pods if not _is_of_machine(each)]
    return [(body, owner) for body in (*pods, *running.machines) for owner in _owners(body, above) if owner in uids]


def is_running(body: Body) -> bool:
    """Return whether the pod or machine neither has ended nor is being deleted."""
    return not field_at(body, "metadata", "deletionTimestamp") and field_at(body, "status", "phase") not in (
        "Failed",
        "Succeeded",
    )


def resource_of(vnfc: PodFacts) -> Resource:
    """Return how a cluster serves the VNFC."""
    is_machine = any(kind == vnfc.owner_kind for _, kind in MACHINE_TEMPLATES)
    return MACHINE_INSTANCES if is_machine else PODS


def is_own_workload(vnfc: PodFacts) -> bool:
    """Return whether nothing creates the VNFC again: it is in a manifest itself."""
    return vnfc.owner_kind == resource_of(vnfc).kind


def _is_of_machine(pod: Body) -> bool:
    owner = controller_of(pod)
    return (group_of(str(owner.get("apiVersion"))), owner.get("kind")) == ("kubevirt.io", MACHINE_INSTANCES.kind)


def _owners(body: Body, above: Mapping[str, str]) -> Iterator[str]:
    # A pod or machine can be the workload itself. The pods of a Deployment belong to its ReplicaSets, the machines of a pool
    # to its VirtualMachines.
    owner = owner_uid(body)
    yield uid_of(body)
    yield owner
    if above.get(owner):
        yield above[owner]


def owner_uid(body: Body) -> str:
    """Return the uid of the object's controller, "" without one."""
    return str(controller_of(body).get("uid") or "")


def controller_of(body: Body) -> Body:
    """Return the reference to the object's controller; an empty one without it."""
    references = field_at(body, "metadata", "ownerReferences")
    return next((each for each in references or [] if each.get("controller")), {})


def _facts(body: Body, key: ObjectKey, vdu_id: str) -> PodFacts:
    node = field_at(body, "status" if bears_machines(key) else "spec", "nodeName")
    return PodFacts(
        vdu_id=vdu_id,
        name=body["metadata"]["name"],
        namespace=key.namespace,
        uid=uid_of(body),
        owner_kind=key.kind,
        node=node if isinstance(node, str) else None,
        addresses=_addresses(body),
    )


def _addresses(body: Body) -> tuple[str, ...]:
    listed = [field_at(each, "ip") for each in field_at(body, "status", "podIPs") or []]
    found = [each for each in listed if each] or [field_at(body, "status", "podIP")]
    interfaces = field_at(body, "status", "interfaces")
    found += [field_at(each, "ipAddress") for each in (interfaces if isinstance(interfaces, list) else ())]
    return tuple(str(each) for each in found if each)
