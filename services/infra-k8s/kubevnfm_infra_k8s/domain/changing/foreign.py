"""The objects of others that are in the places of an instance's objects (multicloud.md MC-039)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from kubevnfm_infra_k8s.domain.objects import INSTANCE_LABEL, Body, ObjectKey, Wanted, field_at, labels_of
from kubevnfm_infra_k8s.domain.ports import Cluster, Releases
from kubevnfm_infra_k8s.domain.reading.claims import taken_claims
from kubevnfm_infra_k8s.domain.reading.existing import find_all, readable
from kubevnfm_infra_k8s.domain.reading.kept import is_given_back
from kubevnfm_infra_k8s.domain.release import Release

_NONE: Final[Mapping[ObjectKey, Sequence[str]]] = MappingProxyType({})


def foreign_among(
    objects: Sequence[Wanted],
    there: Mapping[ObjectKey, Body],
    release: Release,
    sharers: Mapping[ObjectKey, Sequence[str]] = _NONE,
) -> Sequence[ObjectKey]:
    """Return those of the existing objects that belong neither to the instance of a release nor to one that shares them.

    ``there``: those of ``objects`` that exist. One that is being deleted is waited for, and is not among them.
    """
    mine = release.vnf_instance_id
    adopts = {each.key: each.adopts for each in objects}
    return [
        key
        for key, body in there.items()
        if not field_at(body, "metadata", "deletionTimestamp")
        and labels_of(body).get(INSTANCE_LABEL) not in {mine, *sharers.get(key, ())}
        and not release.has_lost_label(key, body)
        and not is_given_back(body, adopts[key], mine)
    ]


async def taken_in(
    cluster: Cluster, releases: Releases, objects: Sequence[Wanted], release: Release, namespace: str
) -> Sequence[ObjectKey]:
    """Return the objects of others in a namespace that have the names of these, with the claims that they would take.

    An object that the credentials may not read counts as absent.
    """
    here = [
        each
        for each in objects
        if each.key.namespace == namespace and each.resource.is_persistent and not each.is_read_only
    ]
    places = [(each.resource, each.key) for each in here]
    there = await find_all(cluster, places, lambda resource, key: readable(cluster, resource, key))
    claims = await taken_claims(cluster, releases, here, there.keys(), release.vnf_instance_id)
    return [*foreign_among(here, there, release), *claims]
