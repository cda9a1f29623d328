"""Reads HOT templates (Heat's template guide): parameters, and functions whose value is known before Heat runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

AUTO_SCALING_GROUP: Final = "OS::Heat::AutoScalingGroup"
RESOURCE_GROUP: Final = "OS::Heat::ResourceGroup"
SERVER: Final = "OS::Nova::Server"
SERVER_GROUP: Final = "OS::Nova::ServerGroup"
FLAVOR: Final = "OS::Nova::Flavor"
PORT: Final = "OS::Neutron::Port"
FLOATING_IP: Final = "OS::Neutron::FloatingIP"
NETWORK: Final = "OS::Neutron::Net"
SUBNET: Final = "OS::Neutron::Subnet"
VOLUME: Final = "OS::Cinder::Volume"

Template = Mapping[str, Any]
"""A parsed HOT document, or a resource or other part of it. Heat checks it; here its values can be anything."""
Templates = Mapping[str, Template]
"""Nested templates, parsed, by file name."""
Parameters = Mapping[str, Any]
"""Heat parameters by name: text, number, or the JSON value of a ``json`` parameter."""


class _Unknown:
    """A value that only Heat knows (an attribute of a resource, for example)."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = _Unknown()


def resources_of(template: Template) -> Templates:
    """Return the resources that are objects, by name. Malformed ones are left out; Heat rejects them."""
    resources = template.get("resources")
    if not isinstance(resources, Mapping):
        return {}
    return {str(name): resource for name, resource in resources.items() if isinstance(resource, Mapping)}


def properties_of(resource: Template) -> Template:
    """Return a resource's properties."""
    properties = resource.get("properties")
    return properties if isinstance(properties, Mapping) else {}


def declared(template: Template) -> Template:
    """Return the template's parameter declarations by name."""
    parameters = template.get("parameters")
    return parameters if isinstance(parameters, Mapping) else {}


def bound(template: Template, given: Parameters) -> Parameters:
    """Return the value of each declared parameter: the given one, else its default, else UNKNOWN."""
    values: dict[str, object] = {}
    for name, declaration in declared(template).items():
        default = declaration.get("default", UNKNOWN) if isinstance(declaration, Mapping) else UNKNOWN
        values[name] = given.get(name, default)
    return values


def resolve(value: object, parameters: Parameters) -> object:
    """Return the value with ``get_param`` replaced; UNKNOWN for other functions and for parameters without a value."""
    if not isinstance(value, Mapping):
        return value
    if set(value) != {"get_param"}:
        return UNKNOWN if is_function(value) else value
    path = value["get_param"]
    steps = path if isinstance(path, list) else [path]
    found: object = parameters
    for step in steps:
        step = resolve(step, parameters)
        if isinstance(found, Mapping) and step in found:
            found = found[step]
        elif isinstance(found, list) and str(step).isdigit() and int(str(step)) < len(found):
            found = found[int(str(step))]
        else:
            return UNKNOWN
    return found


def is_function(value: Mapping[str, object]) -> bool:
    """Return whether the object is a call of one of HOT's functions."""
    # Only HOT functions that packages use for counts and sizes; an unknown one counts as a plain object.
    return len(value) == 1 and str(next(iter(value))).startswith(("get_", "str_", "Fn::", "list_", "if"))


def whole_number(value: object) -> int | None:
    """Return a count, which may be written as text; None if it is no number or unknown."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, str) and value.strip().isdigit():
        return int(value)
    return None
