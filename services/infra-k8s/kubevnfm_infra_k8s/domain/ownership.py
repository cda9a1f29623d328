"""The fields of an object that are ours, as ``metadata.managedFields`` has them: the sign by which changes of others are found.

Server-side apply takes a field away from us when another manager changes or removes it, and leaves it to us when another one
writes the same value, or a field that we do not have. So a hash of our fields says without any body whether another party has
changed the object. Source: Kubernetes documentation, "Server-Side Apply"; KEP-555.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kubevnfm_csar.field_paths import has_field, names_element
from kubevnfm_csar.object_treatment import FieldPath
from kubevnfm_kit.foreign_json import read_foreign

from kubevnfm_infra_k8s.domain.autoscalers import REPLICAS, SCALE, is_managed_outside, is_of_autoscaler
from kubevnfm_infra_k8s.domain.objects import FIELD_MANAGER, KEEPING_MANAGER, RESTART_ANNOTATION, Body, field_at

Path = tuple[str, ...]
"""The elements of a path as ``fieldsV1`` writes them: ``f:spec``, ``k:{"name":"web"}``."""

_REPLICAS: Final[Path] = ("f:spec", "f:replicas")
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
    """Return ``owned`` with the number of replicas that we have set by ``scale``, if our last write did not have it.

    Without the number if that is 0: the API server then records no owner of it.
    """
    ours, scaled, _ = _fields(body)
    is_lost = owned == with_number(body) and not has_owner(body, REPLICAS)
    return _hash(ours | scaled) if owned == _hash(ours) or is_lost else owned


def present_fields(body: Body) -> Sequence[str]:
    """Return the hashes of our present fields: with the numbers of replicas that were set by ``scale``, and without.

    Without, for a number that our last write did not have; with those of an autoscaler, as if they were ours. One of them is
    that of `owned_fields` unless another party has changed the object.
    """
    ours, scaled, autoscaled = _fields(body)
    return tuple(dict.fromkeys([_hash(ours | scaled | autoscaled), _hash(ours)]))


def with_number(body: Body) -> str:
    """Return the hash of our present fields as if the number of replicas were ours: that of an object that lacks it alone."""
    ours, scaled, _ = _fields(body)
    return _hash(ours | scaled | {_REPLICAS})


def is_scaled_apart(body: Body) -> bool:
    """Return whether we have set ``spec.replicas`` by ``scale`` since our last apply: one without it keeps it."""
    ours, scaled, _ = _fields(body)
    return _REPLICAS in scaled and _REPLICAS not in ours


def ours_alone(body: Body, fields: Sequence[FieldPath]) -> frozenset[Path]:
    """Return what nothing but our own apply owns of these fields: an apply without it resets it to its default."""
    ours: set[Path] = set()
    others: set[Path] = set()
    for entry in _entries(body):
        paths = _paths(field_at(entry, "fieldsV1"))
        if _is_applied(entry):
            ours.update(path for path in paths if any(_is_in(path, each) for each in fields))
        else:
            others.update(paths)
    return frozenset(ours - others)


def kept_fields(body: Body) -> frozenset[Path]:
    """Return what our second field manager owns."""
    entries = [each for each in _entries(body) if field_at(each, "manager") == KEEPING_MANAGER]
    return frozenset(path for each in entries for path in _paths(field_at(each, "fieldsV1")))


def obstacle_to_ignoring(there: Body, wanted: Body, field: FieldPath) -> str:
    """Return why an apply cannot leave a field out that it has applied; "" if it can. ``wanted``: what was applied."""
    trees = [field_at(each, "fieldsV1") for each in _entries(there) if _is_applied(each)]
    if not trees or not has_field(wanted, field):
        return ""
    for position, token in enumerate(field):
        elements = {element for tree in trees for element in tree if element != "."}
        if not elements:
            return f"the API server has one owner for all of /{'/'.join(field[:position])}: ignore that"
        keyed = [read_foreign(each[2:]) for each in elements if each.startswith("k:")]
        name = token.partition("=")[0]
        if keyed and not any(isinstance(each, Mapping) and name in each for each in keyed):
            named = ", ".join(sorted({key for each in keyed if isinstance(each, Mapping) for key in each}))
            return f"{token} names no element of the list: one of its keys expected ({named})"
        trees = [tree[each] for tree in trees for each in tree if each != "." and _names(each, token)]
        if not trees:
            # Another manager owns it.
            return ""
    return ""


def is_applied(body: Body, path: Sequence[str]) -> bool:
    """Return whether our own apply owns a field."""
    wanted = tuple(f"f:{name}" for name in path)
    return any(_is_applied(each) and wanted in set(_paths(field_at(each, "fieldsV1"))) for each in _entries(body))


def has_owner(body: Body, path: Sequence[str]) -> bool:
    """Return whether any manager owns a field."""
    wanted = tuple(f"f:{name}" for name in path)
    return any(wanted in set(_paths(field_at(each, "fieldsV1"))) for each in _entries(body))


def has_applied(body: Body) -> bool:
    """Return whether the API server has a record of our apply."""
    return any(_is_applied(each) for each in _entries(body))


def is_kept(body: Body, path: Sequence[str]) -> bool:
    """Return whether our second field manager owns a field."""
    return tuple(f"f:{name}" for name in path) in kept_fields(body)


def _is_in(path: Path, field: FieldPath) -> bool:
    return len(path) >= len(field) and all(_names(*each) for each in zip(path, field, strict=False))


def _names(element: str, token: str) -> bool:
    """Return whether an element of a path in ``fieldsV1`` is what a token of a JSON Pointer names."""
    kind, _, text = element.partition(":")
    if kind != "k":
        return kind == "f" and text == token
    members = read_foreign(text)
    return isinstance(members, Mapping) and names_element(token, members)


def _is_applied(entry: Any) -> bool:
    parts = (field_at(entry, "manager"), field_at(entry, "operation"), field_at(entry, "subresource") or "")
    return parts == (FIELD_MANAGER, "Apply", "")


def _entries(body: Body) -> Sequence[Any]:
    entries = field_at(body, "metadata", "managedFields")
    return entries if isinstance(entries, list) else []


def _fields(body: Body) -> tuple[frozenset[Path], frozenset[Path], frozenset[Path]]:
    """Return the fields that we own, those that we own by ``scale``, and those that an autoscaler owns."""
    ours: set[Path] = set()
    scaled: set[Path] = set()
    autoscaled: set[Path] = set()
    for entry in _entries(body):
        paths = _paths(field_at(entry, "fieldsV1"))
        if field_at(entry, "manager") == FIELD_MANAGER:
            is_scale = field_at(entry, "subresource") == SCALE
            (scaled if is_scale else ours).update(each for each in paths if _counts(each))
        elif is_of_autoscaler(entry):
            autoscaled.update(paths)
        elif is_managed_outside(body):
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
