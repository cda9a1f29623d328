"""Finds the numbers of replicas that are ours again, because a change of package has removed their autoscaler (MC-114)."""

from __future__ import annotations

from collections.abc import Sequence

from kubevnfm_csar.field_paths import without_fields

from kubevnfm_infra_k8s.domain.autoscalers import is_autoscaled, is_autoscaler
from kubevnfm_infra_k8s.domain.objects import ObjectKey, Wanted, field_at
from kubevnfm_infra_k8s.domain.ownership import has_applied, has_owner, is_applied, is_kept
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_infra_k8s.domain.reading.autoscaling import path_of_replicas
from kubevnfm_infra_k8s.domain.reading.existing import find_all, readable_metadata
from kubevnfm_infra_k8s.domain.release import Release


def autoscalers_in(release: Release) -> frozenset[ObjectKey]:
    """Return the autoscalers of the inventory."""
    return frozenset(entry.key for entry in release.entries if is_autoscaler(entry.key))


async def freed(cluster: Cluster, objects: Sequence[Wanted]) -> frozenset[ObjectKey]:
    """Return the objects that are to have our number and still have the one of an autoscaler.

    Our apply has left the number out as long as the autoscaler existed, so the owners of the field show it: also after a crash.
    A number of another manager is none of them. An object without a record of our apply is left as it is: the API server has no
    server-side apply, or the credentials may not read the object.
    """
    counted = [each for each in objects if each.resource.is_scalable and not each.autoscaled_at]
    there = await find_all(
        cluster,
        [(each.resource, each.key) for each in counted],
        lambda resource, key: readable_metadata(cluster, resource, key),
    )
    # Objects of one kind have their number at one place, and custom ones say it in a definition that has to be read.
    paths = {each: await path_of_replicas(cluster, each, objects) for each in {each.resource for each in counted}}
    found: set[ObjectKey] = set()
    for each in counted:
        body = there.get(each.key)
        if body is None or not has_applied(body):
            continue
        path = paths[each.resource]
        is_left = not has_owner(body, path) or is_autoscaled(body) or is_kept(body, path)
        if (
            field_at(without_fields(each.body, each.ignored), *path) is not None
            and not is_applied(body, path)
            and is_left
        ):
            found.add(each.key)
    return frozenset(found)
