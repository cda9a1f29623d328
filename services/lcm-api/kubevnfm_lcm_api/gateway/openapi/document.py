"""Makes the OpenAPI 3.1 document of the routes, from what each says of its requests and answers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from aiohttp import web
from kubevnfm_access.caller import is_open
from kubevnfm_kit.json_types import JsonObject
from kubevnfm_sol.problem import ProblemDetails
from pydantic import BaseModel

from kubevnfm_lcm_api.gateway import models
from kubevnfm_lcm_api.gateway.openapi.schemas import component_schemas, reference, sol_schemas, used_by
from kubevnfm_lcm_api.gateway.versions import api_of
from kubevnfm_lcm_api.http.bodies import FORM, JSON
from kubevnfm_lcm_api.http.documents import Document, PointedProblem, document_of
from kubevnfm_lcm_api.http.models import Link
from kubevnfm_lcm_api.http.routes import ROUTES, Answer, Parameter, Route, is_for_probes

_PROBLEM: Final = "application/problem+json"
_JSON: Final = JSON[0]
_ANY: Final = {
    400: "Malformed: the request, a parameter, the body",
    401: "Credentials are missing, or not known",
    403: "Known, and not allowed to do this",
    406: "Accept or Version cannot be met",
    421: "Without authentication: Host is not a name of this gateway",
    429: "Too many requests",
    500: "Our fault",
    503: "Something behind us is away",
}
_OF_A_RESOURCE: Final = "There is no such resource"
_OF_A_BODY: Final = {413: "The body is too large", 415: "Not a media type of this resource"}
_KNOWN: Final = "The caller has it already"
_UNCHANGED: Final = "The resource is not as the caller has seen it"
_TEXT: Final = {"type": "string"}
_SECURITY: Final[JsonObject] = {
    "basic": {"type": "http", "scheme": "basic"},
    "bearer": {"type": "http", "scheme": "bearer"},
    "keystone": {"type": "apiKey", "in": "header", "name": "X-Auth-Token"},
    "certificate": {"type": "mutualTLS"},
    "internal": {"type": "http", "scheme": "bearer", "description": "The token that the services share"},
}
_WAYS_IN: Final[list[JsonObject]] = [{name: []} for name in ("basic", "bearer", "keystone", "certificate")]


def make_document(app: web.Application, about: Document, *, version: str) -> JsonObject:
    """Return the document of those routes of the application that it describes."""
    every = sorted(app[ROUTES].items(), key=lambda item: (item[0][1], item[0][0]))
    routes = {key: route for key, route in every if document_of(app, key[1]) == about}
    schemas = component_schemas(_answers(routes.values(), _problem(about)), _requests(routes.values()))
    name_in_v1: Mapping[str, str] = {}
    if not about.prefix:
        schemas, name_in_v1 = sol_schemas(schemas)
    paths: dict[str, JsonObject] = {}
    for (method, path), route in routes.items():
        names: Mapping[str, str] = name_in_v1 if path.startswith("/vnflcm/v1/") else {}
        paths.setdefault(path, {})[method.lower()] = _operation(about, route, method, path, names)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": about.title,
            "version": version,
            "summary": about.summary,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        **({"servers": [{"url": url} for url in ("/", *about.roots)]} if about.roots else {}),
        "tags": [{"name": tag} for tag in about.tags],
        # The empty entry is for a gateway without authentication: the document does not depend on the settings.
        "security": [*_WAYS_IN, {}],
        "paths": paths,
        "components": {"schemas": used_by(paths, schemas), "securitySchemes": _SECURITY},
    }


def _answers(routes: Iterable[Route], problem: type[ProblemDetails]) -> Iterator[type[BaseModel]]:
    yield from (problem, models.TackerError, Link)
    for each in routes:
        yield from (answer.model for answer in each.answers.values() if answer.model is not None)


def _requests(routes: Iterable[Route]) -> Iterator[type[BaseModel]]:
    return (each.body for each in routes if each.body is not None)


def _problem(about: Document) -> type[ProblemDetails]:
    return PointedProblem if about.has_pointers else ProblemDetails


def _operation(about: Document, route: Route, method: str, path: str, name_in_v1: Mapping[str, str]) -> JsonObject:
    operation: JsonObject = {
        "tags": [route.tag],
        "summary": route.summary,
        "operationId": _name(method, path),
        "parameters": list(_parameters(method, path, route)),
        "responses": {
            **{str(status): _response(answer, name_in_v1) for status, answer in route.answers.items()},
            **({"304": {"description": _KNOWN}} if _may_be_known(method, route) else {}),
            **{
                str(status): _refusal(about, path, text)
                for status, text in sorted(_refusals(about, path, route).items())
                if status not in route.answers
            },
            "default": _refusal(about, path, "Anything else that goes wrong"),
        },
    }
    body = _body(route, name_in_v1)
    if body is not None:
        operation["requestBody"] = body
    if path.startswith("/internal/"):
        operation["security"] = [{"internal": []}]
    elif is_open(method.upper(), path):
        operation["security"] = []
    return operation


def _name(method: str, path: str) -> str:
    """Return a name of its own for each operation."""
    words = path.replace(".json", "/json").replace("{", "").replace("}", "").replace(".", "_").strip("/").split("/")
    return "_".join([method.lower(), *(word for word in words if word)])


def _parameters(method: str, path: str, route: Route) -> Iterator[JsonObject]:
    for name in re.findall(r"\{(\w+)\}", path):
        yield {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
    api = api_of(path)
    if api is not None and not path.endswith("/api_versions"):
        yield {
            "name": "Version",
            "in": "header",
            "required": api.is_version_required,
            "schema": {"type": "string", "enum": [*api.also_accepted, *api.versions]},
        }
    if route.conditions:
        for name in ("If-Match", "If-Unmodified-Since"):
            yield {"name": name, "in": "header", "schema": _TEXT}
    if _may_be_known(method, route):
        yield {"name": "If-None-Match", "in": "header", "schema": _TEXT}
    if 206 in route.answers:
        yield {"name": "Range", "in": "header", "schema": _TEXT, "description": "One range of bytes"}
    for header in route.headers:
        yield {"name": header.name, "in": "header", "description": header.description, "schema": _TEXT}
    yield from map(_query, route.query)


def _may_be_known(method: str, route: Route) -> bool:
    return method == "GET" and any(answer.has_etag for answer in route.answers.values())


def _query(parameter: Parameter) -> JsonObject:
    schema: JsonObject = dict(_TEXT)
    required = {"required": True} if parameter.is_required else {}
    if parameter.values:
        schema["enum"] = list(parameter.values)
    if parameter.is_repeated:
        schema = {"type": "array", "items": schema}
    described = {"description": parameter.description, **required, "schema": schema}
    shown: JsonObject = {"name": parameter.name, "in": "query", **described}
    if parameter.is_flag:
        shown["allowEmptyValue"] = True
        schema["enum"] = ["", "true"]
    return shown


def _body(route: Route, name_in_v1: Mapping[str, str]) -> JsonObject | None:
    if route.body is not None:
        content = {"schema": _schema_of(route.body, name_in_v1)}
    elif route.body_types != JSON:
        content = {"schema": {"type": "string", "contentMediaType": route.body_types[0]}}
    else:
        return None
    by_type = {media_type: _with_file(content) if media_type == FORM else content for media_type in route.body_types}
    return {"required": route.is_body_required, "content": by_type}


def _with_file(content: JsonObject) -> JsonObject:
    """Return the content of a form: the JSON text, and the file that is not in it."""
    file = {"type": "string", "contentMediaType": "application/octet-stream"}
    properties = {"metadata": content["schema"], "file": file}
    return {"schema": {"type": "object", "properties": properties, "required": ["metadata", "file"]}}


def _schema_of(model: type[BaseModel], name_in_v1: Mapping[str, str]) -> JsonObject:
    return reference(name_in_v1.get(model.__name__, model.__name__))


def _response(answer: Answer, name_in_v1: Mapping[str, str]) -> JsonObject:
    headers: JsonObject = {}
    if answer.has_location:
        headers["Location"] = {"schema": {"type": "string", "format": "uri"}}
    if answer.has_etag:
        headers["ETag"] = {"schema": _TEXT}
    if answer.is_page or (answer.is_list and answer.has_pages):
        headers["Link"] = {"schema": _TEXT, "description": "The next page, if there is one"}
    response: JsonObject = {"description": answer.description}
    if headers:
        response["headers"] = headers
    if answer.model is not None:
        schema = _schema_of(answer.model, name_in_v1)
        content: JsonObject = {"schema": {"type": "array", "items": schema} if answer.is_list else schema}
        response["content"] = {_JSON: content}
    elif answer.media_types != JSON:
        response["content"] = {media_type: {"schema": _TEXT} for media_type in answer.media_types}
    elif answer.is_any_object:
        response["content"] = {_JSON: {"schema": {"type": "object"}}}
    return response


def _refusals(about: Document, path: str, route: Route) -> dict[int, str]:
    refusals: dict[int, str] = dict(_ANY)
    is_plain = about.plain_status is not None
    if is_plain:
        # Media types are not checked; what is malformed beside an empty body is 422.
        refusals = {**{status: text for status, text in _ANY.items() if status not in {400, 406}}, 422: _ANY[400]}
    if is_for_probes(path):
        refusals = {500: _ANY[500]}
    if "{" in path:
        refusals[404] = _OF_A_RESOURCE
    if route.body is not None or route.body_types != JSON:
        refusals |= {413: _OF_A_BODY[413]} if is_plain else _OF_A_BODY
    if route.conditions:
        refusals[412] = _UNCHANGED
    if path.startswith("/v1.0/"):
        refusals[504] = "The VIM does not answer in time"
    return {**refusals, **route.refusals}


def _refusal(about: Document, path: str, description: str) -> JsonObject:
    if about.plain_status is not None:
        return {"description": description, "content": {"text/plain": {"schema": _TEXT}}}
    if path.startswith("/v1.0/"):
        return {"description": description, "content": {_JSON: {"schema": reference("TackerError")}}}
    return {"description": description, "content": {_PROBLEM: {"schema": reference(_problem(about).__name__)}}}
