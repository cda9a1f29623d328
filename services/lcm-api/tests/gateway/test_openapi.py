"""The OpenAPI document, held against the router, and its page."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from callers.documented import an_app, an_onap_app, documents, onap_document, our_documents
from jsonschema_rs import Draft4Validator
from kubevnfm_lcm_api.gateway.openapi.routes import ROOT
from kubevnfm_lcm_api.gateway.openapi.swagger import to_swagger
from kubevnfm_lcm_api.http.documents import DOCUMENTS, document_of
from kubevnfm_lcm_api.http.routes import ROUTES
from kubevnfm_lcm_api.onap.answers import DOCUMENT as ONAP
from worlds.lcm_world import World

FIXTURES = Path(__file__).parents[4] / "tests/fixtures"


def nodes(tree: Any) -> list[dict[str, Any]]:
    if isinstance(tree, list):
        return [found for each in tree for found in nodes(each)]
    if isinstance(tree, dict):
        return [tree, *(found for each in tree.values() for found in nodes(each))]
    return []


def served(app: web.Application) -> set[tuple[str, str]]:
    """Return method and path of every route but those of the web page's files, which are no API; HEAD goes with GET."""
    return {
        (route.method, route.resource.canonical)
        for route in app.router.routes()
        if route.resource is not None and route.method != "HEAD" and not route.resource.canonical.startswith("/ui")
    }


def test_every_route_is_described_and_every_description_is_a_route() -> None:
    """MC-127, MC-128."""
    app = an_app()
    assert served(app) == app[ROUTES].keys()


def test_every_path_of_onap_is_described_once_and_served_below_each_root() -> None:
    """MC-127, MC-128."""
    app = an_onap_app()
    ours = {(method.upper(), path) for path, methods in onap_document()["paths"].items() for method in methods}
    assert ours == {key for key in app[ROUTES] if document_of(app, key[1]) == ONAP}
    below = {(method, f"{root}{path}") for method, path in ours for root in ONAP.roots}
    also = {("POST", f"{root}/v1/vnf_instances/") for root in ("", *ONAP.roots)}
    assert served(app) == app[ROUTES].keys() | below | also
    referenced = {str(node["$ref"]) for node in nodes(onap_document()) if isinstance(node.get("$ref"), str)}
    assert referenced == {f"#/components/schemas/{name}" for name in onap_document()["components"]["schemas"]}


def test_every_heading_has_routes_and_every_route_a_heading() -> None:
    app = an_onap_app()
    for about in app[DOCUMENTS]:
        assert len(about.tags) == len(set(about.tags))
        routes = [route for (_, path), route in app[ROUTES].items() if document_of(app, path) == about]
        assert set(about.tags) == {route.tag for route in routes}


def test_every_route_is_in_one_document_and_nothing_else_is() -> None:
    """MC-127."""
    app = an_app()
    documented: list[tuple[str, str]] = []
    for document in documents().values():
        paths = document["paths"]
        documented += [(method.upper(), path) for path, methods in paths.items() for method in methods]
        names = [operation["operationId"] for methods in paths.values() for operation in methods.values()]
        assert len(names) == len(set(names))
    assert sorted(documented) == sorted(served(app))


def test_every_reference_leads_somewhere_and_every_schema_is_used() -> None:
    document = documents()[ROOT.prefix]
    referenced = {str(node["$ref"]) for node in nodes(document) if isinstance(node.get("$ref"), str)}
    assert referenced == {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}


_VNFS = "/vnflcm/v2/vnf_instances"
_IN_V1 = "/vnflcm/v1/vnf_instances"
_BRING_UP = ("/multicloud/v1", "POST", "/multicloud/v1/vnf_instances")
_TASKS = {
    "instantiate_complex": "instantiate",
    "scale_in": "scale",
    "scale_out": "scale",
    "start": "operate",
    "stop": "operate",
}
_SENT_TO = {
    "create": ("", "POST", _VNFS),
    "modify": ("", "PATCH", f"{_VNFS}/{{id}}"),
    "bring_up": _BRING_UP,
    "bring_up_with_volume": _BRING_UP,
    "instantiate.v1": ("", "POST", f"{_IN_V1}/{{id}}/instantiate"),
    "change_ext_conn.v1": ("", "POST", f"{_IN_V1}/{{id}}/change_ext_conn"),
    **{
        name: ("", "POST", f"{_VNFS}/{{id}}/{_TASKS.get(name, name)}")
        for name in ("instantiate", "heal", "terminate", "scale_to_level", "change_ext_conn", *_TASKS)
    },
}
"""The document, the method and the path of each request of the samples."""


def test_each_example_fits_its_schema() -> None:
    """MC-128: the examples are the requests of the samples; the documents themselves have none, which would be checked here."""
    for document in documents().values():
        assert not [node for node in nodes(document["paths"]) if {"example", "examples"} & node.keys()]
        assert not [node for node in nodes(document["components"]) if isinstance(node.get("examples"), list)]
    requests = sorted((FIXTURES.parents[1] / "deploy/samples").glob("*/requests/*.json"))
    assert {path.stem for path in requests} == _SENT_TO.keys()
    ours = our_documents()
    wrong = {
        str(path): misfit
        for path in requests
        for prefix, method, template in [_SENT_TO[path.stem]]
        if (misfit := ours[prefix].misfit_of_request(method, template, json.loads(path.read_text(encoding="utf-8"))))
    }
    assert wrong == {}


def test_answers_have_no_nulls() -> None:
    """API-025."""
    schemas = documents()[ROOT.prefix]["components"]["schemas"]
    for name in ("VnfInstance", "VnfInstanceV1", "VnfLcmOpOcc", "VnfLcmOpOccV1", "InstantiatedVnfInfo", "VnfPkgInfo"):
        assert not [node for node in nodes(schemas[name]) if node.get("type") == "null"]


def test_differences_between_the_versions_are_documented() -> None:
    """API-023, API-025."""
    schemas = documents()[ROOT.prefix]["components"]["schemas"]
    assert schemas["VnfInstanceV1"]["properties"]["vimConnectionInfo"]["type"] == "array"
    assert schemas["VnfInstance"]["properties"]["vimConnectionInfo"]["type"] == "object"
    assert "vnfPkgId" in schemas["VnfInstanceV1"]["properties"]
    assert "vnfPkgId" not in schemas["VnfInstance"]["properties"]
    info = schemas["InstantiatedVnfInfoV1"]["properties"]
    assert info["virtualLinkResourceInfo"] == info["vnfVirtualLinkResourceInfo"]
    assert "virtualLinkResourceInfo" not in schemas["InstantiatedVnfInfo"]["properties"]


class Page(HTMLParser):
    """The references of a page, and whether its elements are closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.targets: set[str] = set()
        self.references: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.targets.add(given.get("id") or "")
        self.references.update(value for name in ("href", "src") if (value := given.get(name)))
        if tag not in {"meta", "br"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


async def test_the_page_needs_nothing_from_elsewhere_and_names_every_path(world: World) -> None:
    answer = (await world.call("GET", "/docs", headers={"Accept": "text/html"})).must(200)
    text = answer.raw.decode()
    page = Page()
    page.feed(text)
    assert not page.open
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert "<script" not in text
    assert not re.search(r"url\(|@import|http", text)
    assert page.references - {"openapi.json"} <= {f"#{target}" for target in page.targets}
    app = an_app()
    for _, path in app[ROUTES]:
        assert (f"<code>{path}</code>" in text) == (document_of(app, path) == ROOT)


async def test_the_document_is_served_to_who_takes_json(world: World) -> None:
    document = (await world.call("GET", "/openapi.json", headers={})).must(200).json
    assert document["openapi"] == "3.1.0"
    (await world.call("GET", "/openapi.json", headers={"Accept": "text/html"})).problem(406)
    (await world.call("GET", "/docs", headers={"Accept": "application/json"})).problem(406)


@pytest.mark.parametrize("prefix", ["/multicloud/v1", "/v1"])
def test_old_clients_get_the_same_operations_in_swagger_2(prefix: str) -> None:
    """MC-127: valid by the schema of the OpenAPI Initiative, with every operation, type and answer."""
    ours = onap_document() if prefix == "/v1" else documents()[prefix]
    swagger = to_swagger(ours)
    schema = json.loads((FIXTURES / "swagger-2.0.schema.json").read_text(encoding="utf-8"))
    wrong = [
        f"{list(each.instance_path)}: {each.message[:200]}" for each in Draft4Validator(schema).iter_errors(swagger)
    ]
    assert not wrong
    assert {path: set(methods) for path, methods in swagger["paths"].items()} == {
        path: set(methods) for path, methods in ours["paths"].items()
    }
    for path, methods in ours["paths"].items():
        for method, operation in methods.items():
            there = swagger["paths"][path][method]
            assert there["responses"].keys() == operation["responses"].keys()
            is_form = [*operation.get("requestBody", {}).get("content", ())] == ["multipart/form-data"]
            bodies = 2 if is_form else "requestBody" in operation
            assert len(there["parameters"]) == len(operation["parameters"]) + bodies
    referenced = {str(node["$ref"]) for node in nodes(swagger) if isinstance(node.get("$ref"), str)}
    assert referenced <= {f"#/definitions/{name}" for name in swagger["definitions"]}
    shown = swagger["definitions"]["Suspension"]["properties"]
    assert (shown["since"]["type"], shown["scope"]["enum"]) == ("string", ["instance", "region"])
    assert not [node for node in nodes(swagger["definitions"]) if {"anyOf", "oneOf", "const"} & node.keys()]


async def test_the_swagger_document_is_served_below_the_multi_cloud_api_alone(world: World) -> None:
    """MC-127."""
    assert (await world.call("GET", "/multicloud/v1/swagger.json")).must(200).json["swagger"] == "2.0"
    (await world.call("GET", "/swagger.json")).problem(404)
