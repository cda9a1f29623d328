"""The fields of an object that are ours, as ``metadata.managedFields`` has them: the sign by which changes of others are found.

Server-side apply takes a field away from us when another manager changes or removes it, and leaves it to us when another one
writes the same value, or a field that we do not have. So a hash of our fields says without any body whether another party has
changed the object. Source: Kubernetes documentation, "Server-Side Apply"; KEP-555.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kubevnfm_infra_k8s.domain.objects import FIELD_MANAGER, RESTART_ANNOTATION, Body, annotations_of, field_at

Path = tuple[str, ...]
"""The elements of a path as ``fieldsV1`` writes them: ``f:spec``, ``k:{"name":"web"}``."""

_SCALE: Final = "scale"
_REPLICAS: Final[Path] = ("f:spec", "f:replicas")
_AUTOSCALERS: Final = frozenset({"kube-controller-manager", "cluster-autoscaler"})
"""The managers that set numbers of replicas by the subresource ``scale``; the first one is the HorizontalPodAutoscaler's."""
_REPLICAS_MANAGED_BY: Final = "cluster.x-k8s.io/replicas-managed-by"
"""The annotation of a MachinePool whose number of replicas belongs to a service of the cloud."""
_OWN_MARKS: Final = frozenset({f"f:{RESTART_ANNOTATION}", "f:rolloutAfter"})
"""Fields that our own changes of a running object add to what was applied; for Cluster API's v1beta2 see `_counts`."""
_OF_CONTROLLERS: Final = frozenset({"f:caBundle", "f:controlPlaneEndpoint"})
"""Fields that controllers fill in although a manifest has them: CA data (cert-manager), the address of a workload cluster."""
_WRITTEN_IN: Final = frozenset({"f:spec", "f:webhooks"})
"""The parts of an object in which controllers do that; in ``data`` a name means nothing."""
_HASH_LENGTH: Final = 32
_OF_ITS_HOLDERS: Final = frozenset({"Endpoints", "EndpointSlice", "Lease"})
"""Kinds that other parties write by design: a leader that renews its Lease is no drift."""


def owned_fields(body: Body) -> str:
    """Return a hash of the fields that are ours after our own write; "" if nothing can be compared with it later."""
    ours, scaled, _ = _fields(body)
    return _hash(ours | scaled) if ours and body.get("kind") not in _OF_ITS_HOLDERS else ""


def with_scaled_fields(owned: str, body: Body) -> str:
    """Return ``owned`` with the number of replicas that we have set by ``scale``, if our last write did not have it."""
    ours, scaled, _ = _fields(body)
    return _hash(ours | scaled) if owned == _hash(ours) else owned


def present_fields(body: Body) -> Sequence[str]:
    """Return the hashes of our present fields: with the numbers of replicas that were set by ``scale``, and without.

    Without, for a number that our last write did not have; with those of an autoscaler, as if they were ours. One of them is
    that of `owned_fields` unless another party has changed the object.
    """
    ours, scaled, autoscaled = _fields(body)
    return tuple(dict.fromkeys([_hash(ours | scaled | autoscaled), _hash(ours)]))


def is_scaled_apart(body: Body) -> bool:
    """Return whether ``spec.replicas`` was set by ``scale``, by us or by an autoscaler: an apply without it keeps it."""
    ours, scaled, autoscaled = _fields(body)
    return _REPLICAS in (scaled | autoscaled) and _REPLICAS not in ours


def _fields(body: Body) -> tuple[frozenset[Path], frozenset[Path], frozenset[Path]]:
    """Return the fields that we own, those that we own by ``scale``, and those that an autoscaler owns."""
    ours: set[Path] = set()
    scaled: set[Path] = set()
    autoscaled: set[Path] = set()
    entries = field_at(body, "metadata", "managedFields")
    for entry in entries if isinstance(entries, list) else []:
        manager, subresource = field_at(entry, "manager"), field_at(entry, "subresource") or ""
        paths = _paths(field_at(entry, "fieldsV1"))
        if manager == FIELD_MANAGER:
            (scaled if subresource == _SCALE else ours).update(each for each in paths if _counts(each))
        elif manager in _AUTOSCALERS and subresource == _SCALE:
            autoscaled.update(paths)
        elif _REPLICAS_MANAGED_BY in annotations_of(body):
            autoscaled.update(each for each in paths if each == _REPLICAS)
    return frozenset(ours), frozenset(scaled), frozenset(autoscaled)


def _paths(tree: Any, above: Path = ()) -> Iterator[Path]:
    """Yield the members of a ``fieldsV1`` tree: its leaves, and the items of lists.

    A map that another field was added to is a member too (``.``); it says nothing that its fields do not say.
    """
    if not isinstance(tree, Mapping):
        return
    if above and (not tree or ("." in tree and not above[-1].startswith("f:"))):
        yield above
    for element, below in tree.items():
        if element != ".":
            yield from _paths(below, (*above, str(element)))


def _counts(path: Path) -> bool:
    if path[0] not in _WRITTEN_IN:
        return True
    if _OWN_MARKS.intersection(path) or path[-2:] == ("f:rollout", "f:after"):
        return False
    # Cluster API raises the version of a reference (``infrastructureRef``, ``ref``) when the provider serves a newer one.
    is_version_of_reference = path[-1] == "f:apiVersion" and path[-2].lower().endswith("ref")
    return not (_OF_CONTROLLERS.intersection(path) or is_version_of_reference)


def _hash(paths: frozenset[Path]) -> str:
    text = "\n".join(sorted("\t".join(each) for each in paths))
    return hashlib.sha256(text.encode()).hexdigest()[:_HASH_LENGTH]
