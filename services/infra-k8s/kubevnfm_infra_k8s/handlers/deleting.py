"""The handler that deletes the objects of an instance at its end."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

import structlog
from kubevnfm_clients.cloud_identity import credential_name
from kubevnfm_csar.hooks import DELETIONS
from kubevnfm_events.objects import DeleteObjects, LeftObject, ObjectsDeleted
from kubevnfm_kit.errors import NotFound, VnfmError
from kubevnfm_worker.outcome import Done, NotYet, Outcome, StepContext

from kubevnfm_infra_k8s.domain.beginning import Beginning
from kubevnfm_infra_k8s.domain.capi.contract import is_cluster
from kubevnfm_infra_k8s.domain.concurrency import each_of
from kubevnfm_infra_k8s.domain.errors import AccessRefused, AddressUnnamed, ClusterUnavailable
from kubevnfm_infra_k8s.domain.hooks.running import HookRun
from kubevnfm_infra_k8s.domain.object_facts import left_of
from kubevnfm_infra_k8s.domain.objects import ObjectKey
from kubevnfm_infra_k8s.domain.progress import Progress
from kubevnfm_infra_k8s.domain.release import ADDONS, Release
from kubevnfm_infra_k8s.domain.removing.end_hooks import EndHooks
from kubevnfm_infra_k8s.domain.removing.finalizers import Stripping
from kubevnfm_infra_k8s.domain.removing.terminating import Terminated, TerminationRun
from kubevnfm_infra_k8s.domain.watching.readiness_wait import ReadinessWait
from kubevnfm_infra_k8s.handlers.frame import AGAIN_S, Handling
from kubevnfm_infra_k8s.handlers.repeating import repeatable

log = structlog.get_logger()

_STRIPPING_SHARE: Final = 0.25
"""The last part of a short time limit in which finalizers are removed, and the objects go."""


@dataclass(frozen=True)
class DeletionHandlers(Handling):
    """Deletes the Kubernetes objects of VNFs."""

    @repeatable
    async def delete_objects(self, command: DeleteObjects, context: StepContext) -> Outcome:
        """Delete the objects of the instance's inventory and wait until they are deleted."""
        mine = command.vnf_instance_id
        release = await self.releases.get(mine)
        if release is None:
            answer = await self.deletions.answered(context) or ObjectsDeleted()
        else:
            began, is_given_up = await self.start_times.beginning(context, mine), False
            try:
                async with self.noting_silence(context):
                    ended = await self._delete(command, context, release, began)
            except (ClusterUnavailable, AccessRefused, NotFound) as error:
                if not command.force or isinstance(error, AddressUnnamed):
                    raise
                ended = Terminated(0, await self._give_up(release, error, context))
                is_given_up = bool(release.entries)
            if ended is None:
                return NotYet(AGAIN_S)
            is_given_up = is_given_up or (command.gives_up_waiting and bool(ended.left))
            # As long as objects may exist, their controllers need the login to delete machines.
            login = await self._take_back(release, context, is_used=is_given_up, is_forced=command.force)
            answer = ObjectsDeleted(count=ended.count, left=(*(await self.release_of(mine)).left, *ended.left, *login))
            # Before the release goes, from which a repeat of this command could answer.
            await self.deletions.record(context, answer)
            await self.releases.delete(mine)
        # A worker that was killed may have got no further. At the same time: they share transactions.
        forgotten = (
            self.hooks.forget, self.checks.forget, self._forget_addons, self.sources.forget, self.outputs.forget,
            self.start_times.forget,
        )  # fmt: skip
        await each_of(forgotten, lambda forget: forget(mine))
        return Done(answer)

    async def _take_back(
        self, release: Release, context: StepContext, *, is_used: bool, is_forced: bool
    ) -> tuple[LeftObject, ...]:
        """Delete the application credential of the instance's cluster; return it if it is left (CR-049)."""
        vim_id, mine = release.openstack_vim_id, release.vnf_instance_id
        if not vim_id:
            return ()
        why = "the objects that may exist need it"
        if not is_used:
            try:
                await self.identities.take_back(vim_id, mine)
                return ()
            except VnfmError as error:
                # A VIM that is no longer registered does not come back under its id.
                if not is_forced and not isinstance(error, NotFound):
                    raise
                why = str(error)
        credential = LeftObject(
            api_version="identity/v3",
            kind="ApplicationCredential",
            name=credential_name(mine),
            uid="",
            cluster=vim_id,
        )
        log.warning("cloud_login_left", vim_id=vim_id, vnf_instance_id=mine, reason=why)
        message = f"{credential.kind} {credential.name} of OpenStack VIM {vim_id} may still exist: {why}"
        await Progress("login", context.publish).failed(message)
        return (credential,)

    async def _forget_addons(self, mine: str) -> None:
        """Forget the objects inside a workload cluster, which went with it."""
        addons = await self.releases.get(mine, ADDONS)
        if addons is not None:
            # Another cluster may get the address.
            await self._leave_shared(addons)
            await self.releases.delete(mine, ADDONS)

    async def _leave_shared(self, release: Release) -> None:
        """Have other instances not see the claims of this one."""
        for entry in release.entries:
            await self.shared.release(release.cluster, entry.key, release.vnf_instance_id)
            await self.shared.forget(release.cluster, entry.key)

    async def _give_up(self, release: Release, error: VnfmError, context: StepContext) -> tuple[LeftObject, ...]:
        """Forget the objects of a cluster that no longer matters to the operator; return what may still exist."""
        mine = release.vnf_instance_id
        log.warning("cluster_given_up", cluster=release.cluster, reason=str(error))
        left = left_of(release)
        names = ", ".join(_in_words(each) for each in left)
        addons = await self.releases.get(mine, ADDONS)
        if addons is not None:
            inside = left_of(addons)
            left += inside
            names += f", and at {addons.cluster} {', '.join(map(_in_words, inside))}"
        await Progress("give-up", context.publish).failed(f"{error}; these objects may still exist: {names}")
        await self._leave_shared(release)
        return left

    async def _delete(
        self, command: DeleteObjects, context: StepContext, release: Release, began: Beginning
    ) -> Terminated | None:
        gone_s = self.gone_timeout_s
        # Its machines are deleted one after another.
        if any(is_cluster(entry.key) for entry in release.entries):
            gone_s = max(gone_s, self.cluster_ready_timeout_s)
        if command.cluster_gone_timeout_s is not None:
            gone_s = command.cluster_gone_timeout_s
        hooks, secrets = await self.hooks.get(release.vnf_instance_id)

        async def given_up_at(part: str) -> datetime:
            asked = replace(context, step_id=f"{context.step_id}/{part}")
            asked_at = await self.start_times.started_at(asked, release.vnf_instance_id)
            return asked_at + began.silence_since(asked_at) + patience

        patience = timedelta(seconds=self.finalizer_patience_s + (command.grace_period_s or 0.0))
        hooks_s = sum(len(each.hook.points & DELETIONS) * (each.timeout_s or self.ready_timeout_s) for each in hooks)
        limit_s = gone_s + (command.grace_period_s or 0.0) + hooks_s
        async with self.connected(command.vim) as connected:
            cluster, progress = connected.hiding(secrets), Progress("delete", context.publish)
            deadline = began.deadline(context.deadline, limit_s)
            wait = ReadinessWait(
                cluster,
                release.vnf_instance_id,
                self.clock,
                deadline,
                self.settle_s,
                self.expressions,
                began.silence_since,
            )
            hook_run = HookRun(
                wait,
                self.releases,
                Progress("hooks", context.publish),
                release,
                run=f"{context.operation_id}/{context.step_id}",
                attempt=f"{context.operation_id}/{context.step_id}/{context.attempt}",
                limit_s=self.ready_timeout_s,
                within_s=self.wait_s,
            )
            stripping = Stripping(
                cluster,
                self.releases,
                release.vnf_instance_id,
                progress,
                before=began.at - timedelta(seconds=self.finalizer_patience_s),
                margin_s=min(self.finalizer_patience_s, gone_s * _STRIPPING_SHARE),
            )
            run = TerminationRun(
                cluster=cluster,
                links=self.links,
                releases=self.releases,
                shared=self.shared,
                volumes=self.volumes,
                hooks=EndHooks(hooks, hook_run, command.force),
                progress=progress,
                clock=self.clock,
                deadline=deadline,
                grace_period_s=None if command.grace_period_s is None else int(command.grace_period_s),
                stripping=stripping if command.force_remove_finalizers else None,
                given_up_at=given_up_at if command.gives_up_waiting else None,
            )
            return await run.terminate(release, within_s=self.wait_s)


def _in_words(left: LeftObject) -> str:
    return str(ObjectKey(left.api_version, left.kind, left.namespace or "", left.name))
