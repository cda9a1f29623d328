"""Stacks and their resources, and the scope in which a stack's functions are resolved."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from kubevnfm_lab.openstack.errors import ServiceError
from kubevnfm_lab.openstack.ids import new_hex, new_uuid, now_z, short_id
from kubevnfm_lab.openstack.orchestration.failures import validation_failed
from kubevnfm_lab.openstack.orchestration.functions import resolve, resolve_condition, walk
from kubevnfm_lab.openstack.orchestration.parameters import Environment
from kubevnfm_lab.openstack.orchestration.template import Json, ResourceDefinition, Template

if TYPE_CHECKING:
    from kubevnfm_lab.openstack.orchestration.types.base import ResourceType

_EVENTS_KEPT: Final = 1000


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a stack or of one of its resources."""

    event_id: str
    time: str
    resource: str
    physical_id: str
    status: str
    reason: str
    resource_type: str
    properties: Json | None = None


@dataclass(eq=False, kw_only=True, slots=True)
class Resource:
    """A resource of a stack."""

    stack: Stack
    definition: ResourceDefinition
    kind: ResourceType
    resource_type: str
    """The type, as the template names it."""
    action: str = "INIT"
    status: str = "COMPLETE"
    reason: str = ""
    physical_id: str | None = None
    physical_name: str = ""
    props: Json = field(default_factory=dict)
    """The properties that were applied last, with every default."""
    requires: frozenset[str] = frozenset()
    nested: Stack | None = None
    data: Json = field(default_factory=dict)
    """State that the type keeps."""
    created: str = field(default_factory=now_z)
    updated: str = field(default_factory=now_z)

    def __post_init__(self) -> None:
        self.physical_name = f"{self.stack.name}-{self.definition.name}-{short_id()}"

    @property
    def name(self) -> str:
        """Its name in the template."""
        return self.definition.name

    @property
    def state(self) -> str:
        """``CREATE_COMPLETE`` and the like."""
        return f"{self.action}_{self.status}"

    @property
    def made(self) -> bool:
        """Whether its creation was ever started."""
        return self.action != "INIT"

    def became(self, action: str, status: str, reason: str = "state changed") -> None:
        """Record a state and add an event."""
        self.action, self.status, self.reason = action, status, reason
        self.updated = now_z()
        # A retried resource counts from its last creation, by which groups order members.
        if action == "CREATE" and status == "IN_PROGRESS":
            self.created = self.updated
        self.stack.add_event(
            self.name,
            self.physical_id or self.physical_name,
            f"{action}_{status}",
            reason,
            self.resource_type,
            # Events show only the properties that the template sets.
            {key: value for key, value in self.props.items() if key in self.definition.properties},
        )

    def reference(self) -> Any:
        """Return what ``get_resource`` gives for it."""
        return self.kind.reference(self)


@dataclass(eq=False, kw_only=True, slots=True)
class Stack:
    """A stack, nested or not."""

    stack_id: str = field(default_factory=new_uuid)
    name: str
    project_id: str
    owner: str
    user_id: str
    template: Template
    environment: Environment
    files: dict[str, Any]
    parameters: Json = field(default_factory=dict)
    """Typed values of the template's parameters."""
    tags: list[str] = field(default_factory=list)
    disable_rollback: bool = True
    timeout_mins: int | None = None
    parent: Resource | None = None
    resources: dict[str, Resource] = field(default_factory=dict)
    replaced: list[Resource] = field(default_factory=list)
    """Resources that were replaced, until they are removed."""
    action: str = "CREATE"
    status: str = "IN_PROGRESS"
    reason: str = "Stack CREATE started"
    created: str = field(default_factory=now_z)
    updated: str | None = None
    user_project_id: str = field(default_factory=new_hex)
    events: deque[Event] = field(default_factory=lambda: deque(maxlen=_EVENTS_KEPT))
    task: asyncio.Task[None] | None = None
    generation: int = 0
    """Number of the current change; an older change that still runs starts nothing new."""
    _conditions: dict[str, bool] = field(default_factory=dict)

    @property
    def state(self) -> str:
        """``CREATE_COMPLETE`` and the like."""
        return f"{self.action}_{self.status}"

    @property
    def gone(self) -> bool:
        """Whether it was deleted."""
        return self.action == "DELETE" and self.status == "COMPLETE"

    @property
    def path(self) -> str:
        """``name/id``, as in its address."""
        return f"{self.name}/{self.stack_id}"

    def became(self, action: str, status: str, reason: str) -> None:
        """Record a state and add an event."""
        self.action, self.status, self.reason = action, status, reason
        self.add_event(self.name, self.stack_id, f"{action}_{status}", reason, "OS::Heat::Stack")

    def add_event(
        self,
        resource: str,
        physical_id: str,
        status: str,
        reason: str,
        resource_type: str,
        properties: Json | None = None,
    ) -> None:
        """Add an event, newest first."""
        event = Event(new_uuid(), now_z(), resource, physical_id, status, reason, resource_type, properties)
        self.events.appendleft(event)

    def use(self, template: Template, environment: Environment, files: dict[str, Any], parameters: Json) -> None:
        """Apply the input of a create or update."""
        self.template, self.environment, self.files, self.parameters = template, environment, files, parameters
        self._conditions = {}

    def wanted(self) -> dict[str, ResourceDefinition]:
        """Return the definitions whose condition holds."""
        return {
            name: definition
            for name, definition in self.template.resources.items()
            if definition.condition is None or self.holds(f"resources.{name}.condition", definition.condition)
        }

    def holds(self, where: str, condition: Any) -> bool:
        """Return whether a condition holds; raise a 400 that names its place if it cannot be evaluated."""
        try:
            return resolve_condition(self, condition)
        except KeyError as error:
            raise validation_failed(f'{where}: : Invalid condition "{condition}"') from error

    def walk(self) -> Iterator[Stack]:
        """Yield the stack and all nested ones, outer first."""
        level = [self]
        while level:
            yield from level
            level = [r.nested for stack in level for r in stack.all_resources() if r.nested is not None]

    def all_resources(self) -> Sequence[Resource]:
        """Return its resources, including replaced ones that are not removed yet."""
        return [*self.resources.values(), *self.replaced]

    def outputs(self) -> list[Json]:
        """Return its outputs as the API shows them; null where a value does not exist yet."""
        return [shown for name in self.template.outputs if (shown := self.output(name)) is not None]

    def output(self, name: str) -> Json | None:
        """Return one output as the API shows it; None if its condition does not hold."""
        definition = self.template.outputs[name]
        if definition.condition is not None and not self.holds(f"outputs.{name}.condition", definition.condition):
            return None
        shown: Json = {"output_key": name, "description": definition.description, "output_value": None}
        try:
            shown["output_value"] = resolve(self, definition.value)
        # Heat reports a failed output as output_error instead of failing the request.
        except (ServiceError, KeyError, TypeError, ValueError) as error:
            shown["output_error"] = str(error)
        return shown

    def output_value(self, name: str) -> Any:
        """Return an output's value, None if there is no such output; nested stacks' attributes are read so."""
        shown = self.output(name) if name in self.template.outputs else None
        return shown["output_value"] if shown else None

    # -- the scope of its functions

    def parameter(self, name: str) -> Any:
        """Return a parameter's or pseudo parameter's value."""
        if name in self.parameters:
            return self.parameters[name]
        if name == "OS::stack_name":
            return self.name
        if name == "OS::stack_id":
            return self.stack_id
        if name == "OS::project_id":
            return self.project_id
        raise ServiceError("heat", 400, "UserParameterMissing", f"The Parameter ({name}) was not provided.")

    def reference(self, name: str) -> Any:
        """Return what ``get_resource`` gives; None if the resource's condition does not hold."""
        resource = self.resources.get(name)
        return resource.reference() if resource is not None else None

    def attribute(self, name: str, attribute: str, path: Sequence[Any]) -> Any:
        """Return what ``get_attr`` gives; None for a resource that does not exist (yet)."""
        resource = self.resources.get(name)
        # Outputs are shown while the stack is still being created.
        if resource is None or not resource.made:
            return None
        if not attribute:
            return resource.kind.show(resource)
        return resource.kind.attribute(resource, attribute, path)

    def file(self, name: str) -> str:
        """Return a file's text."""
        if name not in self.files:
            raise validation_failed(f'No content found in the "files" section for get_file path: {name}')
        return str(self.files[name])

    def condition(self, name: str) -> bool:
        """Return whether a named condition holds; raise KeyError if there is none of that name."""
        known = self._conditions.get(name)
        if known is None:
            known = self._conditions[name] = resolve_condition(self, self.template.conditions[name])
        return known


def follow(value: Any, path: Sequence[Any]) -> Any:
    """Return the part of an attribute's value that a path leads to."""
    return walk(value, path) if path else value
