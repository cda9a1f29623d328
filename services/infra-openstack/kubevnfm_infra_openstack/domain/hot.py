"""Reads HOT templates (Heat's template guide): parameters, intrinsic functions as far as they can be told beforehand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

AUTO_SCALING_GROUP: Final = "OS::Heat::AutoScalingGroup"
RESOURCE_GROUP: Final = "OS::Heat::ResourceGroup"
SERVER: Final = "OS::Nova::Server"
PORT: Final = "OS::Neutron::Port"
FLOATING_IP: Final = "OS::Neutron::FloatingIP"
NETWORK: Final = "OS::Neutron::Net"
SUBNET: Final = "OS::Neutron::Subnet"
VOLUME: Final = "OS::Cinder::Volume"

Parameters = Mapping[str, Any]


class _Unknown:
    """A value that only Heat can tell (an attribute of a resource, say)."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = _Unknown()


def resources_of(template: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    """Return the resources that are objects, by name; a malformed one is Heat's to refuse."""
    resources = template.get("resources")
    if not isinstance(resources, Mapping):
        return {}
    return {str(name): resource for name, resource in resources.items() if isinstance(resource, Mapping)}


def properties_of(resource: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a resource's properties."""
    properties = resource.get("properties")
    return properties if isinstance(properties, Mapping) else {}


def parameter_paths(node: Any) -> Iterator[Sequence[Any]]:
    """Yield the argument of every ``get_param`` below the node that is a list."""
    if isinstance(node, Mapping):
        for key, value in node.items():
            if key == "get_param":
                if isinstance(value, list):
                    yield value
            else:
                yield from parameter_paths(value)
    elif isinstance(node, list):
        for value in node:
            yield from parameter_paths(value)


def declared(template: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the template's parameter declarations by name."""
    parameters = template.get("parameters")
    return parameters if isinstance(parameters, Mapping) else {}


def bound(template: Mapping[str, Any], given: Parameters) -> Parameters:
    """Return the value of each declared parameter: as given, else its default, else UNKNOWN."""
    values: dict[str, Any] = {}
    for name, declaration in declared(template).items():
        default = declaration.get("default", UNKNOWN) if isinstance(declaration, Mapping) else UNKNOWN
        values[name] = given.get(name, default)
    return values


def resolve(value: Any, parameters: Parameters) -> Any:
    """Return the value with ``get_param`` replaced; UNKNOWN for what other functions or unbound parameters give."""
    if not isinstance(value, Mapping):
        return value
    if set(value) != {"get_param"}:
        return (
            UNKNOWN
            if len(value) == 1 and str(next(iter(value))).startswith(("get_", "str_", "Fn::", "list_", "if"))
            else value
        )
    path = value["get_param"]
    steps = path if isinstance(path, list) else [path]
    found: Any = parameters
    for step in steps:
        step = resolve(step, parameters)
        if isinstance(found, Mapping) and step in found:
            found = found[step]
        elif isinstance(found, list) and str(step).isdigit() and int(step) < len(found):
            found = found[int(step)]
        else:
            return UNKNOWN
    return found


def whole_number(value: Any) -> int | None:
    """Return a count that may be written as text; None when it is none, or unknown."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, str) and value.strip().isdigit():
        return int(value)
    return None
