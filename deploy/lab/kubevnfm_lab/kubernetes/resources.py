"""The resources that a cluster serves: a table of built-in ones, and those that custom resource definitions add."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kubevnfm_lab.kubernetes.errors import qualified

ALL_VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
REVIEW: Final = ("create",)


@dataclass(frozen=True)
class CustomKind:
    """The properties of a custom resource only: its schema and the paths of its subresources."""

    schema: Mapping[str, Any] = field(default_factory=dict)
    """The version's ``openAPIV3Schema``."""
    scale_paths: Mapping[str, str] = field(default_factory=dict)
    """``specReplicasPath``, ``statusReplicasPath``, ``labelSelectorPath``."""


@dataclass(frozen=True)
class Resource:
    """One resource in one version."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True
    verbs: tuple[str, ...] = ALL_VERBS
    short_names: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    singular: str = ""
    list_kind: str = ""
    custom: CustomKind | None = None
    storage_version: str = ""
    """The version that objects are stored in, if it is another one."""
    storage_group: str | None = None
    """The group that objects are stored under, if it is another one (events are stored once for both their groups)."""

    @property
    def store_name(self) -> str:
        """The name of the resource in the store."""
        return qualified(self.group if self.storage_group is None else self.storage_group, self.plural)

    @property
    def storage_api_version(self) -> str:
        """The apiVersion of stored objects."""
        group = self.group if self.storage_group is None else self.storage_group
        version = self.storage_version or self.version
        return f"{group}/{version}" if group else version

    @property
    def name(self) -> str:
        """``deployments.apps``: the same for all versions."""
        return qualified(self.group, self.plural)

    @property
    def api_version(self) -> str:
        """``apps/v1``, ``v1``."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def has_status(self) -> bool:
        """Whether status is written only through its own subresource."""
        return "status" in self.subresources


_S, _SC = ("status",), ("status", "scale")
_ALL = ("all",)


def _core() -> Iterable[Resource]:
    def core(kind: str, plural: str, *short: str, **more: Any) -> Resource:
        return Resource("", "v1", kind, plural, short_names=short, **more)

    pod_subresources = ("status", "log", "eviction", "binding", "ephemeralcontainers")
    yield core("Binding", "bindings", verbs=REVIEW)
    yield core("ComponentStatus", "componentstatuses", "cs", namespaced=False, verbs=("get", "list"))
    yield core("ConfigMap", "configmaps", "cm")
    yield core("Endpoints", "endpoints", "ep")
    yield core("Event", "events", "ev")
    yield core("LimitRange", "limitranges", "limits")
    yield core("Namespace", "namespaces", "ns", namespaced=False, subresources=("status", "finalize"))
    yield core("Node", "nodes", "no", namespaced=False, subresources=_S)
    yield core("PersistentVolume", "persistentvolumes", "pv", namespaced=False, subresources=_S)
    yield core("PersistentVolumeClaim", "persistentvolumeclaims", "pvc", subresources=_S)
    yield core("Pod", "pods", "po", subresources=pod_subresources, categories=_ALL)
    yield core("PodTemplate", "podtemplates")
    yield core("ReplicationController", "replicationcontrollers", "rc", subresources=_SC, categories=_ALL)
    yield core("ResourceQuota", "resourcequotas", "quota", subresources=_S)
    yield core("Secret", "secrets")
    yield core("Service", "services", "svc", subresources=_S, categories=_ALL)
    yield core("ServiceAccount", "serviceaccounts", "sa", subresources=("token",))


def _grouped() -> Iterable[Resource]:
    def grouped(group: str, version: str, kind: str, plural: str, *short: str, **more: Any) -> Resource:
        return Resource(group, version, kind, plural, short_names=short, **more)

    cluster: Mapping[str, Any] = {"namespaced": False}
    yield grouped("apps", "v1", "ControllerRevision", "controllerrevisions")
    yield grouped("apps", "v1", "DaemonSet", "daemonsets", "ds", subresources=_S, categories=_ALL)
    yield grouped("apps", "v1", "Deployment", "deployments", "deploy", subresources=_SC, categories=_ALL)
    yield grouped("apps", "v1", "ReplicaSet", "replicasets", "rs", subresources=_SC, categories=_ALL)
    yield grouped("apps", "v1", "StatefulSet", "statefulsets", "sts", subresources=_SC, categories=_ALL)
    yield grouped("batch", "v1", "CronJob", "cronjobs", "cj", subresources=_S, categories=_ALL)
    yield grouped("batch", "v1", "Job", "jobs", subresources=_S, categories=_ALL)
    for version in ("v2", "v1"):
        yield grouped(
            "autoscaling",
            version,
            "HorizontalPodAutoscaler",
            "horizontalpodautoscalers",
            "hpa",
            subresources=_S,
            categories=_ALL,
            storage_version="v2",
        )
    yield grouped("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", "pdb", subresources=_S)
    net = "networking.k8s.io"
    yield grouped(net, "v1", "Ingress", "ingresses", "ing", subresources=_S)
    yield grouped(net, "v1", "IngressClass", "ingressclasses", **cluster)
    yield grouped(net, "v1", "NetworkPolicy", "networkpolicies", "netpol")
    rbac = "rbac.authorization.k8s.io"
    yield grouped(rbac, "v1", "ClusterRole", "clusterroles", **cluster)
    yield grouped(rbac, "v1", "ClusterRoleBinding", "clusterrolebindings", **cluster)
    yield grouped(rbac, "v1", "Role", "roles")
    yield grouped(rbac, "v1", "RoleBinding", "rolebindings")
    storage = "storage.k8s.io"
    yield grouped(storage, "v1", "CSIDriver", "csidrivers", **cluster)
    yield grouped(storage, "v1", "CSINode", "csinodes", **cluster)
    yield grouped(storage, "v1", "CSIStorageCapacity", "csistoragecapacities")
    yield grouped(storage, "v1", "StorageClass", "storageclasses", "sc", **cluster)
    yield grouped(storage, "v1", "VolumeAttachment", "volumeattachments", subresources=_S, **cluster)
    yield grouped("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", "pc", **cluster)
    yield grouped("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", **cluster)
    devices = "resource.k8s.io"
    yield grouped(devices, "v1", "DeviceClass", "deviceclasses", **cluster)
    yield grouped(devices, "v1", "ResourceClaim", "resourceclaims", subresources=_S)
    yield grouped(devices, "v1", "ResourceClaimTemplate", "resourceclaimtemplates")
    yield grouped(devices, "v1", "ResourceSlice", "resourceslices", **cluster)
    yield grouped("coordination.k8s.io", "v1", "Lease", "leases")
    yield grouped("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices")
    yield grouped("events.k8s.io", "v1", "Event", "events", "ev", storage_group="", storage_version="v1")
    hooks = "admissionregistration.k8s.io"
    yield grouped(hooks, "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", **cluster)
    yield grouped(hooks, "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", **cluster)
    yield grouped(hooks, "v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies", subresources=_S, **cluster)
    yield grouped(hooks, "v1", "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", **cluster)
    yield grouped("apiregistration.k8s.io", "v1", "APIService", "apiservices", subresources=_S, **cluster)
    yield grouped(
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        "crd",
        "crds",
        subresources=_S,
        **cluster,
    )
    csr = ("status", "approval")
    yield grouped("certificates.k8s.io", "v1", "CertificateSigningRequest", "certificatesigningrequests", "csr",
             subresources=csr, **cluster)  # fmt: skip
    review: Mapping[str, Any] = {"namespaced": False, "verbs": REVIEW}
    yield grouped("authentication.k8s.io", "v1", "TokenReview", "tokenreviews", **review)
    yield grouped("authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews", **review)
    authz = "authorization.k8s.io"
    yield grouped(authz, "v1", "LocalSubjectAccessReview", "localsubjectaccessreviews", verbs=REVIEW)
    yield grouped(authz, "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", **review)
    yield grouped(authz, "v1", "SelfSubjectRulesReview", "selfsubjectrulesreviews", **review)
    yield grouped(authz, "v1", "SubjectAccessReview", "subjectaccessreviews", **review)


BUILT_IN: Final[Sequence[Resource]] = (*_core(), *_grouped())


class ResourceTable:
    """The resources served now, by path and by kind."""

    def __init__(self) -> None:
        self._served: dict[tuple[str, str, str], Resource] = {}
        self._stored: dict[str, Resource] = {}
        self.away: set[str] = set()
        """Groups whose own API server does not answer."""
        for resource in BUILT_IN:
            self.add(resource)

    def add(self, resource: Resource) -> None:
        """Serve the resource, replacing any under the same path."""
        self._served[resource.group, resource.version, resource.plural] = resource
        # Controllers address a kind by its stored version; the other versions are only served.
        if resource.api_version == resource.storage_api_version:
            self._stored[resource.store_name] = resource

    def remove(self, group: str, plural: str) -> None:
        """Stop serving all versions of a resource."""
        for path in [p for p in self._served if p[0] == group and p[2] == plural]:
            del self._served[path]
        self._stored.pop(qualified(group, plural), None)

    def by_path(self, group: str, version: str, plural: str) -> Resource | None:
        """Return what is served under ``/apis/<group>/<version>/<plural>``."""
        return self._served.get((group, version, plural))

    def by_kind(self, api_version: str, kind: str) -> Resource | None:
        """Return the resource of an object's apiVersion and kind."""
        group, _, version = api_version.rpartition("/")
        return next((r for r in self.of_version(group, version) if r.kind == kind), None)

    def by_name(self, name: str) -> Resource | None:
        """Return the version of ``deployments.apps`` in which its objects are stored."""
        return self._stored.get(name)

    def all(self) -> Sequence[Resource]:
        """Return every resource in every version."""
        return tuple(self._served.values())

    def groups(self) -> Sequence[str]:
        """Return the names of the groups, without the core group."""
        return tuple(dict.fromkeys(r.group for r in self._served.values() if r.group))

    def versions(self, group: str) -> Sequence[str]:
        """Return a group's versions, the preferred one first (``v2``, ``v1``, ``v1beta2``, ``v1alpha1``)."""
        names = dict.fromkeys(r.version for r in self._served.values() if r.group == group)
        return sorted(names, key=version_rank, reverse=True)

    def of_version(self, group: str, version: str) -> Sequence[Resource]:
        """Return the resources of one group version."""
        return [r for r in self._served.values() if r.group == group and r.version == version]


def version_rank(version: str) -> tuple[int, int, int, str]:
    """Return the sort key of Kubernetes' version priority: stable, beta, alpha, then higher numbers."""
    major, stability, minor = 0, -1, 0
    rest = version.removeprefix("v")
    # A version of another form, such as "foo10", comes after all of these, in alphabetical order.
    for level, word in ((1, "beta"), (0, "alpha")):
        head, found, tail = rest.partition(word)
        if found and head.isdigit():
            major, stability, minor = int(head), level, int(tail) if tail.isdigit() else 0
            break
    else:
        if rest.isdigit():
            major, stability = int(rest), 2
    return (stability, major, minor, version)
