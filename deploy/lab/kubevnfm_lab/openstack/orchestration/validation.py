"""Validate a stack before anything is created: parameters, references, types, properties, attributes, order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kubevnfm_lab.openstack.errors import ServiceError
from kubevnfm_lab.openstack.orchestration import graph
from kubevnfm_lab.openstack.orchestration.functions import UNKNOWN, resolve
from kubevnfm_lab.openstack.orchestration.stack import Stack
from kubevnfm_lab.openstack.orchestration.template import Json, ResourceDefinition, references
from kubevnfm_lab.openstack.orchestration.types.base import Invalid, ResourceType, Services, checked
from kubevnfm_lab.openstack.orchestration.types.nested import GroupType
from kubevnfm_lab.openstack.orchestration.types.registry import Types


class Draft:
    """The scope of a stack without any resource yet: their values are not known."""

    def __init__(self, stack: Stack, types: Types) -> None:
        self._stack, self._types = stack, types

    def parameter(self, name: str) -> Any:
        return self._stack.parameter(name)

    def reference(self, name: str) -> Any:
        return UNKNOWN

    def attribute(self, name: str, attribute: str, path: Sequence[Any]) -> Any:
        definition = self._stack.template.resources.get(name)
        if definition is not None and attribute:
            resource_type, kind = self._types.find(self._stack, definition.resource_type, name)
            if not kind.knows(attribute, self._stack, resource_type):
                raise _UnknownAttribute(f"The Referenced Attribute ({name} {attribute}) is incorrect.")
        return UNKNOWN

    def file(self, name: str) -> str:
        return self._stack.file(name)

    def condition(self, name: str) -> bool:
        return self._stack.condition(name)


class _UnknownAttribute(Exception):
    pass


def validate(stack: Stack, types: Types, services: Services) -> None:
    """Raise the first error of a stack, as a ServiceError (400) in Heat's words."""
    _check_references(stack)
    draft = Draft(stack, types)
    wanted = stack.wanted()
    # Circles are reported before any property, as in Heat.
    graph.check_order({name: definition.references for name, definition in wanted.items()})
    for name, definition in wanted.items():
        resource_type, kind = types.find(stack, definition.resource_type, name)
        given = _resolved(draft, definition)
        props = checked_properties(stack, definition, given, resource_type, kind, services)
        kind.validate(name, props)
        if isinstance(kind, GroupType):
            _check_member(stack, name, props, types, services)
    for name, output in stack.template.outputs.items():
        for reference in references(output.value):
            if reference not in stack.template.resources:
                raise _wrong_reference(reference, f"outputs.{name}.value")
        try:
            resolve(draft, output.value)
        except _UnknownAttribute as error:
            raise Invalid("", f"outputs.{name}.value.get_attr", str(error)) from error


def checked_properties(
    stack: Stack,
    definition: ResourceDefinition,
    given: Json,
    resource_type: str,
    kind: ResourceType,
    services: Services,
) -> Json:
    """Return a resource's properties, typed and complete; raise Invalid."""
    return checked(
        kind.schema(stack, resource_type),
        given,
        where=f"resources.{definition.name}",
        services=services,
        project_id=stack.project_id,
        user_id=stack.user_id,
    )


def _resolved(draft: Draft, definition: ResourceDefinition) -> Json:
    given: Json = {}
    for key, snippet in definition.properties.items():
        where = f"resources.{definition.name}.properties.{key}"
        try:
            given[key] = resolve(draft, snippet)
        except _UnknownAttribute as error:
            raise Invalid("", f"{where}.get_attr", str(error)) from error
        except Invalid:
            raise
        except ServiceError as error:
            raise Invalid("Property error", where, error.message) from error
        except (TypeError, ValueError, KeyError) as error:
            raise Invalid("Property error", where, str(error)) from error
    return given


def _check_references(stack: Stack) -> None:
    known = stack.template.resources
    for name, definition in known.items():
        # The frequent case, without a search for the place of the mistake.
        if definition.references <= known.keys():
            continue
        for key, snippet in definition.properties.items():
            for reference in references(snippet):
                if reference not in known:
                    raise _wrong_reference(reference, f"{name}.Properties.{key}")
        missing = next(iter(definition.references - known.keys()))
        raise _wrong_reference(missing, name)


def _wrong_reference(reference: str, where: str) -> ServiceError:
    message = f'The specified reference "{reference}" (in {where}) is incorrect.'
    return ServiceError("heat", 400, "InvalidTemplateReference", message)


def _check_member(stack: Stack, group: str, props: Json, types: Types, services: Services) -> None:
    member = props.get("resource") or props.get("resource_def") or {}
    if not isinstance(member, dict) or not isinstance(member.get("type"), str):
        return
    resource_type, kind = types.find(stack, member["type"], group)
    # A stand-in definition: the group's members exist only after the creation.
    definition = ResourceDefinition(group, member["type"])
    checked_properties(stack, definition, member.get("properties") or {}, resource_type, kind, services)
