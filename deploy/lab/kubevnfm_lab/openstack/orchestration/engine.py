"""Heat's engine: creates, updates and deletes stacks by making each resource match its template."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any, Final

from kubevnfm_lab.openstack.errors import ServiceError
from kubevnfm_lab.openstack.ids import now_z, short_id
from kubevnfm_lab.openstack.orchestration.failures import (
    ResourceFailure,
    resource_not_found,
    stack_not_found,
    validation_failed,
)
from kubevnfm_lab.openstack.orchestration.graph import ActionFailed
from kubevnfm_lab.openstack.orchestration.parameters import Environment, parameter_values
from kubevnfm_lab.openstack.orchestration.stack import Resource, Stack
from kubevnfm_lab.openstack.orchestration.template import Json, Template
from kubevnfm_lab.openstack.orchestration.traversal import Traversal, finish
from kubevnfm_lab.openstack.orchestration.types.base import Invalid, Services
from kubevnfm_lab.openstack.orchestration.types.nested import ScalingPolicyType
from kubevnfm_lab.openstack.orchestration.types.registry import Types
from kubevnfm_lab.openstack.orchestration.validation import validate

log = logging.getLogger(__name__)

_MARKED: Final = "state changed by resource_mark_unhealthy api"


class Engine:
    """All stacks of the cloud, and the running work on them."""

    def __init__(self, services: Services, *, create_retries: int, deleted_kept: int) -> None:
        self._services = services
        self._deleted_kept = deleted_kept
        self.types = Types(services, self)
        self._traversal = Traversal(services, self.types, create_retries=create_retries)
        self.stacks: dict[str, Stack] = {}
        """Existing stacks, nested ones too, by id."""
        self.deleted: OrderedDict[str, Stack] = OrderedDict()
        self._by_name: dict[tuple[str, str], Stack] = {}
        self._later: set[asyncio.Task[None]] = set()
        self._deleted_by_name: dict[tuple[str, str], Stack] = {}

    # -- finding

    def by_id(self, project_id: str, stack_id: str) -> Stack | None:
        """Return a stack of the project, deleted or not."""
        found = self.stacks.get(stack_id) or self.deleted.get(stack_id)
        return found if found is not None and found.project_id == project_id else None

    def by_name(self, project_id: str, name_or_id: str) -> Stack:
        """Return the stack of that name, else the last deleted one, else the one of that id; raise Heat's 404."""
        key = (project_id, name_or_id)
        # A deleted stack is still found by name, as in Heat, but only if no existing one has the name.
        found = self._by_name.get(key) or self.stacks.get(name_or_id)
        found = found or self._deleted_by_name.get(key) or self.deleted.get(name_or_id)
        if found is None or found.project_id != project_id:
            raise stack_not_found(name_or_id)
        return found

    def resource(self, stack: Stack, name: str) -> Resource:
        """Return a resource of a stack; raise Heat's 404."""
        found = stack.resources.get(name)
        if found is None:
            raise resource_not_found(name, stack.name)
        return found

    def newest_first(self, project_id: str, *, deleted: bool = False) -> Iterable[Stack]:
        """Yield the project's stacks, nested ones too; then the deleted ones on request."""
        stacks = reversed(self.stacks.values())
        every = itertools.chain(stacks, reversed(self.deleted.values())) if deleted else stacks
        return (stack for stack in every if stack.project_id == project_id)

    # -- what the API asks for

    def create(self, stack: Stack) -> None:
        """Validate a new stack and start to create it; raise the API's errors."""
        key = (stack.project_id, stack.name)
        # Nested stacks have generated names, so only root stacks can meet here.
        if key in self._by_name:
            raise ServiceError("heat", 409, "StackExists", f"The Stack ({stack.name}) already exists.")
        self._prepare(stack)
        self._add(stack)
        stack.became("CREATE", "IN_PROGRESS", "Stack CREATE started")
        self._begin(stack, partial(self._create, stack))

    def preview(self, stack: Stack) -> None:
        """Validate a stack without creating it."""
        self._prepare(stack)

    def update(self, stack: Stack, draft: Stack) -> None:
        """Validate an update and start it; raise the API's errors.

        ``draft``: an unsaved stack with the new template, environment, files and settings.
        """
        if stack.gone:
            raise stack_not_found(stack.name)
        if stack.action == "DELETE" and stack.status == "IN_PROGRESS":
            message = "Updating a stack when it is deleting is not supported."
            raise ServiceError("heat", 400, "NotSupported", message)
        if stack.action == "SUSPEND":
            # Refused even after SUSPEND has completed: Heat wants a resume first.
            message = "Updating a stack when it is suspended is not supported."
            raise ServiceError("heat", 400, "NotSupported", message)
        # Validated before anything changes: a refused update leaves the stack as it was.
        self._prepare(draft)
        before = (stack.template, stack.environment, stack.files, stack.parameters)
        stack.use(draft.template, draft.environment, draft.files, draft.parameters)
        stack.tags, stack.timeout_mins = draft.tags, draft.timeout_mins
        stack.disable_rollback = draft.disable_rollback
        stack.updated = now_z()
        stack.became("UPDATE", "IN_PROGRESS", "Stack UPDATE started")
        self._begin(stack, partial(self._update, stack, before))

    def delete(self, stack: Stack) -> None:
        """Start the deletion of a stack, even during other work on it; raise Heat's 404 if it is gone."""
        if stack.gone:
            raise stack_not_found(stack.name)
        # A second delete has nothing to add; Heat accepts it without effect.
        if stack.action == "DELETE" and stack.status == "IN_PROGRESS":
            return
        stack.updated = now_z()
        # Heat cancels its present work first, and shows the stack as failed until the deletion begins.
        cancelling_s = self._services.durations.stack_cancel_s if stack.status == "IN_PROGRESS" else 0.0
        if cancelling_s:
            stack.became(stack.action, "FAILED", f"Stack {stack.action} cancelled")
        else:
            stack.became("DELETE", "IN_PROGRESS", "Stack DELETE started")
        # A delete interrupts a create or update; the two would otherwise compete for the same resources.
        self._begin(stack, partial(self._delete, stack, cancelling_s), interrupt=True)

    def check(self, stack: Stack) -> None:
        """Check whether every resource of a stack still exists."""
        stack.updated = now_z()
        stack.became("CHECK", "IN_PROGRESS", "Stack CHECK started")
        broken = [name for name, resource in stack.resources.items() if not self._check_one(resource)]
        if broken:
            stack.became("CHECK", "FAILED", f"Resource CHECK failed: {sorted(broken)}")
        else:
            stack.became("CHECK", "COMPLETE", "Stack CHECK completed successfully")

    def pause(self, stack: Stack, action: str) -> None:
        """Start to SUSPEND or RESUME every resource of a stack; does nothing if that was done already."""
        if stack.state == f"{action}_COMPLETE":
            return
        stack.updated = now_z()
        stack.became(action, "IN_PROGRESS", f"Stack {action} started")

        async def work(generation: int) -> None:
            await self._traversal.pause(stack, action, generation)

        self._begin(stack, work)

    def cancel_update(self, stack: Stack, *, rollback: bool) -> None:
        """Stop a running update, and return to the previous state on request."""
        if stack.state != "UPDATE_IN_PROGRESS":
            message = f"Cancelling update when stack is {stack.state} is not supported."
            raise ServiceError("heat", 400, "NotSupported", message)
        # The running update notices the new generation and starts no further resource.
        stack.generation += 1
        if not rollback:
            stack.became("UPDATE", "FAILED", "Stack UPDATE cancelled")
            return
        stack.became("ROLLBACK", "IN_PROGRESS", "Stack ROLLBACK started")
        self._begin(stack, partial(self._rolled_back, stack))

    def mark(self, resource: Resource, *, unhealthy: bool, reason: str) -> None:
        """Mark a resource as broken, so that the next update replaces it, or clear the mark."""
        if resource.status == "IN_PROGRESS":
            message = f"Resource {resource.name} is in progress of {resource.action} and cannot be marked."
            raise ServiceError("heat", 409, "ActionNotComplete", message)
        # The next update replaces a resource in CHECK_FAILED, even if its properties are unchanged.
        if unhealthy:
            resource.became("CHECK", "FAILED", reason or _MARKED)
        elif resource.state == "CHECK_FAILED":
            resource.became("CHECK", "COMPLETE", reason or _MARKED)

    def signal(self, resource: Resource) -> None:
        """Signal a resource; raise the API's errors."""
        if not isinstance(resource.kind, ScalingPolicyType):
            message = "signal is not supported for resource."
            raise ServiceError("heat", 400, "ResourceActionNotSupported", message)
        if self._services.durations.signal_s:
            task = asyncio.create_task(self._signal_later(resource), name=f"signal {resource.name}")
            self._later.add(task)
            task.add_done_callback(self._later.discard)
            task.add_done_callback(_log_bug)
        else:
            self._take_signal(resource)

    async def _signal_later(self, resource: Resource) -> None:
        await asyncio.sleep(self._services.durations.signal_s)
        # The stack may have been deleted while the signal was waiting.
        if not resource.stack.gone:
            self._take_signal(resource)

    def _take_signal(self, resource: Resource) -> None:
        assert isinstance(resource.kind, ScalingPolicyType)
        nothing = resource.kind.signal(resource)
        reason = "No signal details provided" if nothing is None else f"No action required: {nothing}"
        resource.stack.add_event(
            resource.name, resource.physical_id or "", "SIGNAL_COMPLETE", reason, resource.resource_type
        )

    async def close(self) -> None:
        """Stop all running work."""
        tasks = [stack.task for stack in self.stacks.values() if stack.task is not None and not stack.task.done()]
        tasks += self._later
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # -- nested stacks, for their types

    async def create_nested(self, holder: Resource, template: Template, environment: Environment) -> None:
        """Create the nested stack of a resource; raise ResourceFailure."""
        outer = holder.stack
        stack = Stack(
            name=f"{outer.name}-{holder.name}-{short_id()}",
            project_id=outer.project_id,
            owner=outer.owner,
            user_id=outer.user_id,
            template=template,
            environment=environment,
            files=outer.files,
            # A nested stack that fails keeps its parts; the outer stack decides about the rollback.
            disable_rollback=True,
            timeout_mins=outer.timeout_mins,
            parent=holder,
            user_project_id=outer.user_project_id,
        )
        self._prepare_nested(stack)
        self._add(stack)
        holder.nested, holder.physical_id = stack, stack.stack_id
        stack.became("CREATE", "IN_PROGRESS", "Stack CREATE started")
        self._raise_in_outer(holder, await self._traversal.settle(stack, stack.generation))

    async def update_nested(
        self, holder: Resource, template: Template, environment: Environment, *, is_batch: bool = False
    ) -> None:
        """Update the nested stack of a resource; raise ResourceFailure.

        ``is_batch``: in a rolling update, where members that keep their definition read the earlier files.
        """
        stack = holder.nested
        if stack is None:
            await self.create_nested(holder, template, environment)
            return
        # Source: heat.engine.grouputils.get_child_template_files.
        files = {**stack.files, **holder.stack.files} if is_batch else holder.stack.files
        stack.use(template, environment, files, {})
        self._prepare_nested(stack)
        stack.updated = now_z()
        stack.generation += 1
        stack.became("UPDATE", "IN_PROGRESS", "Stack UPDATE started")
        self._raise_in_outer(holder, await self._traversal.settle(stack, stack.generation))

    async def delete_nested(self, holder: Resource) -> None:
        """Delete the nested stack of a resource; raise ResourceFailure."""
        stack = holder.nested
        if stack is None:
            return
        # The outer stack's own task may be the one that runs the nested stack, which _halt spares.
        await self._halt(stack)
        stack.generation += 1
        stack.became("DELETE", "IN_PROGRESS", "Stack DELETE started")
        self._raise_in_outer(holder, await self._remove_all(stack))
        holder.nested = None

    async def pause_nested(self, holder: Resource, action: str) -> None:
        """Suspend or resume the nested stack of a resource; raise ResourceFailure."""
        stack = holder.nested
        if stack is None:
            return
        stack.generation += 1
        stack.became(action, "IN_PROGRESS", f"Stack {action} started")
        self._raise_in_outer(holder, await self._traversal.pause(stack, action, stack.generation))

    def begin_resize(self, holder: Resource, template: Template, environment: Environment) -> None:
        """Update the nested stack of a group on its own, with no stack that waits for it."""
        stack = holder.nested
        if stack is None:
            return
        # Only the group's own stack changes: Heat leaves the state of the outer stack alone.
        stack.use(template, environment, holder.stack.files, {})
        self._prepare(stack)
        stack.updated = now_z()
        stack.became("UPDATE", "IN_PROGRESS", "Stack UPDATE started")

        async def resize(generation: int) -> None:
            await self._traversal.settle(stack, generation)

        self._begin(stack, resize)

    def _prepare_nested(self, stack: Stack) -> None:
        try:
            self._prepare(stack)
        except Invalid as error:
            raise ResourceFailure("", error.inner) from error
        except ServiceError as error:
            raise ResourceFailure("", error.message) from error

    def _raise_in_outer(self, holder: Resource, failure: ActionFailed | None) -> None:
        if failure is None:
            return
        inner = failure.failure
        # The outer stack reports the innermost failure with its path, not a chain of wrapped ones.
        if failure.action == holder.action and isinstance(inner, ResourceFailure):
            raise inner
        raise ResourceFailure("", str(failure))

    # -- running

    def _prepare(self, stack: Stack) -> None:
        for name, definition in stack.template.resources.items():
            # Heat checks types first, so an unknown type is reported even if a parameter is wrong too.
            # A resource whose condition does not hold may have a type that does not exist.
            if definition.condition is None:
                self.types.find(stack, definition.resource_type, name)
        lookup = partial(self._services.wrong, project_id=stack.project_id, user_id=stack.user_id)
        # A root stack's parameters come from a user and may be mistyped; those of nested stacks come from a template.
        values = parameter_values(stack.template, stack.environment, strict=stack.parent is None, lookup=lookup)
        stack.use(stack.template, stack.environment, stack.files, values)
        validate(stack, self.types, self._services)

    def _add(self, stack: Stack) -> None:
        self.stacks[stack.stack_id] = stack
        self._by_name[stack.project_id, stack.name] = stack

    def _begin(self, stack: Stack, work: Callable[[int], Awaitable[None]], *, interrupt: bool = False) -> None:
        """Run ``work`` after the current work, which ``interrupt`` cancels; else that finishes what it began."""
        stack.generation += 1
        generation, before = stack.generation, stack.task

        async def run() -> None:
            if interrupt:
                await self._halt(stack, before)
            elif before is not None and not before.done():
                await asyncio.wait([before])
            # Another change may have started while this one waited.
            if stack.generation == generation:
                await work(generation)

        stack.task = asyncio.create_task(run(), name=f"{stack.action} {stack.name}")
        stack.task.add_done_callback(_log_bug)

    async def _halt(self, stack: Stack, task: asyncio.Task[None] | None = None) -> None:
        """Cancel the work on a stack and on those nested in it."""
        mine = asyncio.current_task()
        tasks = {task, *(one.task for one in stack.walk())}
        # The current task must not cancel itself: a nested stack is deleted from its holder's task.
        running = [one for one in tasks if one is not None and one is not mine and not one.done()]
        for one in running:
            one.cancel()
        if running:
            await asyncio.wait(running)

    async def _create(self, stack: Stack, generation: int) -> None:
        failure = await self._traversal.settle(stack, generation, limited=True)
        # A rollback of a superseded create would delete the resources of its successor.
        if failure is not None and not stack.disable_rollback and stack.generation == generation:
            stack.updated = now_z()
            stack.became("ROLLBACK", "IN_PROGRESS", "Stack ROLLBACK started")
            undone = await self._traversal.remove(stack, stack.all_resources(), generation)
            finish(stack, generation, undone)

    async def _update(
        self, stack: Stack, before: tuple[Template, Environment, dict[str, Any], Json], generation: int
    ) -> None:
        failure = await self._traversal.settle(stack, generation, limited=True)
        if failure is not None and not stack.disable_rollback and stack.generation == generation:
            # The previous template is applied again like any update.
            stack.use(*before)
            stack.became("ROLLBACK", "IN_PROGRESS", "Stack ROLLBACK started")
            await self._traversal.settle(stack, generation)

    async def _rolled_back(self, stack: Stack, generation: int) -> None:
        await self._traversal.settle(stack, generation)

    async def _delete(self, stack: Stack, cancelling_s: float, generation: int) -> None:
        if cancelling_s:
            await asyncio.sleep(cancelling_s)
            stack.became("DELETE", "IN_PROGRESS", "Stack DELETE started")
        await self._remove_all(stack)

    async def _remove_all(self, stack: Stack) -> ActionFailed | None:
        failure = await self._traversal.remove(stack, stack.all_resources(), stack.generation)
        finish(stack, stack.generation, failure)
        if failure is None and self._services.durations.stack_forget_s and stack.parent is None:
            task = asyncio.create_task(self._archive_later(stack), name=f"archive {stack.name}")
            self._later.add(task)
            task.add_done_callback(self._later.discard)
        elif failure is None:
            self._archive(stack)
        return failure

    async def _archive_later(self, stack: Stack) -> None:
        await asyncio.sleep(self._services.durations.stack_forget_s)
        self._archive(stack)

    def _archive(self, stack: Stack) -> None:
        """Keep the API's view of the latest deleted stacks."""
        key = (stack.project_id, stack.name)
        self.stacks.pop(stack.stack_id, None)
        # The name may already belong to a newer stack.
        if self._by_name.get(key) is stack:
            del self._by_name[key]
        if stack.parent is not None:
            return
        self.deleted[stack.stack_id] = self._deleted_by_name[key] = stack
        # A deleted stack keeps its facts for GET, but not its resources.
        stack.resources, stack.replaced, stack.task = {}, [], None
        while len(self.deleted) > self._deleted_kept:
            _, oldest = self.deleted.popitem(last=False)
            old_key = (oldest.project_id, oldest.name)
            if self._deleted_by_name.get(old_key) is oldest:
                del self._deleted_by_name[old_key]

    def _check_one(self, resource: Resource) -> bool:
        there = resource.kind.is_there(resource)
        resource.became("CHECK", "COMPLETE" if there else "FAILED", "state changed" if there else "not found")
        return there


def _log_bug(task: asyncio.Task[None]) -> None:
    """Record a failure that no action foresaw; a failed resource is handled before."""
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("a stack's task ended by %r", error, exc_info=error)


def check_name(name: object) -> str:
    """Return a stack's name; raise Heat's 400 if it is invalid."""
    text = str(name)
    plain = text.replace("_", "").replace("-", "").replace(".", "")
    if not text[:1].isalpha() or not plain.isalnum() or not text.isascii() or len(text) > 255:
        raise validation_failed(
            f'Invalid stack name {text} must contain only alphanumeric or "_-." characters, must start with alpha and'
            f" must be 255 characters or less."
        )
    return text
