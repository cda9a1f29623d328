"""Kubernetes objects of any kind: their keys, labels and annotations, and how a cluster serves them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kubevnfm_csar.artifact_order import OrderedArtifact
from kubevnfm_csar.hooks import Hook
from kubevnfm_csar.object_treatment import KEPT_FROM_ANNOTATION, Applying, FieldPath, Keep, keeps_of
from kubevnfm_csar.order_graph import Place
from pydantic import ConfigDict
from pydantic.alias_generators import to_camel

Body = Mapping[str, Any]
"""An object in JSON form. Only ``apiVersion``, ``kind`` and ``metadata`` are common to all kinds."""

FIELD_MANAGER: Final = "kubevnfm"
"""The name under which the API server records the fields that we have applied."""
KEEPING_MANAGER: Final = f"{FIELD_MANAGER}-handover"
"""The name for fields that we no longer apply, until their new owner has set another value."""
INSTANCE_LABEL: Final = "kubevnfm.io/vnf-instance-id"
TACKER_LABEL: Final = "tacker_vnf_instance_id"
"""The label by which existing tools select a VNF's objects; it has the same value."""
ONAP_LABEL: Final = "k8splugin.io/rb-instance-id"
"""The label by which ONAP's tools select the objects of a package with an order; it has the same value."""
MANAGED_BY: Final = {"app.kubernetes.io/managed-by": "kubevnfm"}
OPERATION_ANNOTATION: Final = "kubevnfm.io/operation-id"
RESTART_ANNOTATION: Final = "kubevnfm.io/restarted-for"
"""On a pod: the change of configuration or image for which it was started again."""
PRIMARY_NETWORK_LABEL: Final = "k8s.ovn.org/primary-user-defined-network"
"""On a namespace from its creation on: its pods have a primary network of their own."""
READY_WHEN_ANNOTATION: Final = "kubevnfm.io/ready-when"
CLAIM_OF_ANNOTATION: Final = "kubevnfm.io/stateful-set"
"""On a volume claim: the StatefulSet from whose template it was made. Its instance is in the label."""

BUILT_IN_GROUPS: Final = frozenset(
    {
        "", "admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "apps",
        "authentication.k8s.io", "authorization.k8s.io", "autoscaling", "batch", "certificates.k8s.io",
        "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io", "extensions", "flowcontrol.apiserver.k8s.io",
        "internal.apiserver.k8s.io", "networking.k8s.io", "node.k8s.io", "policy", "rbac.authorization.k8s.io",
        "resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io", "storagemigration.k8s.io",
    }
)  # fmt: skip
"""The API groups of kube-apiserver itself and its aggregator; all other groups are custom."""

MACHINE_OWNERS: Final = frozenset(
    {
        ("controlplane.cluster.x-k8s.io", "KubeadmControlPlane"),
        ("cluster.x-k8s.io", "MachineDeployment"),
        ("cluster.x-k8s.io", "MachinePool"),
    }
)
"""The kinds of Cluster API that can implement a VDU (capi.md CR-050), each with its API group, as all of these."""
SCALED: Final = frozenset({("apps", "Deployment"), ("apps", "StatefulSet"), ("apps", "ReplicaSet"), *MACHINE_OWNERS})
"""The kinds that can implement a VDU and have a field for the number of pods."""
OF_KUBERNETES: Final = frozenset({"foregroundDeletion", "orphan"})
"""The finalizers with which its garbage collector itself holds an object: until what belongs to it is gone."""
WORKLOADS: Final = frozenset({("apps", "DaemonSet"), ("", "Pod"), *SCALED})
"""The kinds that can implement a VDU (capi.md CR-030). A custom kind of the same name is another one."""


@dataclass(frozen=True, order=True)
class ObjectKey:
    """Identifies an object; ``namespace`` is "" for cluster-scoped ones."""

    __pydantic_config__ = ConfigDict(alias_generator=to_camel)

    api_version: str
    kind: str
    namespace: str
    name: str

    @property
    def api_kind(self) -> tuple[str, str]:
        """ApiVersion and kind."""
        return self.api_version, self.kind

    @property
    def group(self) -> str:
        return group_of(self.api_version)

    @property
    def group_kind(self) -> tuple[str, str]:
        """API group and kind."""
        return self.group, self.kind

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """The object itself: it is the same one in every version of its API group."""
        return self.group, self.kind, self.namespace, self.name

    @property
    def is_custom(self) -> bool:
        return self.group not in BUILT_IN_GROUPS

    def __str__(self) -> str:
        # A review has no name.
        place = "/".join(part for part in (self.namespace, self.name) if part)
        return f"{self.kind} {place}".rstrip()


@dataclass(frozen=True)
class Resource:
    """How a cluster serves a kind."""

    api_version: str
    kind: str
    plural: str
    namespaced: bool
    verbs: frozenset[str] = frozenset({"get", "list", "watch", "create", "patch", "delete"})
    subresources: frozenset[str] = frozenset()

    def key(self, body: Body) -> ObjectKey:
        """Return the key of an object of the kind."""
        return ObjectKey(self.api_version, self.kind, str(field_at(body, "metadata", "namespace") or ""), name_of(body))

    @property
    def api_kind(self) -> tuple[str, str]:
        """ApiVersion and kind."""
        return self.api_version, self.kind

    @property
    def has_status(self) -> bool:
        return "status" in self.subresources

    @property
    def is_scalable(self) -> bool:
        """Whether the kind has a number of replicas that the ``scale`` subresource sets."""
        return "scale" in self.subresources

    @property
    def is_persistent(self) -> bool:
        """Whether objects of the kind are stored. A TokenReview, for example, is only a question to the server."""
        return "patch" in self.verbs and "get" in self.verbs


MACHINE_INSTANCES: Final = Resource(
    "kubevirt.io/v1", "VirtualMachineInstance", "virtualmachineinstances", namespaced=True
)
VIRTUAL_MACHINES: Final = Resource("kubevirt.io/v1", "VirtualMachine", "virtualmachines", namespaced=True)
CLAIMS: Final = Resource("v1", "PersistentVolumeClaim", "persistentvolumeclaims", namespaced=True)
NAMESPACES: Final = Resource("v1", "Namespace", "namespaces", namespaced=False)
NODES: Final = Resource("v1", "Node", "nodes", namespaced=False)
PODS: Final = Resource("v1", "Pod", "pods", namespaced=True)
REPLICA_SETS: Final = Resource("apps/v1", "ReplicaSet", "replicasets", namespaced=True)
SECRETS: Final = Resource("v1", "Secret", "secrets", namespaced=True)


@dataclass(frozen=True)
class Wanted:
    """An object to be applied."""

    key: ObjectKey
    body: Body = field(repr=False)
    """The object to send, as `preparing` made it. Not in repr, because it may be a Secret."""
    resource: Resource
    file: str
    digest: str
    """Digest of the manifest without labels, so that the same manifest has it in every instance."""
    vdu_id: str | None = None
    manifest_name: str = ""
    """The name in the manifest, if the object has another one (capi.md CR-095)."""
    topology_vdus: tuple[str, ...] = ()
    """A Cluster: the ids of the VDUs for which parts of its topology stand."""
    autoscaled_at: tuple[str, ...] = ()
    """The path of the number of replicas that an autoscaler chooses; empty: the number is ours.

    ``body`` lacks it, except that of a custom object that does not exist yet."""
    artifact: OrderedArtifact | None = None
    """The place of its file in the package's order; None if the set has no order, or the object is in no file."""
    document: int = 0
    """Its position in its file, from 1; 0 if it is in no file."""
    after: frozenset[Place] | None = None
    """The objects of the order that must be ready before; None: those of lower priorities."""
    hook: Hook | None = None
    """When it runs, if it is a hook."""
    level: int | None = None
    """How many objects come before it at most, in a row; None if no object of the order names its predecessors."""
    is_implied: bool = False
    """A Namespace that no file has, and that is made because it is absent (multicloud.md MC-031)."""
    joined_uid: str = ""
    """The uid of an implied Namespace that another VNF instance has had made; "" if it is absent, or this one has."""

    @property
    def takes_fields(self) -> bool:
        """Whether fields of other managers are taken (multicloud.md MC-106b)."""
        return self.artifact is None or self.artifact.takes_fields

    @property
    def is_read_only(self) -> bool:
        """Whether the object is never written (multicloud.md MC-106a)."""
        return self.artifact is not None and self.artifact.applying is Applying.READ_ONLY

    @property
    def is_create_only(self) -> bool:
        """Whether the object is never changed once it exists (multicloud.md MC-106a)."""
        return self.artifact is not None and self.artifact.applying is Applying.CREATE_ONLY

    @property
    def ignored(self) -> tuple[FieldPath, ...]:
        """The fields that an apply leaves out once the object exists (multicloud.md MC-106c)."""
        return self.artifact.ignored if self.artifact is not None else ()

    @property
    def adopts(self) -> str:
        """The VNF instance whose kept object it takes over; "" if it takes none (multicloud.md MC-106d)."""
        return annotations_of(self.body).get(KEPT_FROM_ANNOTATION, "")

    @property
    def keeps(self) -> frozenset[Keep]:
        """The deletions that leave the object (multicloud.md MC-106d)."""
        return self.artifact.keeps if self.artifact is not None else keeps_of(annotations_of(self.body))

    @property
    def claim_templates(self) -> tuple[str, ...]:
        """Names of a StatefulSet's volumeClaimTemplates."""
        templates = field_at(self.body, "spec", "volumeClaimTemplates") if self.key.kind == "StatefulSet" else None
        return tuple(name_of(each) for each in templates or [])


def group_of(api_version: str) -> str:
    """Return the API group: ``apps`` for ``apps/v1``, "" for ``v1``."""
    return api_version.rpartition("/")[0]


OBJECT: Final = (dict, Mapping)
"""An object of an answer is a dict, and a check against the abstract class alone takes several times as long."""


def field_at(body: Any, *path: str) -> Any:
    """Return the value at the path, or None."""
    for name in path:
        if body is None or not isinstance(body, OBJECT):
            return None
        body = body.get(name)
    return body


def labels_of(body: Body) -> Mapping[str, str]:
    """Return the object's labels."""
    return field_at(body, "metadata", "labels") or {}


def annotations_of(body: Body) -> Mapping[str, str]:
    """Return the object's annotations."""
    return field_at(body, "metadata", "annotations") or {}


def name_of(body: Body) -> str:
    """Return the object's name."""
    return str(field_at(body, "metadata", "name"))


def uid_of(body: Body) -> str:
    """Return the object's uid."""
    return str(field_at(body, "metadata", "uid") or "")


def conditions(body: Body) -> Sequence[Body]:
    """Return ``status.conditions``."""
    found = field_at(body, "status", "conditions")
    return [each for each in found if isinstance(each, Mapping)] if isinstance(found, list) else []


def condition(body: Body, type: str) -> Body | None:
    """Return the condition of this type."""
    return next((each for each in conditions(body) if each.get("type") == type), None)


def is_outdated(condition: Body, generation: object) -> bool:
    """Return whether a condition says that it describes an earlier generation of its object.

    Source: ``observedGeneration`` of metav1.Condition. Many controllers write it there and not in ``status``.
    """
    observed = condition.get("observedGeneration")
    return isinstance(observed, int) and isinstance(generation, int) and observed < generation


def without_outdated_conditions(body: Body) -> Body:
    """Return an object with the conditions that describe it as it is: the others give no verdict (multicloud.md MC-011)."""
    listed, generation = conditions(body), field_at(body, "metadata", "generation")
    current = [each for each in listed if not is_outdated(each, generation)]
    return body if len(current) == len(listed) else {**body, "status": {**body["status"], "conditions": current}}


def digest_of(body: Body) -> str:
    """Return the SHA-256 of the manifest, which does not depend on the order of attributes."""
    return hashlib.sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
