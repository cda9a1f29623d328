"""The order in which objects are applied and deleted.

Applying begins with the namespaces and CRDs of the whole set. The other objects follow in the order of files and
documents; neighbours that do not depend on each other are sent together. A webhook configuration for a Service of the
set waits until the workloads of that Service are ready, because a webhook without pods would block all other objects. The
objects that it judges come after it; all others come before, as its pods may need them (the Secret of a Certificate).

Deletion begins with workload clusters and then other custom resources, while their controllers are alive. The other objects
follow in reverse order, definitions and namespaces last. In a management cluster the webhooks go first, so that none blocks.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from kubevnfm_infra_k8s.domain.capi.contract import is_cluster
from kubevnfm_infra_k8s.domain.objects import Body, ObjectKey, Wanted, field_at

_BUILT_IN_ORDER: Final = (
    ("Namespace",),
    ("CustomResourceDefinition",),
    ("PriorityClass",),
    ("StorageClass",),
    ("PersistentVolume",),
    ("ResourceQuota",),
    ("LimitRange",),
    ("NetworkPolicy",),
    ("ServiceAccount",),
    ("ClusterRole", "ClusterRoleBinding"),
    ("Role", "RoleBinding"),
    ("Secret",),
    ("ConfigMap",),
    ("PersistentVolumeClaim",),
    ("Service",),
    ("Endpoints", "EndpointSlice"),
    ("Pod", "ReplicaSet", "Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob"),
    ("HorizontalPodAutoscaler",),
    ("PodDisruptionBudget",),
    ("Ingress",),
)
_RANKS: Final[Mapping[str, int]] = {kind: rank for rank, kinds in enumerate(_BUILT_IN_ORDER) for kind in kinds}
_CUSTOM: Final = len(_BUILT_IN_ORDER)
_LAST: Final[Mapping[str, int]] = {
    "APIService": _CUSTOM + 1,
    "ValidatingWebhookConfiguration": _CUSTOM + 2,
    "MutatingWebhookConfiguration": _CUSTOM + 2,
}
_INDEPENDENT: Final = frozenset(
    {
        "PriorityClass",
        "StorageClass",
        "ResourceQuota",
        "LimitRange",
        "NetworkPolicy",
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        "Role",
        "RoleBinding",
        "Secret",
        "ConfigMap",
        "Service",
    }
)
"""Kinds that pods need and that do not need one another to work. A binding that is refused for want of its Role is sent again
after it."""
_OF_AN_ACCOUNT: Final = "kubernetes.io/service-account-token"
WEBHOOKS: Final = frozenset({"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"})
_PODS_INSIDE: Final = frozenset({"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"})


@dataclass(frozen=True)
class Wave:
    """Objects that can be applied at the same time."""

    objects: Sequence[Wanted]
    after_ready: frozenset[ObjectKey] = frozenset()
    """Objects that must be ready before."""


def rank(key: ObjectKey) -> int:
    """Return the position of a kind in the built-in order."""
    if key.is_custom:
        return _CUSTOM
    return _LAST.get(key.kind, _RANKS.get(key.kind, _CUSTOM))


def _group(wanted: Wanted) -> int:
    """Return a number that neighbours have in common which can be applied at the same time."""
    # A Secret for the token of an account that does not exist yet is deleted by Kubernetes.
    is_token = wanted.key.kind == "Secret" and wanted.body.get("type") == _OF_AN_ACCOUNT
    return -1 if wanted.key.kind in _INDEPENDENT and not wanted.key.is_custom and not is_token else rank(wanted.key)


def waves(objects: Sequence[Wanted]) -> Sequence[Wave]:
    """Return the order in which to apply."""
    first = [each for each in objects if each.key.kind == "Namespace" and not each.key.is_custom]
    definitions = [each for each in objects if each.key.kind == "CustomResourceDefinition"]
    # A webhook of a Service outside the set needs no wait: its pods run already.
    held = [
        _Held(each, backers) for each in objects if each.key.kind in WEBHOOKS and (backers := _backers(each, objects))
    ]
    apart = {each.key for each in (*first, *definitions, *(hook.configuration for hook in held))}
    left: Sequence[Wanted] = [each for each in objects if each.key not in apart]
    planned = [Wave(group) for group in (first, definitions) if group]
    applied: set[ObjectKey] = {each.key for wave in planned for each in wave.objects}
    while True:
        now, left = _not_judged(left, held, applied)
        planned += [Wave(list(group)) for _, group in groupby(now, key=_group)]
        if not held:
            return planned
        # The objects that a webhook judges wait for it; its pods may need any of the others, so these come before.
        backers = next(hook.backers for hook in held if hook.backers <= applied)
        released = [hook.configuration for hook in held if hook.backers == backers]
        held = [hook for hook in held if hook.backers != backers]
        applied |= {each.key for each in released}
        # A Service has no readiness of its own; only the workloads can be waited for.
        planned.append(Wave(released, after_ready=frozenset(key for key in backers if key.kind in _PODS_INSIDE)))


@dataclass(frozen=True)
class _Held:
    """A webhook configuration that waits for the workloads behind its Services."""

    configuration: Wanted
    backers: frozenset[ObjectKey]
    """The Services and workloads."""

    def judges(self, wanted: Wanted) -> bool:
        """Return whether its rules name the object, or the pods that the object makes."""
        kinds = {(wanted.key.group, wanted.resource.plural)}
        if wanted.key.kind in _PODS_INSIDE:
            kinds.add(("", "pods"))
        return judges(self.configuration.body, kinds)


def judges(configuration: Body, kinds: Collection[tuple[str, str]]) -> bool:
    """Return whether the rules of a webhook configuration name one of the kinds: (group, plural)."""
    return any(
        {group, "*"} & set(field_at(rule, "apiGroups") or ())
        and {plural, "*", "*/*"} & set(field_at(rule, "resources") or ())
        for webhook in configuration.get("webhooks") or []
        for rule in field_at(webhook, "rules") or []
        for group, plural in kinds
    )


def _not_judged(
    objects: Sequence[Wanted], held: Sequence[_Held], applied: set[ObjectKey]
) -> tuple[Sequence[Wanted], Sequence[Wanted]]:
    """Return the objects to apply before the next webhook configuration, and those that one of them judges.

    Adds the first ones to ``applied``. An object that is written before the last of a webhook's workloads does not wait.
    """
    now: list[Wanted] = []
    later: list[Wanted] = []
    for each in objects:
        if any(hook.backers <= applied and hook.judges(each) for hook in held):
            later.append(each)
        else:
            now.append(each)
            applied.add(each.key)
    return now, later


def _backers(webhooks: Wanted, objects: Sequence[Wanted]) -> frozenset[ObjectKey]:
    """Return the set's Services to which a webhook configuration refers, and the workloads of those Services."""
    keys: set[ObjectKey] = set()
    for webhook in webhooks.body.get("webhooks") or []:
        target = field_at(webhook, "clientConfig", "service") or {}
        for service in objects:
            is_it = (service.key.kind, service.key.namespace, service.key.name) == (
                "Service", target.get("namespace"), target.get("name"),
            )  # fmt: skip
            if is_it:
                keys.add(service.key)
                keys |= {each.key for each in objects if _is_behind(each, service)}
    return frozenset(keys)


def _is_behind(workload: Wanted, service: Wanted) -> bool:
    selector = field_at(service.body, "spec", "selector") or {}
    if workload.key.kind not in _PODS_INSIDE or workload.key.namespace != service.key.namespace or not selector:
        return False
    pod_labels: Body = field_at(workload.body, "spec", "template", "metadata", "labels") or {}
    return all(pod_labels.get(name) == value for name, value in selector.items())


def deletion_stages(keys: Sequence[ObjectKey], *, webhooks_first: bool = False) -> Sequence[Sequence[ObjectKey]]:
    """Return the stages of a deletion; each must be complete before the next begins.

    ``keys`` are in the order in which they were applied. ``webhooks_first``: as a management cluster needs it (CR-044).
    """
    # An object can depend on those that were applied before it.
    backwards = list(reversed(keys))
    # Cluster API deletes everything that belongs to a Cluster, and needs its templates and credentials for that (CR-106, CR-107).
    clusters = [key for key in backwards if is_cluster(key)]
    definitions = [key for key in backwards if key.kind == "CustomResourceDefinition"]
    namespaces = [key for key in backwards if key.kind == "Namespace" and not key.is_custom]
    custom = [key for key in backwards if key.is_custom and not is_cluster(key)]
    # Before the workloads: without its pods, a webhook would block every further request.
    webhooks = [key for key in backwards if key.kind in WEBHOOKS]
    # Kubernetes does not delete a volume while a claim is bound to it.
    volumes = [key for key in backwards if key.kind == "PersistentVolume"]
    apart = {*clusters, *definitions, *namespaces, *custom, *webhooks, *volumes}
    rest = [key for key in backwards if key not in apart]
    # The webhook of an ordinary operator may guard its resources; that of Cluster API has no Clusters left to guard.
    watched = (webhooks, custom) if webhooks_first else (custom, webhooks)
    return [stage for stage in (clusters, *watched, rest, volumes, definitions, namespaces) if stage]
