"""The owner of the number of replicas of an object: we or an autoscaler (multicloud.md MC-114, capi.md CR-091).

`Autoscalers.owner_of` is the one answer. Apply, change of package, modification, repair and heal get it by their plan, scale
asks it before it changes anything, and drift knows the field managers below.

An autoscaler is an object that names its target, or annotations of the target itself. The field manager of an autoscaler stays
in ``managedFields`` after the autoscaler has gone, so it is proof only where autoscalers cannot be read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from kubevnfm_infra_k8s.domain.objects import Body, ObjectKey, annotations_of, field_at, group_of

REPLICAS: Final = ("spec", "replicas")
"""The path of the number of replicas in all kinds but some custom ones."""
SCALE: Final = "scale"
"""The subresource by which a number of replicas is set."""
MANAGERS: Final = frozenset({"kube-controller-manager", "cluster-autoscaler", "keda"})
"""The field managers of autoscalers: those of HorizontalPodAutoscaler, of Cluster API's and of KEDA, which sets 0 and 1 itself.

All others are people and their tools: a number of theirs is drift.
"""
_CLUSTER_API: Final = "cluster.x-k8s.io"
_PREFIX: Final = f"{_CLUSTER_API}/cluster-api-autoscaler-node-group-"
_MANAGED_BY: Final = f"{_CLUSTER_API}/replicas-managed-by"
"""On a MachinePool: its number of replicas belongs to a service of the cloud."""
_NUMBER: Final = re.compile(r"[0-9]{1,10}")
"""An int32."""
_MACHINES: Final = frozenset({"MachineDeployment", "MachinePool"})

Identity = tuple[str, str, str, str]
"""`ObjectKey.identity`."""


@dataclass(frozen=True)
class Limits:
    """The numbers between which an autoscaler chooses; None: it has no such limit."""

    least: int | None = None
    most: int | None = None

    @classmethod
    def from_object(cls, body: Body) -> Self:
        """Return the limits in the annotations of an object; none for a kind that Cluster API's autoscaler does not change."""
        if body.get("kind") not in _MACHINES or group_of(str(body.get("apiVersion"))) != _CLUSTER_API:
            return cls()
        return cls.from_annotations(annotations_of(body))

    @classmethod
    def from_annotations(cls, annotations: Mapping[str, str]) -> Self:
        """Return the limits in annotations; a value that is no number is none."""
        values = [str(annotations.get(f"{_PREFIX}{name}", "")) for name in ("min-size", "max-size")]
        least, most = (int(value) if _NUMBER.fullmatch(value) else None for value in values)
        return cls(least, most)

    @property
    def are_complete(self) -> bool:
        """Whether Cluster API's autoscaler owns the number; it needs both."""
        return self.least is not None and self.most is not None

    def allow(self, count: int) -> bool:
        """Return whether the number is within the limits."""
        return (self.least is None or count >= self.least) and (self.most is None or count <= self.most)

    @property
    def in_words(self) -> str:
        """The limits as text: ``1 to 5``; "" without any."""
        if self.are_complete:
            return f"{self.least} to {self.most}"
        if self.least is not None:
            return f"at least {self.least}"
        return f"at most {self.most}" if self.most is not None else ""


@dataclass(frozen=True)
class Autoscaler:
    """The owner of a number of replicas."""

    name: str
    """As errors name it: ``HorizontalPodAutoscaler default/web``."""
    limits: Limits
    way_out: str
    """The change that gives another number."""
    keeps_given_numbers: bool = False
    """Whether it keeps a number that others set within its limits; otherwise it calculates the number, and takes others back."""


@dataclass(frozen=True)
class _Form:
    """The attributes of a kind of autoscaler in its ``spec``."""

    target: tuple[str, str]
    """API version and kind of a target that names none."""
    least: tuple[str, int]
    most: tuple[str, int | None]


_FORMS: Final[Mapping[tuple[str, str], _Form]] = {
    ("autoscaling", "HorizontalPodAutoscaler"): _Form(("", ""), ("minReplicas", 1), ("maxReplicas", None)),
    ("keda.sh", "ScaledObject"): _Form(("apps/v1", "Deployment"), ("minReplicaCount", 0), ("maxReplicaCount", 100)),
}
"""The autoscalers that are objects, by group and kind. Sources: the API of Kubernetes, autoscaling/v2; KEDA's "ScaledObject specification"."""


@dataclass(frozen=True)
class Autoscalers:
    """The autoscalers of a set of objects and of the cluster."""

    by_target: Mapping[Identity, Autoscaler] = field(default_factory=dict)
    unread: frozenset[str] = frozenset()
    """The namespaces whose autoscalers the credentials may not read."""

    def owner_of(self, key: ObjectKey, body: Body, there: Body | None = None) -> Autoscaler | None:
        """Return the autoscaler that chooses the number of replicas of an object; None: the number is ours.

        ``body``: the object with its annotations; ``there``: the metadata of the object in the cluster, None if there is none.
        """
        found = self.by_target.get(key.identity) or _annotated(body)
        if found is None and key.namespace in self.unread and there is not None and is_autoscaled(there):
            return Autoscaler(
                "the autoscaler that has set it last",
                Limits(),
                "allow the credentials of the VIM to list horizontalpodautoscalers, and see which one it is",
            )
        return found


def is_autoscaler(key: ObjectKey) -> bool:
    """Return whether the object is an autoscaler with a target."""
    return (key.group, key.kind) in _FORMS


def target_of(key: ObjectKey, body: Body) -> Identity | None:
    """Return the identity of the object whose number an autoscaler chooses; None if it names none."""
    form, reference = _FORMS.get((key.group, key.kind)), field_at(body, "spec", "scaleTargetRef")
    name = field_at(reference, "name")
    if form is None or not isinstance(name, str):
        return None
    api_version, kind = (field_at(reference, each) or given for each, given in zip(_NAMED, form.target, strict=True))
    return group_of(str(api_version)), str(kind), key.namespace, name


def autoscaler_of(key: ObjectKey, body: Body) -> Autoscaler:
    """Return what an autoscaler with a target does."""
    form = _FORMS[key.group, key.kind]
    limits = Limits(*(_count(field_at(body, "spec", name), given) for name, given in (form.least, form.most)))
    return Autoscaler(str(key), limits, f"change {form.least[0]} and {form.most[0]} of it, or remove it")


def is_autoscaled(there: Body) -> bool:
    """Return whether an autoscaler has set the number of replicas of an object last."""
    entries = field_at(there, "metadata", "managedFields")
    return any(
        is_of_autoscaler(each) and field_at(each, "fieldsV1", "f:spec") is not None
        for each in (entries if isinstance(entries, list) else ())
    )


def is_of_autoscaler(entry: Any) -> bool:
    """Return whether an entry of ``managedFields`` is that of an autoscaler."""
    return field_at(entry, "manager") in MANAGERS and field_at(entry, "subresource") == SCALE


def is_managed_outside(body: Body) -> bool:
    """Return whether the number of replicas of a MachinePool belongs to a service of the cloud."""
    return annotations_of(body).get(_MANAGED_BY, "false") != "false"


def _annotated(body: Body) -> Autoscaler | None:
    limits = Limits.from_object(body)
    if limits.are_complete:
        way_out = f"choose a number within the limits, or change the annotations {_PREFIX}min-size and max-size"
        return Autoscaler("Cluster API's autoscaler", limits, way_out, keeps_given_numbers=True)
    if body.get("kind") in _MACHINES and is_managed_outside(body):
        return Autoscaler(
            f"the service of the cloud that {_MANAGED_BY} names", limits, "change the number there, or the annotation"
        )
    return None


def _count(value: object, given: int | None) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else given


_NAMED: Final = ("apiVersion", "kind")
