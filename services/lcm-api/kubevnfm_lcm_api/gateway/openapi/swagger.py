"""Gives an OpenAPI 3.1 document of ours in the form of Swagger 2.0, for clients that know no other (multicloud.md MC-127).

It is for our documents alone, and says less than they do: of alternatives it keeps none, of media types the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kubevnfm_kit.json_types import JsonObject

from kubevnfm_lcm_api.http.bodies import FORM

_KEPT: Final = frozenset(
    """
    title description default multipleOf maximum minimum maxLength minLength pattern maxItems minItems uniqueItems
    maxProperties minProperties required enum type readOnly format
    """.split()  # noqa: SIM905 - a list of names is read as a text
)
"""Keywords that both forms have with one meaning."""
_OF_PARAMETERS: Final = _KEPT - {"title", "readOnly", "required", "maxProperties", "minProperties"}
_HERE, _THERE = "#/components/schemas/", "#/definitions/"
_IN_A_HEADER: Final = {"type": "apiKey", "in": "header", "name": "Authorization"}
_SECURITY: Final[JsonObject] = {
    "basic": {"type": "basic"},
    "bearer": {**_IN_A_HEADER, "description": "Bearer and the token"},
    "keystone": {"type": "apiKey", "in": "header", "name": "X-Auth-Token"},
    "internal": {**_IN_A_HEADER, "description": "Bearer and the token that the services share"},
}
"""Without certificates, which Swagger does not know."""


def to_swagger(document: JsonObject) -> JsonObject:
    """Return the document in the form of Swagger 2.0."""
    info = document["info"]
    return {
        "swagger": "2.0",
        "info": {
            "title": info["title"],
            "version": info["version"],
            "description": info["summary"],
            "license": {"name": info["license"]["name"]},
        },
        "tags": document["tags"],
        "security": _security(document["security"]),
        "securityDefinitions": _SECURITY,
        "paths": {
            path: {method: _operation(operation) for method, operation in methods.items()}
            for path, methods in document["paths"].items()
        },
        "definitions": {name: _schema(each) for name, each in document["components"]["schemas"].items()},
    }


def _security(ways: list[JsonObject]) -> list[JsonObject]:
    return [way for way in ways if way.keys() <= _SECURITY.keys()]


def _operation(operation: JsonObject) -> JsonObject:
    types = [kind for each in operation["responses"].values() for kind in each.get("content", ())]
    shown: JsonObject = {name: operation[name] for name in ("tags", "summary", "operationId")}
    if "security" in operation:
        shown["security"] = _security(operation["security"])
    shown["parameters"] = [_parameter(each) for each in operation["parameters"]]
    if "requestBody" in operation:
        body = operation["requestBody"]
        # A parameter of a form cannot be beside a body: a form is described where it is the only way to send one.
        consumed = [kind for kind in body["content"] if kind != FORM]
        if consumed:
            schema = _schema(body["content"][consumed[0]]["schema"])
            shown["parameters"].append({"name": "body", "in": "body", "required": body["required"], "schema": schema})
        else:
            shown["parameters"] += [
                {"name": name, "in": "formData", "required": True, "type": kind}
                for name, kind in (("metadata", "string"), ("file", "file"))
            ]
        shown["consumes"] = consumed or [FORM]
    shown["produces"] = list(dict.fromkeys(types))
    shown["responses"] = {status: _response(each) for status, each in operation["responses"].items()}
    return shown


def _parameter(parameter: JsonObject) -> JsonObject:
    shown: JsonObject = {
        name: parameter[name] for name in ("name", "in", "description", "required") if name in parameter
    }
    if parameter.get("allowEmptyValue"):
        shown["allowEmptyValue"] = True
    return {**shown, **_plain(parameter["schema"])}


def _plain(schema: Mapping[str, Any]) -> JsonObject:
    """Return the schema of a parameter or header: a text, a number, a list of them."""
    shown = {name: value for name, value in schema.items() if name in _OF_PARAMETERS}
    shown.setdefault("type", "string")
    if shown["type"] == "array":
        shown |= {"items": _plain(schema.get("items", {})), "collectionFormat": "multi"}
    return shown


def _response(response: JsonObject) -> JsonObject:
    shown: JsonObject = {"description": response["description"]}
    if "content" in response:
        shown["schema"] = _schema(next(iter(response["content"].values()))["schema"])
    if "headers" in response:
        shown["headers"] = {
            name: _plain(each["schema"]) | {"description": each.get("description", name)}
            for name, each in response["headers"].items()
        }
    return shown


def _schema(schema: Any) -> JsonObject:
    """Return a schema without the keywords that Swagger lacks; what only they say is lost."""
    if not isinstance(schema, Mapping):  # true and false
        return {}
    if "$ref" in schema:
        return {"$ref": schema["$ref"].replace(_HERE, _THERE)}
    shown: JsonObject = dict(_keywords(schema))
    kinds = schema.get("type")
    if isinstance(kinds, list) or kinds == "null":
        kinds = next((kind for kind in kinds if kind != "null"), None) if isinstance(kinds, list) else None
        shown.pop("type")
        if kinds is not None:
            shown["type"] = kinds
    choices = [each for each in (schema.get("anyOf") or schema.get("oneOf") or ()) if each != {"type": "null"}]
    if len(choices) == 1:
        # With something beside it, a reference would hide that.
        shown |= _schema(choices[0]) if "$ref" not in choices[0] else {"allOf": [_schema(choices[0])]}
    if shown.get("type") == "array":
        shown.setdefault("items", {})
    return shown


def _keywords(schema: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in schema.items():
        match name:
            case "default" if value is None:
                continue
            case "properties":
                yield name, {each: _schema(of) for each, of in value.items()}
            case "items" | "additionalProperties":
                yield name, value if isinstance(value, bool) and name != "items" else _schema(value)
            case "patternProperties" if "additionalProperties" not in schema or not schema["additionalProperties"]:
                yield "additionalProperties", _schema(next(iter(value.values())))
            case "allOf":
                yield name, [_schema(each) for each in value]
            case "const":
                yield "enum", [value]
            case "exclusiveMinimum" | "exclusiveMaximum":
                yield name.removeprefix("exclusive").lower(), value
                yield name, True
            case "contentEncoding":
                yield "format", "byte"
            case _ if name in _KEPT:
                yield name, value
