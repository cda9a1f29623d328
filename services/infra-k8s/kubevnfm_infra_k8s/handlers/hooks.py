"""The hooks around an application of objects: before it, after it, and when it has failed (multicloud.md MC-141)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from kubevnfm_csar.hooks import Occasion, Point
from kubevnfm_events.objects import ObjectsOrder
from kubevnfm_kit.errors import VnfmError
from kubevnfm_store.port import RevisionConflict
from kubevnfm_worker.outcome import Outcome

from kubevnfm_infra_k8s.domain.beginning import deadline_of
from kubevnfm_infra_k8s.domain.changing.applying import ApplyRun
from kubevnfm_infra_k8s.domain.errors import ForeignObjects, HookFailed, ObjectsNotGone, WithRemains
from kubevnfm_infra_k8s.domain.hooks.running import HookRun
from kubevnfm_infra_k8s.domain.hooks.sequence import hooks_at, hooks_for_later
from kubevnfm_infra_k8s.domain.planned_hook import PlannedHook
from kubevnfm_infra_k8s.domain.planning.plan import Plan
from kubevnfm_infra_k8s.domain.reading.secret_values import values_of
from kubevnfm_infra_k8s.domain.release import ApplyFailure
from kubevnfm_infra_k8s.domain.watching.readiness_wait import ReadinessWait
from kubevnfm_infra_k8s.handlers.frame import Step

_LONGEST_S: Final = 86_400.0


@dataclass
class ApplyHooks:
    """The hooks of one application of an instance's objects."""

    step: Step
    order: ObjectsOrder
    planned: Plan
    occasion: Occasion
    wait: ReadinessWait

    async def before(self, applying: ApplyRun) -> None:
        """Run the hooks before the first object. Raises StillWaiting, HookFailed."""
        step = self.step
        hooks = self._at(Point.PRE_APPLY)
        if step.is_applied or not hooks:
            return
        if step.release.stages.attempt != step.attempt:
            await self._apply_first(applying, hooks)
        await self._run(hooks, Point.PRE_APPLY, self.wait)

    async def after(self) -> None:
        """Run the hooks after the last object is ready. Raises StillWaiting, HookFailed."""
        await self._run(self._at(Point.POST_APPLY), Point.POST_APPLY, self.wait)

    async def store(self) -> None:
        """Store those that run after the operation. Raises HooksTooLarge."""
        hooks, mine = hooks_for_later(self.planned.hooks), self.step.release.vnf_instance_id
        await self.step.handling.hooks.save(mine, hooks, self._secrets())

    async def guarded(self, work: Callable[[], Awaitable[Outcome]]) -> Outcome:
        """Return the outcome of the work; if it has failed, run the hooks for that, and raise its error afterwards.

        Not for an error that a repeat of the call may end.
        """
        step, hooks = self.step, self._at(Point.ON_FAILURE)
        if not hooks:
            return await work()
        failure = step.release.failure_of(step.attempt)
        if failure is None:
            try:
                return await work()
            except RevisionConflict:
                raise
            except VnfmError as error:
                if error.retryable or error.made_nothing:
                    raise
                failure = ApplyFailure(step.attempt, error.code, error.title, error.status, str(error))
            # Stored, as what has failed may work by the time of the next call.
            present = await step.handling.releases.get(step.release.vnf_instance_id, step.release.part)
            step.release = await step.handling.releases.save(replace(present or step.release, failure=failure))
        began = step.handling.clock.now()
        wait = replace(self.wait, deadline=deadline_of(step.context.deadline, began, _LONGEST_S))
        try:
            await self._run(hooks, Point.ON_FAILURE, wait)
        except (HookFailed, ForeignObjects, ObjectsNotGone) as error:
            raise _failed(failure, f"{failure.reason}; {error}") from error
        raise _failed(failure, failure.reason)

    def _at(self, point: Point) -> Sequence[PlannedHook]:
        return hooks_at(self.planned.hooks, point, self.occasion)

    async def _run(self, hooks: Sequence[PlannedHook], point: Point, wait: ReadinessWait) -> None:
        if not hooks:
            return
        step, context = self.step, self.step.context
        # An attempt that fails again has failed once more.
        turn = f"/{context.attempt}" if point is Point.ON_FAILURE else ""
        run = HookRun(
            replace(wait, cluster=step.cluster.hiding(self._secrets())),
            step.handling.releases,
            step.progress("hooks"),
            step.release,
            run=f"{context.operation_id}/{context.step_id}/{self.occasion}/{self.order.package.package_id}{turn}",
            attempt=step.attempt,
            limit_s=step.handling.ready_timeout_s,
            within_s=step.handling.wait_s,
        )
        try:
            await run.run_all(hooks, point)
        finally:
            step.release = run.release

    async def _apply_first(self, applying: ApplyRun, hooks: Sequence[PlannedHook]) -> None:
        """Apply what hooks need before any other object: their namespaces, and the definitions of charts, as Helm does."""
        step, namespaces = self.step, {each.key.namespace for each in hooks}
        first = [
            each
            for each in self.planned.objects
            if not each.key.is_custom
            and (
                (each.key.kind == "Namespace" and each.key.name in namespaces)
                or (each.key.kind == "CustomResourceDefinition" and (each.artifact is None or each.artifact.is_chart))
            )
        ]
        known = {entry.key for entry in step.release.entries if entry.uid}
        if any(each.key not in known for each in first):
            part = replace(self.planned, objects=first, without_workload=())
            step.release = await applying.apply(part, step.release, applied_by=step.release.applied_by)

    def _secrets(self) -> Sequence[str]:
        """Return what no log of a pod may show: secret values of the request, and those in Secrets of the package."""
        objects = [*self.planned.objects, *self.planned.hook_objects]
        secrets = [each for each in objects if each.key.kind == "Secret" and not each.key.group]
        found = [value for each in secrets for value in values_of(each.body)]
        return [*self.step.handling.sources.secrets_in(self.order), *found]


def hooks_wait_s(planned: Plan, default_s: float) -> float:
    """Return the time that the hooks of an application may take; ``default_s``: of one that the order gives no limit."""
    mine = (each for each in planned.hooks if each.hook.points - {Point.TEST})
    return sum(default_s if each.timeout_s is None else each.timeout_s for each in mine)


def _failed(failure: ApplyFailure, reason: str) -> WithRemains:
    """Return the error of an apply that has failed before."""

    class ApplyFailed(WithRemains, code=failure.code, title=failure.title, status=failure.status):
        """The error of an earlier call."""

    return ApplyFailed(reason)
