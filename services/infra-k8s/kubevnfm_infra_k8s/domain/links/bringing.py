"""One pass over one link: its objects are brought to what its document says, or looked at for drift. Safe to repeat.

An object is stored in the document before it is created, and with its uid before it is deleted. So a process that ends at any point
leaves nothing that the next pass does not find.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import structlog
from kubevnfm_events.links import LinkStatus
from kubevnfm_kit.clock import Clock, machine_now, rfc3339
from kubevnfm_kit.error_text import bounded

from kubevnfm_infra_k8s.domain.errors import ObjectRefused
from kubevnfm_infra_k8s.domain.links.checking import namespace
from kubevnfm_infra_k8s.domain.links.events import change_of
from kubevnfm_infra_k8s.domain.links.judging import changed_members, readiness
from kubevnfm_infra_k8s.domain.links.ovn import LABEL_VALUE
from kubevnfm_infra_k8s.domain.links.ports import LinkRecords
from kubevnfm_infra_k8s.domain.links.record import LINK_LABEL, SHARED_LABEL, Link, LinkObject
from kubevnfm_infra_k8s.domain.links.spec import LinkBody
from kubevnfm_infra_k8s.domain.objects import (
    MANAGED_BY,
    NAMESPACES,
    Body,
    ObjectKey,
    Resource,
    field_at,
    labels_of,
    uid_of,
)
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_infra_k8s.domain.reconciling.news import NotYet, Watched
from kubevnfm_infra_k8s.domain.reconciling.ports import Turns
from kubevnfm_infra_k8s.domain.verdicts import Status

log = structlog.get_logger()

_TURN_S: Final = 20.0
_MISSING: Final = 404
"""The status of an object whose namespace does not exist."""
_FORBIDDEN: Final = 403
"""That of one whose namespace is being deleted, among others."""


class LinkFailed(Exception):
    """The link cannot become what is wanted; a repeat would not help."""


@dataclass(frozen=True)
class Made:
    """An object that is wanted."""

    resource: Resource
    key: ObjectKey
    body: Body
    """With the label of its link."""
    is_shared: bool
    is_as_found: bool


@dataclass(frozen=True)
class Bringing:
    """The facts and ports of one pass."""

    records: LinkRecords
    turns: Turns
    cluster: Cluster
    clock: Clock
    timeout_s: float
    """After this time a link that is not ready shows FAILED, and is tried further."""

    async def bring(self, link: Link) -> None:
        """Bring the objects to what the link says, and store how it stands. Raises NotYet, RevisionConflict.

        Raises what the cluster raises; then nothing is stored, and the next pass begins again.
        """
        link = link.model_copy(update={"served": 0, "lacking": ()})
        try:
            made = await self._made(link)
            link = await self._with_intents(link, made)
            link = await self._without_surplus(link, made)
            unlabelled = await self._label(link)
            link, present, absent = await self._ensured(link, made)
            await self._check_ready(link, present)
            lacking = {**unlabelled, **absent}
            if lacking:
                link = link.model_copy(update={"served": link.wanted, "lacking": tuple(sorted(lacking))})
                # The worst one first.
                raise min(lacking.values(), key=lambda reason: not isinstance(reason, LinkFailed))
        except ObjectRefused as refusal:
            if refusal.http_status == _MISSING:
                await self._wait(link, str(refusal))
                raise NotYet(str(refusal)) from refusal
            await self._store(link, "FAILED", str(refusal), is_reached=True)
        except LinkFailed as failure:
            await self._store(link, "FAILED", str(failure), is_reached=True)
        except NotYet as reason:
            await self._wait(link, str(reason))
            raise
        else:
            await self._store(link, "READY", "", is_reached=True)

    async def look(self, link: Link) -> None:
        """Show whether another party has changed the objects (MC-098); nothing is repaired."""
        found: str | None = None
        made = {each.key: each for each in await self._made(link)}
        for entry in link.objects:
            resource = await self.cluster.resource(entry.api_version, entry.kind)
            there = None if resource is None else await self.cluster.get(resource, entry.key)
            found = _drift(entry, there, made.get(entry.key), machine_now(self.clock))
            if found is not None:
                break
        if found is None and await self._unlabelled(link):
            found = "a namespace has lost the label of the link"
        if found is not None and link.status == "READY":
            await self._store(link, "DEGRADED", found, is_reached=True)
        elif found is None and link.status in {"DEGRADED", "FAILED"} and all(each.uid for each in link.objects):
            await self._store(link, "READY", "", is_reached=True)

    async def remove(self, link: Link) -> None:
        """Delete the objects that we have created, then the document. Raises NotYet, RevisionConflict."""
        link = await self._with_uids(link, link.objects)
        await self._unlabel(link, link.labelled)
        left = await self._deleted(link, tuple(reversed(link.objects)))
        if left is not None:
            raise NotYet(f"{left.key} is being deleted", left)
        await self.records.delete(link)
        log.info("virtual_link_removed", link_id=link.id, name=link.name)

    async def _made(self, link: Link) -> Sequence[Made]:
        """Return the objects that the link wants, each with its label."""
        return [await self._one(link, each) for each in link.read_spec().objects(link.name, link.places)]

    async def _one(self, link: Link, wanted: LinkBody) -> Made:
        api_version, kind = str(wanted.body["apiVersion"]), str(wanted.body["kind"])
        resource = await self.cluster.resource(api_version, kind)
        if resource is None:
            raise NotYet(f"the region does not serve {kind} ({api_version})")
        key = resource.key(wanted.body)
        own = {SHARED_LABEL: "shared"} if wanted.is_shared else {LINK_LABEL: link.id}
        labels = {**labels_of(wanted.body), **MANAGED_BY, **own}
        body = {**wanted.body, "metadata": {**wanted.body["metadata"], "labels": labels}}
        return Made(resource, key, body, wanted.is_shared, wanted.is_as_found)

    async def _with_intents(self, link: Link, made: Sequence[Made]) -> Link:
        """Return the link with an entry for each object and namespace; stored before the first of them is made."""
        known = {each.key for each in link.objects}
        new = [LinkObject.from_key(each.key, shared=each.is_shared) for each in made if each.key not in known]
        label = link.read_spec().namespace_label(link.name)
        labelled = tuple(sorted({*link.labelled, *(link.namespaces if label is not None else ())}))
        if not new and labelled == link.labelled:
            return link
        return await self.records.replace(
            link.model_copy(update={"objects": (*link.objects, *new), "labelled": labelled})
        )

    async def _without_surplus(self, link: Link, made: Sequence[Made]) -> Link:
        """Delete the objects in namespaces that no user has any more; return the link without them."""
        wanted = {each.key for each in made}
        surplus = [each for each in link.objects if each.key not in wanted]
        unlabelled = [each for each in link.labelled if each not in link.namespaces]
        if not surplus and not unlabelled:
            return link
        link = await self._with_uids(link, surplus)
        await self._unlabel(link, unlabelled)
        left = await self._deleted(link, [each for each in link.objects if each.key not in wanted])
        if left is not None:
            raise NotYet(f"{left.key} is being deleted", left)
        still_wanted = tuple(each for each in link.objects if each.key in wanted)
        labelled = tuple(each for each in link.labelled if each in link.namespaces)
        return await self.records.replace(link.model_copy(update={"objects": still_wanted, "labelled": labelled}))

    async def _ensured(
        self, link: Link, made: Sequence[Made]
    ) -> tuple[Link, Sequence[tuple[Made, Body]], Mapping[str, LinkFailed | NotYet]]:
        """Return the link with the uids of its objects, and these as they are; missing and changed ones are applied.

        Also the namespaces of users in which that cannot be, each with the reason.
        """
        entries: list[LinkObject] = []
        present: list[tuple[Made, Body]] = []
        absent: dict[str, LinkFailed | NotYet] = {}
        by_key = {each.key: each for each in link.objects}
        for each in made:
            link, entry, found = await self._ensure(link, by_key[each.key], each)
            entries.append(entry)
            if isinstance(found, LinkFailed | NotYet):
                # In another namespace than those of users it concerns all of them.
                if each.key.namespace not in link.namespaces:
                    raise found
                absent[each.key.namespace] = found
            else:
                present.append((each, found))
        return link.model_copy(update={"objects": tuple(entries)}), present, absent

    async def _ensure(
        self, link: Link, entry: LinkObject, made: Made
    ) -> tuple[Link, LinkObject, Body | LinkFailed | NotYet]:
        async with self._turn_of(link, is_shared=made.is_shared):
            there = await self.cluster.get(made.resource, made.key)
            if there is not None and field_at(there, "metadata", "deletionTimestamp"):
                watched = Watched.from_body(made.resource, made.key, there)
                return link, entry, NotYet(f"{made.key} is being deleted by another party", watched)
            adopted = False
            if there is None:
                # With the uid of the one that is gone, the new one would not be found after a kill.
                link = await self._with_intent(link, entry)
                try:
                    there = await self.cluster.apply(made.resource, made.key, made.body)
                except ObjectRefused as refusal:
                    if not await self._is_absent(link, made.key.namespace, refusal):
                        raise
                    return link, LinkObject.from_key(made.key, shared=made.is_shared), NotYet(str(refusal))
            elif made.is_as_found and not is_ours(there, link, entry):
                adopted = True
            else:
                changed = changed_members(made.body, there)
                adopted = not is_ours(there, link, entry)
                if changed and adopted:
                    reason = f"{made.key} exists, is not of this link, and differs in {', '.join(changed)}"
                    return link, entry, LinkFailed(reason)
                if changed:
                    there = await self.cluster.apply(made.resource, made.key, made.body)
        update = {"uid": uid_of(there), "adopted": adopted, "shared": made.is_shared}
        return link, entry.model_copy(update=update), there

    async def _is_absent(self, link: Link, place: str, refusal: ObjectRefused) -> bool:
        """Return whether an object was refused since its namespace, which users have named, does not exist or is being deleted."""
        if place not in link.namespaces or refusal.http_status not in (_MISSING, _FORBIDDEN):
            return False
        there = await namespace(self.cluster, place)
        return there is None or field_at(there, "metadata", "deletionTimestamp") is not None

    async def _with_intent(self, link: Link, entry: LinkObject) -> Link:
        """Return the link with the entry as before the object was created, stored."""
        if not entry.uid:
            return link
        intent = LinkObject.from_key(entry.key, shared=entry.shared)
        objects = tuple(intent if each.key == entry.key else each for each in link.objects)
        return await self.records.replace(link.model_copy(update={"objects": objects}))

    async def _check_ready(self, link: Link, present: Sequence[tuple[Made, Body]]) -> None:
        """Raise LinkFailed for an object that has failed, whatever the others wait for; else NotYet unless all are ready."""
        judged = [(each, body, readiness(body, machine_now(self.clock))) for each, body in present]
        for each, _, verdict in judged:
            if verdict.status is Status.FAILED:
                raise LinkFailed(f"{each.key}: {verdict.message}")
        waiting = [(each, body, verdict) for each, body, verdict in judged if not verdict.is_current]
        if waiting:
            versions = {each.key.api_version for each, _, _ in waiting}
            # An object that is current may fail meanwhile: a VLAN may come to be in conflict.
            alike = [one for one in judged if one[2].is_current and one[0].key.api_version in versions]
            watched = [Watched.from_body(each.resource, each.key, body) for each, body, _ in (*waiting, *alike)]
            reasons = [f"{waiting[0][0].key}: {waiting[0][2].message}", *await self._missing(link)]
            raise NotYet("; ".join(reasons), *watched)

    async def _missing(self, link: Link) -> Sequence[str]:
        """Return what others have to make first, as far as the credentials may see it."""
        reasons: list[str] = []
        for (api_version, kind), name, way_out in link.read_spec().needs():
            resource = await self.cluster.resource(api_version, kind)
            try:
                key = ObjectKey(api_version, kind, "", name)
                there = None if resource is None else await self.cluster.get(resource, key)
            except ObjectRefused:
                continue
            if there is None:
                reasons.append(f"{key} does not exist: {way_out}")
        return reasons

    async def _with_uids(self, link: Link, entries: Sequence[LinkObject]) -> Link:
        """Return the link with the uids of objects of ours that were created and not confirmed; stored before they are deleted."""
        found: dict[ObjectKey, str] = {}
        for entry in entries:
            # Another link may have created a shared one again.
            is_known = entry.uid and not entry.shared
            resource = None if is_known else await self.cluster.resource(entry.api_version, entry.kind)
            there = None if resource is None else await self.cluster.get(resource, entry.key)
            if there is not None and uid_of(there) != entry.uid and is_ours(there, link, entry):
                found[entry.key] = uid_of(there)
        if not found:
            return link
        objects = tuple(
            each.model_copy(update={"uid": found[each.key], "adopted": False}) if each.key in found else each
            for each in link.objects
        )
        return await self.records.replace(link.model_copy(update={"objects": objects}))

    async def _deleted(self, link: Link, entries: Sequence[LinkObject]) -> Watched | None:
        """Delete objects by their recorded uids; return one that still exists."""
        left: Watched | None = None
        for entry in entries:
            if entry.adopted or not entry.uid:
                continue
            resource = await self.cluster.resource(entry.api_version, entry.kind)
            if resource is None:  # its definition is gone, and all its objects with it
                continue
            async with self._turn_of(link, is_shared=entry.shared):
                if entry.shared and await self._is_needed(link, entry):
                    continue
                if not await self.cluster.delete(resource, entry.key, uid=entry.uid):
                    continue
            there = await self.cluster.get(resource, entry.key)
            if there is not None and uid_of(there) == entry.uid:
                left = left or Watched.from_body(resource, entry.key, there)
        return left

    async def _is_needed(self, link: Link, entry: LinkObject) -> bool:
        """Return whether another link of the region has a shared object too."""
        others = await self.records.in_region(link.vim_id)
        return any(each.key == entry.key for other in others if other.id != link.id for each in other.objects)

    def _turn_of(self, link: Link, *, is_shared: bool) -> AbstractAsyncContextManager[None]:
        # The last link that leaves a shared object must not delete it while another one finds it there.
        return self.turns.held(f"shared/{link.vim_id}", within_s=_TURN_S) if is_shared else nullcontext()

    async def _label(self, link: Link) -> Mapping[str, NotYet]:
        """Have the label of the link on the namespaces of its users; return those that do not exist, each with that reason."""
        label = str(link.read_spec().namespace_label(link.name))
        return {
            each: NotYet(f"namespace {each} does not exist")
            for each in await self._unlabelled(link)
            if await self._patch_label(each, label, LABEL_VALUE) is None
        }

    async def _unlabelled(self, link: Link) -> Sequence[str]:
        label = link.read_spec().namespace_label(link.name)
        found: list[str] = []
        for each in link.namespaces if label is not None else ():
            there = await namespace(self.cluster, each)
            if there is None or labels_of(there).get(str(label)) != LABEL_VALUE:
                found.append(each)
        return found

    async def _unlabel(self, link: Link, namespaces: Sequence[str]) -> None:
        label = link.read_spec().namespace_label(link.name)
        for each in namespaces if label is not None else ():
            await self._patch_label(each, str(label), None)

    async def _patch_label(self, namespace: str, label: str, value: str | None) -> Body | None:
        key = ObjectKey("v1", "Namespace", "", namespace)
        return await self.cluster.patch(NAMESPACES, key, {"metadata": {"labels": {label: value}}})

    async def note(self, link_id: str, reason: str) -> None:
        """Show why there is no progress, for example that the region does not answer."""
        link = await self.records.get(link_id)
        if link is not None and not link.is_settled:
            await self._wait(link, reason)

    async def _wait(self, link: Link, reason: str) -> None:
        """Store why the link is not as wanted."""
        waited_s = (self.clock.now() - datetime.fromisoformat(link.asked_at)).total_seconds()
        status: LinkStatus = "FAILED" if waited_s >= self.timeout_s else "PENDING"
        await self._store(link, "REMOVING" if link.is_removed else status, reason, is_reached=False)

    async def _store(self, link: Link, status: LinkStatus, detail: str, *, is_reached: bool) -> None:
        """Write how the link stands, unless it stands so already; an event says what has changed for its users."""
        before = await self.records.get(link.id)
        reached = link.wanted if is_reached else link.reached
        changed = link.model_copy(update={"status": status, "status_detail": bounded(detail), "reached": reached})
        if before is None or changed == before:
            return
        now = rfc3339(self.clock.now())
        await self.records.replace(changed.model_copy(update={"updated_at": now}), change_of(before, changed))


def is_ours(there: Body, link: Link, entry: LinkObject) -> bool:
    """Return whether we have created an object: by its recorded uid, or by the label that it was created with."""
    if entry.uid and not entry.adopted and entry.uid == uid_of(there):
        return True
    labels = labels_of(there)
    return SHARED_LABEL in labels if entry.shared else labels.get(LINK_LABEL) == link.id


def _drift(entry: LinkObject, there: Body | None, made: Made | None, now: datetime) -> str | None:
    """Return what another party has done to an object."""
    if there is None:
        return f"{entry.key} was deleted by another party"
    if uid_of(there) != entry.uid:
        return f"{entry.key} was replaced by another party"
    changed = changed_members(made.body, there) if made is not None and not made.is_as_found else []
    if changed:
        return f"{entry.key} was changed by another party: {', '.join(changed)}"
    verdict = readiness(there, now)
    return None if verdict.is_current else f"{entry.key}: {verdict.message}"
