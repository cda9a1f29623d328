"""How many instances a VDU has: where a stack's template says it, and how template or parameters are changed to say another.

A group's size comes from a parameter as a rule; one that stands in the template itself is written there. The policies
that packages bring beside their groups are not signalled: a signal cannot be told from its repeat, does not show in the
stack's state, and is undone by the next update of the stack, which brings the group back to what its template says.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kubevnfm_csar import Flavour

from kubevnfm_infra_openstack.domain.errors import VduNotScalable
from kubevnfm_infra_openstack.domain.hot import (
    AUTO_SCALING_GROUP,
    RESOURCE_GROUP,
    SERVER,
    UNKNOWN,
    bound,
    properties_of,
    resources_of,
)
from kubevnfm_infra_openstack.domain.stack import StackDefinition

_SIZE: Final[Mapping[str, str]] = {AUTO_SCALING_GROUP: "desired_capacity", RESOURCE_GROUP: "count"}
_MEMBER: Final[Mapping[str, str]] = {AUTO_SCALING_GROUP: "resource", RESOURCE_GROUP: "resource_def"}

Templates = Mapping[str, Mapping[str, Any]]
"""Nested templates, parsed, by file name."""


@dataclass(frozen=True)
class Resized:
    """What of a stack's definition changes."""

    template: Mapping[str, Any] | None = None
    """None: it stays."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Those that change, whole."""


def resized(
    definition: StackDefinition, nested: Templates, vnfd: Flavour, counts: Mapping[str, int], present: Mapping[str, int]
) -> Resized:
    """Return what makes Heat bring the VDUs to ``counts``; ``present``: how many there are now.

    Raises VduNotScalable for a VDU whose count differs and that no group of the template holds.
    """
    template: dict[str, Any] | None = None
    parameters: dict[str, Any] = {}
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
        elif value is not None or present.get(vdu) != counts[vdu]:
            template = template or copy.deepcopy(dict(definition.template))
            template["resources"][name].setdefault("properties", {})[size] = counts[vdu]
    for vdu, count in counts.items():
        if vdu not in reached and present.get(vdu, 0) != count:
            raise VduNotScalable(
                "", f"VDU {vdu}: the package's Heat template has no group for it, nor user data that scales it"
            )
    return Resized(template, parameters)


def vdu_of_group(name: str, group: Mapping[str, Any], vnfd: Flavour, nested: Templates) -> str | None:
    """Return the VDU whose instances a group's members are: by its size's parameter, its name, or its members' servers."""
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


def parameter_path(value: Any) -> list[Any] | None:
    """Return what a ``get_param`` reads as a list; None for any other value."""
    if not isinstance(value, Mapping) or set(value) != {"get_param"}:
        return None
    path = value["get_param"]
    return list(path) if isinstance(path, list) else [path]


def present_value(definition: StackDefinition, name: str) -> Any:
    """Return a parameter's value as it is: as given, else the template's default; JSON that was given as text parsed."""
    value = bound(definition.template, definition.parameters).get(name, UNKNOWN)
    if isinstance(value, str) and value.lstrip().startswith(("{", "[")):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return None if value is UNKNOWN else value


def _put(parameters: dict[str, Any], definition: StackDefinition, path: Sequence[Any], value: int, vdu: str) -> None:
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
        raise VduNotScalable("", f"VDU {vdu}: the stack's parameter {name} has no {'.'.join(map(str, path[1:]))}")
    place[path[-1]] = value
