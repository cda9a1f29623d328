"""The objects of an inventory as events show them: those that exist, and those that a termination leaves."""

from __future__ import annotations

from collections.abc import Collection

from kubevnfm_csar.hooks import Point
from kubevnfm_events.objects import HookFacts, LeftObject, ObjectFacts

from kubevnfm_infra_k8s.domain.objects import ObjectKey
from kubevnfm_infra_k8s.domain.release import Release


def objects_of(release: Release, *, restarting: Collection[ObjectKey] = ()) -> tuple[ObjectFacts, ...]:
    """Return the objects of the inventory; ``restarting``: the virtual machines that a change waits for to start again."""
    return tuple(
        ObjectFacts(
            api_version=entry.key.api_version,
            kind=entry.key.kind,
            namespace=entry.key.namespace or None,
            name=entry.key.name,
            uid=entry.uid,
            vdu_id=entry.vdu_id,
            topology_vdus=entry.topology_vdus,
            restart_required=entry.key in restarting,
        )
        for entry in release.entries
    )


def hooks_of(release: Release) -> tuple[HookFacts, ...]:
    """Return the objects of hooks that exist, as far as is known; of one that runs at several points, the last run.

    Those of tests are shown by their health checks.
    """
    last = {each.key: each for each in release.hooks if each.uid and each.point != Point.TEST}
    return tuple(
        HookFacts(
            api_version=each.key.api_version,
            kind=each.key.kind,
            namespace=each.key.namespace or None,
            name=each.key.name,
            uid=each.uid,
            hook=each.point,
            has_succeeded=each.ended == "succeeded",
        )
        for each in last.values()
        if not each.is_gone
    )


def left_of(release: Release) -> tuple[LeftObject, ...]:
    """Return the objects of the inventory and the claims of its StatefulSets, as those that a termination leaves."""
    objects = [
        LeftObject(**{**dict(each), "topology_vdus": ()}, cluster=release.cluster) for each in objects_of(release)
    ]
    claims = [
        left_object(
            ObjectKey("v1", "PersistentVolumeClaim", entry.key.namespace, claim.name),
            claim.uid,
            cluster=release.cluster,
        )
        for entry in release.entries
        for claim in entry.claims
    ]
    return (*objects, *claims)


def left_object(
    key: ObjectKey,
    uid: str,
    *,
    cluster: str,
    vdu_id: str | None = None,
    finalizers: tuple[str, ...] = (),
    provider_id: str | None = None,
    reason: str | None = None,
) -> LeftObject:
    """Return an object that a termination leaves."""
    return LeftObject(
        api_version=key.api_version,
        kind=key.kind,
        namespace=key.namespace or None,
        name=key.name,
        uid=uid,
        vdu_id=vdu_id,
        cluster=cluster,
        finalizers=finalizers,
        provider_id=provider_id,
        reason=reason,
    )
