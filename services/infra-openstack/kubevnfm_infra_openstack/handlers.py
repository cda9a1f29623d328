"""The handlers that create and delete stacks. Each one reads the present state first, then creates what is missing."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import structlog
from kubevnfm_clients.ports import VimDirectory
from kubevnfm_csar.vnfd.model import Flavour
from kubevnfm_events.stacks import CreateResources, DeleteResources, ResourcesCreated, ResourcesDeleted, StackOrder
from kubevnfm_kit.errors import VnfmError
from kubevnfm_worker.outcome import Done, NotYet, Outcome, StepContext, nothing_made

from kubevnfm_infra_openstack.domain.definitions import check_increase, definition_of
from kubevnfm_infra_openstack.domain.errors import StackNameTaken, StackNotDeleted, StackRefused
from kubevnfm_infra_openstack.domain.failure import failure_of, is_being_deleted, settled, still_working
from kubevnfm_infra_openstack.domain.grace import GracePeriods
from kubevnfm_infra_openstack.domain.ordering import StackOrders
from kubevnfm_infra_openstack.domain.ports import Cloud, Clouds, PackageFlavours
from kubevnfm_infra_openstack.domain.resources import existing
from kubevnfm_infra_openstack.domain.stack import (
    DELETION_FAILED,
    SETTLED,
    Next,
    Stack,
    StackState,
    attempt_tag,
    next_for_creation,
)

log = structlog.get_logger()

_AGAIN_S = 1.0
"""Pause after a full wait for Heat; meanwhile other commands get a worker."""
_DELETE_VISIBLE_S = 2.0
"""Time from Heat's acceptance of a delete until the state shows it; usually some tens of milliseconds."""
_STILL_LISTED = "Heat has deleted what the stack had, but still lists it (DELETE_COMPLETE)"
_ALL = frozenset(StackState)
_UNASSIGNED = "not assigned"
"""Part of Heat's refusal of a property without a value: ``Property zone not assigned``."""


@dataclass(frozen=True)
class InfraOpenstackHandlers:
    """Creates and deletes the stacks of VNFs."""

    clouds: Clouds
    vims: VimDirectory
    packages: PackageFlavours
    orders: StackOrders
    grace: GracePeriods
    wait_s: float = 20.0

    async def create_resources(self, command: CreateResources, context: StepContext) -> Outcome:
        """Create the VNF's stack, or continue with the one that an earlier delivery created."""
        made_by = attempt_tag(context.operation_id, context.step_id, context.attempt)
        with nothing_made():
            cloud = self.clouds.cloud(await self.vims.connection(command.vim))
            vnfd = (await self.packages.flavour(command.package, command.flavour_id)).vnfd
            stack = await cloud.stacks.find(command.stack_name, tag=command.tag)
            wanted = next_for_creation(stack, made_by=made_by)
            if wanted in (Next.MAKE, Next.REPLACE):
                await self.orders.check_networks(command, cloud)
        if stack is not None and wanted in (Next.REPLACE, Next.WAIT_GONE):
            if wanted is Next.REPLACE:
                log.info("stack_replaced", stack_id=stack.id, reason=stack.reason)
            stack = await self._without(cloud, stack)
            if stack is not None:
                return NotYet(_AGAIN_S)
        if stack is None:
            order = await self.orders.order(command, cloud, tags=(command.tag, made_by))
            try:
                stack = await cloud.stacks.create(order)
            except StackNameTaken:
                # A request of a killed process can reach Heat after our look. Then the stack carries our tag.
                if await cloud.stacks.find(command.stack_name, tag=command.tag) is None:
                    raise
                return NotYet(_AGAIN_S)
            except StackRefused as refused:
                if order.if_unassigned and _UNASSIGNED in str(refused):
                    raise StackRefused(f"{refused}; {order.if_unassigned}") from refused
                raise
            log.info("stack_started", stack_id=stack.id, stack_name=stack.name)
        if stack.state is StackState.MAKING:
            stack = await settled(cloud.stacks, stack, within_s=self.wait_s)
        if stack is None or stack.state not in SETTLED:
            # Heat works on it, or others delete it: the next call creates it once it is gone.
            return await still_working(cloud.stacks, stack, _AGAIN_S)
        if stack.state is not StackState.READY:
            if await is_being_deleted(cloud.stacks, stack):
                return NotYet(_AGAIN_S)
            raise await self._failure(cloud, stack, vnfd, command)
        facts = await self.orders.facts(cloud, stack, await cloud.stacks.contents(stack), vnfd, command)
        await self.orders.check_as_asked(cloud, facts, command)
        log.info("stack_complete", stack_id=stack.id, servers=len(facts.servers))
        return Done(ResourcesCreated(resources=facts))

    async def delete_resources(self, command: DeleteResources, context: StepContext) -> Outcome:
        """Delete the stack that carries the tag, in any state, then the images that were uploaded for it.

        If another one is made in its place, only once that one is known to be taken.
        """
        # NotYet, so that a wait of up to a day occupies no worker.
        wait = await self.grace.wait(context, timedelta(seconds=command.graceful_wait_s))
        if wait is not None:
            return wait
        cloud = self.clouds.cloud(await self.vims.connection(command.vim))
        stack = await cloud.stacks.find(command.stack_name, tag=command.tag, is_ending_too=True)
        if stack is not None and stack.state in SETTLED - DELETION_FAILED and command.successor is not None:
            with nothing_made():
                await self._check_successor(cloud, stack, command, command.successor)
        if stack is not None and (left := await self._without(cloud, stack)) is not None:
            return NotYet(_AGAIN_S, waits_for=_STILL_LISTED if left.state is StackState.GONE else "")
        # Last, because Glance refuses to delete an image that a server or volume still uses.
        images = await cloud.images.delete_tagged(command.tag)
        if command.graceful_wait_s > 0:
            await self.grace.end(context)
        log.info("resources_deleted", stack_name=command.stack_name, images=images)
        return Done(ResourcesDeleted(stack_name=command.stack_name))

    async def _check_successor(self, cloud: Cloud, stack: Stack, command: DeleteResources, given: StackOrder) -> None:
        """Raise what the creation of the stack after this one would raise for its input."""
        create = CreateResources(**vars(given), vnf_instance_id=command.vnf_instance_id, tag=command.tag)
        await self.orders.check_networks(create, cloud)
        definition = await definition_of(await self.orders.order(create, cloud, tags=stack.tags, is_new=False))
        await check_increase(cloud, await cloud.stacks.definition(stack), definition)
        await cloud.stacks.check(stack.name, definition)

    async def _without(self, cloud: Cloud, stack: Stack) -> Stack | None:
        """Delete the stack; return None when it is deleted, or the stack while Heat works on it.

        Raises StackNotDeleted.
        """
        left: Stack | None = stack
        if stack.state is not StackState.GOING:
            await cloud.stacks.delete(stack)
            log.info("stack_deletion_started", stack_id=stack.id, stack_name=stack.name)
            # Heat answers before the state changes: a DELETE_FAILED seen now would be that of the previous attempt.
            left = await cloud.stacks.settle(stack, until=_ALL - {stack.state}, within_s=_DELETE_VISIBLE_S)
        if left is not None and left.state is not StackState.STUCK:
            left = await cloud.stacks.settle(left, until=DELETION_FAILED, within_s=self.wait_s)
        if left is not None and left.state is StackState.STUCK:
            raise StackNotDeleted(str(failure_of(left, await cloud.stacks.resources(left))))
        return left

    async def _failure(self, cloud: Cloud, stack: Stack, vnfd: Flavour, command: CreateResources) -> VnfmError:
        """Return the reason why the stack failed, with its remaining resources."""
        contents = await cloud.stacks.contents(stack)
        remains = await self.orders.facts(cloud, stack, existing(contents), vnfd, command)
        return failure_of(stack, contents.resources, remains=remains)
