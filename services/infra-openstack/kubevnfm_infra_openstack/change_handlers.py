"""The handlers that change an existing stack. Each change is derived from the present stack and sent to Heat only once
for each attempt of the step.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import TypeVar

import structlog
from kubevnfm_clients.ports import VimDirectory
from kubevnfm_csar.vnfd.model import Flavour
from kubevnfm_events.stacks import (
    ChangeConnections,
    ChangeTemplate,
    CreateResources,
    HealResources,
    ResourcesChanged,
    RestoreResources,
    ScaleResources,
    StackCommand,
    StackResources,
)
from kubevnfm_kit.errors import VnfmError
from kubevnfm_worker.outcome import Done, NotYet, Outcome, StepContext, nothing_made

from kubevnfm_infra_openstack.domain.changes import StackChanges
from kubevnfm_infra_openstack.domain.completing import in_order, repaired
from kubevnfm_infra_openstack.domain.definitions import completed
from kubevnfm_infra_openstack.domain.errors import (
    DeletionState,
    StackMissing,
    StackRefused,
    StackUpdateFailed,
    StackUpdateRefused,
    StackUpdateTimedOut,
)
from kubevnfm_infra_openstack.domain.failure import MARK, failure_of, is_being_deleted, settled, still_working
from kubevnfm_infra_openstack.domain.grace import GracePeriods
from kubevnfm_infra_openstack.domain.live import LiveStack, Wanted
from kubevnfm_infra_openstack.domain.ports import Cloud, Clouds
from kubevnfm_infra_openstack.domain.removal import STOPS_WITHIN_S, are_removed
from kubevnfm_infra_openstack.domain.resources import existing
from kubevnfm_infra_openstack.domain.snapshots import NOTHING_SAVED, StackSnapshots
from kubevnfm_infra_openstack.domain.stack import (
    SETTLED,
    HeatResource,
    NextForChange,
    Stack,
    StackChange,
    StackState,
    attempt_tag,
    next_for_change,
)

log = structlog.get_logger()

_AGAIN_S = 1.0
_STOPPED_WITHIN_S = 3.0
"""How long a cancelled command waits for Heat to stop. If Heat needs longer, the next command waits for it."""
_MORE = "more"
"""A tag of a stack whose change is followed by another one of the same attempt."""
_FINISHED_AGAIN_S = 0.1

C = TypeVar("C", bound=StackCommand)
FindChange = Callable[[C, Cloud, LiveStack, tuple[str, ...]], Awaitable[Wanted | None]]
"""Returns the change for a command; None if there is nothing to change."""


def _shown(command: StackCommand | CreateResources) -> Sequence[HeatResource]:
    """Return the servers and volumes that the instance shows."""
    shown = command.shown if isinstance(command, StackCommand) else ()
    return [
        HeatResource(one.name, one.resource_type, one.resource_id, "REPLACED", "", stack_id=one.stack_id)
        for one in shown
    ]


def _deletion_of(stack: Stack | None) -> DeletionState:
    if stack is None:
        return "DONE"
    return "FAILED" if stack.state is StackState.STUCK else "IN_PROGRESS"


@dataclass(frozen=True)
class StackChangeHandlers:
    """Scales, heals, reconnects and restores the stacks of VNFs."""

    clouds: Clouds
    vims: VimDirectory
    changes: StackChanges
    snapshots: StackSnapshots
    grace: GracePeriods
    wait_s: float = 20.0

    async def scale_resources(self, command: ScaleResources, context: StepContext) -> Outcome:
        """Bring the VDUs' instances to the counts."""
        return await self._change(command, context, self._after_snapshot(context, self.changes.scaled))

    async def heal_resources(self, command: HealResources, context: StepContext) -> Outcome:
        """Have Heat replace servers and volumes."""
        return await self._change(command, context, self._after_snapshot(context, self.changes.healed))

    async def change_connections(self, command: ChangeConnections, context: StepContext) -> Outcome:
        """Move connection points to other links."""
        return await self._change(command, context, self._after_snapshot(context, self.changes.connected))

    async def change_template(self, command: ChangeTemplate, context: StepContext) -> Outcome:
        """Change the stack to the template of another flavour or package."""
        return await self._change(command, context, self._after_snapshot(context, partial(self._replaced, context)))

    async def restore_resources(self, command: RestoreResources, context: StepContext) -> Outcome:
        """Restore the stack as it was before the operation; a stack that does not exist has nothing to restore."""
        try:
            return await self._change(command, context, partial(self._restored, context))
        except StackMissing as missing:
            # Deleted by hand: without this a rollback could never succeed. DELETE_FAILED leaves resources behind.
            if missing.deletion == "FAILED":
                raise
            if missing.deletion == "IN_PROGRESS":
                return NotYet(_AGAIN_S)
            log.warning("nothing_to_restore", stack_name=command.stack_name)
            nothing = StackResources(stack_id="", stack_name=command.stack_name)
            return Done(ResourcesChanged(resources=nothing, is_missing=True))

    async def abort(self, command: StackCommand | CreateResources, context: StepContext) -> StackResources | None:
        """Have Heat stop its work for a cancelled attempt; return what the stack holds after that."""
        cloud = self.clouds.cloud(await self.vims.connection(command.vim))
        stack = await cloud.stacks.find(command.stack_name, tag=command.tag)
        made_by = attempt_tag(context.operation_id, context.step_id, context.attempt)
        # Without the attempt's tag Heat has not begun its work, or works for another attempt. Servers may have left already.
        is_begun = stack is not None and made_by in stack.tags
        if stack is None or not (is_begun or isinstance(command, StackCommand)):
            return None
        if is_begun and stack.state is StackState.MAKING:
            await cloud.stacks.stop_change(stack)
            log.info("stack_change_stopped", stack_id=stack.id)
            await cloud.stacks.settle(stack, until=SETTLED, within_s=_STOPPED_WITHIN_S)
        vnfd = (await self.changes.orders.packages.flavour(command.package, command.flavour_id)).vnfd
        contents = await cloud.stacks.contents(stack, _shown(command))
        return await self.changes.orders.facts(cloud, stack, existing(contents), vnfd, command)

    def _after_snapshot(self, context: StepContext, find_change: FindChange[C]) -> FindChange[C]:
        """Return a function that saves the stack's present definition before it calls ``find_change``."""

        async def find_after_snapshot(
            command: C, cloud: Cloud, live: LiveStack, tags: tuple[str, ...]
        ) -> Wanted | None:
            servers, by_id = live.facts.servers, live.contents.server_by_id
            running = [one.id for one in by_id.values() if one.status == "ACTIVE"]
            await self.snapshots.save(command.vnf_instance_id, context.operation_id, live.definition, servers, running)
            return await find_change(command, cloud, live, tags)

        return find_after_snapshot

    async def _replaced(
        self, context: StepContext, command: ChangeTemplate, cloud: Cloud, live: LiveStack, tags: tuple[str, ...]
    ) -> Wanted:
        # Not from the live definition, which earlier steps of a rolling update, or a try that failed, have changed.
        before = await self.snapshots.find(command.vnf_instance_id, context.operation_id)
        definition = live.definition if before is None else before.definition
        return await self.changes.replaced(command, cloud, live, tags, definition)

    async def _restored(
        self, context: StepContext, command: RestoreResources, cloud: Cloud, live: LiveStack, tags: tuple[str, ...]
    ) -> Wanted | None:
        before = await self.snapshots.find(command.vnf_instance_id, context.operation_id)
        if before is None:
            return None
        unseen = [one for one in before.slot_by_server if one not in live.contents.server_by_id]
        # By id once more: a list that changes while it is read can lack an entry.
        there = await cloud.servers.statuses(unseen) if unseen else {}
        lost = [one for one in unseen if one not in there]
        return await self.changes.restored(command, before, live, tags, lost)

    async def _change(self, command: C, context: StepContext, find_change: FindChange[C]) -> Outcome:
        """Read the stack, send the change unless this attempt has done so, wait, and return what the stack holds."""
        made_by = attempt_tag(context.operation_id, context.step_id, context.attempt)
        with nothing_made():
            cloud = self.clouds.cloud(await self.vims.connection(command.vim))
            vnfd = (await self.changes.orders.packages.flavour(command.package, command.flavour_id)).vnfd
            stack = await cloud.stacks.find(command.stack_name, tag=command.tag)
        wanted = next_for_change(stack, made_by=made_by)
        if stack is not None and wanted is NextForChange.WAIT_FOR_OTHER:
            stack = await cloud.stacks.settle(stack, until=SETTLED, within_s=self.wait_s)
            wanted = next_for_change(stack, made_by=made_by)
        if stack is None or wanted is NextForChange.MISSING:
            # A deletion also removes what an earlier delivery may have changed: a rollback has nothing to restore.
            with nothing_made():
                raise StackMissing(command.stack_name, deletion=_deletion_of(stack))
        if wanted is NextForChange.WAIT_FOR_OTHER:
            return NotYet(_AGAIN_S)
        if wanted is NextForChange.CHANGE:
            if isinstance(command, ChangeConnections | ChangeTemplate):
                with nothing_made():
                    await self.changes.orders.check_networks(command, cloud)
            begun = await self._begin(command, context, cloud, stack, vnfd, (command.tag, made_by), find_change)
            if begun is None:
                return NotYet(_AGAIN_S)
            if isinstance(begun, StackResources):
                return Done(ResourcesChanged(resources=begun))
            stack = begun
        if stack.state is StackState.MAKING:
            seen = await settled(cloud.stacks, stack, within_s=self.wait_s)
            if seen is None:
                raise StackMissing(command.stack_name)
            if seen.state not in SETTLED or made_by not in seen.tags:
                # Heat has not begun or not ended; the next call continues to wait. One that others delete is missing then.
                return await still_working(cloud.stacks, seen, _AGAIN_S)
            stack = seen
        if stack.state is StackState.READY and _MORE in stack.tags:
            await self._finish(command, cloud, stack, vnfd, (command.tag, made_by), find_change)
            return NotYet(_FINISHED_AGAIN_S)
        if stack.state is not StackState.READY:
            if await is_being_deleted(cloud.stacks, stack):
                return NotYet(_AGAIN_S)
            raise await self._failure(cloud, stack, vnfd, command)
        facts = await self.changes.orders.facts(cloud, stack, await cloud.stacks.contents(stack), vnfd, command)
        await self.changes.orders.check_as_asked(cloud, facts, command)
        log.info("stack_changed", stack_id=stack.id, servers=len(facts.servers))
        return Done(ResourcesChanged(resources=facts))

    async def _begin(
        self,
        command: C,
        context: StepContext,
        cloud: Cloud,
        stack: Stack,
        vnfd: Flavour,
        tags: tuple[str, ...],
        find_change: FindChange[C],
    ) -> Stack | StackResources | None:
        """Send the change to Heat; return the stack after that, or what it holds if there is nothing to change.

        Returns None while servers are leaving that have to be gone before the change.
        """
        live = await self._live(command, cloud, stack, vnfd)
        facts = live.facts
        wanted = await find_change(command, cloud, live, tags)
        if wanted is None:
            return facts
        before = await self.snapshots.find(command.vnf_instance_id, context.operation_id)
        wanted = await in_order(wanted, live, before or NOTHING_SAVED)
        wanted = await repaired(wanted, live, tags[-1])
        if wanted.unhealthy or wanted.leaving_first:
            # A refusal after this would leave machines that are stopped or gone, or that the next change replaces.
            try:
                await cloud.stacks.check(stack.name, await completed(wanted.change, live.definition))
            except StackRefused as refused:
                raise StackUpdateRefused(str(refused)) from refused
        if wanted.leaving_first and not await self._are_removed(cloud, live, wanted, context):
            return None
        # Marking is repeatable, so a crash between it and the change is harmless: the next call marks them again.
        for resource in wanted.unhealthy:
            await cloud.stacks.mark_unhealthy(resource, MARK)
        if before is not None and isinstance(command, RestoreResources):
            # The operation may have ended between the stop of a server and its deletion.
            for server_id in before.stopped(live.contents.server_by_id):
                await cloud.servers.start(server_id)
        change = wanted.change if wanted.finish is None else replace(wanted.change, tags=(*tags, _MORE))
        begun = await cloud.stacks.change(stack, change)
        log.info("stack_change_started", stack_id=stack.id, replaced=len(wanted.unhealthy))
        return begun

    async def _live(self, command: StackCommand, cloud: Cloud, stack: Stack, vnfd: Flavour) -> LiveStack:
        contents = await cloud.stacks.contents(stack, _shown(command))
        facts = await self.changes.orders.facts(cloud, stack, contents, vnfd, command)
        return LiveStack(stack, await cloud.stacks.definition(stack), contents, facts)

    async def _finish(
        self,
        command: C,
        cloud: Cloud,
        stack: Stack,
        vnfd: Flavour,
        tags: tuple[str, ...],
        find_change: FindChange[C],
    ) -> None:
        """Send the change that follows the one which this attempt has completed: computed again, it leads from what is there now."""
        wanted = await find_change(command, cloud, await self._live(command, cloud, stack, vnfd), tags)
        # None: there is nothing left to do; the empty change removes the tag.
        change = StackChange(tags, command.timeout_s) if wanted is None else wanted.finish or wanted.change
        await cloud.stacks.change(stack, change)
        log.info("stack_change_finishing", stack_id=stack.id)

    async def _are_removed(self, cloud: Cloud, live: LiveStack, wanted: Wanted, context: StepContext) -> bool:
        """Delete the servers that leave before the change; return whether they are gone."""
        lost = {resource.physical_id for resource in wanted.unhealthy}
        writing = [
            one
            for one in wanted.leaving_first
            if one in live.contents.server_by_id and not lost.issuperset(live.contents.server_by_id[one].volume_ids)
        ]
        if writing and await self.grace.wait(context, timedelta(seconds=STOPS_WITHIN_S)) is None:
            writing = []
        if not await are_removed(cloud.servers, wanted.leaving_first, stopped_first=writing):
            return False
        await self.grace.end(context)
        return True

    async def _failure(self, cloud: Cloud, stack: Stack, vnfd: Flavour, command: StackCommand) -> VnfmError:
        contents = await cloud.stacks.contents(stack, _shown(command))
        remains = await self.changes.orders.facts(cloud, stack, existing(contents), vnfd, command)
        return failure_of(
            stack, contents.resources, remains=remains, failed=StackUpdateFailed, timed_out=StackUpdateTimedOut
        )
