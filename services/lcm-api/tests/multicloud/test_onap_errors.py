"""Each error that the document of ONAP's paths describes, over HTTP (multicloud.md MC-128, MC-133)."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio
from callers.documented import an_onap_app, onap_document, onap_documented
from kubevnfm_clients.multicloud.links import CreatedLink, LinkRequest, VirtualLink
from kubevnfm_clients.multicloud.region_views import KubernetesObject
from kubevnfm_clients.multicloud.types import Page
from kubevnfm_kit.errors import Conflict
from kubevnfm_lcm_api.http.documents import document_of
from kubevnfm_lcm_api.http.routes import ROUTES, Route
from kubevnfm_lcm_api.onap.answers import DOCUMENT
from kubevnfm_lcm_api.onap.networks import NETWORKS as NCM
from kubevnfm_lcm_api.onap.networks import remove_without_region
from kubevnfm_store.query import Query
from packages.resource_bundles import CHART, PROFILE, packed
from worlds.lcm_builders import ANSWERS
from worlds.lcm_world import Answer
from worlds.multicloud_world import PASSWORD, Gateway, a_gateway

VNFS, REGIONS, RB, INSTANCES = "/v1/vnf_instances", "/v1/connectivity-info", "/v1/rb/definition", "/v1/instance"
RB1, P1 = f"{RB}/rb1/v1", f"{RB}/rb1/v1/profile/p1"
NETWORKS = "/v2/cluster-providers/op/clusters/edge"
NAMED = {"rb-name": "rb1", "rb-version": "v1"}
INSTANCE = {**NAMED, "profile-name": "p1", "cloud-region": "edge"}
SUBNET = {"name": "a", "subnet": "10.44.0.0/24"}
NETWORK: Any = {"metadata": {"name": "n1"}, "spec": {"cniType": "ovn4nfv", "ipv4Subnets": [SUBNET]}}
LARGE: Final = b"x" * (8 * 2**20 + 1)
FORM: Final = "multipart/form-data; boundary=b"


@dataclass(frozen=True)
class Case:
    """A request, and the error that it gets."""

    method: str
    path: str
    """``I``, ``V``: the names of the instance and of the VNF of this module."""
    status: int
    body: Any = None
    when: str = ""
    """The state of the others: `meanwhile`."""


def form(**changes: str) -> bytes:
    """Return a form with a region."""
    metadata = json.dumps({"cloud-owner": "op", "cloud-region": "new", **changes})
    parts = (("metadata", metadata), ("file", "apiVersion: v1\n"))
    text = "".join(
        f'--b\r\nContent-Disposition: form-data; name="{name}"; filename="f"\r\n\r\n{each}\r\n' for name, each in parts
    )
    return f"{text}--b--\r\n".encode()


A_VNF = {"cloud_region_id": "edge", "csar_id": "CSAR", "namespace": "ns2", "values": {"password": PASSWORD}}
SUBSCRIPTION = {"name": "s1", "callback-url": "http://127.0.0.1:9/x"}
BODIES: Final[Mapping[tuple[str, str], Any]] = {
    ("POST", VNFS): A_VNF,
    ("POST", REGIONS): form(),
    ("POST", RB): NAMED,
    ("PUT", f"{RB}/{{name}}/{{version}}"): {"description": "d"},
    ("POST", f"{RB}/{{name}}/{{version}}/content"): packed(CHART),
    ("POST", f"{RB}/{{name}}/{{version}}/profile"): {"profile-name": "p1"},
    ("PUT", f"{RB}/{{name}}/{{version}}/profile/{{profile}}"): {"namespace": "ns1"},
    ("POST", f"{RB}/{{name}}/{{version}}/profile/{{profile}}/content"): packed(PROFILE),
    ("POST", INSTANCES): INSTANCE,
    ("POST", f"{INSTANCES}/{{id}}/upgrade"): INSTANCE,
    ("POST", f"{INSTANCES}/{{id}}/status/subscription"): SUBSCRIPTION,
    ("PUT", f"{INSTANCES}/{{id}}/status/subscription/{{name}}"): SUBSCRIPTION,
    **{
        (method, f"/v2/cluster-providers/{{provider}}/clusters/{{cluster}}/{kind}{one}"): NETWORK
        for kind in ("networks", "provider-networks")
        for method, one in (("POST", ""), ("PUT", "/{name}"))
    },
}
"""A good body of each route that has one."""
TWICE = {"cloud-region": "twice"}
OTHER_CHART, OTHER_PROFILE = packed({**CHART, "vfw/more": "x"}), packed({**PROFILE, "c.txt": "other"})
QUERY, OBJECTS = f"{INSTANCES}/I/query", "ApiVersion=v1&Kind=Pod"
CASES: Final = (
    Case("POST", VNFS, 404, {**A_VNF, "cloud_region_id": "none"}),
    Case("POST", VNFS, 409, {**A_VNF, "cloud_region_id": "twice"}),
    Case("POST", VNFS, 422, {**A_VNF, "namespace": "Not one"}),
    Case("POST", VNFS, 503, A_VNF, "away"),
    Case("GET", f"{VNFS}/twice/ns1", 409),
    Case("GET", f"{VNFS}/twice/ns1/V", 409),
    Case("DELETE", f"{VNFS}/twice/ns1/V", 409),
    Case("GET", f"{VNFS}/edge/other/V", 404),
    Case("POST", REGIONS, 409, form(), "registered"),
    Case("GET", f"{REGIONS}/twice", 409),
    Case("DELETE", f"{REGIONS}/twice", 409),
    Case("DELETE", f"{REGIONS}/edge", 409, when="linked"),
    Case("POST", RB, 409, NAMED),
    Case("PUT", RB1, 422, {"rb-name": "other"}),
    Case("DELETE", RB1, 409),
    Case("POST", f"{RB1}/content", 409, OTHER_CHART),
    Case("POST", f"{RB1}/content", 422, b"no archive"),
    Case("POST", f"{RB1}/profile", 409, {"profile-name": "p1"}),
    Case("DELETE", P1, 409),
    Case("POST", f"{P1}/content", 409, OTHER_PROFILE),
    Case("POST", f"{P1}/content", 422, packed({"x": "y"})),
    Case("POST", INSTANCES, 404, {**INSTANCE, "rb-name": "none"}),
    Case("POST", INSTANCES, 409, {**INSTANCE, **TWICE}),
    Case("POST", INSTANCES, 422, {**INSTANCE, "rb-name": "empty"}),
    Case("POST", INSTANCES, 503, INSTANCE, "away"),
    Case("GET", f"{INSTANCES}/I/status", 422, when="refusing"),
    Case("GET", f"{INSTANCES}/I/status", 503, when="away"),
    Case("GET", f"{QUERY}?Kind=Pod", 400),
    Case("GET", f"{QUERY}?ApiVersion=v1&Kind=../x", 422),
    Case("GET", f"{QUERY}?{OBJECTS}", 422, when="refusing"),
    Case("GET", f"{QUERY}?{OBJECTS}", 503, when="away"),
    Case("GET", f"/v1/query?{OBJECTS}", 400),
    Case("GET", f"/v1/query?{OBJECTS}&CloudRegion=none", 404),
    Case("GET", f"/v1/query?{OBJECTS}&CloudRegion=twice", 409),
    Case("GET", f"/v1/query?{OBJECTS}&CloudRegion=edge", 422, when="refusing"),
    Case("GET", f"/v1/query?{OBJECTS}&CloudRegion=edge", 503, when="away"),
    Case("POST", f"{INSTANCES}/I/status/subscription", 409, SUBSCRIPTION),
    Case("POST", f"{INSTANCES}/I/status/subscription", 422, {**SUBSCRIPTION, "callback-url": "ftp://x"}),
    Case("PUT", f"{INSTANCES}/I/status/subscription/s1", 422, {**SUBSCRIPTION, "name": "s2"}),
    *(
        case
        for kind in ("networks", "provider-networks")
        for one in [f"{NETWORKS}/{kind}/{kind}"]
        for own in [{**NETWORK, "metadata": {"name": kind}}]
        for case in (
            Case("POST", f"{NETWORKS}/{kind}", 409, own),
            Case("POST", f"{NETWORKS}/{kind}", 422, {**NETWORK, "spec": {"cniType": "calico"}}),
            Case("PUT", one, 409, own, "applied"),
            Case("DELETE", one, 409, when="applied"),
        )
    ),
    Case("POST", f"{NETWORKS}/apply", 409, when="suspended"),
    Case("POST", f"{NETWORKS}/apply", 422),
    Case("POST", f"{NETWORKS}/apply", 500, when="unfit"),
    Case("POST", f"{NETWORKS}/terminate", 409, when="suspended"),
    Case("POST", f"{INSTANCES}/I/upgrade", 404, {**INSTANCE, "profile-name": "none"}),
    Case("POST", f"{INSTANCES}/I/upgrade", 409, {**INSTANCE, **TWICE}),
    Case("POST", f"{INSTANCES}/I/upgrade", 422, {**INSTANCE, "release-name": "other"}),
    Case("POST", f"{INSTANCES}/I/upgrade", 503, INSTANCE, "down"),
    # The last ones: the instance has an operation afterwards.
    Case("POST", VNFS, 500, {**A_VNF, "namespace": "ns9"}, "failing"),
    Case("POST", INSTANCES, 500, {**INSTANCE, "release-name": "again"}, "failing"),
    Case("POST", f"{INSTANCES}/I/upgrade", 500, {**INSTANCE, "profile-name": "p2"}, "failing"),
    Case("POST", f"{INSTANCES}/I/upgrade", 409, INSTANCE),
    Case("POST", f"{INSTANCES}/I/healthcheck", 409),
    Case("DELETE", f"{INSTANCES}/I", 409),
)
"""Beside those of all routes."""


def a_link(**changes: Any) -> VirtualLink:
    facts = {
        "id": "l", "cloud_region_id": "op/edge", "name": "networks", "type": "ovn4nfv", "metadata": {}, "spec": {},
        "use_count": 1, "references": ("ncm",), "status": "READY", "created_at": "", "updated_at": "",
    }  # fmt: skip
    return VirtualLink.model_validate({**facts, **changes})


@contextmanager
def meanwhile(gateway: Gateway, state: str) -> Iterator[None]:
    """Bring the others of the world into a state."""
    world, failing = gateway.world, {"infra.k8s.apply_objects", "infra.k8s.replace_objects"}

    def refuse(error: Exception) -> Any:
        async def call(*_: Any, **__: Any) -> Any:
            raise error

        return call

    with pytest.MonkeyPatch.context() as patch:
        match state:
            case "away" | "refusing":
                patch.setattr(world.regions, state, {"op/edge"})
            case "failing":
                patch.setattr(world.twins, "failing", failing)
            case "down":
                patch.setattr(world.store, "is_down", True)
            case "registered":
                patch.setattr(world.regions, "register", refuse(Conflict("it has another endpoint")))
            case "linked" | "applied":
                patch.setattr(world.links, "by_vim", {"vim-edge": a_link()})
                patch.setattr(world.links, "find", partial(_found, world.links.find))
            case "suspended":
                suspended = refuse(Conflict("the region is suspended"))
                patch.setattr(world.links, "create", suspended)
                patch.setattr(world.links, "release", suspended)
                patch.setattr(world.links, "find", partial(_found, world.links.find))
            case "unfit":
                patch.setattr(world.links, "create", _unfit)
        yield


async def _found(find: Any, filters: Mapping[str, str], **more: Any) -> Any:
    page = await find({"vim_id": "vim-edge"}, **more)
    return page if "vim_id" in filters or page.items else type(page)((a_link(),))


async def _unfit(_: LinkRequest, **__: Any) -> CreatedLink:
    return CreatedLink(link=a_link(status="FAILED", status_detail="no such node"), reference="ncm", is_new=True)


def described() -> dict[tuple[str, str], Route]:
    """Return the routes of ONAP's document."""
    app = an_onap_app()
    return {key: route for key, route in app[ROUTES].items() if document_of(app, key[1]) == DOCUMENT}


def present(template: str) -> str:
    """Return the path of something that is there."""
    kind = "provider-networks" if "/provider-networks" in template else "networks"
    name = kind if "/v2/" in template else "rb1" if "/rb/" in template else "s1"
    names = {
        "name": name, "version": "v1", "profile": "p1", "id": "I", "provider": "op", "cluster": "edge",
        "region": "edge", "namespace": "ns1", "check": "c1",
    }  # fmt: skip
    return template.format_map(names)


def sent_to_all() -> Iterator[Case]:
    """Yield the requests that every route refuses, unless its path has no names, or it has no body."""
    for method, template in described():
        body, absent = BODIES.get((method, template)), re.sub(r"\{\w+\}", "none", template)
        if "{" in template:
            query = f"?{OBJECTS}" if template.endswith("/query") else ""
            yield Case(method, f"{absent}{query}", 404, body)
        if body is not None:
            yield Case(method, present(template), 400, b"")
            yield Case(method, present(template), 413, LARGE)
            yield Case(method, present(template), 422, b"{")
        yield Case(method, f"{absent}?nonsense=1", 422, body)
        yield Case(method, absent, 421, body)


class OnapPaths:
    """A gateway with ONAP's paths, and what they have made."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.names: dict[str, str] = {"CSAR": gateway.csar_id}

    async def call(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        for letter, name in self.names.items():
            path = re.sub(rf"(?<=/){letter}(?=$|/|\?)", name, path)
        data = body
        if isinstance(body, dict):
            data = json.dumps(body).replace('"CSAR"', f'"{self.names["CSAR"]}"').encode()
        kind = {"Content-Type": FORM} if path.endswith(REGIONS) else {}
        return await self.gateway.world.call(method, path, data=data, headers={"Prefer": "wait=60", **kind, **headers})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def onap(tmp_path_factory: Any) -> AsyncIterator[OnapPaths]:
    folder: Path = tmp_path_factory.mktemp("onap")
    async with a_gateway(folder, onap_compat=True, allowed_networks="127.0.0.0/8") as gateway:
        for key in ("infra.k8s.apply_objects", "infra.k8s.replace_objects"):
            gateway.world.twins.answers[key] = ANSWERS[key].model_copy(update={"namespace": "ns1"})
        made = OnapPaths(gateway)
        for path, body in (
            (RB, NAMED),
            (RB, {"rb-name": "empty", "rb-version": "v1"}),
            (f"{RB1}/profile", {"profile-name": "p1", "namespace": "ns1"}),
            (f"{RB1}/profile", {"profile-name": "p2", "namespace": "ns1"}),
            (f"{RB}/empty/v1/profile", {"profile-name": "p1"}),
        ):
            (await made.call("POST", path, body)).must(201)
        for path, content in ((RB1, packed(CHART)), (P1, packed(PROFILE))):
            (await made.call("POST", f"{path}/content", content)).must(200)
        made.names["I"] = (await made.call("POST", INSTANCES, INSTANCE)).must(201).json["id"]
        made.names["V"] = (await made.call("POST", VNFS, A_VNF)).must(201).json["vnf_id"]
        (await made.call("POST", f"{INSTANCES}/I/status/subscription", SUBSCRIPTION)).must(201)
        for kind in ("networks", "provider-networks"):
            (await made.call("POST", f"{NETWORKS}/{kind}", {**NETWORK, "metadata": {"name": kind}})).must(201)
        yield made


@pytest.mark.asyncio(loop_scope="module")
async def test_the_document_is_served_and_says_where_its_paths_are(onap: OnapPaths) -> None:
    """MC-127: below both roots, also for clients that know Swagger 2.0 alone."""
    here = (await onap.call("GET", "/v1/openapi.json")).must(200).json
    assert here["paths"].keys() == onap_document()["paths"].keys()
    assert [each["url"] for each in here["servers"]] == ["/", "/api/multicloud-k8s/v1"]
    for root in (each["url"].rstrip("/") for each in here["servers"]):
        assert (await onap.call("GET", f"{root}/v1/openapi.json")).must(200).json == here
        assert (await onap.call("GET", f"{root}/v1/swagger.json")).must(200).json["swagger"] == "2.0"
        (await onap.call("GET", f"{root}/v1/docs")).must(200)
        (await onap.call("GET", f"{root}/v1/nothing")).must(404)


@pytest.mark.asyncio(loop_scope="module")
async def test_a_fault_and_a_database_that_is_away_are_plain_text(
    onap: OnapPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MC-128, MC-133: nothing of a fault is shown."""

    async def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError(PASSWORD)

    with monkeypatch.context() as patch:
        patch.setattr(onap.gateway.world.store, "find", broken)
        assert (await onap.call("GET", RB)).must(500).raw == b"unexpected error\n"
    with meanwhile(onap.gateway, "down"):
        away = (await onap.call("GET", RB)).must(503)
    assert away.headers["Content-Type"].startswith("text/plain")
    assert away.headers["Retry-After"]


@pytest.mark.asyncio(loop_scope="module")
async def test_more_objects_than_an_answer_may_have(onap: OnapPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    """MC-134: the status shows the first ones and says so; a query is refused."""

    async def pods(owner: str, region: str, wanted: Any, *, limit: int, after: str | None = None) -> Any:
        first, count = int(after or 0), 1001 if wanted.kind == "Pod" and wanted.name is None else 0
        bodies = [
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"web-{number}"}}
            for number in range(first, min(first + limit, count))
        ]
        found = tuple(map(KubernetesObject.model_validate, bodies))
        return Page(found, str(first + limit) if first + limit < count else None)

    with monkeypatch.context() as patch:
        patch.setattr(onap.gateway.world.regions, "resources", pods)
        shown = (await onap.call("GET", f"{INSTANCES}/I/status")).must(200).json
        assert shown["truncated"]
        names = [each["name"] for each in shown["resourcesStatus"] if each["GVK"]["Kind"] == "Pod"]
        assert names == [f"web-{number}" for number in range(1000)]
        assert shown["resourceCount"] == len(shown["resourcesStatus"])
        assert b"more than 1000" in (await onap.call("GET", f"{QUERY}?{OBJECTS}")).must(422).raw
    assert "truncated" not in (await onap.call("GET", f"{INSTANCES}/I/status")).must(200).json


@pytest.mark.asyncio(loop_scope="module")
async def test_a_region_that_is_registered_again_has_no_networks(onap: OnapPaths) -> None:
    """MC-097: those of the deleted one are removed, whatever path has deleted it."""
    world, many = onap.gateway.world, "/v2/cluster-providers/op/clusters/gone/networks"
    for vim_id in ("vim-1st", "vim-2nd"):
        world.regions.add("op/gone", vim_id)
        assert (await onap.call("GET", many)).must(200).json == []
        (await onap.call("POST", many, NETWORK)).must(201)
    await remove_without_region(world.store, world.regions)
    left = {each.body["region"] for each in await world.store.find(NCM, Query())}
    assert left == {"vim-2nd", "vim-edge"}


@pytest.mark.asyncio(loop_scope="module")
async def test_each_error_that_is_described_can_occur(onap: OnapPaths) -> None:
    """MC-128, MC-133: in plain text, with the status that the document has."""
    seen = set[tuple[str, str, int]]()
    for case in (*sent_to_all(), *CASES):
        more = {"Host": "rebound.example"} if case.status == 421 else {}
        with meanwhile(onap.gateway, case.when):
            answer = await onap.call(case.method, case.path, case.body, **more)
        assert answer.status == case.status, f"{case}: {answer.status} {answer.raw[:300]!r}"
        assert answer.headers["Content-Type"].startswith("text/plain"), case
        assert answer.raw.strip(), case
        assert PASSWORD.encode() not in answer.raw
        template = onap_documented().template(case.path)
        assert template is not None
        seen.add((case.method, template, case.status))
    errors = {
        (method.upper(), path, int(status))
        for path, methods in onap_document()["paths"].items()
        for method, operation in methods.items()
        for status in operation["responses"]
        if status.isdigit() and int(status) >= 400
    }
    # Access, and what is no error of a route: `onap_errors.md` names their tests.
    of_all = {401, 403, 429, 500, 503}
    own = {(*key, status) for key, route in described().items() for status in route.refusals}
    assert {each for each in errors if each[2] not in of_all or each in own} - seen == set()
    assert seen <= errors
