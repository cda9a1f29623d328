"""Finds where a stack's template sets a VDU's number of instances, and changes template or parameters to a new number.

Usually a parameter sets a group's size; a size that the template sets itself is changed there. The scaling policies of
packages are not signalled: a repeated signal scales twice, a signal does not show in the stack's state, and the next
update of the stack undoes it, because the update restores the size of the template.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kubevnfm_csar.vnfd.model import Flavour
from kubevnfm_kit.foreign_json import read_foreign

from kubevnfm_infra_openstack.domain.errors import VduNotScalable
from kubevnfm_infra_openstack.domain.hot import (
    AUTO_SCALING_GROUP,
    RESOURCE_GROUP,
    SERVER,
    UNKNOWN,
    Template,
    Templates,
    bound,
    properties_of,
    resources_of,
)
from kubevnfm_infra_openstack.domain.stack import StackDefinition

_SIZE: Final[Mapping[str, str]] = {AUTO_SCALING_GROUP: "desired_capacity", RESOURCE_GROUP: "count"}
_MEMBER: Final[Mapping[str, str]] = {AUTO_SCALING_GROUP: "resource", RESOURCE_GROUP: "resource_def"}


@dataclass(frozen=True)
class Resized:
    """The part of a stack's definition that changes."""

    template: Template | None = None
    """None: the template does not change."""
    parameters: Mapping[str, object] = field(default_factory=dict)
    """The changed parameters, each with its complete value."""


def resized(
    definition: StackDefinition, nested: Templates, vnfd: Flavour, counts: Mapping[str, int], present: Mapping[str, int]
) -> Resized:
    """Return the change that brings the VDUs to ``counts``; ``present``: how many instances each has now.

    Raises VduNotScalable for a VDU whose count differs and that no group of the template contains.
    """
    template: dict[str, Any] | None = None
    parameters: dict[str, object] = {}
    reached: set[str] = set()
    for name, group in resources_of(definition.template).items():
        size = _SIZE.get(str(group.get("type")))
        vdu = vdu_of_group(name, group, vnfd, nested) if size is not None else None
        if size is None or vdu is None or vdu not in counts:
            continue
        reached.add(vdu)
        value = properties_of(group).get(size)
        path = parameter_path(value)
        if path is not None:
            _put(parameters, definition, path, counts[vdu], vdu)
        # Heat's default size counts as long as it is the wanted one, so an unchanged stack gets no new template.
        elif value is not None or present.get(vdu) != counts[vdu]:
            if template is None:
                template = copy.deepcopy(dict(definition.template))
            template["resources"][name].setdefault("properties", {})[size] = counts[vdu]
    for vdu, count in counts.items():
        if vdu not in reached and present.get(vdu, 0) != count:
            raise VduNotScalable(
                "", f"VDU {vdu}: a group in the package's Heat template, or user data that scales it, expected"
            )
    return Resized(template, parameters)


def with_sizes(template: Template, nested: Templates, vnfd: Flavour, counts: Mapping[str, int]) -> Template | None:
    """Return the template of a new stack in which the groups that it gives a size itself have ``counts``.

    None if nothing changes. A size that a parameter or a function gives is left to those who give it.
    """
    changed: dict[str, Any] | None = None
    for name, group in resources_of(template).items():
        size = _SIZE.get(str(group.get("type")))
        if size is None:
            continue
        given = properties_of(group)
        # Without a size, Heat makes the smallest group.
        value = given.get(size, given.get("min_size") if size == _SIZE[AUTO_SCALING_GROUP] else 1)
        vdu = vdu_of_group(name, group, vnfd, nested) if isinstance(value, int | str) else None
        if vdu is None or str(value) == str(counts.get(vdu, value)):
            continue
        if changed is None:
            changed = copy.deepcopy(dict(template))
        changed["resources"][name].setdefault("properties", {})[size] = counts[vdu]
    return changed


def groups_of(definition: StackDefinition, nested: Templates, vnfd: Flavour, vdus: Collection[str]) -> frozenset[str]:
    """Return the names of the groups that scale these VDUs."""
    groups = {n: one for n, one in resources_of(definition.template).items() if str(one.get("type")) in _SIZE}
    return frozenset(name for name, group in groups.items() if vdu_of_group(name, group, vnfd, nested) in vdus)


def vdu_of_group(name: str, group: Template, vnfd: Flavour, nested: Templates) -> str | None:
    """Return the VDU that a group scales; None if neither its size's parameter, its name nor its servers name one."""
    kind = str(group.get("type"))
    path = parameter_path(properties_of(group).get(_SIZE[kind])) or ()
    bare = name.removesuffix("_group")
    if len(path) > 2 and path[:2] == ["nfv", "VDU"] and path[2] in vnfd.vdus:
        return str(path[2])
    for aspect in (name, bare):
        for vdu in vnfd.scaled_vdus(aspect):
            return vdu
    for vdu in (name, bare):
        if vdu in vnfd.vdus:
            return vdu
    member = properties_of(group).get(_MEMBER[kind])
    inner = nested.get(str(member.get("type"))) if isinstance(member, Mapping) else None
    servers = [n for n, r in resources_of(inner or {}).items() if r.get("type") == SERVER]
    return next((vdu for vdu in servers if vdu in vnfd.vdus), None)


def parameter_path(value: object) -> list[object] | None:
    """Return the path that a ``get_param`` reads; None for any other value."""
    if not isinstance(value, Mapping) or set(value) != {"get_param"}:
        return None
    path = value["get_param"]
    return list(path) if isinstance(path, list) else [path]


def present_value(definition: StackDefinition, name: str) -> object:
    """Return a parameter's value: the given one, else the template's default; a text that is JSON is parsed."""
    # Heat returns a JSON parameter as the text in which it stores it.
    value = bound(definition.template, definition.parameters).get(name, UNKNOWN)
    if isinstance(value, str) and value.lstrip().startswith(("{", "[")):
        try:
            return read_foreign(value)
        except ValueError:
            return value
    return None if value is UNKNOWN else value


def _put(
    parameters: dict[str, object], definition: StackDefinition, path: Sequence[object], value: int, vdu: str
) -> None:
    name = str(path[0])
    if len(path) == 1:
        parameters[name] = value
        return
    if name not in parameters:
        parameters[name] = copy.deepcopy(present_value(definition, name))
    place = parameters[name]
    for step in path[1:-1]:
        place = place.get(step) if isinstance(place, dict) else None
    if not isinstance(place, dict):
        raise VduNotScalable("", f"VDU {vdu}: the stack's parameter {name} lacks {'.'.join(map(str, path[1:]))}")
    place[path[-1]] = value
