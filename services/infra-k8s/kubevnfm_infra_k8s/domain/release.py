"""The release: the inventory of a VNF instance's objects, stored before any of them is sent (CR-019)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Final, Literal

from kubevnfm_csar.object_treatment import Keep
from kubevnfm_events.objects import LeftObject
from pydantic import ConfigDict
from pydantic.alias_generators import to_camel

from kubevnfm_infra_k8s.domain.objects import INSTANCE_LABEL, Body, ObjectKey, Wanted, labels_of, uid_of
from kubevnfm_infra_k8s.domain.ownership import owned_fields
from kubevnfm_infra_k8s.domain.passing_objects import is_passing, is_passing_kind

ADDONS: Final = "addons"
"""The part of an instance's objects that is inside its own workload cluster (capi.md CR-048)."""


def release_id(vnf_instance_id: str, part: str = "") -> str:
    """Return the id of a stored release."""
    return f"{vnf_instance_id}.{part}" if part else vnf_instance_id


@dataclass(frozen=True)
class Written:
    """The part of the API server's answer to a write that the inventory keeps."""

    uid: str
    owned: str

    @classmethod
    def from_body(cls, body: Body, wanted: Wanted | None) -> Written:
        """Return it for the object as it is after our write; nothing is compared with one that we never change."""
        return cls(uid_of(body), "" if wanted is not None and wanted.is_create_only else owned_fields(body))


@dataclass(frozen=True)
class OwnedClaim:
    """A volume claim that a StatefulSet of the inventory has made from one of its templates."""

    name: str
    uid: str


@dataclass(frozen=True)
class Entry:
    """One object of the inventory."""

    __pydantic_config__ = ConfigDict(alias_generator=to_camel)

    key: ObjectKey
    file: str
    digest: str
    """Digest of the manifest, whose content is not stored here because it may be a Secret."""
    uid: str = ""
    """"" until the API server has confirmed the object."""
    vdu_id: str | None = None
    is_kept: bool = False
    """``keep: on-delete``: termination does not delete it (multicloud.md MC-106d)."""
    is_kept_on_change: bool = False
    """``keep: on-change``: a change of package that no longer has it does not delete it."""
    is_shared: bool = False
    """Cluster-scoped and shared with another instance, whose label it may carry."""
    is_adopted: bool = False
    """It existed before and was taken over (``additionalParams.adopt``): termination gives it back, without our labels."""
    is_complete: bool = False
    """It has done its work, as a Job that has ended well. Kubernetes may remove it afterwards."""
    is_passing: bool = False
    """Kubernetes removes it after a time (`passing_objects`); of a kind of which no object stays, also if this is not stored."""
    was_brought_up: bool = False
    """An operation has waited for all that it had to. One that is passing, and gone by now, has ended then."""
    ended_as: str = ""
    """The digest of the manifest with which it has ended, as long as no object of the present one was made: a change can be refused."""
    claim_templates: tuple[str, ...] = ()
    """Names of a StatefulSet's volumeClaimTemplates. Kubernetes does not delete their claims with the set."""
    claims: tuple[OwnedClaim, ...] = ()
    """The claims that were seen to be made by this StatefulSet (`claims.recorded`). The set may have others."""
    manifest_name: str = ""
    """The name in the manifest, if the object has another one (CR-095)."""
    owned: str = ""
    """`owned_fields` after our last write; "" if they are not known, as for an object that an earlier version has applied."""
    topology_vdus: tuple[str, ...] = ()
    """A Cluster: the ids of the VDUs for which parts of its topology stand (CR-050)."""
    priority: int | None = None
    """Its place in the order of the package's artifacts: its priority, or its level if objects of the order name their
    predecessors. Higher ones are deleted first. None without such an order (multicloud.md MC-014)."""
    is_implied: bool = False
    """A Namespace that no file has, made because it was absent: termination deletes it only if it is empty (multicloud.md MC-031)."""

    @property
    def may_be_gone(self) -> bool:
        """Whether Kubernetes may have removed the object, which the API server has confirmed."""
        return bool(self.uid) and (self.is_complete or self.is_passing or is_passing_kind(self.key))


@dataclass(frozen=True)
class ApartStage:
    """A stage that begins after objects that it names; see `Stages`."""

    __pydantic_config__ = ConfigDict(alias_generator=to_camel)

    number: int
    sent_at: datetime
    has_ended: bool = False


@dataclass(frozen=True)
class Stages:
    """The position of a step attempt in the order of the package's artifacts (multicloud.md MC-013)."""

    __pydantic_config__ = ConfigDict(alias_generator=to_camel)

    attempt: str = ""
    ended: int = 0
    """The number of stages that were sent and whose waits hold."""
    sent_at: datetime | None = None
    """The time at which the next stage was sent, from which its waits count; None if it was not sent yet."""
    apart: tuple[ApartStage, ...] = ()
    """Those of the stages apart from the priorities that were sent."""

    @cached_property
    def _apart_by_number(self) -> Mapping[int, ApartStage]:
        return {each.number: each for each in self.apart}

    def sent_at_of(self, number: int, *, is_apart: bool) -> datetime | None:
        """Return the time at which a stage that has not ended was sent; None if it was not sent yet."""
        if is_apart:
            found = self._apart_by_number.get(number)
            return None if found is None else found.sent_at
        return self.sent_at if number == self.ended + 1 else None

    def has_ended(self, number: int, *, is_apart: bool) -> bool:
        """Return whether a stage was sent and its waits hold."""
        if is_apart:
            found = self._apart_by_number.get(number)
            return found is not None and found.has_ended
        return number <= self.ended

    def sending(self, number: int, now: datetime, *, is_apart: bool) -> Stages:
        """Return the position after a stage was sent."""
        return replace(self, apart=(*self.apart, ApartStage(number, now))) if is_apart else replace(self, sent_at=now)

    def ending(self, number: int, *, is_apart: bool) -> Stages:
        """Return the position after a stage has ended."""
        if not is_apart:
            return replace(self, ended=number, sent_at=None)
        return replace(
            self, apart=tuple(replace(each, has_ended=True) if each.number == number else each for each in self.apart)
        )


@dataclass(frozen=True)
class HookRecord:
    """The last run of a hook at one of its points (multicloud.md MC-141)."""

    __pydantic_config__ = ConfigDict(alias_generator=to_camel)

    key: ObjectKey
    point: str
    run: str
    """The operation, the step and the occasion for which it ran."""
    attempt: str
    """The step attempt that has begun the run."""
    started_at: datetime
    uid: str = ""
    """"" until the API server has confirmed the object."""
    ended: Literal["", "succeeded", "failed"] = ""
    reason: str = ""
    """Why it has failed."""
    is_gone: bool = False
    """Whether it was deleted after its end."""
    is_going: bool = False
    """Whether its deletion has begun, and waits for its finalizers."""

    @property
    def operation_id(self) -> str:
        """The operation for which it ran."""
        return self.run.partition("/")[0]


@dataclass(frozen=True)
class ApplyFailure:
    """Why an attempt to apply has failed, while the hooks run that are for failures."""

    __pydantic_config__ = ConfigDict(alias_generator=to_camel)

    attempt: str
    code: str
    title: str
    status: int
    reason: str


@dataclass(frozen=True)
class Release:
    """The objects of one VNF instance in one cluster."""

    __pydantic_config__ = ConfigDict(alias_generator=to_camel)

    vnf_instance_id: str
    cluster: str
    """The API server's endpoint."""
    namespace: str = ""
    entries: Sequence[Entry] = ()
    """In the order in which they were applied."""
    applied_by: str = ""
    """The step attempt that applied all entries, or began to scale them; a later call of the same attempt only waits."""
    stages: Stages = Stages()
    hooks: tuple[HookRecord, ...] = ()
    failure: ApplyFailure | None = None
    repaired_by: str = ""
    """The operation that has begun to repair the objects; a later call or attempt of it continues."""
    repaired: int = 0
    """The number of objects that it repairs."""
    openstack_vim_id: str = ""
    """The VIM that has given a login for the Secrets of the objects' cloud, or is being asked for one; "": none (CR-049)."""
    left: tuple[LeftObject, ...] = ()
    """The objects whose finalizers a termination has removed, and what they may have left."""
    kept_objects: tuple[LeftObject, ...] = ()
    """The objects that changes of package have kept, without our labels."""
    revision: int = 0
    """0: not stored yet."""
    vim_id: str = ""
    """The VIM that is the cluster, for the inventory; "" if the request has no registered one, or an earlier version has stored it."""
    part: str = ""
    """"" for the objects in the cluster that is the instance's VIM, or `ADDONS`: each part is a release of its own."""

    @cached_property
    def _hooks_by_place(self) -> Mapping[tuple[ObjectKey, str], HookRecord]:
        return {(each.key, each.point): each for each in self.hooks}

    @property
    def id(self) -> str:
        """The id under which it is stored."""
        return release_id(self.vnf_instance_id, self.part)

    def planned(self, objects: Sequence[Wanted], *, namespace: str) -> Release:
        """Return the release with entries for these objects. Its other entries stay, so that termination deletes them."""
        known = {entry.key.identity: entry for entry in self.entries}
        wanted = [_entry(each, known.get(each.key.identity)) for each in objects]
        keys = {entry.key.identity for entry in wanted}
        # First in the list, so that termination, which goes backwards, deletes them last.
        left = [entry for entry in self.entries if entry.key.identity not in keys]
        again = {(entry.key.kind, entry.key.namespace or None, entry.key.name) for entry in wanted}
        left_there = tuple(each for each in self.kept_objects if (each.kind, each.namespace, each.name) not in again)
        return replace(self, namespace=namespace, entries=[*left, *wanted], kept_objects=left_there)

    def sharing(self, keys: Collection[ObjectKey], *, among: Collection[ObjectKey]) -> Release:
        """Return the release with those of ``among`` marked as shared that are in ``keys``, and no others of them."""
        entries = [replace(each, is_shared=each.key in keys) if each.key in among else each for each in self.entries]
        return replace(self, entries=entries)

    def adopting(self, keys: Collection[ObjectKey]) -> Release:
        """Return the release with these objects marked as taken over."""
        entries = [replace(each, is_adopted=each.is_adopted or each.key in keys) for each in self.entries]
        return replace(self, entries=entries)

    @property
    def complete(self) -> frozenset[ObjectKey]:
        """The objects that have done their work."""
        return frozenset(entry.key for entry in self.entries if entry.is_complete)

    def collected(self, there: Collection[ObjectKey], *, operation_id: str) -> frozenset[ObjectKey]:
        """Return the objects that Kubernetes removes after a time, that an earlier operation has made, and that are gone by now.

        A Job is among them if an operation, also this one, has waited for all that it had to, since one that has failed can be gone too.
        """
        is_later = self.applied_by.partition("/")[0] not in ("", operation_id)
        mine = (
            each
            for each in self.entries
            if each.uid and (each.was_brought_up or (is_later and is_passing_kind(each.key)))
        )
        return frozenset(each.key for each in mine if each.key not in there)

    def brought_up(self) -> Release:
        """Return the release once an operation has waited for all that it had to."""
        if all(each.was_brought_up or not each.is_passing for each in self.entries):
            return self
        return replace(self, entries=[replace(each, was_brought_up=each.is_passing) for each in self.entries])

    def completing(self, keys: Collection[ObjectKey]) -> Release:
        """Return the release with these objects marked as those that have done their work."""
        if not keys:
            return self
        entries = [replace(each, is_complete=True) if each.key in keys else each for each in self.entries]
        return replace(self, entries=entries)

    def hook_record(self, key: ObjectKey, point: str) -> HookRecord | None:
        """Return the last run of a hook at a point."""
        return self._hooks_by_place.get((key, point))

    def with_hook(self, record: HookRecord) -> Release:
        """Return the release with a run in the place of the last one of this hook and point.

        Runs of other operations whose objects are gone are forgotten: the hooks of a chart can have other names each time.
        """
        place = record.key, record.point
        others = (
            each
            for each in self.hooks
            if (each.key, each.point) != place and not (each.is_gone and each.operation_id != record.operation_id)
        )
        return replace(self, hooks=(*others, record))

    def failure_of(self, attempt: str) -> ApplyFailure | None:
        """Return why an attempt has failed; None if it has not."""
        return self.failure if self.failure is not None and self.failure.attempt == attempt else None

    def has_lost_label(self, key: ObjectKey, body: Body) -> bool:
        """Return whether an object is ours although another party has removed its label: its uid says so.

        With the label of another instance it belongs to that one.
        """
        uid = next((entry.uid for entry in self.entries if entry.key == key), "")
        return bool(uid) and uid == uid_of(body) and INSTANCE_LABEL not in labels_of(body)

    def written(self, found: Mapping[ObjectKey, Written]) -> Release:
        """Return the release with what the API server has returned for our writes."""
        if not found:
            return self
        entries = [
            replace(
                entry,
                uid=found[entry.key].uid,
                owned=found[entry.key].owned,
                was_brought_up=entry.was_brought_up and entry.uid == found[entry.key].uid,
            )
            if entry.key in found
            else entry
            for entry in self.entries
        ]
        return replace(self, entries=entries)

    def stages_of(self, attempt: str) -> Stages:
        """Return the position of an attempt; another one begins with the first stage."""
        return self.stages if self.stages.attempt == attempt else Stages(attempt)

    def confirmed(self, found: Mapping[ObjectKey, Written], *, applied_by: str) -> Release:
        """Return the release with what the API server has returned, marked as applied by this attempt."""
        return replace(self.written(found), applied_by=applied_by)


def _place(wanted: Wanted) -> int | None:
    if wanted.level is not None or wanted.artifact is None:
        return wanted.level
    return wanted.artifact.priority


def _entry(wanted: Wanted, known: Entry | None) -> Entry:
    """Return the entry of an object, with what is known of the present one."""
    # Claims of a template that is gone may still exist.
    entry = replace(
        known or Entry(wanted.key, wanted.file, wanted.digest),
        key=wanted.key,
        file=wanted.file,
        digest=wanted.digest,
        vdu_id=wanted.vdu_id,
        is_kept=Keep.ON_DELETE in wanted.keeps,
        is_kept_on_change=Keep.ON_CHANGE in wanted.keeps,
        claim_templates=wanted.claim_templates,
        manifest_name=wanted.manifest_name,
        topology_vdus=wanted.topology_vdus,
        priority=_place(wanted),
        is_implied=wanted.is_implied,
        is_passing=is_passing(wanted.body),
    )
    if known is not None and known.digest == wanted.digest:
        return entry
    if known is None:
        return entry
    # Another manifest is another Job, which has yet to run. One that Kubernetes removes after a time is gone for good.
    may_go = entry.is_passing or is_passing_kind(entry.key)
    was_made = bool(known.uid)
    has_ended = not was_made and known.ended_as == wanted.digest
    ended_as = known.digest if known.is_complete or known.was_brought_up else "" if was_made else known.ended_as
    return replace(
        entry,
        is_complete=has_ended,
        was_brought_up=False,
        uid="" if may_go else entry.uid,
        ended_as=ended_as if may_go and not has_ended else "",
    )
