"""The Machines of a workload cluster as VNFCs (capi.md CR-050)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kubevnfm_events.capi import MachineFacts
from kubevnfm_events.objects import VduTarget

from kubevnfm_infra_k8s.domain.capi.contract import CONTROL_PLANE_LABEL, DEPLOYMENT_LABEL, POOL_LABEL
from kubevnfm_infra_k8s.domain.objects import Body, field_at, labels_of, name_of, uid_of

TOPOLOGY_DEPLOYMENT_LABEL = "topology.cluster.x-k8s.io/deployment-name"
TOPOLOGY_POOL_LABEL = "topology.cluster.x-k8s.io/pool-name"
CONTROL_PLANE_VDU = "controlPlane"
"""The name of the VDU of a control plane that a ClusterClass makes."""


def is_leaving(machine: Body) -> bool:
    """Return whether the Machine is being deleted."""
    return bool(field_at(machine, "metadata", "deletionTimestamp"))


def is_of_control_plane(machine: Body) -> bool:
    """Return whether the Machine is one of the control plane."""
    return CONTROL_PLANE_LABEL in labels_of(machine)


def machine_facts(machines: Sequence[Body], vdus: Sequence[VduTarget]) -> tuple[MachineFacts, ...]:
    """Return the Machines that are not being deleted, sorted by VDU and name."""
    alive = [each for each in machines if not is_leaving(each)]
    return tuple(sorted((facts_of(each, vdus) for each in alive), key=lambda one: (one.vdu_id or "", one.name)))


def owner_name(machine: Body) -> str:
    """Return the name of the object that makes another Machine in place of this one; "" if there is none."""
    return next((name for _, name in _owners(machine)), "")


def owner_of_kind(body: Body, kind: str) -> str:
    """Return the name of the object of this kind that controls the object; "" if there is none."""
    for reference in field_at(body, "metadata", "ownerReferences") or []:
        if reference.get("controller") and reference.get("kind") == kind:
            return str(reference.get("name"))
    return ""


def facts_of(machine: Body, vdus: Sequence[VduTarget]) -> MachineFacts:
    """Return the facts of one Machine."""
    owners = list(_owners(machine))
    vdu_by_name = {vdu.name: vdu.vdu_id for vdu in vdus}
    return MachineFacts(
        vdu_id=next((vdu_by_name[name] for _, name in owners if name in vdu_by_name), None),
        name=name_of(machine),
        namespace=str(field_at(machine, "metadata", "namespace") or ""),
        uid=uid_of(machine),
        owner_kind=next((kind for kind, _ in owners), "Machine"),
        owner=owner_name(machine) or None,
        node=field_at(machine, "status", "nodeRef", "name"),
        provider_id=field_at(machine, "spec", "providerID"),
        version=field_at(machine, "spec", "version"),
        addresses=tuple(
            str(each["address"]) for each in field_at(machine, "status", "addresses") or [] if each.get("address")
        ),
    )


def _owners(machine: Body) -> Iterator[tuple[str, str]]:
    """Yield the kind and the names by which a VDU can stand for the Machine's owner."""
    labels = labels_of(machine)
    if is_of_control_plane(machine):
        for reference in field_at(machine, "metadata", "ownerReferences") or []:
            if reference.get("controller"):
                yield str(reference.get("kind")), str(reference.get("name"))
        yield "KubeadmControlPlane", CONTROL_PLANE_VDU
    for label, kind in (
        (DEPLOYMENT_LABEL, "MachineDeployment"),
        (TOPOLOGY_DEPLOYMENT_LABEL, "MachineDeployment"),
        (POOL_LABEL, "MachinePool"),
        (TOPOLOGY_POOL_LABEL, "MachinePool"),
    ):
        if labels.get(label):
            yield kind, labels[label]
