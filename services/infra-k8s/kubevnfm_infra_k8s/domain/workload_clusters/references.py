"""References from one object of Cluster API to another: where they are, and whether they lead to an object (capi.md CR-003)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kubevnfm_kit.errors import Unprocessable

from kubevnfm_infra_k8s.domain.capi.contract import CONTROL_PLANE, CORE, GROUPS, is_cluster
from kubevnfm_infra_k8s.domain.concurrency import each_of
from kubevnfm_infra_k8s.domain.errors import Forbidden
from kubevnfm_infra_k8s.domain.objects import Body, ObjectKey, Resource, Wanted, field_at, group_of
from kubevnfm_infra_k8s.domain.ports import Cluster

Reference = tuple[str, str, str]
"""API group, kind and name."""

_REFERRING: Final = frozenset({CORE, CONTROL_PLANE})
"""The groups whose objects name others by kind."""


@dataclass(frozen=True)
class Place:
    """A reference, and where it is."""

    path: str
    """``spec.template.spec.infrastructureRef``."""
    reference: Reference
    namespace: str | None = None
    """None: that of the object that refers."""


def places(value: object, path: str = "spec") -> Iterator[Place]:
    """Yield all references in a spec; both contracts name the kind and the name, and either the group or the version."""
    if isinstance(value, Mapping):
        if (found := reference_in(value)) is not None:
            yield Place(path, found)
        for name, each in value.items():
            yield from places(each, f"{path}.{name}")
    elif isinstance(value, list | tuple):
        for index, each in enumerate(value):
            yield from places(each, f"{path}[{index}]")


def reference_in(value: Mapping[str, Any]) -> Reference | None:
    """Return the reference that a mapping is; None if it is none."""
    group = value.get("apiGroup") or group_of(str(value.get("apiVersion") or ""))
    kind, name = value.get("kind"), value.get("name")
    return (str(group), str(kind), str(name)) if group and kind and name else None


def references(value: object) -> Iterator[Reference]:
    """Yield all references in a spec, without their places."""
    return (each.reference for each in places(value))


def own_reference(key: ObjectKey) -> Reference:
    """Return the reference to an object."""
    return key.group, key.kind, key.name


async def check_references(cluster: Cluster, objects: Sequence[Wanted]) -> None:
    """Raise Unprocessable naming each reference that leads to no object, of the files or of the cluster.

    Its Cluster could neither come up nor be deleted. One that refers to a kind without a definition even keeps the API server
    from converting Clusters, so that no Cluster of the whole management cluster can be read in the other version.
    """
    there = {(each.key.namespace, own_reference(each.key)) for each in objects}
    wanted = [
        (each, place)
        for each in objects
        if each.key.group in _REFERRING
        for place in _places(each)
        if place.reference[0] in GROUPS and (_namespace(each, place), place.reference) not in there
    ]
    if not wanted:
        return
    kinds = await _kinds(cluster)
    if any(place.reference[:2] not in kinds for _, place in wanted):
        # Their provider may be installed since the kinds were read.
        cluster.forget_kinds()
        kinds = await _kinds(cluster)
    found = await each_of(wanted, lambda pair: _missing(cluster, kinds, *pair))
    missing = [(where, why) for where, why in found if why]
    if missing:
        (where, why), *more = missing
        raise Unprocessable(where, "; ".join([why, *(f"{place}: {reason}" for place, reason in more)]))


async def _kinds(cluster: Cluster) -> Mapping[tuple[str, str], Resource]:
    return {(group_of(each.api_version), each.kind): each for each in await cluster.kinds()}


def _namespace(wanted: Wanted, place: Place) -> str:
    return place.namespace or wanted.key.namespace


def class_of(cluster: Body) -> Place | None:
    """Return the reference of a Cluster to its class, which names no kind; None if it has no topology."""
    topology = field_at(cluster, "spec", "topology")
    for path, name, namespace in (
        ("spec.topology.classRef", ("classRef", "name"), ("classRef", "namespace")),
        ("spec.topology.class", ("class",), ("classNamespace",)),
    ):
        if named := field_at(topology, *name):
            return Place(path, (CORE, "ClusterClass", str(named)), field_at(topology, *namespace))
    return None


def _places(wanted: Wanted) -> Iterator[Place]:
    yield from places(wanted.body.get("spec"))
    if is_cluster(wanted.key) and (found := class_of(wanted.body)) is not None:
        yield found


async def _missing(
    cluster: Cluster, kinds: Mapping[tuple[str, str], Resource], wanted: Wanted, place: Place
) -> tuple[str, str]:
    """Return the place of a reference as text, and why it leads nowhere; "" if it does not."""
    group, kind, name = place.reference
    where, resource = f"{place.path} of {wanted.key} ({wanted.file})", kinds.get((group, kind))
    if resource is None:
        return where, f"the cluster serves no kind {kind} of {group}"
    key = ObjectKey(resource.api_version, kind, _namespace(wanted, place), name)
    try:
        body: Body | None = await cluster.get(resource, key)
    except Forbidden:
        # The credentials need not permit to read what the controllers can read.
        return where, ""
    return where, "" if body is not None else f"neither the files nor the cluster have {kind} {key.namespace}/{name}"
