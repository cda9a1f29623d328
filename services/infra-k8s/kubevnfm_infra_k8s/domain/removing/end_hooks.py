"""The hooks of an instance's end: before its first object is deleted, and after the last one (multicloud.md MC-141)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import structlog
from kubevnfm_csar.hooks import Point
from kubevnfm_kit.errors import VnfmError

from kubevnfm_infra_k8s.domain.hooks.running import HookRun
from kubevnfm_infra_k8s.domain.hooks.sequence import hooks_at
from kubevnfm_infra_k8s.domain.objects import INSTANCE_LABEL, ObjectKey, labels_of, uid_of
from kubevnfm_infra_k8s.domain.planned_hook import PlannedHook
from kubevnfm_infra_k8s.domain.reading.existing import find_all, served_kinds
from kubevnfm_infra_k8s.domain.release import Entry, Release
from kubevnfm_infra_k8s.domain.removing.finalizers import Target

log = structlog.get_logger()


@dataclass(frozen=True)
class EndHooks:
    """The hooks of one termination, and what is left of hooks that have run before."""

    hooks: Sequence[PlannedHook]
    run: HookRun
    is_forced: bool
    """Whether a hook that fails stops nothing."""

    async def before(self) -> None:
        """Run the hooks before the first deletion. Raises StillWaiting, HookFailed."""
        await self._run_all(Point.PRE_DELETE)

    async def after(self) -> None:
        """Run the hooks after the last deletion. Raises StillWaiting, HookFailed."""
        await self._run_all(Point.POST_DELETE)

    async def left(self, *, of_end: bool) -> Sequence[Target]:
        """Return the objects of hooks that still exist and are this instance's; ``of_end``: with those after the last deletion."""
        cluster, mine = self.run.wait.cluster, self.run.wait.vnf_instance_id
        present = [each for each in self.run.release.hooks if not each.is_gone]
        later = {each.key for each in present if each.point == Point.POST_DELETE and not of_end}
        keys = {each.key for each in present} - later
        if not keys:
            return []
        served = await served_kinds(cluster, [key.api_kind for key in keys])
        places = [(resource, key) for key in keys if (resource := served[key.api_kind]) is not None]
        found = await find_all(cluster, places, cluster.get)
        # An object of the same name with another uid was made by others; "": a kill came before the uid was stored.
        made: dict[ObjectKey, set[str]] = {}
        for each in present:
            made.setdefault(each.key, set()).add(each.uid)
        return [
            Target(Entry(key, "", "", uid=uid_of(found[key])), resource, found[key])
            for resource, key in places
            if key in found
            and labels_of(found[key]).get(INSTANCE_LABEL) == mine
            and not made[key].isdisjoint({"", uid_of(found[key])})
        ]

    async def _run_all(self, point: Point) -> None:
        hooks = hooks_at(self.hooks, point)
        if not hooks or not _was_applied(self.run.release):
            return
        # Others may have stored the release meanwhile.
        mine = self.run.release
        self.run.release = await self.run.releases.get(mine.vnf_instance_id, mine.part) or mine
        try:
            await self.run.run_all(hooks, point)
        except VnfmError as error:
            if not self.is_forced or error.retryable:
                raise
            log.warning("hook_given_up", point=point, reason=str(error))
            await self.run.progress.on(f"{point} hooks", f"given up: {error}", done=0, total=len(hooks))


def _was_applied(release: Release) -> bool:
    return any(entry.uid for entry in release.entries)
