"""The schemas of the document: pydantic's of the SOL types, as each API version shows them (api.md chapter 10)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from typing import Any, Final

from kubevnfm_kit.json_schema import DescribedSchema
from kubevnfm_kit.json_types import JsonObject
from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

_PREFIX: Final = "#/components/schemas/"
_TEXT: Final[JsonObject] = {"type": "string"}
_LINKS: Final[JsonObject] = {"type": "object", "additionalProperties": {"$ref": f"{_PREFIX}Link"}}
_ALWAYS_SHOWN: Final[Mapping[str, tuple[str, ...]]] = {
    "VnfInstance": ("instantiationState", "_links"),
    "InstantiatedVnfInfo": ("vnfState",),
    "VnfLcmOpOcc": ("isAutomaticInvocation", "isCancelPending", "_links"),
    "VnfPkgInfo": ("_links",),
}
"""Attributes with a default, and links."""
_V1: Final = "V1"

_LEFT_OUT_OF_V1: Final[Mapping[str, tuple[str, ...]]] = {
    "InstantiatedVnfInfo": ("maxScaleLevels", "metadata"),
    "VnfExtCpInfo": ("cpConfigId",),
    "ExtVirtualLinkInfo": ("currentVnfExtCpData",),
    "VnfExtCpConfig": ("parentCpConfigId", "createExtLinkPort", "netAttDefResourceId"),
    "ResourceChanges": ("affectedExtLinkPorts",),
    "VnfLcmOpOcc": ("modificationsTriggeredByVnfPkgChange", "warnings"),
}
_LEFT_OUT_OF_V2: Final[Mapping[str, tuple[str, ...]]] = {
    "VnfInstance": ("vnfPkgId",),
    "VnfInfoModificationRequest": ("vnfPkgId",),
    "InstantiatedVnfInfo": ("additionalParams",),
}


def component_schemas(answers: Iterable[type[BaseModel]], requests: Iterable[type[BaseModel]]) -> JsonObject:
    """Return every schema by name."""
    wanted: list[tuple[type[BaseModel], JsonSchemaMode]] = [
        *((model, "serialization") for model in answers),
        *((model, "validation") for model in requests),
    ]
    references, definitions = models_json_schema(
        wanted, ref_template=f"{_PREFIX}{{model}}", schema_generator=DescribedSchema
    )
    schemas: JsonObject = definitions["$defs"]
    shown = set(_reached(schemas, (str(references[key]["$ref"]) for key in references if key[1] == "serialization")))
    for name, schema in schemas.items():
        _tidy(schema, is_answer=name in shown)
    return schemas


def sol_schemas(schemas: JsonObject) -> tuple[JsonObject, Mapping[str, str]]:
    """Return the schemas as the versions of SOL's APIs have them, and the names by which v1 knows those that differ there."""
    for name, attributes in _ALWAYS_SHOWN.items():
        _add(schemas[name], {"_links": _LINKS} if "_links" in attributes else {}, required=attributes)
    v1 = _v1_of(schemas)
    for name, attributes in _LEFT_OUT_OF_V2.items():
        _leave_out(schemas[name], attributes)
    return {**schemas, **{f"{name}{_V1}": schema for name, schema in v1.items()}}, {n: f"{n}{_V1}" for n in v1}


def used_by(paths: JsonObject, schemas: JsonObject) -> JsonObject:
    """Return the schemas that the paths refer to, and those that these refer to."""
    roots = {node["$ref"] for node in _objects(paths) if "$ref" in node}
    wanted = set(_reached(schemas, roots))
    return {name: schema for name, schema in sorted(schemas.items()) if name in wanted}


def reference(name: str) -> JsonObject:
    """Return the reference to a schema."""
    return {"$ref": f"{_PREFIX}{name}"}


def _v1_of(schemas: JsonObject) -> JsonObject:
    """Return the schemas that differ in v1, or refer to one that does; their references name one another."""
    changed: JsonObject = {}
    for name, schema in schemas.items():
        other = deepcopy(schema)
        _leave_out(other, _LEFT_OUT_OF_V1.get(name, ()))
        _edit_for_v1(name, other)
        if other != schema:
            changed[name] = other
    # In a list, the id identifies a VimConnectionInfo.
    vim = changed["VimConnectionInfo"] = deepcopy(schemas["VimConnectionInfo"])
    _add(vim, {"id": _TEXT})
    while more := [n for n in schemas if n not in changed and any(r in changed for r in _references(schemas[n]))]:
        changed.update({name: deepcopy(schemas[name]) for name in more})
    for schema in changed.values():
        for node in _nodes(schema):
            target = node.get("$ref", "")
            if target.removeprefix(_PREFIX) in changed:
                node["$ref"] = f"{target}{_V1}"
    return changed


def _edit_for_v1(name: str, schema: JsonObject) -> None:
    properties = schema.get("properties", {})
    connections = properties.get("vimConnectionInfo")
    if connections is not None:
        listed: JsonObject = {"type": "array", "items": {"$ref": f"{_PREFIX}VimConnectionInfo"}}
        can_be_null = any(option.get("type") == "null" for option in connections.get("anyOf", ()))
        properties["vimConnectionInfo"] = {"anyOf": [listed, {"type": "null"}]} if can_be_null else listed
    if name == "VnfExtCpData":
        properties["cpConfig"] = {"type": "array", "items": {"$ref": f"{_PREFIX}VnfExtCpConfig"}}
    if name == "VnfExtCpConfig":
        _add(schema, {"cpInstanceId": _TEXT})
    if name == "InstantiatedVnfInfo":
        # V2.6.1's name, and V3's, of the same
        properties["virtualLinkResourceInfo"] = deepcopy(properties["vnfVirtualLinkResourceInfo"])
    if name == "AffectedVirtualLink":
        _add(schema, {"virtualLinkDescId": _TEXT}, required=["virtualLinkDescId"])
    if name == "VnfLcmOpOcc":
        schema["required"] = [*schema["required"], "operationParams"]


def _tidy(schema: JsonObject, *, is_answer: bool) -> None:
    """Take titles out; and null from answers, for there is none in them: what has no value is absent (api.md 3)."""
    for node in _nodes(schema):
        if isinstance(node.get("title"), str):
            del node["title"]
        options = node.get("anyOf")
        if not is_answer or not isinstance(options, list):
            continue
        left = [option for option in options if option.get("type") != "null"]
        if len(left) < len(options):
            node.pop("default", None)
            if len(left) == 1:
                del node["anyOf"]
                node.update(left[0])
            else:
                node["anyOf"] = left


def _add(schema: JsonObject, properties: JsonObject, required: Iterable[str] = ()) -> None:
    schema["properties"] = {**schema.get("properties", {}), **deepcopy(properties)}
    names = [*schema.get("required", ()), *required]
    if names:
        schema["required"] = names


def _leave_out(schema: JsonObject, names: Iterable[str]) -> None:
    for name in names:
        schema["properties"].pop(name, None)
        if name in schema.get("required", ()):
            schema["required"] = [each for each in schema["required"] if each != name]


def _nodes(node: Any) -> Iterator[JsonObject]:
    """Yield every object of a schema that is a schema itself; a property that is called title is none."""
    if not isinstance(node, dict):
        return
    yield node
    for name, value in node.items():
        if name in {"properties", "$defs", "patternProperties"}:
            for each in value.values():
                yield from _nodes(each)
        elif isinstance(value, list):
            for each in value:
                yield from _nodes(each)
        elif isinstance(value, dict):
            yield from _nodes(value)


def _objects(node: Any) -> Iterator[JsonObject]:
    if isinstance(node, dict):
        yield node
        for value in node.values():
            yield from _objects(value)
    elif isinstance(node, list):
        for each in node:
            yield from _objects(each)


def _references(schema: JsonObject) -> set[str]:
    return {node["$ref"].removeprefix(_PREFIX) for node in _nodes(schema) if "$ref" in node}


def _reached(schemas: JsonObject, roots: Iterable[str]) -> Iterator[str]:
    seen: set[str] = set()
    waiting = [root.removeprefix(_PREFIX) for root in roots]
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            yield name
            waiting.extend(_references(schemas[name]))
