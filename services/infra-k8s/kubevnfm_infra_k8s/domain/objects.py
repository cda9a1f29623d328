"""Kubernetes objects of any kind: names for them, the labels that make them findable, and what a cluster serves."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

Body = Mapping[str, Any]
"""An object as JSON: of any kind, so of no fixed shape but ``apiVersion``, ``kind`` and ``metadata``."""

INSTANCE_LABEL: Final = "kubevnfm.io/vnf-instance-id"
TACKER_LABEL: Final = "tacker_vnf_instance_id"
"""What existing tools select a VNF's objects by; same value."""
MANAGED_BY: Final = {"app.kubernetes.io/managed-by": "kubevnfm"}
OPERATION_ANNOTATION: Final = "kubevnfm.io/operation-id"
KEEP_ANNOTATION: Final = "kubevnfm.io/keep"
READY_WHEN_ANNOTATION: Final = "kubevnfm.io/ready-when"

BUILT_IN_GROUPS: Final = frozenset(
    {
        "", "admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "apps",
        "authentication.k8s.io", "authorization.k8s.io", "autoscaling", "batch", "certificates.k8s.io",
        "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io", "extensions", "flowcontrol.apiserver.k8s.io",
        "internal.apiserver.k8s.io", "networking.k8s.io", "node.k8s.io", "policy", "rbac.authorization.k8s.io",
        "resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io", "storagemigration.k8s.io",
    }
)  # fmt: skip
"""The API groups of kube-apiserver itself and its aggregator; every other group is somebody's own."""

WORKLOADS: Final = frozenset({"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Pod"})
"""The kinds that a VDU may stand for (capi.md CR-030)."""
SCALED: Final = frozenset({"Deployment", "StatefulSet", "ReplicaSet"})
"""Those of them whose number of pods is a field."""


@dataclass(frozen=True, order=True)
class ObjectKey:
    """Which object; ``namespace`` is "" for cluster-scoped ones."""

    api_version: str
    kind: str
    namespace: str
    name: str

    @property
    def group(self) -> str:
        return group_of(self.api_version)

    @property
    def is_custom(self) -> bool:
        return self.group not in BUILT_IN_GROUPS

    def __str__(self) -> str:
        place = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {place}"


@dataclass(frozen=True)
class Resource:
    """How a cluster serves a kind."""

    api_version: str
    kind: str
    plural: str
    namespaced: bool
    verbs: frozenset[str] = frozenset({"get", "list", "watch", "create", "patch", "delete"})
    subresources: frozenset[str] = frozenset()

    @property
    def has_status(self) -> bool:
        return "status" in self.subresources

    @property
    def is_kept(self) -> bool:
        """Whether objects of the kind stay; a TokenReview and its like are questions, answered and gone."""
        return "patch" in self.verbs and "get" in self.verbs


@dataclass(frozen=True)
class Wanted:
    """An object as it is to be applied."""

    key: ObjectKey
    body: Body = field(repr=False)
    """Complete: namespace, labels, annotations, replicas. Not shown: Secrets are objects too."""
    resource: Resource
    file: str
    digest: str
    """Of the manifest, before labels: the same manifest of another instance has the same."""
    vdu_id: str | None = None

    @property
    def is_kept_on_delete(self) -> bool:
        return annotations_of(self.body).get(KEEP_ANNOTATION) == "true"

    @property
    def claim_templates(self) -> Sequence[str]:
        """Names of a StatefulSet's volumeClaimTemplates."""
        templates = at(self.body, "spec", "volumeClaimTemplates") if self.key.kind == "StatefulSet" else None
        return tuple(str(at(each, "metadata", "name")) for each in templates or [])


def group_of(api_version: str) -> str:
    """Return the API group: ``apps`` of ``apps/v1``, "" of ``v1``."""
    return api_version.rpartition("/")[0]


def at(body: Any, *path: str) -> Any:
    """Return what lies at the path, or None."""
    for name in path:
        body = body.get(name) if isinstance(body, Mapping) else None
    return body


def labels_of(body: Body) -> Mapping[str, str]:
    """Return the object's labels."""
    return at(body, "metadata", "labels") or {}


def annotations_of(body: Body) -> Mapping[str, str]:
    """Return the object's annotations."""
    return at(body, "metadata", "annotations") or {}


def uid_of(body: Body) -> str:
    """Return the object's uid."""
    return str(at(body, "metadata", "uid") or "")


def conditions(body: Body) -> Sequence[Body]:
    """Return ``status.conditions``."""
    found = at(body, "status", "conditions")
    return [each for each in found if isinstance(each, Mapping)] if isinstance(found, list) else []


def condition(body: Body, type: str) -> Body | None:
    """Return the condition of this type."""
    return next((each for each in conditions(body) if each.get("type") == type), None)


def digest_of(body: Body) -> str:
    """Return the SHA-256 of the manifest, the same for every order of its attributes."""
    return hashlib.sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
