"""A dry run of a plan: each object is read, and sent so that the API server stores nothing (multicloud.md MC-033)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any

from kubevnfm_clients.multicloud.dry_runs import (
    MOST_FIELDS,
    Action,
    DryRunMode,
    DryRunObject,
    DryRunReport,
    FieldDifference,
)
from kubevnfm_csar.field_paths import without_fields
from kubevnfm_csar.hooks import HookDelete, Occasion, Point
from kubevnfm_secrets import MASK

from kubevnfm_infra_k8s.domain.changing.dry_run import may_be_cured, webhooks_of
from kubevnfm_infra_k8s.domain.changing.field_differences import (
    ABSENT,
    comparable,
    differences,
    is_hidden,
    is_in_pod_template,
    masked,
    pointer,
    shown_value,
)
from kubevnfm_infra_k8s.domain.changing.handing_over import fields_rehearsed
from kubevnfm_infra_k8s.domain.concurrency import each_of
from kubevnfm_infra_k8s.domain.errors import ObjectRefused, WebhookUnavailable
from kubevnfm_infra_k8s.domain.hooks.sequence import hooks_at
from kubevnfm_infra_k8s.domain.objects import INSTANCE_LABEL, Body, ObjectKey, Resource, Wanted, labels_of, name_of
from kubevnfm_infra_k8s.domain.planning.plan import Plan
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_infra_k8s.domain.reading.existing import MANY, readable
from kubevnfm_infra_k8s.domain.release import Entry, Release


@dataclass(frozen=True)
class DryRun:
    """The dry run of one plan."""

    cluster: Cluster
    plan: Plan
    release: Release
    """The inventory of the instance; an empty one of one that does not exist."""

    occasion: Occasion
    """The purpose of the operation."""

    async def report(self, mode: DryRunMode) -> DryRunReport:
        """Return the objects as they would be sent (``render``), as the API server would store them, or what would change."""
        before, after = (self._hooks_at(point) for point in (Point.PRE_APPLY, Point.POST_APPLY))
        if mode == "render":
            rendered = [_shown(each, object=_body(each)) for each in self.plan.objects]
            early, late = ([_hook(*each, object=_body(each[0])) for each in found] for found in (before, after))
            return DryRunReport(objects=(*early, *rendered, *late))
        namespaces = [each for each in self.plan.objects if each.key.api_kind == ("v1", "Namespace")]
        bodies = await each_of(namespaces, lambda each: readable(self.cluster, each.resource, each.key))
        absent = {each.key.name for each, body in zip(namespaces, bodies, strict=True) if body is None}
        listed = await self._listed(absent)
        answered = await each_of(self.plan.objects, lambda each: self._judged(each, mode, absent, listed))
        # All in one thread: each would wait for the interpreter's lock by itself.
        judged = await asyncio.to_thread(lambda: [_shown_of(each) for each in answered])
        wanted = {each.key.identity for each in self.plan.objects}
        going = [
            each
            for each in self.release.entries
            if each.uid and not each.is_kept_on_change and each.key.identity not in wanted
        ]
        first, last = [
            await each_of(found, lambda each: self._judged_hook(*each, mode, absent)) for found in (before, after)
        ]
        objects = [*first, *judged, *last, *(map(_deleted, going) if mode == "diff" else ())]
        actions: Counter[str] = Counter(each.action for each in objects if each.action is not None)
        if errors := sum(each.error is not None for each in objects):
            actions["error"] = errors
        return DryRunReport(summary=dict(actions), objects=tuple(objects))

    def _hooks_at(self, point: Point) -> Sequence[tuple[Wanted, Point]]:
        """Return the hooks of a point that the operation runs, in their order."""
        by_place = {(each.file, each.document): each for each in self.plan.hook_objects}
        return [(by_place[each.place], point) for each in hooks_at(self.plan.hooks, point, self.occasion)]

    async def _judged_hook(
        self, wanted: Wanted, point: Point, mode: DryRunMode, absent: Collection[str]
    ) -> DryRunObject:
        action: Action | None = "run" if mode == "diff" else None
        served = await self.cluster.resource(*wanted.key.api_kind)
        if wanted.key.namespace in absent or served is None:
            return _hook(wanted, point, action=action, object=_body(wanted) if mode == "server" else None)
        there = await readable(self.cluster, wanted.resource, wanted.key)
        if there is not None:
            # It is created once that of the earlier run is gone, which the API server cannot judge before.
            error = None
            if labels_of(there).get(INSTANCE_LABEL) != self.release.vnf_instance_id:
                error = f"{wanted.key} exists and belongs to another party"
            elif wanted.hook is not None and HookDelete.BEFORE_CREATION not in wanted.hook.delete:
                error = (
                    f"{wanted.key} exists from an earlier run, and its hook_delete has no {HookDelete.BEFORE_CREATION}"
                )
            return _hook(wanted, point, action=action, error=error, object=_body(wanted) if mode == "server" else None)
        shown = _shown_of(await self._judged(wanted, mode, absent, {}))
        return shown.model_copy(update={"action": action, "hook": point.value})

    async def _listed(self, absent: Collection[str]) -> Mapping[ObjectKey, Body]:
        """Return the objects of the instance of which there are many in one place: a list costs less than a read of each."""
        places = Counter(
            (each.resource, each.key.namespace)
            for each in self.plan.objects
            if each.resource.is_persistent and each.key.namespace and each.key.namespace not in absent
        )
        labels = f"{INSTANCE_LABEL}={self.release.vnf_instance_id}"

        async def listed(place: tuple[Resource, str]) -> Mapping[ObjectKey, Body]:
            resource, namespace = place
            # Refused: each is read by itself then.
            with suppress(ObjectRefused):
                if await self.cluster.resource(resource.api_version, resource.kind) is not None:
                    bodies = await self.cluster.list(resource, namespace=namespace, labels=labels)
                    return {
                        ObjectKey(resource.api_version, resource.kind, namespace, name_of(body)): body
                        for body in bodies
                    }
            return {}

        many = [place for place, count in places.items() if count >= MANY]
        return {key: body for found in await each_of(many, listed) for key, body in found.items()}

    async def _present(self, wanted: Wanted, listed: Mapping[ObjectKey, Body]) -> Body | None:
        if wanted.key in listed or not wanted.resource.is_persistent:
            return listed.get(wanted.key)
        return await readable(self.cluster, wanted.resource, wanted.key)

    async def _judged(
        self, wanted: Wanted, mode: DryRunMode, absent: Collection[str], listed: Mapping[ObjectKey, Body]
    ) -> DryRunObject | _Comparison:
        action: Action | None = "create" if mode == "diff" else None
        served = await self.cluster.resource(*wanted.key.api_kind)
        if wanted.key.namespace in absent or served is None:
            return _shown(wanted, action=action, object=_body(wanted) if mode == "server" else None)
        there = await self._present(wanted, listed)
        if wanted.is_read_only:
            lacks = f"{wanted.key} does not exist, and the order only reads it" if there is None else None
            return _shown(wanted, action="read" if mode == "diff" else None, checked=True, error=lacks)
        if there is not None and labels_of(there).get(INSTANCE_LABEL) != self.release.vnf_instance_id:
            # One of the cluster can be shared by instances that make the same.
            action = "adopt" if mode == "diff" else None
            if wanted.key.namespace:
                return _shown(wanted, action=action, error=f"{wanted.key} exists and belongs to another party")
        if there is not None and (wanted.is_create_only or wanted.joined_uid):
            return _shown(wanted, action="unchanged" if mode == "diff" else None, checked=True)
        try:
            body = fields_rehearsed(wanted, there)
            stored = await self.cluster.apply(
                wanted.resource, wanted.key, body, dry_run=True, takes_fields=wanted.takes_fields
            )
        except ObjectRefused as refusal:
            others = [each.key for each in self.plan.objects if each.key != wanted.key]
            error = None
            if not may_be_cured(refusal, wanted.key, others, webhooks_of(self.plan.objects)):
                error = self.cluster.masked(str(refusal))
            if action == "create" and there is not None:
                action = "update"
            return _shown(wanted, action=action, checked=error is not None, error=error)
        except WebhookUnavailable as error:
            return _shown(wanted, action=action, error=self.cluster.masked(str(error)))
        if mode == "server":
            return _shown(wanted, checked=True, object=masked(wanted.key, comparable(stored)))
        if there is None:
            return _shown(wanted, action=action, checked=True)
        return _Comparison(wanted, there, stored, "update" if action == "create" else "adopt")


@dataclass(frozen=True)
class _Comparison:
    """An object as it is and as the API server would store it, yet to be compared."""

    wanted: Wanted
    there: Body
    stored: Body
    action: Action


def _shown_of(judged: DryRunObject | _Comparison) -> DryRunObject:
    """Return what is shown of an object; it is compared now, which takes long for large ones."""
    if isinstance(judged, DryRunObject):
        return judged
    wanted, there, stored, action = judged.wanted, judged.there, judged.stored, judged.action
    compared = (without_fields(each, wanted.ignored) for each in (there, stored))
    found = [each for each in differences(*compared) if each[0] != wanted.autoscaled_at]
    if not found:
        return _shown(wanted, action="unchanged", checked=True)
    is_cut = len(found) > MOST_FIELDS
    fields: list[FieldDifference] = []
    for path, before, after in islice(found, MOST_FIELDS):
        shown: dict[str, Any] = {"path": pointer(path)}
        for name, value in (("from", before), ("to", after)):
            if value is not ABSENT:
                shown[name], has_long_text = (MASK, False) if is_hidden(wanted.key, path) else shown_value(value)
                is_cut = is_cut or has_long_text
        fields.append(FieldDifference(**shown))
    restarts = any(is_in_pod_template(wanted.key, path) for path, _, _ in found)
    return _shown(wanted, action=action, checked=True, restarts=restarts, truncated=is_cut, fields=tuple(fields))


def _body(wanted: Wanted) -> Mapping[str, Any]:
    return masked(wanted.key, comparable(wanted.body))


def _shown(wanted: Wanted, **members: Any) -> DryRunObject:
    key, artifact = wanted.key, wanted.artifact
    return DryRunObject(
        api_version=key.api_version,
        kind=key.kind,
        namespace=key.namespace or None,
        name=key.name,
        file=None if wanted.is_implied else wanted.file,
        priority=None if artifact is None else artifact.priority,
        # Set, so that they are shown.
        **{"checked": False, "restarts": False, "truncated": False, **members},
    )


def _hook(wanted: Wanted, point: Point, **members: Any) -> DryRunObject:
    return _shown(wanted, hook=point.value, **members)


def _deleted(entry: Entry) -> DryRunObject:
    key = entry.key
    return DryRunObject(
        api_version=key.api_version, kind=key.kind, namespace=key.namespace or None, name=key.name,
        action="delete", checked=False,
    )  # fmt: skip


def in_order(objects: Sequence[Wanted]) -> Sequence[Wanted]:
    """Return objects by their priorities; those of one priority stay as they are."""
    return sorted(objects, key=lambda each: each.artifact.priority if each.artifact is not None else -1)
