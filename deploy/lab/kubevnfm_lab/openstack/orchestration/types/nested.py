"""Resources that are stacks: the user's own templates, and groups of members."""

from __future__ import annotations

import math
import time
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final

from kubevnfm_lab.openstack.errors import ServiceError
from kubevnfm_lab.openstack.ids import new_hex, short_id
from kubevnfm_lab.openstack.orchestration.failures import validation_failed
from kubevnfm_lab.openstack.orchestration.functions import is_unknown
from kubevnfm_lab.openstack.orchestration.parameters import Environment
from kubevnfm_lab.openstack.orchestration.signals import signal_url
from kubevnfm_lab.openstack.orchestration.stack import Resource, Stack, follow
from kubevnfm_lab.openstack.orchestration.template import Json, ResourceDefinition, Template, parse, references
from kubevnfm_lab.openstack.orchestration.types.base import Property, ResourceType, Services, StackRunner

_PARAMETER_KIND: Final = {
    "string": "string",
    "number": "number",
    "boolean": "boolean",
    "json": "any",
    "comma_delimited_list": "list",
}


class NestedType(ResourceType):
    """The base of nested types: the nested stack is created, updated and deleted with the resource."""

    always_updates = True

    def __init__(self, services: Services, runner: StackRunner) -> None:
        super().__init__(services)
        self.runner = runner

    @abstractmethod
    def child(self, resource: Resource) -> Template:
        """Return the nested stack's template for the resource's current properties."""

    def child_environment(self, resource: Resource) -> Environment:
        """Return the nested stack's parameters and registry."""
        return resource.stack.environment.for_nested({})

    async def create(self, resource: Resource) -> None:
        """Create the nested stack."""
        await self.runner.create_nested(resource, self.child(resource), self.child_environment(resource))

    async def update(self, resource: Resource, before: Json, changed: set[str]) -> None:
        """Update the nested stack; unchanged resources in it stay."""
        await self.runner.update_nested(resource, self.child(resource), self.child_environment(resource))

    async def delete(self, resource: Resource) -> None:
        """Delete the nested stack."""
        await self.runner.delete_nested(resource)

    async def suspend(self, resource: Resource) -> None:
        """Suspend the nested stack."""
        await self.runner.pause_nested(resource, "SUSPEND")

    async def resume(self, resource: Resource) -> None:
        """Resume the nested stack."""
        await self.runner.pause_nested(resource, "RESUME")

    def is_there(self, resource: Resource) -> bool:
        """A failure inside is repaired by an update inside, so the resource itself is not replaced."""
        return resource.nested is not None


class TemplateType(NestedType):
    """A template file as a type: its parameters are the properties, its outputs the attributes."""

    name = ""
    properties: ClassVar[Mapping[str, Property]] = {}

    def template_of(self, stack: Stack, resource_type: str) -> Template:
        """Return the template that the type names; raise Heat's 400 if the request did not contain it."""
        text = stack.files.get(resource_type)
        if text is None:
            raise validation_failed(f'Could not fetch remote template "{resource_type}": Invalid URL scheme ')
        return parse(text, name=resource_type)

    def schema(self, stack: Stack, resource_type: str) -> Mapping[str, Property]:
        """Return the template's parameters as properties."""
        return {
            # Everything is updatable: a change of a parameter becomes an update of the nested stack.
            name: Property(_PARAMETER_KIND[p.kind], required=not p.has_default, default=None, updatable=True)
            for name, p in self.template_of(stack, resource_type).parameters.items()
        }

    def child(self, resource: Resource) -> Template:
        """Return the template."""
        return self.template_of(resource.stack, resource.resource_type)

    def child_environment(self, resource: Resource) -> Environment:
        """Return the properties as parameters."""
        given = {name: value for name, value in resource.props.items() if value is not None}
        return resource.stack.environment.for_nested(given)

    def reference(self, resource: Resource) -> Any:
        """Return the output ``OS::stack_id`` if the template has one, else the nested stack's ARN-like id."""
        # The template can choose its own reference by an output of this name.
        if resource.nested is not None:
            own = resource.nested.output_value("OS::stack_id")
            if own is not None:
                return own
            # Heat's references to nested stacks have the form of AWS ARNs.
            return f"arn:openstack:heat::{resource.stack.project_id}:stacks/{resource.nested.path}"
        return resource.physical_id

    def show(self, resource: Resource) -> Json:
        """Return the nested stack's outputs."""
        nested = resource.nested
        return {name: nested.output_value(name) for name in nested.template.outputs} if nested else {}

    def attribute(self, resource: Resource, name: str, path: Sequence[Any]) -> Any:
        """Return an output, or ``resource.NAME(.ATTRIBUTE)`` of a resource inside."""
        if resource.nested is None:
            return None
        if name.startswith("resource."):
            return _inside(resource.nested, name, path)
        return follow(resource.nested.output_value(name), path)

    def knows(self, attribute: str, stack: Stack, resource_type: str) -> bool:
        """Its outputs and the resources inside."""
        return (
            attribute == "show"
            or attribute.startswith("resource.")
            or attribute in self.template_of(stack, resource_type).outputs
        )


class GroupType(NestedType):
    """The base of groups: members with one definition, in a stack of their own."""

    def members(self, resource: Resource) -> list[Resource]:
        """Return the members that did not fail, oldest first."""
        if resource.nested is None:
            return []
        members = [r for r in resource.nested.resources.values() if r.status != "FAILED"]
        return sorted(members, key=_age)

    def member_value(self, member: Resource, path: Sequence[Any]) -> Any:
        """Return an attribute of a member."""
        return member.kind.attribute(member, str(path[0]), path[1:]) if path else member.reference()

    def knows(self, attribute: str, stack: Stack, resource_type: str) -> bool:
        """A group has its members' attributes, which are known only once there are members."""
        return True


class AutoScalingGroupType(GroupType):
    """OS::Heat::AutoScalingGroup: members with random names; the oldest are removed first."""

    name = "OS::Heat::AutoScalingGroup"
    properties: ClassVar[Mapping[str, Property]] = {
        "max_size": Property("integer", required=True, updatable=True, low=0),
        "min_size": Property("integer", required=True, updatable=True, low=0),
        "desired_capacity": Property("integer", updatable=True, low=0),
        "cooldown": Property("integer", updatable=True),
        "resource": Property("map", required=True, updatable=True),
        "rolling_updates": Property("map", default=None, updatable=True),
    }
    attributes = frozenset({"outputs", "outputs_list", "current_size", "refs", "refs_map"})

    def validate(self, resource_name: str, props: Json) -> None:
        """Check the sizes against each other."""
        low, high, wanted = props["min_size"], props["max_size"], props["desired_capacity"]
        if is_unknown([low, high, wanted]):
            return
        if low > high:
            raise validation_failed("MinSize can not be greater than MaxSize")
        if wanted is not None and not low <= wanted <= high:
            raise validation_failed("DesiredCapacity must be between MinSize and MaxSize")
        member = props["resource"]
        if not isinstance(member.get("type"), str):
            raise validation_failed(f"Property error: : resources.{resource_name}.properties.resource: : type")

    def child(self, resource: Resource) -> Template:
        """Return the group's template for the capacity that its properties ask for."""
        props = resource.props
        # As in Heat, a desired capacity of 0 is taken for none in an update, which keeps the current size.
        capacity = props["desired_capacity"] or len(self.members(resource))
        if resource.nested is None and props["desired_capacity"] is None:
            capacity = props["min_size"]
        return self.sized(resource, min(max(capacity, props["min_size"]), props["max_size"]))

    async def update(self, resource: Resource, before: Json, changed: set[str]) -> None:
        """Give the members a changed definition, some at a time, then bring the group to its capacity."""
        if "resource" in changed and resource.nested is not None:
            for size, redefined in _batches(resource.props, len(resource.nested.resources)):
                template = self.sized(resource, size, redefined)
                await self.runner.update_nested(resource, template, self.child_environment(resource), is_batch=True)
        await super().update(resource, before, changed)

    def sized(self, resource: Resource, capacity: int, redefined: int = 0) -> Template:
        """Return the group's template for a capacity: failed members are removed first, then the oldest.

        New members get the present definition. Those that stay keep theirs, except the first ``redefined`` of those
        whose definition differs. So only a change of the property ``resource`` reaches them: after an update that
        failed, which leaves the property as it was, a member can have another definition than its group.
        Source: heat.scaling.template.member_definitions.
        """
        staying: list[ResourceDefinition] = []
        if resource.nested is not None and capacity:
            known = resource.nested.template.resources
            # Removal starts at the front: failed members, then the oldest.
            ranked = sorted(resource.nested.resources.values(), key=lambda r: (r.status != "FAILED", *_age(r)))
            staying = [known[member.name] for member in ranked if member.name in known][-capacity:]
        wanted = resource.props["resource"]
        definitions: list[ResourceDefinition] = []
        for present in staying:
            new = _member(present.name, wanted)
            is_taken = redefined > 0 and present != new
            redefined -= is_taken
            definitions.append(new if is_taken else present)
        # New members get random names, as in Heat, so that no name is used twice.
        definitions += [_member(short_id(), wanted) for _ in range(capacity - len(staying))]
        return group_template(definitions)

    def adjust(self, resource: Resource, policy: Json) -> str | None:
        """Scale as a policy asks; return why nothing is done, None if it is started."""
        # Heat ignores the signal without an error; the answer is 200 in any case.
        if resource.nested is None or resource.status != "COMPLETE":
            return "the group is not complete"
        if resource.nested.status == "IN_PROGRESS":
            return "due to scaling activity"
        current = len(self.members(resource))
        low, high = resource.props["min_size"], resource.props["max_size"]
        wanted = min(max(_capacity(current, policy), low), high)
        if wanted == current:
            return "there is no change in capacity"
        cooldown = policy["cooldown"] if policy["cooldown"] is not None else resource.props["cooldown"]
        now = time.monotonic()
        if now < resource.data.get("cooldown_end", 0.0):
            return f"due to cooldown, cooldown {cooldown}"
        resource.data["cooldown_end"] = now + (cooldown or 0)
        self.runner.begin_resize(resource, self.sized(resource, wanted), self.child_environment(resource))
        return None

    def show(self, resource: Resource) -> Json:
        """Return the attributes as Heat's API shows them: only their names, for every group."""
        return dict.fromkeys(("current_size", "refs", "outputs_list", "outputs", "refs_map"))

    def attribute(self, resource: Resource, name: str, path: Sequence[Any]) -> Any:
        """Return ``outputs_list``, ``outputs``, ``refs``, ``refs_map``, ``current_size`` or ``resource.N``."""
        members = self.members(resource)
        if name == "current_size":
            return len(members)
        if name == "refs":
            return [member.reference() for member in members]
        if name == "refs_map":
            return {member.name: member.reference() for member in members}
        if name == "outputs_list":
            return [self.member_value(member, path) for member in members]
        if name == "outputs":
            return {member.name: self.member_value(member, path) for member in members}
        if name.startswith("resource."):
            index, *attribute = name.removeprefix("resource.").split(".", 1)
            if index.isdigit() and int(index) < len(members):
                return self.member_value(members[int(index)], [*attribute, *path])
        return None

    def knows(self, attribute: str, stack: Stack, resource_type: str) -> bool:
        """The attributes named above."""
        return attribute in self.attributes or attribute == "show" or attribute.startswith("resource.")


class ResourceGroupType(GroupType):
    """OS::Heat::ResourceGroup: members named 0, 1, 2 ..."""

    name = "OS::Heat::ResourceGroup"
    properties: ClassVar[Mapping[str, Property]] = {
        "count": Property("integer", default=1, updatable=True, low=0),
        "index_var": Property(default="%index%"),
        "resource_def": Property("map", required=True, updatable=True),
        "removal_policies": Property("list", default=[], updatable=True),
        "removal_policies_mode": Property(default="append", updatable=True),
    }

    def child(self, resource: Resource) -> Template:
        """Return the group's template: the first free indexes that were not removed by hand."""
        props = resource.props
        # Indexes that were removed stay unused, so that the other members keep their names.
        removed = set(resource.data.get("removed", ())) if props["removal_policies_mode"] == "append" else set()
        for policy in props["removal_policies"] or ():
            removed |= {self._name_of(resource, str(one)) for one in policy.get("resource_list") or ()}
        resource.data["removed"] = sorted(removed)
        names: list[str] = []
        index = 0
        while len(names) < props["count"]:
            if str(index) not in removed:
                names.append(str(index))
            index += 1
        wanted, variable = props["resource_def"], str(props["index_var"])
        given = wanted.get("properties") or {}
        return group_template(
            [_member(name, {**wanted, "properties": _indexed(given, variable, name)}) for name in names]
        )

    def show(self, resource: Resource) -> Json:
        """Return its own attributes."""
        members = self.members(resource)
        return {
            "refs": [member.reference() for member in members],
            "refs_map": {member.name: member.reference() for member in members},
            "attributes": None,
            "removed_rsrc_list": list(resource.data.get("removed", ())),
        }

    def attribute(self, resource: Resource, name: str, path: Sequence[Any]) -> Any:
        """Return its own attributes, ``resource.N``, or any attribute of all members as a list."""
        members = self.members(resource)
        if name == "refs":
            return follow([member.reference() for member in members], path)
        if name == "refs_map":
            return {member.name: member.reference() for member in members}
        if name == "removed_rsrc_list":
            return list(resource.data.get("removed", ()))
        if name == "attributes":
            return {member.name: self.member_value(member, path) for member in members}
        if name.startswith("resource."):
            return _inside(resource.nested, name, path) if resource.nested else None
        return [self.member_value(member, [name, *path]) for member in members]

    def _name_of(self, resource: Resource, name_or_reference: str) -> str:
        for member in self.members(resource):
            if name_or_reference in (member.name, member.physical_id, member.reference()):
                return member.name
        return name_or_reference


class ScalingPolicyType(ResourceType):
    """OS::Heat::ScalingPolicy: changes a group when it is signalled."""

    name = "OS::Heat::ScalingPolicy"
    properties: ClassVar[Mapping[str, Property]] = {
        "auto_scaling_group_id": Property(required=True),
        "scaling_adjustment": Property("number", required=True, updatable=True),
        "adjustment_type": Property(
            required=True,
            updatable=True,
            allowed=("change_in_capacity", "exact_capacity", "percent_change_in_capacity"),
        ),
        "cooldown": Property("number", updatable=True),
        "min_adjustment_step": Property("integer", updatable=True),
    }
    attributes = frozenset({"alarm_url", "signal_url"})

    async def create(self, resource: Resource) -> None:
        """Set the physical id, in Heat that of the user that may signal it."""
        resource.physical_id = new_hex()

    def show(self, resource: Resource) -> Json:
        """Return the address at which it can be signalled without a token."""
        url = signal_url(self.services.base_url, self.services.signal_key, resource)
        return {"alarm_url": url, "signal_url": url}

    def signal(self, resource: Resource) -> str | None:
        """Scale the group; return why nothing is done, None if it is started."""
        group_id = resource.props["auto_scaling_group_id"]
        # The policy refers to the group by its reference, which is the nested stack's id.
        for group in resource.stack.resources.values():
            if isinstance(group.kind, AutoScalingGroupType) and group.reference() == group_id:
                return group.kind.adjust(group, resource.props)
        message = f'Alarm {resource.name} could not find scaling group named "{group_id}"'
        raise ServiceError("heat", 404, "NotFound", message)


def group_template(members: Sequence[ResourceDefinition]) -> Template:
    """Return a template of members, whose properties are resolved."""
    raw: Json = {
        "heat_template_version": "2015-04-30",
        "resources": {
            member.name: {
                "type": member.resource_type,
                "properties": member.properties,
                **({"metadata": member.metadata} if member.metadata else {}),
            }
            for member in members
        },
    }
    resources = {member.name: member for member in members}
    return Template("2015-04-30", "No description", {}, resources, {}, {}, raw)


def _member(name: str, wanted: Json) -> ResourceDefinition:
    """Return a member's definition from a group's property, which has the form of a resource in a template."""
    properties = wanted.get("properties") or {}
    return ResourceDefinition(
        name,
        wanted["type"],
        properties,
        metadata=wanted.get("metadata") or {},
        references=frozenset(references(properties)),
    )


def _batches(props: Json, size: int) -> Iterator[tuple[int, int]]:
    """Yield the steps of a rolling update of a group: its size after the step, and the members with a new definition.

    Source: heat.scaling.rolling_update.
    """
    policy = props["rolling_updates"] or {}
    wanted = min(props["desired_capacity"] or size, size)
    done = 0
    while done < size or size != wanted:
        batch = min(int(policy.get("max_batch_size", 1)), wanted - done)
        in_service = min(int(policy.get("min_in_service", 0)), wanted, size)
        size = batch + max(min(size, wanted - batch), in_service)
        done += batch
        yield size, batch


def _age(member: Resource) -> tuple[str, str]:
    """Order members as Heat does: oldest first by whole seconds, then by name."""
    return member.created, member.name


def _capacity(current: int, policy: Json) -> int:
    # Source: heat.scaling.scalingutil.calculate_new_capacity.
    adjustment, kind = policy["scaling_adjustment"], policy["adjustment_type"]
    if kind == "exact_capacity":
        return int(adjustment)
    if kind == "change_in_capacity":
        return current + int(adjustment)
    delta: float = current * adjustment / 100.0
    outwards = math.ceil if delta > 0 else math.floor
    inwards = math.floor if delta > 0 else math.ceil
    # Less than one member counts as one; otherwise the fraction is dropped.
    change: int = outwards(delta) if abs(delta) < 1 else inwards(delta)
    step = policy["min_adjustment_step"]
    if step and step > abs(change):
        change = int(step) if change > 0 else -int(step)
    return current + change


def _indexed(value: Any, variable: str, index: str) -> Any:
    if isinstance(value, str):
        return value.replace(variable, index)
    if isinstance(value, list):
        return [_indexed(one, variable, index) for one in value]
    if isinstance(value, dict):
        return {_indexed(key, variable, index): _indexed(one, variable, index) for key, one in value.items()}
    return value


def _inside(nested: Stack, name: str, path: Sequence[Any]) -> Any:
    member_name, *attribute = name.removeprefix("resource.").split(".", 1)
    member = nested.resources.get(member_name)
    if member is None:
        return None
    wanted = [*attribute, *path]
    if not wanted:
        return member.reference()
    return member.kind.attribute(member, str(wanted[0]), wanted[1:])
