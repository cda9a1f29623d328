"""Values of a template's parameters: their sources, their types, and their validation."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kubevnfm_lab.openstack.errors import ServiceError
from kubevnfm_lab.openstack.orchestration.failures import validation_failed
from kubevnfm_lab.openstack.orchestration.template import Json, ParameterSchema, Template, load_yaml

_TRUE: Final = frozenset({"t", "true", "on", "y", "yes", "1"})
_FALSE: Final = frozenset({"f", "false", "off", "n", "no", "0"})
Lookup = Callable[[str, Any], str | None]
"""Returns what is wrong with a value under a custom constraint (``nova.flavor``), or None."""


@dataclass
class Environment:
    """The user's input to a stack in addition to the template."""

    parameters: Json = field(default_factory=dict)
    parameter_defaults: Json = field(default_factory=dict)
    resource_registry: Json = field(default_factory=dict)
    event_sinks: list[Any] = field(default_factory=list)
    encrypted_param_names: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, source: object, *, files: Mapping[str, Any], names: list[str]) -> Environment:
        """Return an environment from the ``environment`` of a request and from the named environment files."""
        merged: Json = {}
        # Later files override earlier ones, and the inline environment overrides all files.
        for name in names:
            text = files.get(name)
            _merge(merged, text if isinstance(text, dict) else load_yaml(str(text or ""), name))
        if isinstance(source, str):
            _merge(merged, load_yaml(source, "environment"))
        elif isinstance(source, dict):
            _merge(merged, source)
        return cls(
            parameters=dict(merged.get("parameters") or {}),
            parameter_defaults=dict(merged.get("parameter_defaults") or {}),
            resource_registry=dict(merged.get("resource_registry") or {}),
            event_sinks=list(merged.get("event_sinks") or ()),
            encrypted_param_names=list(merged.get("encrypted_param_names") or ()),
        )

    def for_nested(self, parameters: Json) -> Environment:
        """Return a nested stack's environment: its own parameters, its parent's defaults and registry."""
        return Environment(
            parameters=parameters,
            parameter_defaults=self.parameter_defaults,
            resource_registry=self.resource_registry,
        )

    def merged_with(self, other: Environment) -> Environment:
        """Return it with a later update's environment applied."""
        return Environment(
            parameters={**self.parameters, **other.parameters},
            parameter_defaults={**self.parameter_defaults, **other.parameter_defaults},
            resource_registry={**self.resource_registry, **other.resource_registry},
            event_sinks=other.event_sinks or self.event_sinks,
            encrypted_param_names=other.encrypted_param_names or self.encrypted_param_names,
        )

    def mapped_type(self, resource_type: str, resource_name: str) -> str:
        """Return the type that the registry substitutes for another, for that resource or for all."""
        by_name = self.resource_registry.get("resources")
        # An entry for one resource name wins over one for all resources of the type.
        if isinstance(by_name, dict):
            mapped = (by_name.get(resource_name) or {}).get(resource_type)
            if isinstance(mapped, str):
                return mapped
        mapped = self.resource_registry.get(resource_type)
        return mapped if isinstance(mapped, str) else resource_type

    def view(self) -> Json:
        """Return it as the API shows it."""
        return {
            "resource_registry": {"resources": {}, **self.resource_registry},
            "parameters": self.parameters,
            "parameter_defaults": self.parameter_defaults,
            "event_sinks": self.event_sinks,
            "encrypted_param_names": self.encrypted_param_names,
        }


def _merge(target: Json, source: Mapping[str, Any]) -> None:
    for key, value in source.items():
        if isinstance(value, dict) and isinstance(target.get(key), dict):
            target[key] = {**target[key], **value}
        else:
            target[key] = value


def parameter_values(template: Template, environment: Environment, *, strict: bool, lookup: Lookup) -> Json:
    """Return the value of every parameter of the template, typed.

    ``strict``: refuse values for parameters that the template lacks (a root stack's user may mistype them).
    Raises: ServiceError: UserParameterMissing, UnknownUserParameter, StackValidationFailed.
    """
    if strict:
        for name in environment.parameters:
            # Pseudo parameters (OS::stack_id and others) are always permitted.
            if name not in template.parameters and not str(name).startswith("OS::"):
                message = f"The Parameter ({name}) was not defined in template."
                raise ServiceError("heat", 400, "UnknownUserParameter", message)
    values: Json = {}
    for name, schema in template.parameters.items():
        # null means "not given" in Heat.
        if name in environment.parameters and environment.parameters[name] is not None:
            given = environment.parameters[name]
        elif name in environment.parameter_defaults:
            given = environment.parameter_defaults[name]
        elif schema.has_default:
            given = schema.default
        else:
            message = f"The Parameter ({name}) was not provided."
            raise ServiceError("heat", 400, "UserParameterMissing", message)
        values[name] = _typed(schema, given, lookup)
    return values


def _typed(schema: ParameterSchema, given: Any, lookup: Lookup) -> Any:
    try:
        value = _CONVERT[schema.kind](given)
    except (ValueError, TypeError) as error:
        raise validation_failed(f"Parameter '{schema.name}' is invalid: {error}") from error
    for constraint in schema.constraints:
        wrong = _breaks(constraint, schema, value, lookup)
        if wrong is not None:
            text = constraint.get("description") or wrong
            raise validation_failed(f"Parameter '{schema.name}' is invalid: {text}")
    return value


def _number(given: Any) -> int | float:
    # YAML reads yes and no as booleans; Heat's Number accepts them as 1 and 0.
    if isinstance(given, bool):
        return int(given)
    if isinstance(given, int | float):
        return given
    try:
        return int(given)
    except ValueError:
        return float(given)


def _boolean(given: Any) -> bool:
    text = str(given).lower()
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise ValueError(f"Unrecognized value '{given}', acceptable values are: {', '.join(sorted(_FALSE | _TRUE))}")


def _json(given: Any) -> Any:
    # JSON parameters may come as objects or as their text.
    if isinstance(given, dict | list):
        return given
    value = json.loads(str(given))
    if not isinstance(value, dict | list):
        raise ValueError(f"Value must be valid JSON: {given}")
    return value


def _list(given: Any) -> list[str]:
    if isinstance(given, list):
        return [str(one) for one in given]
    return [one.strip() for one in str(given).split(",")] if str(given) else []


def _string(given: Any) -> str:
    if isinstance(given, dict | list):
        raise ValueError("Value must be a string")
    return str(given)


_CONVERT: Final[Mapping[str, Callable[[Any], Any]]] = {
    "string": _string,
    "number": _number,
    "boolean": _boolean,
    "json": _json,
    "comma_delimited_list": _list,
}


def _breaks(constraint: Json, schema: ParameterSchema, value: Any, lookup: Lookup) -> str | None:
    if "allowed_values" in constraint:
        allowed = constraint["allowed_values"]
        values = value if isinstance(value, list) else [value]
        for one in values:
            # Templates write numbers as text and the other way round, so text forms are compared too.
            if one not in allowed and str(one) not in [str(other) for other in allowed]:
                return f'"{one}" is not an allowed value {json.dumps(allowed)}'
    if "range" in constraint:
        low, high = constraint["range"].get("min"), constraint["range"].get("max")
        if (low is not None and value < low) or (high is not None and value > high):
            return f"{value} is out of range (min: {low}, max: {high})"
    if "length" in constraint:
        low, high = constraint["length"].get("min"), constraint["length"].get("max")
        if (low is not None and len(value) < low) or (high is not None and len(value) > high):
            return f"length ({len(value)}) is out of range (min: {low}, max: {high})"
    if "allowed_pattern" in constraint:
        pattern = str(constraint["allowed_pattern"])
        if not re.fullmatch(pattern, str(value)):
            return f'"{value}" does not match pattern "{pattern}"'
    # An empty optional value is not looked up, so that templates can leave it out.
    if "custom_constraint" in constraint and value not in ("", None):
        return lookup(str(constraint["custom_constraint"]), value)
    return None


def shown(schema: ParameterSchema, value: Any) -> str:
    """Return a parameter's value as a stack shows it: always text, hidden ones as asterisks."""
    if schema.hidden:
        return "******"
    if schema.kind == "json":
        return json.dumps(value)
    if schema.kind == "comma_delimited_list":
        return ",".join(value)
    return str(value)
