"""One passage through a stack: every resource is made to match the template, or everything is removed.

As in Heat's convergence, independent resources run at once, no new one starts after a failure, and replaced resources are
removed only when all else is done.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from kubevnfm_lab.openstack.errors import ServiceError
from kubevnfm_lab.openstack.orchestration import graph
from kubevnfm_lab.openstack.orchestration.failures import (
    ResourceFailure,
    ResourceInError,
)
from kubevnfm_lab.openstack.orchestration.functions import resolve
from kubevnfm_lab.openstack.orchestration.graph import ActionFailed
from kubevnfm_lab.openstack.orchestration.stack import Resource, Stack
from kubevnfm_lab.openstack.orchestration.template import Json, ResourceDefinition
from kubevnfm_lab.openstack.orchestration.types.base import Invalid, ResourceType, Services, UpdateReplace
from kubevnfm_lab.openstack.orchestration.types.registry import Types
from kubevnfm_lab.openstack.orchestration.validation import checked_properties


class Traversal:
    """Makes the resources of stacks match their definitions."""

    def __init__(self, services: Services, types: Types, *, create_retries: int) -> None:
        self._services, self._types, self._create_retries = services, types, create_retries

    async def settle(self, stack: Stack, generation: int, *, limited: bool = False) -> ActionFailed | None:
        """Make every resource match its definition, remove those no longer wanted, and record the result."""
        seconds = None
        # The timeout of a root stack covers those nested in it, so only root stacks are limited.
        if limited and stack.timeout_mins:
            seconds = stack.timeout_mins * self._services.durations.stack_minute_s
        try:
            async with asyncio.timeout(seconds):
                failure = await self._converge(stack, generation)
                if failure is None and stack.generation == generation:
                    failure = await self._clean_up(stack, generation)
        except TimeoutError:
            failure = ActionFailed(stack.action, TimeoutError("Timed out"))
            if stack.generation == generation:
                stack.became(stack.action, "FAILED", "Timed out")
            return failure
        finish(stack, generation, failure)
        return failure

    async def _converge(self, stack: Stack, generation: int) -> ActionFailed | None:
        wanted = stack.wanted()
        for name, definition in wanted.items():
            # Resources of a failed create exist already and are continued here.
            if name not in stack.resources:
                resource_type, kind = self._types.find(stack, definition.resource_type, name)
                stack.resources[name] = Resource(
                    stack=stack, definition=definition, kind=kind, resource_type=resource_type
                )
        return await graph.run(
            {name: partial(self._converge_one, stack, definition) for name, definition in wanted.items()},
            {name: definition.references for name, definition in wanted.items()},
            superseded=lambda: stack.generation != generation,
            # The stack fails with its first failure; the other running resources still finish.
            failed=lambda failure: finish(stack, generation, failure),
        )

    async def _converge_one(self, stack: Stack, definition: ResourceDefinition) -> None:
        resource = stack.resources[definition.name]
        resource_type, kind = self._types.find(stack, definition.resource_type, definition.name)
        if not resource.made:
            resource.definition = definition
            await self._create_one(resource)
            return
        # Another template file is the same kind, as in Heat; any other change of type means a replacement.
        if kind is resource.kind and self._can_stay(resource):
            resource.resource_type = resource_type
            required = resource.requires
            try:
                await self._update_one(resource, definition)
            except UpdateReplace:
                # The required parts of the old one leave after it.
                resource.requires = required
            else:
                return
        await self._replace(resource, definition, resource_type, kind)

    def _can_stay(self, resource: Resource) -> bool:
        if resource.state == "CHECK_FAILED":
            return False
        return resource.status == "COMPLETE" or resource.kind.is_there(resource)

    async def _replace(
        self, old: Resource, definition: ResourceDefinition, resource_type: str, kind: ResourceType
    ) -> None:
        """Create a replacement for a resource; the old one is removed once everything else is done."""
        stack = old.stack
        try:
            # A port or address that the replacement needs can only have one owner at a time.
            await old.kind.before_replacement(old)
        except ServiceError as error:
            failure = ResourceFailure.of_service(error).under(old.name)
            old.became("UPDATE", "FAILED", str(failure))
            raise ActionFailed("UPDATE", failure) from error
        stack.replaced.append(old)
        new = Resource(stack=stack, definition=definition, kind=kind, resource_type=resource_type)
        stack.resources[definition.name] = new
        await self._create_one(new)

    async def _create_one(self, resource: Resource) -> None:
        tries_left = self._create_retries
        while True:
            try:
                await self._act(resource, "CREATE", partial(self._make, resource))
            except ActionFailed as failed:
                # Heat retries servers and volumes in ERROR only; other failures would repeat.
                if not isinstance(failed.__cause__, ResourceInError) or tries_left == 0:
                    raise
                tries_left -= 1
                # The failed server is removed first, since its ports and volumes are needed again.
                await self._act(resource, "DELETE", partial(resource.kind.delete, resource))
            else:
                return

    async def _make(self, resource: Resource) -> None:
        resource.props = self._properties(resource, resource.definition)
        resource.requires = resource.definition.references
        await resource.kind.create(resource)

    async def _update_one(self, resource: Resource, definition: ResourceDefinition) -> None:
        """Update a resource in place if anything of it changed; raise UpdateReplace if that is impossible."""
        try:
            props = self._properties(resource, definition)
        except ResourceFailure as error:
            failure = error.under(resource.name)
            resource.became("UPDATE", "FAILED", str(failure))
            raise ActionFailed("UPDATE", failure) from error
        before = resource.props
        changed = {key for key in props.keys() | before.keys() if props.get(key) != before.get(key)}
        # Recorded even without a change: dependencies can change while the properties stay.
        resource.definition, resource.requires = definition, definition.references
        # Nested stacks are updated always: their files may differ while the properties are equal.
        if not changed and not resource.kind.always_updates:
            if resource.status == "FAILED":
                resource.became("UPDATE", "COMPLETE")
            return
        schema = resource.kind.schema(resource.stack, resource.resource_type)
        # A key that is not in the schema is a parameter that the nested template no longer has.
        if any(not schema[key].updatable for key in changed & schema.keys()):
            raise UpdateReplace
        resource.props = props
        try:
            await self._act(resource, "UPDATE", partial(resource.kind.update, resource, before, changed))
        except (ActionFailed, asyncio.CancelledError):
            resource.props = before  # so that the next update finds that a change is still missing
            raise

    def _properties(self, resource: Resource, definition: ResourceDefinition) -> Json:
        stack = resource.stack
        try:
            given = {key: resolve(stack, snippet) for key, snippet in definition.properties.items()}
            return checked_properties(stack, definition, given, resource.resource_type, resource.kind, self._services)
        except Invalid as error:
            raise ResourceFailure("StackValidationFailed", error.inner) from error
        except ServiceError as error:
            raise ResourceFailure("StackValidationFailed", error.message) from error
        except (TypeError, ValueError, KeyError) as error:
            raise ResourceFailure(type(error).__name__, str(error)) from error

    async def _act(self, resource: Resource, action: str, work: Callable[[], Awaitable[None]]) -> None:
        """Run an action on a resource and record the result; raise ActionFailed."""
        resource.became(action, "IN_PROGRESS")
        try:
            await work()
        except ResourceFailure as error:
            failure = error.under(resource.name)
            resource.became(action, "FAILED", str(failure))
            raise ActionFailed(action, failure) from error
        except ServiceError as error:
            failure = ResourceFailure.of_service(error).under(resource.name)
            resource.became(action, "FAILED", str(failure))
            raise ActionFailed(action, failure) from error
        except asyncio.CancelledError:
            # The next update or delete finds the resource as failed and repairs it.
            resource.became(action, "FAILED", f"{action} aborted")
            raise
        resource.became(action, "COMPLETE")

    async def _clean_up(self, stack: Stack, generation: int) -> ActionFailed | None:
        wanted = stack.wanted()
        unwanted = [resource for name, resource in stack.resources.items() if name not in wanted]
        if not unwanted and not stack.replaced:
            return None
        return await self.remove(stack, [*stack.replaced, *unwanted], generation)

    async def remove(self, stack: Stack, resources: Sequence[Resource], generation: int) -> ActionFailed | None:
        """Remove resources, each after those that depend on it."""
        return await graph.run(
            {resource: partial(self._remove_one, stack, resource) for resource in resources},
            # The removal runs against the dependencies: a resource goes after those that need it.
            {resource: {other for other in resources if resource.name in other.requires} for resource in resources},
            superseded=lambda: stack.generation != generation,
            failed=lambda failure: finish(stack, generation, failure),
        )

    async def pause(self, stack: Stack, action: str, generation: int) -> ActionFailed | None:
        """SUSPEND every resource after its dependents, or RESUME it after its dependencies; record the result."""
        made = {name: resource for name, resource in stack.resources.items() if resource.made}
        needed = {name: resource.requires & made.keys() for name, resource in made.items()}
        if action == "SUSPEND":
            needed = {name: frozenset(other for other, needs in needed.items() if name in needs) for name in made}
        failure = await graph.run(
            {name: partial(self._pause_one, resource, action) for name, resource in made.items()},
            needed,
            superseded=lambda: stack.generation != generation,
            failed=lambda failure: finish(stack, generation, failure),
        )
        finish(stack, generation, failure)
        return failure

    async def _pause_one(self, resource: Resource, action: str) -> None:
        work = resource.kind.suspend if action == "SUSPEND" else resource.kind.resume
        await self._act(resource, action, partial(work, resource))

    async def _remove_one(self, stack: Stack, resource: Resource) -> None:
        # A retained resource leaves the stack, but stays in the cloud.
        if resource.made and resource.definition.deletion_policy != "retain":
            await self._act(resource, "DELETE", partial(resource.kind.delete, resource))
        if resource in stack.replaced:
            stack.replaced.remove(resource)
        else:
            stack.resources.pop(resource.name, None)


def finish(stack: Stack, generation: int, failure: ActionFailed | None) -> None:
    """Record a change's result, unless a later change has started or it was recorded already."""
    # After the first failure, or a newer change, later results must not overwrite the state.
    if stack.generation != generation or stack.status != "IN_PROGRESS":
        return
    if failure is None:
        stack.became(stack.action, "COMPLETE", f"Stack {stack.action} completed successfully")
    else:
        stack.became(stack.action, "FAILED", str(failure))
