"""Looks at objects of an inventory, and says what other parties have done to them (capi.md CR-121)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from kubevnfm_infra_k8s.domain.errors import Forbidden
from kubevnfm_infra_k8s.domain.objects import Body, ObjectKey, Resource
from kubevnfm_infra_k8s.domain.ownership import with_number
from kubevnfm_infra_k8s.domain.ports import Cluster, SharedObjects
from kubevnfm_infra_k8s.domain.reading.autoscaling import autoscalers_of
from kubevnfm_infra_k8s.domain.reading.existing import find_all, served_kinds
from kubevnfm_infra_k8s.domain.release import Entry, Release
from kubevnfm_infra_k8s.domain.watching.drift import Deviation, Sighting, is_compared, judge


@dataclass(frozen=True)
class Difference:
    """An object that is not as kubevnfm has left it."""

    what: Deviation
    there: Body | None
    """The metadata of the object of that name; None if there is none."""


async def differences(
    cluster: Cluster, shared: SharedObjects, release: Release, entries: Sequence[Entry]
) -> Mapping[ObjectKey, Difference]:
    """Return what has become of those of the entries that are not as kubevnfm has left them.

    Objects that the credentials may not read are not among them.
    """
    bodies, unreadable = await _seen(cluster, entries)
    found: dict[ObjectKey, Difference] = {}
    for entry in entries:
        body = bodies.get(entry.key)
        seen = Sighting.from_body(body) if body is not None else None
        what = judge(entry, seen) if entry.key not in unreadable else None
        if what == "replaced" and seen is not None and await _is_of_a_holder(shared, release, entry, seen):
            # Another instance that holds it has made it again, with the same content.
            what = judge(entry, Sighting(entry.uid, seen.fields, seen.instance, seen.is_going))
        if what is not None:
            found[entry.key] = Difference(what, body)
    return await _without_autoscaled(cluster, entries, found)


async def collected(cluster: Cluster, release: Release) -> Set[ObjectKey]:
    """Return the objects that Kubernetes has removed by itself: they are not missing, and no wait for them would end."""
    entries = [entry for entry in release.entries if entry.may_be_gone and not entry.is_complete]
    bodies, unreadable = await _seen(cluster, entries)
    return {entry.key for entry in entries} - bodies.keys() - unreadable


async def lost_vdus(cluster: Cluster, release: Release) -> tuple[str, ...]:
    """Return the VDUs whose workloads others have deleted, are deleting, or have replaced: nothing makes their pods again."""
    entries = [entry for entry in release.entries if entry.vdu_id is not None and is_compared(entry)]
    bodies, unreadable = await _seen(cluster, entries)
    lost: list[str] = []
    for entry in entries:
        body = bodies.get(entry.key)
        seen = Sighting.from_body(body) if body is not None else None
        is_there = seen is not None and seen.uid == entry.uid and not seen.is_going
        if not is_there and entry.key not in unreadable and entry.vdu_id is not None:
            lost.append(entry.vdu_id)
    return tuple(lost)


async def _seen(cluster: Cluster, entries: Sequence[Entry]) -> tuple[Mapping[ObjectKey, Body], Set[ObjectKey]]:
    """Return the metadata of those of the objects that exist, and those that the credentials may not read."""
    served = await served_kinds(cluster, [entry.key.api_kind for entry in entries])
    unreadable: set[ObjectKey] = set()

    async def get(resource: Resource, key: ObjectKey) -> Body | None:
        try:
            return await cluster.get_metadata(resource, key)
        except Forbidden:
            unreadable.add(key)
            return None

    places = [(resource, entry.key) for entry in entries if (resource := served[entry.key.api_kind]) is not None]
    return await find_all(cluster, places, get), unreadable


async def _without_autoscaled(
    cluster: Cluster, entries: Sequence[Entry], found: Mapping[ObjectKey, Difference]
) -> Mapping[ObjectKey, Difference]:
    """Return the differences without the objects of which nothing but the number was changed, and that have an autoscaler.

    Not every number of an autoscaler has a field manager: the API server records none for 0, and some have names of their own.
    """
    bodies = {
        entry.key: each.there
        for entry in entries
        if (each := found.get(entry.key)) is not None
        and each.what == "changed"
        and each.there is not None
        and entry.owned == with_number(each.there)
    }
    if not bodies:
        return found
    autoscalers = await autoscalers_of(cluster, {key.namespace for key in bodies})
    scaled = {key for key, body in bodies.items() if autoscalers.owner_of(key, body, body) is not None}
    return {key: each for key, each in found.items() if key not in scaled}


async def _is_of_a_holder(shared: SharedObjects, release: Release, entry: Entry, seen: Sighting) -> bool:
    if entry.key.namespace:
        return False
    holders = await shared.holders(release.cluster, entry.key)
    return len(holders) > 1 and seen.instance in holders
