"""HOT templates: parsed once, cached by their text, and split into definitions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

import yaml

from kubevnfm_lab.openstack.errors import ServiceError
from kubevnfm_lab.openstack.orchestration.failures import invalid_template, validation_failed

VERSIONS: Final = (
    "2013-05-23",
    "2014-10-16",
    "2015-04-30",
    "2015-10-15",
    "2016-04-08",
    "2016-10-14",
    "2017-02-24",
    "2017-09-01",
    "2018-03-02",
    "2018-08-31",
    "2021-04-16",
    "newton",
    "ocata",
    "pike",
    "queens",
    "rocky",
    "wallaby",
)
_SECTIONS: Final = frozenset(
    {
        "heat_template_version",
        "description",
        "parameters",
        "parameter_groups",
        "resources",
        "outputs",
        "conditions",
    }
)
_RESOURCE_KEYS: Final = frozenset(
    {
        "type",
        "properties",
        "metadata",
        "depends_on",
        "deletion_policy",
        "update_policy",
        "description",
        "external_id",
        "condition",
    }
)

Json = dict[str, Any]


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # the C parser where there is one
    """Reads dates as strings: heat_template_version is one."""


_Loader.yaml_implicit_resolvers = {
    key: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for key, resolvers in _Loader.yaml_implicit_resolvers.items()
}


@dataclass(frozen=True, slots=True)
class ParameterSchema:
    """A parameter of a template."""

    name: str
    kind: str
    default: Any
    has_default: bool
    hidden: bool
    description: str
    label: str
    immutable: bool
    constraints: tuple[Json, ...]


@dataclass(frozen=True, slots=True)
class ResourceDefinition:
    """A resource as the template defines it, with its functions unresolved."""

    name: str
    resource_type: str
    properties: Json = field(default_factory=dict)
    metadata: Json = field(default_factory=dict)
    depends_on: tuple[str, ...] = ()
    deletion_policy: str = "delete"
    update_policy: Json = field(default_factory=dict)
    condition: Any = None
    description: str = ""
    external_id: Any = None
    references: frozenset[str] = frozenset()
    """Every resource that it refers to; it is created after them."""


@dataclass(frozen=True, slots=True)
class OutputDefinition:
    """A value that a stack publishes."""

    name: str
    value: Any
    description: str
    condition: Any = None


@dataclass(frozen=True, slots=True)
class Template:
    """A parsed template, with its raw form."""

    version: str
    description: str
    parameters: Mapping[str, ParameterSchema]
    resources: Mapping[str, ResourceDefinition]
    outputs: Mapping[str, OutputDefinition]
    conditions: Mapping[str, Any]
    raw: Json


def parse(source: object, *, name: str = "root stack") -> Template:
    """Return a template from YAML or JSON text or from an object.

    Raises: ServiceError (400) in Heat's words. The same text is parsed only once.
    """
    if isinstance(source, str):
        return _parse_text(source, name)
    if isinstance(source, dict):
        return _take_apart(source)
    raise invalid_template("The template is not a JSON object or YAML mapping.")


# Nested templates are parsed again for every member of a group, and every service test sends the same few.
@lru_cache(maxsize=512)
def _parse_text(text: str, name: str) -> Template:
    return _take_apart(load_yaml(text, name))


def load_yaml(text: str, name: str) -> Json:
    """Return a mapping from YAML or JSON text; raise Heat's 400."""
    # JSON is YAML too, but the JSON parser is many times faster, and clients send templates as JSON.
    if text.lstrip().startswith("{"):
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        if isinstance(value, dict):
            return value
    try:
        # The loader is a safe one; ruff knows only yaml's own.
        value = yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as error:
        raise invalid_template(f"Error parsing template [{name}] {error}") from error
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise invalid_template("The template is not a JSON object or YAML mapping.")
    return value


def _take_apart(raw: Json) -> Template:
    version = raw.get("heat_template_version")
    if version is None:
        raise invalid_template("Template format version not found.")
    if str(version) not in VERSIONS:
        raise ServiceError(
            "heat",
            400,
            "InvalidTemplateVersion",
            f'The template version is invalid: "heat_template_version: {version}". "heat_template_version" should be'
            f" one of: {', '.join(VERSIONS)}",
        )
    for section in raw:
        if section not in _SECTIONS:
            raise validation_failed(f"The template section is invalid: {section}")
    return Template(
        version=str(version),
        description=str(raw.get("description") or "No description"),
        parameters={name: _parameter(str(name), value) for name, value in _section(raw, "parameters").items()},
        resources={name: _resource(str(name), value) for name, value in _section(raw, "resources").items()},
        outputs={name: _output(str(name), value) for name, value in _section(raw, "outputs").items()},
        conditions=_section(raw, "conditions"),
        raw=raw,
    )


def _section(raw: Json, name: str) -> Json:
    value = raw.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise validation_failed(f'The "{name}" section is not a map: {value!r}')
    return value


def _parameter(name: str, value: Any) -> ParameterSchema:
    if not isinstance(value, dict) or "type" not in value:
        raise validation_failed(f"Missing parameter type for parameter: {name}")
    kind = str(value["type"])
    if kind not in ("string", "number", "json", "comma_delimited_list", "boolean"):
        raise validation_failed(f"Invalid type ({kind})")
    return ParameterSchema(
        name=name,
        kind=kind,
        default=value.get("default"),
        # A default of null counts as none, as in Heat: the parameter must then be given.
        has_default=value.get("default") is not None,
        hidden=str(value.get("hidden", False)).lower() in ("true", "1", "yes"),
        description=str(value.get("description") or ""),
        label=str(value.get("label") or name),
        immutable=bool(value.get("immutable", False)),
        constraints=tuple(value.get("constraints") or ()),
    )


def _resource(name: str, value: Any) -> ResourceDefinition:
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        raise validation_failed("Each resource must contain a type key.")
    for key in value:
        if key not in _RESOURCE_KEYS:
            raise validation_failed(f'"{key}" is not a valid keyword inside a resource definition')
    depends_on = value.get("depends_on") or ()
    if isinstance(depends_on, str):
        depends_on = (depends_on,)
    properties = value.get("properties") or {}
    if not isinstance(properties, dict):
        raise validation_failed(f"Resource {name} properties type must be a map")
    metadata = value.get("metadata") or {}
    return ResourceDefinition(
        name=name,
        resource_type=value["type"],
        properties=properties,
        metadata=metadata,
        depends_on=tuple(depends_on),
        deletion_policy=str(value.get("deletion_policy") or "delete").lower(),
        update_policy=value.get("update_policy") or {},
        condition=value.get("condition"),
        description=str(value.get("description") or ""),
        external_id=value.get("external_id"),
        references=frozenset(references(properties)) | frozenset(references(metadata)) | frozenset(depends_on),
    )


def _output(name: str, value: Any) -> OutputDefinition:
    if not isinstance(value, dict) or "value" not in value:
        raise validation_failed(f"Each output must contain a value key. Output: {name}")
    return OutputDefinition(
        name, value["value"], str(value.get("description") or "No description given"), value.get("condition")
    )


def references(snippet: Any) -> Iterator[str]:
    """Yield the names of the resources that a snippet refers to."""
    if isinstance(snippet, dict):
        if len(snippet) == 1:
            ((key, argument),) = snippet.items()
            if key == "get_resource" and isinstance(argument, str):
                yield argument
                return
            if key == "get_attr" and isinstance(argument, list) and argument and isinstance(argument[0], str):
                yield argument[0]
                yield from references(argument[1:])
                return
        for value in snippet.values():
            yield from references(value)
    elif isinstance(snippet, list):
        for value in snippet:
            yield from references(value)
