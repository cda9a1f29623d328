"""Whether the objects of a Cluster are those that its ClusterClass describes now (capi.md CR-100).

A change of a class reaches its Clusters a moment later, and nothing in their status says that it is on its way. But each object, and each
template that Cluster API copies for a Cluster, names the template of the class that it was made from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kubevnfm_infra_k8s.domain.capi.machines import TOPOLOGY_DEPLOYMENT_LABEL
from kubevnfm_infra_k8s.domain.objects import Body, ObjectKey, annotations_of, field_at, group_of, labels_of
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_infra_k8s.domain.reading.existing import find
from kubevnfm_infra_k8s.domain.workload_clusters.assessment import ClusterObjects
from kubevnfm_infra_k8s.domain.workload_clusters.references import Reference, class_of, reference_in

_MADE_FROM: Final = "cluster.x-k8s.io/cloned-from-name"


async def earlier_class(cluster: Cluster, objects: ClusterObjects) -> str:
    """Return which object is of an earlier form of the Cluster's class, as text; "" if none is, or if it has no class."""
    workload = objects.cluster
    named = class_of(workload) if workload is not None else None
    if workload is None or named is None:
        return ""
    version, namespace = str(workload["apiVersion"]), named.namespace or field_at(workload, "metadata", "namespace")
    found = await find(cluster, ObjectKey(version, "ClusterClass", str(namespace), named.reference[2]))
    if found is None:
        return ""
    for owner, wanted in _made(objects, found):
        if wanted and (said := _difference(owner, wanted)):
            return said
    for owner, reference, wanted in _copied(objects, found):
        copy = await _read(cluster, owner, reference) if wanted and reference is not None else None
        if copy is not None and (said := _difference(copy, wanted)):
            return f"{owner.get('kind')} {field_at(owner, 'metadata', 'name')}: {said}"
    return ""


def _difference(body: Body, wanted: str) -> str:
    made_from = annotations_of(body).get(_MADE_FROM)
    if made_from is None or made_from == wanted:
        return ""
    name = f"{body.get('kind')} {field_at(body, 'metadata', 'name')}"
    return f"{name} is made from {made_from}, {wanted} wanted by the class"


def _made(objects: ClusterObjects, found: Body) -> Iterator[tuple[Body, str]]:
    """Yield the objects that are made from a template of the class, and the name of that."""
    for body, part in ((objects.infrastructure, "infrastructure"), (objects.control_plane, "controlPlane")):
        if body is not None:
            yield body, _template(field_at(found, "spec", part))


def _copied(objects: ClusterObjects, found: Body) -> Iterator[tuple[Body, Reference | None, str]]:
    """Yield the owners of Machines, each with a template that it refers to, and the name of that of the class."""
    plane = objects.control_plane
    if plane is not None:
        machine = field_at(plane, "spec", "machineTemplate")
        used = field_at(machine, "spec", "infrastructureRef") or field_at(machine, "infrastructureRef")
        yield plane, _reference(used), _template(field_at(found, "spec", "controlPlane", "machineInfrastructure"))
    parts = field_at(objects.cluster, "spec", "topology", "workers", "machineDeployments") or []
    class_by_name = {str(each.get("name")): each.get("class") for each in parts}
    classes: Mapping[Any, Any] = {
        # v1beta1 has a level more.
        each.get("class"): each.get("template", each)
        for each in field_at(found, "spec", "workers", "machineDeployments") or []
    }
    for owner in objects.workers:
        described = classes.get(class_by_name.get(str(labels_of(owner).get(TOPOLOGY_DEPLOYMENT_LABEL))))
        spec = field_at(owner, "spec", "template", "spec")
        for used, part in (
            (field_at(spec, "infrastructureRef"), "infrastructure"),
            (field_at(spec, "bootstrap", "configRef"), "bootstrap"),
        ):
            yield owner, _reference(used), _template(field_at(described, part))


def _template(part: object) -> str:
    """Return the name of a template of a class, in the form of either contract; "" if there is none."""
    return str(field_at(part, "templateRef", "name") or field_at(part, "ref", "name") or "")


def _reference(value: object) -> Reference | None:
    return reference_in(value) if isinstance(value, Mapping) else None


async def _read(cluster: Cluster, owner: Body, reference: Reference) -> Body | None:
    group, kind, name = reference
    for resource in await cluster.kinds():
        if (group_of(resource.api_version), resource.kind) == (group, kind):
            key = ObjectKey(resource.api_version, kind, str(field_at(owner, "metadata", "namespace")), name)
            return await cluster.get(resource, key)
    return None
