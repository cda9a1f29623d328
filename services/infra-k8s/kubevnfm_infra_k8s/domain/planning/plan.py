"""Makes the objects to apply from a command's files: resolves kinds and namespaces, finds VDUs, adds labels."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kubevnfm_csar.networked_workloads import networked_workloads
from kubevnfm_events.objects import NetworkAttachment, ObjectsOrder, VduTarget

from kubevnfm_infra_k8s.domain.capi.contract import is_cluster
from kubevnfm_infra_k8s.domain.capi.topology import topology_vdus, with_topology_replicas
from kubevnfm_infra_k8s.domain.errors import Forbidden, UnknownKinds
from kubevnfm_infra_k8s.domain.objects import (
    INSTANCE_LABEL,
    NAMESPACES,
    PRIMARY_NETWORK_LABEL,
    Body,
    ObjectKey,
    Resource,
    Wanted,
    digest_of,
    labels_of,
    uid_of,
)
from kubevnfm_infra_k8s.domain.planned_hook import PlannedHook
from kubevnfm_infra_k8s.domain.planning.made_namespaces import MadeNamespaces
from kubevnfm_infra_k8s.domain.planning.networks import with_networks
from kubevnfm_infra_k8s.domain.planning.preparing import labelled, ordered_labels, placed, prepared
from kubevnfm_infra_k8s.domain.planning.replicas import without_autoscaled_replicas
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_infra_k8s.domain.reading.claims import with_present_marks
from kubevnfm_infra_k8s.domain.reading.existing import served_kinds
from kubevnfm_infra_k8s.domain.reading.manifests import Manifest, check_names, defined_kinds, namespace_of_all
from kubevnfm_infra_k8s.domain.reading.vdus import replicas_of, vdus_without_workload, workload_of_vdus
from kubevnfm_infra_k8s.domain.release import Release


@dataclass(frozen=True)
class Plan:
    """The objects to apply."""

    namespace: str
    """The namespace of objects that name none."""
    objects: Sequence[Wanted]
    """In the order of the files."""
    all_served: bool
    """Whether the cluster serves all kinds before any of these objects is applied."""
    without_workload: Sequence[VduTarget] = ()
    """VDUs that none of the files implements: they have no VNFCs."""
    attachments: Mapping[ObjectKey, Sequence[NetworkAttachment]] = field(default_factory=dict)
    """The interfaces on virtual links, by workload."""
    hook_objects: Sequence[Wanted] = ()
    """The objects of hooks, which are none of ``objects``."""

    @property
    def hooks(self) -> Sequence[PlannedHook]:
        """The hooks."""
        return [PlannedHook.from_wanted(each, each.hook) for each in self.hook_objects if each.hook is not None]

    @property
    def has_cluster(self) -> bool:
        """Whether the objects create a cluster with Cluster API, which takes longer."""
        return any(is_cluster(each.key) for each in self.objects)


async def plan(
    order: ObjectsOrder, manifests: Sequence[Manifest], cluster: Cluster, *, vnf_instance_id: str, operation_id: str
) -> Plan:
    """Return the plan.

    Raises: InvalidInput for an object without a name, for namespaces that differ, and for a workload that the request
    maps to a VDU and no file has; UnknownKinds naming every unknown kind.
    """
    vdus = workload_of_vdus([each for each in manifests if each.hook is None and not each.is_read_only], order.vdus)
    served = await served_kinds(cluster, [(each.api_version, each.kind) for each in manifests])
    defined = defined_kinds(manifests)
    resources = {
        each: served[kind] or defined.get(kind) for each in manifests for kind in [(each.api_version, each.kind)]
    }
    unknown = [each.kind_in_full for each, resource in resources.items() if resource is None]
    if unknown:
        raise UnknownKinds(unknown)
    known: Mapping[Manifest, Resource] = {each: found for each, found in resources.items() if found is not None}
    check_names(known)
    namespaced = [each for each in manifests if known[each].namespaced]
    namespace = namespace_of_all(namespaced, asked=order.namespace, multi=order.multi_namespace)
    objects: list[Wanted] = []
    implemented = list(vdus.values())
    workloads, _ = networked_workloads([each.written_body for each in manifests], order.networks, order.vdus)
    networked = {manifests[each.position]: each for each in workloads}
    attachments: dict[ObjectKey, Sequence[NetworkAttachment]] = {}
    for each in manifests:
        # The reader of an order has refused namespaces that it does not allow.
        is_apart = order.multi_namespace or each.artifact is not None
        own = each.namespace if is_apart and each.namespace else namespace
        place = own if known[each].namespaced else ""
        vdu = vdus.get(each)
        body: Body = (
            prepared(
                each,
                namespace=place,
                vnf_instance_id=vnf_instance_id,
                operation_id=operation_id,
                replicas=replicas_of(each, vdu),
            )
            if known[each].is_persistent
            else placed(each, namespace=place)
        )
        if each in networked:
            body = with_networks(body, networked[each], place)
            attachments[each.key(place)] = [network for _, network in networked[each].networks]
        in_topology: Sequence[VduTarget] = ()
        if is_cluster(each.key(place)):
            body = with_topology_replicas(body, order.vdus)
            in_topology = topology_vdus(body, order.vdus)
            implemented += in_topology
        # The digest of the manifest as written: the prepared object contains the instance's id, so no two would be equal.
        digest = digest_of(each.body)
        objects.append(
            Wanted(
                each.key(place),
                body,
                known[each],
                each.file,
                digest,
                vdu.vdu_id if vdu else None,
                topology_vdus=tuple(one.vdu_id for one in in_topology),
                artifact=each.artifact,
                document=each.document,
                after=each.after,
                level=each.level,
                hook=each.hook,
            )
        )
    without_hooks = [each for each in objects if each.hook is None]
    return Plan(
        namespace,
        await without_autoscaled_replicas(
            cluster, await with_present_marks(cluster, _labelled(without_hooks, attachments))
        ),
        all_served=all(served.values()),
        without_workload=vdus_without_workload(implemented, order.vdus),
        attachments=attachments,
        hook_objects=[each for each in objects if each.hook is not None],
    )


async def with_namespace(
    planned: Plan,
    cluster: Cluster,
    made: MadeNamespaces,
    release: Release,
    operation_id: str,
    region_labels: Callable[[], Awaitable[Mapping[str, str]]],
) -> Plan:
    """Return the plan with its Namespace if no file has it and it is absent, or was made for VNF instances (multicloud.md MC-031).

    ``region_labels`` returns the labels that an operator has set for namespaces of the region; ours have precedence.
    """
    vnf_instance_id = release.vnf_instance_id
    key = ObjectKey("v1", "Namespace", "", planned.namespace)
    placed = [*planned.objects, *planned.hook_objects]
    if any(each.key == key for each in planned.objects) or all(not each.key.namespace for each in placed):
        return planned
    try:
        there = await cluster.get(NAMESPACES, key)
    except Forbidden:
        # Credentials that are limited to a namespace cannot make it either.
        return planned
    joined_uid = ""
    if there is not None and labels_of(there).get(INSTANCE_LABEL) != vnf_instance_id:
        if not await made.has(release, key, there):
            return planned
        joined_uid = uid_of(there)
    plain = {"apiVersion": key.api_version, "kind": key.kind, "metadata": {"name": key.name}}
    manifest = Manifest("", 1, {**plain, "metadata": {"name": key.name, "labels": {**await region_labels()}}})
    body: Body = prepared(manifest, namespace="", vnf_instance_id=vnf_instance_id, operation_id=operation_id)
    body = labelled(body, ordered_labels(vnf_instance_id))
    # Instances share it even if the labels of the region were others at the time of the first one.
    digest = digest_of(plain)
    implied = Wanted(key, body, NAMESPACES, "the order", digest, is_implied=True, joined_uid=joined_uid)
    return replace(planned, objects=[*_labelled([implied], planned.attachments), *planned.objects])


def _labelled(
    objects: Sequence[Wanted], attachments: Mapping[ObjectKey, Sequence[NetworkAttachment]]
) -> Sequence[Wanted]:
    """Return the objects with the label on namespaces whose pods are on a primary network of their own."""
    primary = {
        key.namespace for key, networks in attachments.items() if any(not each.link.definition for each in networks)
    }
    return [
        replace(each, body=labelled(each.body, {PRIMARY_NETWORK_LABEL: ""}))
        if each.key.name in primary and each.key.kind == "Namespace" and not each.key.is_custom
        else each
        for each in objects
    ]
