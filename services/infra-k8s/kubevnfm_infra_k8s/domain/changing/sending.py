"""Sends the objects of a set to the API server, wave by wave; what another object of the set must cure is sent later."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import structlog
from kubevnfm_kit.clock import rfc3339

from kubevnfm_infra_k8s.domain.changing.applied_fields import applied_version
from kubevnfm_infra_k8s.domain.changing.dry_run import kinds_of, may_be_cured
from kubevnfm_infra_k8s.domain.changing.handing_over import apply_left
from kubevnfm_infra_k8s.domain.changing.joining import join
from kubevnfm_infra_k8s.domain.changing.relabelling import with_labels
from kubevnfm_infra_k8s.domain.changing.room_making import make_room
from kubevnfm_infra_k8s.domain.changing.unchangeable import refused_change, unchangeable_fields
from kubevnfm_infra_k8s.domain.concurrency import each_of
from kubevnfm_infra_k8s.domain.errors import (
    ObjectRefused,
    ObjectsNotReady,
    ObjectsRefused,
    WebhookUnavailable,
)
from kubevnfm_infra_k8s.domain.objects import INSTANCE_LABEL, Body, ObjectKey, Wanted, field_at, labels_of
from kubevnfm_infra_k8s.domain.planning.preparing import labelled, labels_as
from kubevnfm_infra_k8s.domain.progress import Progress
from kubevnfm_infra_k8s.domain.watching.awaited_objects import Awaited
from kubevnfm_infra_k8s.domain.watching.readiness_wait import WEBHOOK_PAUSES, ReadinessWait

log = structlog.get_logger()

_FIRST_LOOK_S: Final = 0.05
_LONGEST_LOOK_S: Final = 1.0
_DEFINED_S: Final = 10.0
"""After a definition has changed, until it holds in all API servers of a cluster."""


@dataclass(frozen=True)
class Sent:
    """The result of sending one group of objects."""

    bodies: Mapping[ObjectKey, Body]
    """The answers of the API server: the objects as they are after the write."""
    refused: Sequence[tuple[Wanted, ObjectRefused]]
    """The objects that may be accepted once others of the set exist."""


@dataclass(frozen=True)
class Sender:
    """Sends objects of one instance in one step."""

    wait: ReadinessWait
    progress: Progress
    there: Mapping[ObjectKey, Body]
    """The objects that existed before."""
    sharers: Mapping[ObjectKey, Sequence[str]]
    """The other instances that hold a cluster-scoped object."""
    webhooks: Collection[str]
    """The names of the admission webhooks of the set."""
    replaced: Mapping[ObjectKey, str] = field(default_factory=dict)
    """The uids of the objects that are deleted first, because a field of them cannot be changed."""
    _defined_at: dict[tuple[str, str], float] = field(default_factory=dict)
    """When definitions were sent, by what they define."""
    is_again: bool = False
    """Whether objects that other instances have created are applied too: another party has changed them."""

    async def send(self, objects: Sequence[Wanted], *, unsent: Collection[ObjectKey]) -> Sent:
        """Send the objects, a few at a time; definitions are served when it returns.

        ``unsent``: the objects of the set that were not accepted yet. Raises ObjectRefused for an object that none
        of them can cure.
        """
        refused: list[tuple[Wanted, ObjectRefused]] = []

        async def send(each: Wanted) -> Body | None:
            try:
                return await self._send_one(each)
            except ObjectRefused as refusal:
                if not may_be_cured(refusal, each.key, set(unsent) - {each.key}, self.webhooks):
                    raise
                log.info("object_postponed", object=str(each.key), reason=str(refusal))
                refused.append((each, refusal))
                return None

        bodies = await each_of(objects, send)
        definitions = [each for each in objects if each.key.kind == "CustomResourceDefinition"]
        if definitions:
            awaited = [
                Awaited(each.key, each.resource, is_shared=each.key in self.sharers, only_served=True)
                for each in definitions
            ]
            await self.wait.until_ready(awaited, self.progress)
            await self._until_served(definitions)
            self._defined_at.update(dict.fromkeys(kinds_of(definitions), asyncio.get_running_loop().time()))
        found = {each.key: body for each, body in zip(objects, bodies, strict=True) if body is not None}
        return Sent(found, refused)

    async def send_rest(self, objects: Sequence[Wanted]) -> Mapping[ObjectKey, Body]:
        """Send what other objects had to cure, as long as that gets one more of them accepted.

        Raises ObjectRefused or ObjectsRefused.
        """
        bodies: dict[ObjectKey, Body] = {}
        left = objects
        while left:
            sent = await self.send(left, unsent={each.key for each in left})
            if not sent.bodies:
                raise ObjectsRefused([refusal for _, refusal in sent.refused])
            bodies |= sent.bodies
            left = [each for each, _ in sent.refused]
        return bodies

    async def _until_served(self, definitions: Sequence[Wanted]) -> None:
        """Return when discovery shows the defined kinds, which takes a moment after a definition is established."""
        cluster = self.wait.cluster
        cluster.forget_kinds()
        for each in definitions:
            for version in field_at(each.body, "spec", "versions") or []:
                api_version = f"{field_at(each.body, 'spec', 'group')}/{version.get('name')}"
                pause_s = _FIRST_LOOK_S
                while version.get("served") and not await cluster.resource(api_version, _kind(each)):
                    if self.wait.left_s() <= pause_s:
                        raise ObjectsNotReady(f"{each.key}: established, but {api_version} is not served")
                    await asyncio.sleep(pause_s)
                    pause_s = min(pause_s * 2, _LONGEST_LOOK_S)

    async def _send_one(self, wanted: Wanted) -> Body:
        body, there, sharers = wanted.body, self.there.get(wanted.key), self.sharers.get(wanted.key, ())
        if there is not None and wanted.is_implied:
            there = await join(self.wait.cluster, wanted, there, sharers)
        if there is not None and wanted.is_create_only:
            return await with_labels(self.wait.cluster, wanted, there, self.wait.vnf_instance_id)
        if sharers:
            if there is not None and not self.is_again:  # another instance has created it with the same content
                return there
            # Both instances may apply it at the same time; with the same label the order does not matter.
            body = labelled(body, labels_as(body, self._label(there, sharers)))
        if there is not None and wanted.key in self.replaced:
            body, there = await make_room(self.wait, self.progress, wanted, self.replaced[wanted.key])
        tries, since = 0, self.wait.clock.now()
        while True:
            try:
                applied = await apply_left(self.wait.cluster, wanted, body, there)
                if there is not None and applied_version(there) not in (None, wanted.key.api_version):
                    # The API server has compared the two sets of our fields by conversions, which can lose some. Now both
                    # are in one version (capi.md CR-038).
                    applied = await apply_left(self.wait.cluster, wanted, body, applied)
                    log.info(
                        "object_applied_in_another_version", object=str(wanted.key), version=wanted.key.api_version
                    )
                return applied
            except ObjectRefused as refusal:
                if self._may_be_outdated(wanted):
                    await asyncio.sleep(_LONGEST_LOOK_S)
                    continue
                if there is not None and (fields := unchangeable_fields(refusal)):
                    raise refused_change(wanted, fields) from refusal
                raise
            # Retried here and not by the worker, because the webhook's own pods may be among the objects just sent.
            except WebhookUnavailable as error:
                tries += 1
                pause_s = WEBHOOK_PAUSES.after(tries)
                if self.wait.left_s() <= pause_s:
                    raise ObjectsNotReady(f"{wanted.key} ({wanted.file}): {error}") from error
                message = f"waiting since {rfc3339(since)} for a webhook: {error}"
                await self.progress.on(str(wanted.key), message, done=0, total=1)
                await asyncio.sleep(pause_s)

    def _may_be_outdated(self, wanted: Wanted) -> bool:
        """Return whether an API server may still judge a resource by an earlier definition: nothing shows when it has the new one."""
        at = self._defined_at.get(wanted.key.group_kind)
        is_new = at is not None and asyncio.get_running_loop().time() < at + _DEFINED_S
        return is_new and self.wait.left_s() > _LONGEST_LOOK_S

    def _label(self, there: Body | None, sharers: Sequence[str]) -> str:
        """Return the instance whose label a shared object has: the present one, if it still holds it."""
        present = labels_of(there).get(INSTANCE_LABEL) if there is not None else None
        return present if present is not None and present in {*sharers, self.wait.vnf_instance_id} else sharers[0]


def _kind(definition: Wanted) -> str:
    return str(field_at(definition.body, "spec", "names", "kind"))
