"""The volume claims that StatefulSets make from their templates: whose they are (capi.md CR-018, CR-023).

Kubernetes keeps such a claim when its pod, or its StatefulSet, is deleted, and writes no owner into it. Its name proves nothing:
``data-db-replica-0`` can be of the set ``db-replica`` and the template ``data``, or of ``replica`` and ``data-db``. So each
template is applied with a mark (`with_claim_marks`), which the StatefulSet controller copies into the claim in the same
write that creates it. A set that an earlier version has applied has no mark, and none can be added, as templates do not change. Its
claims are known from its pods, as long as there are some; so each operation records those that it sees.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

import structlog

from kubevnfm_infra_k8s.domain.concurrency import each_of
from kubevnfm_infra_k8s.domain.errors import Forbidden
from kubevnfm_infra_k8s.domain.objects import (
    CLAIM_OF_ANNOTATION,
    CLAIMS,
    INSTANCE_LABEL,
    PODS,
    TACKER_LABEL,
    Body,
    ObjectKey,
    Wanted,
    annotations_of,
    field_at,
    labels_of,
    uid_of,
)
from kubevnfm_infra_k8s.domain.ports import Cluster, Releases
from kubevnfm_infra_k8s.domain.reading.existing import find, readable
from kubevnfm_infra_k8s.domain.reading.vdus import owner_uid
from kubevnfm_infra_k8s.domain.release import ADDONS, Entry, OwnedClaim, Release

log = structlog.get_logger()

_LONGEST_ORDINAL: Final = 10
"""Digits of a pod's number in its StatefulSet."""
_MARKS: Final = (("labels", INSTANCE_LABEL), ("labels", TACKER_LABEL), ("annotations", CLAIM_OF_ANNOTATION))


class Surroundings:
    """The claims of a namespace, and the pods that use them.

    There can be thousands of pods, so they are read once, and only if they decide something: the mark or the owner of a claim
    is proof enough.
    """

    def __init__(self, cluster: Cluster, namespace: str, claims: Sequence[Body]) -> None:
        self._cluster, self._namespace, self.claims = cluster, namespace, claims
        self._users: Mapping[str, Sequence[Body]] | None = None
        """Pods of all VNF instances, by the claim that they use."""

    @classmethod
    async def look(cls, cluster: Cluster, namespace: str) -> Surroundings:
        """Read the claims from the cluster."""
        return cls(cluster, namespace, await cluster.list(CLAIMS, namespace=namespace))

    async def users_of(self, claim: Body) -> Sequence[Body]:
        """Return the pods of VNF instances that use a claim; none if pods may not be read."""
        if self._users is None:
            self._users = await self._read_users()
        return self._users.get(_name(claim), ())

    async def mounted_by_others(self, claim: Body, vnf_instance_id: str) -> str:
        """Return a pod of another VNF instance that uses the claim; "" without one."""
        others = (pod for pod in await self.users_of(claim) if labels_of(pod).get(INSTANCE_LABEL) != vnf_instance_id)
        return next(map(_name, others), "")

    async def _read_users(self) -> Mapping[str, Sequence[Body]]:
        try:
            pods = await self._cluster.list(PODS, namespace=self._namespace, labels=INSTANCE_LABEL)
        except Forbidden:  # marks, owners and records are proof enough
            return {}
        users: dict[str, list[Body]] = {}
        for pod in pods:
            for claim in set(_claims_of(pod).values()):
                users.setdefault(claim, []).append(pod)
        return users


def claim_key(claim: Body, namespace: str) -> ObjectKey:
    """Return the key of a claim."""
    return ObjectKey("v1", CLAIMS.kind, namespace, _name(claim))


def is_made_by(entry: Entry, claim: Body, release: Release) -> bool:
    """Return whether a StatefulSet of the inventory has made the claim: its mark, its owner or the record of its uid says so."""
    instance = labels_of(claim).get(INSTANCE_LABEL)
    if instance == release.vnf_instance_id and annotations_of(claim).get(CLAIM_OF_ANNOTATION) == entry.key.name:
        return True
    if instance not in (None, release.vnf_instance_id):
        return False
    owners = {each.get("uid") for each in field_at(claim, "metadata", "ownerReferences") or ()}
    return bool(entry.uid and entry.uid in owners) or OwnedClaim(_name(claim), uid_of(claim)) in entry.claims


def may_be_made_by(entry: Entry, claim: Body) -> bool:
    """Return whether a claim has the name of one of a StatefulSet. It is named to an operator, and not deleted."""
    name, _, number = _name(claim).rpartition("-")
    is_number = number.isascii() and number.isdigit()
    return is_number and name in {f"{template}-{entry.key.name}" for template in entry.claim_templates}


def with_own_marks(wanted: Wanted, there: Body) -> Wanted:
    """Return a StatefulSet with the marks that the templates of the existing one have: they cannot change any more."""
    before = {_name(each): each for each in field_at(there, "spec", "volumeClaimTemplates") or ()}
    templates = [
        _with_marks_of(before[_name(each)], each) if _name(each) in before else each
        for each in field_at(wanted.body, "spec", "volumeClaimTemplates") or ()
    ]
    return replace(wanted, body={**wanted.body, "spec": {**wanted.body["spec"], "volumeClaimTemplates": templates}})


def _with_marks_of(before: Body, template: Body) -> Body:
    metadata: dict[str, Any] = dict(template["metadata"])
    for part, name in _MARKS:
        present = (field_at(before, "metadata", part) or {}).get(name)
        rest = {key: value for key, value in (metadata.get(part) or {}).items() if key != name}
        metadata[part] = {**rest, **({name: present} if present is not None else {})}
        if not metadata[part]:
            del metadata[part]
    return {**template, "metadata": metadata}


async def with_present_marks(cluster: Cluster, objects: Sequence[Wanted]) -> Sequence[Wanted]:
    """Return the objects; StatefulSets that exist get the marks that they have."""

    async def fitted(each: Wanted) -> Wanted:
        there = await readable(cluster, each.resource, each.key) if each.claim_templates else None
        return with_own_marks(each, there) if there is not None else each

    return await each_of(objects, fitted)


async def is_of_others(releases: Releases, claim: Body, vnf_instance_id: str) -> bool:
    """Return whether the label of a claim names another VNF instance that has objects; one that was terminated has none."""
    other = labels_of(claim).get(INSTANCE_LABEL, vnf_instance_id)
    return other != vnf_instance_id and any([await releases.get(other, part) is not None for part in ("", ADDONS)])


async def taken_claims(
    cluster: Cluster,
    releases: Releases,
    objects: Sequence[Wanted],
    existing: Collection[ObjectKey],
    vnf_instance_id: str,
) -> Sequence[ObjectKey]:
    """Return the claims of other VNF instances that StatefulSets would take as theirs, because they have the same name.

    Only StatefulSets that are not ``existing`` are asked for. A claim that a terminated instance has kept may be taken.
    """
    sets = [each for each in objects if each.claim_templates and each.key not in existing]
    others = f"{INSTANCE_LABEL},{INSTANCE_LABEL}!={vnf_instance_id}"
    found: list[ObjectKey] = []
    for namespace in sorted({each.key.namespace for each in sets}):
        try:
            claims = await cluster.list(CLAIMS, namespace=namespace, labels=others)
        except Forbidden:  # unknown; a termination deletes no claim of others
            continue
        here = [each for each in sets if each.key.namespace == namespace]
        same = [claim for claim in claims if any(asks_for(each, _name(claim)) for each in here)]
        taken = await each_of(same, lambda claim: is_of_others(releases, claim, vnf_instance_id))
        found += [claim_key(claim, namespace) for claim, is_taken in zip(same, taken, strict=True) if is_taken]
    return found


def asks_for(wanted: Wanted, claim: str) -> bool:
    """Return whether a new StatefulSet asks for a claim of this name; its number of replicas can be any."""
    name, _, number = claim.rpartition("-")
    # As Kubernetes writes a number: without leading zeros, and an int32.
    if not (number.isascii() and number.isdigit()) or len(number) > _LONGEST_ORDINAL or str(int(number)) != number:
        return False
    start, count = field_at(wanted.body, "spec", "ordinals", "start"), field_at(wanted.body, "spec", "replicas")
    first = start if isinstance(start, int) else 0
    is_wanted = first <= int(number) < first + (count if isinstance(count, int) else 1)
    return is_wanted and name in {f"{template}-{wanted.key.name}" for template in wanted.claim_templates}


async def recorded(cluster: Cluster, release: Release) -> Release:
    """Return the release with the claims that its StatefulSets are seen to have made.

    Those that existed before the VNF (`Entry.is_adopted`) are left out: they and their claims are given back.
    """
    sets = [entry for entry in release.entries if entry.claim_templates and not entry.is_adopted]
    if not sets:
        return release
    claims: dict[ObjectKey, tuple[OwnedClaim, ...]] = {}
    try:
        around = {
            namespace: await Surroundings.look(cluster, namespace)
            for namespace in sorted({entry.key.namespace for entry in sets})
        }
        for entry in sets:
            claims[entry.key] = await _seen(cluster, release, entry, around[entry.key.namespace])
    except Forbidden as refusal:
        log.info("claims_not_recorded", reason=str(refusal))
    entries = [replace(entry, claims=claims.get(entry.key, entry.claims)) for entry in release.entries]
    return replace(release, entries=entries)


async def save_claims(cluster: Cluster, releases: Releases, release: Release) -> Release:
    """Store the release with the claims that its StatefulSets are seen to have made. Raises RevisionConflict."""
    after = await recorded(cluster, release)
    return release if after == release else await releases.save(after)


async def _seen(cluster: Cluster, release: Release, entry: Entry, around: Surroundings) -> tuple[OwnedClaim, ...]:
    """Return the claims of a StatefulSet: those recorded that still exist, marked ones, and those of its pods."""
    mine = [claim for claim in around.claims if is_made_by(entry, claim, release)]
    rest = [claim for claim in around.claims if may_be_made_by(entry, claim) and claim not in mine]
    if rest:
        there = await find(cluster, entry.key)
        if there is not None and _is_same(entry, there, release):
            mine += [claim for claim in rest if await _is_of_its_pods(there, claim, release, around)]
    return tuple(sorted((OwnedClaim(_name(claim), uid_of(claim)) for claim in mine), key=lambda each: each.name))


def _is_same(entry: Entry, there: Body, release: Release) -> bool:
    if entry.uid:
        return entry.uid == uid_of(there)
    return labels_of(there).get(INSTANCE_LABEL) == release.vnf_instance_id


async def _is_of_its_pods(there: Body, claim: Body, release: Release, around: Surroundings) -> bool:
    """Return whether a StatefulSet without marks has made a claim: a pod of it has the claim from a template.

    The set can have found a claim of another owner under that name. Such a claim is older, or has other labels. A set with marks has made
    none without, so its author cannot choose labels by which it gets others' claims.
    """
    templates = {
        _name(each)
        for each in field_at(there, "spec", "volumeClaimTemplates") or ()
        if CLAIM_OF_ANNOTATION not in annotations_of(each)
    }
    selected = field_at(there, "spec", "selector", "matchLabels") or {}
    begun, made = _time(there), _time(claim)
    return (
        INSTANCE_LABEL not in labels_of(claim)
        and selected.items() <= labels_of(claim).items()
        and begun is not None
        and made is not None
        and begun <= made
        and not await around.mounted_by_others(claim, release.vnf_instance_id)
        and any(
            _claims_of(pod).get(template) == _name(claim)
            for pod in await around.users_of(claim)
            if owner_uid(pod) == uid_of(there)
            for template in templates
        )
    )


def _claims_of(pod: Body) -> Mapping[str, str]:
    """Return the claims that a pod uses, by the name of the volume; that of a template's volume is the template's."""
    volumes = field_at(pod, "spec", "volumes") or ()
    found = {_text(each.get("name")): field_at(each, "persistentVolumeClaim", "claimName") for each in volumes}
    return {name: str(claim) for name, claim in found.items() if claim}


def _time(body: Body) -> datetime | None:
    text = field_at(body, "metadata", "creationTimestamp")
    return datetime.fromisoformat(str(text)) if text else None


def _name(body: Body) -> str:
    return _text(field_at(body, "metadata", "name"))


def _text(value: object) -> str:
    return str(value or "")
