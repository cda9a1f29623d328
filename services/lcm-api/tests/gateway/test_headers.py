"""The common rules of all resources: versions, media types, methods, query parameters, bodies, and errors."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from callers.callers import V2, get
from callers.users import basic, users_file
from kubevnfm_kit.connections import Limits
from worlds.lcm_world import LINKED, World, lcm_world
from yarl import URL

UNKNOWN = "00000000-0000-4000-8000-000000000000"
V2_LIST = "/vnflcm/v2/vnf_instances"
V1_LIST = "/vnflcm/v1/vnf_instances"
PACKAGES = "/vnfpkgm/v1/vnf_packages"
PACKAGES_V2 = "/vnfpkgm/v2/vnf_packages"


@pytest.mark.parametrize(
    ("path", "version", "status", "used"),
    [
        (V2_LIST, None, 400, "2.3.0"),
        (V2_LIST, "abc", 400, "2.3.0"),
        (V2_LIST, "2.0", 400, "2.3.0"),
        (V2_LIST, "1.3.0", 406, "2.3.0"),
        (V2_LIST, "9.9.9", 406, "2.3.0"),
        (V2_LIST, "2.0.0", 200, "2.0.0"),
        (V2_LIST, "2.3.0", 200, "2.3.0"),
        (V2_LIST, "2.0.0-impl:tester:1", 200, "2.0.0"),
        (V1_LIST, None, 200, "1.3.0"),
        (V1_LIST, "1.3.0", 200, "1.3.0"),
        (V1_LIST, "abc", 400, "1.3.0"),
        (V1_LIST, "2.0.0", 406, "1.3.0"),
        (PACKAGES, None, 200, "1.0.0"),
        (PACKAGES, "7.7.7", 200, "1.0.0"),
        (PACKAGES, "seven", 400, "1.0.0"),
        (PACKAGES_V2, None, 400, "2.4.0"),
        (PACKAGES_V2, "2.4.0", 200, "2.4.0"),
        (PACKAGES_V2, "2.1.0", 200, "2.4.0"),
        (PACKAGES_V2, "1.0.0", 406, "2.4.0"),
        ("/vnffm/v1/alarms", None, 400, "1.5.0"),
        ("/vnffm/v1/alarms", "1.3.0", 200, "1.3.0"),
        ("/vnffm/v1/subscriptions", "1.4.0", 200, "1.5.0"),
        ("/vnffm/v1/alarms", "2.0.0", 406, "1.5.0"),
        ("/vnffm/api_versions", None, 200, "1.5.0"),
        ("/vnfpm/v2/pm_jobs", None, 400, "2.2.0"),
        ("/vnfpm/v2/pm_jobs", "2.1.0", 200, "2.1.0"),
        ("/vnfpm/v2/thresholds", "1.0.0", 406, "2.2.0"),
        ("/vnfpm/v2/api_versions", None, 200, "2.2.0"),
        ("/vnflcm/v1/api_versions", "2.0.0", 200, "1.3.0"),
        ("/vnflcm/v2/api_versions", None, 200, "2.3.0"),
        ("/vnflcm/api_versions", None, 200, "2.3.0"),
        ("/vnflcm/api_versions", "1.3.0", 200, "2.3.0"),
        ("/vnfpkgm/api_versions", None, 200, "2.4.0"),
        ("/vnfpkgm/v2/api_versions", None, 200, "2.4.0"),
        ("/vnfpkgm/v1/api_versions", None, 200, "1.0.0"),
        ("/vnflcm/v3/vnf_instances", None, 404, "2.3.0"),
        (f"{V2_LIST}/{UNKNOWN}", "2.0.0", 404, "2.0.0"),
    ],
)
async def test_the_requested_version_is_used_and_returned(
    world: World, path: str, version: str | None, status: int, used: str
) -> None:
    """API-001, API-005, API-180."""
    answer = await world.call("GET", path, headers={"Version": version} if version else {})
    answer.must(status)
    assert answer.headers["Version"] == used
    if status >= 400:
        answer.problem(status)


@pytest.mark.parametrize(
    ("path", "prefix", "versions"),
    [
        ("/vnflcm/api_versions", "/vnflcm", ["1.3.0", "2.0.0", "2.3.0"]),
        ("/vnflcm/v1/api_versions", "/vnflcm/v1", ["1.3.0"]),
        ("/vnflcm/v2/api_versions", "/vnflcm/v2", ["2.0.0", "2.3.0"]),
        ("/vnfpkgm/v1/api_versions", "/vnfpkgm/v1", ["1.0.0"]),
        ("/vnfpkgm/v2/api_versions", "/vnfpkgm/v2", ["2.4.0"]),
        ("/vnfpkgm/api_versions", "/vnfpkgm", ["1.0.0", "2.4.0"]),
        ("/vnffm/v1/api_versions", "/vnffm/v1", ["1.3.0", "1.5.0"]),
        ("/vnffm/api_versions", "/vnffm", ["1.3.0", "1.5.0"]),
        ("/vnfpm/v2/api_versions", "/vnfpm/v2", ["2.1.0", "2.2.0"]),
        ("/vnfpm/api_versions", "/vnfpm", ["2.1.0", "2.2.0"]),
    ],
)
async def test_versions_are_announced(world: World, path: str, prefix: str, versions: list[str]) -> None:
    """API-001."""
    body = (await world.call("GET", path, headers={})).must(200).json
    assert body["uriPrefix"] == prefix
    assert [each["version"] for each in body["apiVersions"]] == versions


async def test_each_answer_with_a_body_says_whether_ranges_can_be_asked_for(world: World) -> None:
    """API-017: bytes for files that are served in ranges, also when a range is refused; none for the rest."""
    package = await world.sample()
    one = f"{PACKAGES}/{package['id']}"
    script = package["additionalArtifacts"][0]["artifactPath"]
    for path, units in {
        PACKAGES: "none",
        one: "none",
        f"{one}/vnfd": "none",
        f"{one}/package_content": "bytes",
        f"{one}/artifacts": "bytes",
        f"{one}/artifacts/{script}": "bytes",
        f"{PACKAGES}/{UNKNOWN}/package_content": "none",
        V1_LIST: "none",
        V2_LIST: "none",  # 400
        "/vnflcm/api_versions": "none",
        "/nowhere": "none",
        "/openapi.json": "none",
        "/v1.0/vims": "none",
        "/health/live": "none",
    }.items():
        assert (await world.call("GET", path, headers={})).headers["Accept-Ranges"] == units, path
        assert (await world.call("HEAD", path, headers={})).headers["Accept-Ranges"] == units, path
    for asked, status in (("bytes=0-1", 206), ("bytes=999999999-", 416), ("bytes=0-1,4-5", 400)):
        part = await world.call("GET", f"{one}/package_content", headers={"Range": asked})
        assert (part.status, part.headers["Accept-Ranges"]) == (status, "bytes")
    refused = await world.call("POST", V1_LIST, {"vnfdId": 5}, headers={})
    assert (refused.status, refused.headers["Accept-Ranges"]) == (400, "none")
    done = (await world.packages("POST", body={})).must(201).json["id"]
    assert "Accept-Ranges" not in (await world.packages("DELETE", f"/{done}")).must(204).headers


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        ("*/*", 200),
        ("application/json", 200),
        ("application/*;q=0.5", 200),
        ("text/html, application/json;q=0.1", 200),
        ("text/html", 406),
        ("application/json;q=0", 406),
        ("application/jsonx", 406),
    ],
)
async def test_an_unsupported_media_type_is_not_acceptable(world: World, accept: str, status: int) -> None:
    for path in (V2_LIST, PACKAGES, "/vnflcm/v2/vnf_lcm_op_occs", "/vnflcm/v2/subscriptions"):
        answer = await world.call("GET", path, headers={"Version": "2.0.0", "Accept": accept})
        answer.must(status)
        if status == 406:
            answer.problem(406)


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", V2_LIST, {"GET", "HEAD", "POST"}),
        ("DELETE", V1_LIST, {"GET", "HEAD", "POST"}),
        ("POST", f"{V2_LIST}/{UNKNOWN}", {"GET", "HEAD", "DELETE"}),
        ("GET", f"{V2_LIST}/{UNKNOWN}/instantiate", {"POST"}),
        ("DELETE", f"{V1_LIST}/{UNKNOWN}/terminate", {"POST"}),
        ("POST", "/vnflcm/v2/vnf_lcm_op_occs", {"GET", "HEAD"}),
        ("DELETE", f"/vnflcm/v2/vnf_lcm_op_occs/{UNKNOWN}", {"GET", "HEAD"}),
        ("GET", f"/vnflcm/v2/vnf_lcm_op_occs/{UNKNOWN}/retry", {"POST"}),
        ("PUT", f"/vnflcm/v2/subscriptions/{UNKNOWN}", {"GET", "HEAD", "DELETE"}),
        ("PATCH", f"/vnfpkgm/v1/subscriptions/{UNKNOWN}", {"GET", "HEAD", "DELETE"}),
        ("POST", "/vnflcm/v2/api_versions", {"GET", "HEAD"}),
        ("DELETE", f"{PACKAGES}/{UNKNOWN}/package_content", {"GET", "HEAD", "PUT"}),
        ("PUT", PACKAGES, {"GET", "HEAD", "POST"}),
    ],
)
async def test_a_method_that_is_not_defined_names_those_that_are(
    world: World, method: str, path: str, allowed: set[str]
) -> None:
    # without Version too: the method is judged first
    answer = await world.call(method, path, headers={})
    answer.problem(405)
    assert {each.strip() for each in answer.headers["Allow"].split(",")} >= allowed
    options = (await world.call("OPTIONS", path, headers={})).must(204)
    assert options.headers["Allow"] == answer.headers["Allow"]


@pytest.mark.parametrize(
    "path", ["/nowhere", "/vnfpm/v1/pm_jobs", "/vnflcm/v3/vnf_instances", f"{V2_LIST}/", "/vnflcm"]
)
async def test_an_unknown_path_is_a_problem(world: World, path: str) -> None:
    (await world.call("GET", path)).problem(404)


async def test_head_answers_as_get_without_a_body(world: World) -> None:
    for path in (V2_LIST, PACKAGES, "/vnflcm/api_versions"):
        answer = (await world.call("HEAD", path)).must(200)
        assert answer.raw == b""
        assert answer.headers["Content-Type"].startswith("application/json")


@pytest.mark.parametrize(
    "path",
    [
        V2_LIST,
        f"{V2_LIST}/{UNKNOWN}",
        "/vnflcm/v2/vnf_lcm_op_occs",
        f"/vnflcm/v2/vnf_lcm_op_occs/{UNKNOWN}",
        "/vnflcm/v2/subscriptions",
        f"/vnflcm/v2/subscriptions/{UNKNOWN}",
        PACKAGES,
        f"{PACKAGES}/{UNKNOWN}",
        f"{PACKAGES}/{UNKNOWN}/package_content",
        "/vnflcm/v2/api_versions",
        f"/kubevnfm/v1/operations/{UNKNOWN}",
    ],
)
async def test_an_unknown_query_parameter_is_named(world: World, path: str) -> None:
    problem = (await world.call("GET", path, params={"attribute_not_exist": "x"})).problem(400)
    assert "attribute_not_exist" in problem["detail"]


async def test_a_query_parameter_may_be_given_once(world: World) -> None:
    (await world.call("GET", f"{V2_LIST}?filter=(eq,id,a)&filter=(eq,id,b)")).problem(400)


JSON_TYPE = {"Version": "2.0.0", "Content-Type": "application/json"}


@pytest.mark.parametrize(
    ("data", "headers", "status", "says"),
    [
        (b"{", JSON_TYPE, 400, "line 1"),
        (b"", JSON_TYPE, 400, "body is required"),
        (b"[]", JSON_TYPE, 400, "object expected"),
        (b"\xff\xfe{", JSON_TYPE, 400, "not JSON"),
        (b"[" * 100_000, JSON_TYPE, 400, ""),
        (b'{"a":' * 500 + b"1" + b"}" * 500, JSON_TYPE, 400, "nested"),
        (b'{"metadata": {"a": [' + b"1," * 50_000 + b"1]}}", JSON_TYPE, 400, "more than 50000 values"),
        (b'{"vnfdId": NaN}', JSON_TYPE, 400, "not JSON"),
        (b"{}", {"Version": "2.0.0", "Content-Type": "text/csv"}, 415, "application/json"),
        (b"{}", {"Version": "2.0.0", "Content-Type": "application/octet-stream"}, 415, "application/json"),
        (b"{}", JSON_TYPE, 400, "vnfdId"),
        (b'{"vnfdId": 5}', JSON_TYPE, 400, "vnfdId"),
        (b'{"vnfdId": null}', JSON_TYPE, 400, "vnfdId"),
    ],
)
async def test_an_invalid_body_is_rejected_with_the_place(
    world: World, data: bytes, headers: dict[str, str], status: int, says: str
) -> None:
    problem = (await world.call("POST", V2_LIST, data=data, headers=headers)).problem(status)
    assert says in problem["detail"]


async def test_wrong_types_are_listed_by_place(world: World) -> None:
    body = {"vnfInstanceName": "x" * 256, "vnfdId": 5, "metadata": "text"}
    problem = (await world.lcm("POST", "/vnf_instances", body)).problem(400)
    assert {each["name"] for each in problem["invalidParams"]} == {"vnfInstanceName", "vnfdId", "metadata"}
    assert "x" * 20 not in json.dumps(problem)


async def test_names_that_begin_with_a_dollar_are_refused(world: World) -> None:
    paths = [
        ("POST", V2_LIST),
        ("POST", f"{V2_LIST}/{UNKNOWN}/instantiate"),
        ("POST", f"{V1_LIST}/{UNKNOWN}/instantiate"),
        ("POST", f"{V2_LIST}/{UNKNOWN}/terminate"),
        ("POST", "/vnflcm/v2/subscriptions"),
        ("POST", "/vnfpkgm/v1/subscriptions"),
        ("POST", PACKAGES),
        ("PATCH", f"{PACKAGES}/{UNKNOWN}"),
    ]
    bodies: list[Any] = [
        {"vnfdId": "v", "metadata": {"a": {"$sealed": "v1.x.y"}}},
        {"flavourId": "s", "vimConnectionInfo": [{"id": {"$where": "1"}}], "terminationType": "FORCEFUL"},
        {"userDefinedData": [{"$set": 1}], "callbackUri": "http://a"},
    ]
    for (method, path), body in product(paths, bodies):
        answer = await world.call(method, path, body, headers={} if "v1" in path else None)
        assert answer.status == 400, f"{method} {path} {body}: {answer.status}"
        assert "$" in answer.problem(400)["detail"], f"{method} {path} {body}"


async def test_a_body_over_the_limit_is_too_large(world: World) -> None:
    data = b'{"vnfdId": "' + b"x" * (8 * 1024 * 1024) + b'"}'
    (await world.call("POST", V2_LIST, data=data, headers=JSON_TYPE)).problem(413)


async def test_requests_that_are_too_large_are_problems_before_anybody_is_asked(tmp_path: Path) -> None:
    """API-011, API-016: 414, 431 and 413 in the form of all errors."""
    users = users_file(tmp_path, nfvo=["operator"])
    async with lcm_world(tmp_path, auth_modes="basic", auth_users_file=users) as world:
        (await get(world, {}, f"{V2_LIST}?filter={'x' * 20_000}")).problem(414)
        (await get(world, {"X-Long": "x" * 20_000})).problem(431)
        free = 8192 - len(f"{V2_LIST}?filter=(eq,id,)")
        long = f"{V2_LIST}?filter=(eq,id,{'x' * (free % 6)}{'é' * (free // 6)})"  # each of them is %C3%A9
        assert len(str(URL(long))) == 8192
        (await get(world, basic("nfvo"), long)).must(200)
        headers = {**V2, "Content-Type": "application/json"}
        data = b'{"vnfdId": "' + b"x" * (8 * 1024 * 1024) + b'"}'
        (await world.call("POST", V2_LIST, data=data, headers={**headers, **basic("nfvo")})).problem(413)


async def dripping(begins: bytes = b"") -> AsyncIterator[bytes]:
    """A body of which a byte comes now and then, and that never ends."""
    yield begins
    while True:
        yield b" "
        await asyncio.sleep(0.01)


async def test_bodies_that_drip_are_408_and_leave_nothing(tmp_path: Path) -> None:
    async with lcm_world(tmp_path, limits=Limits(body_window_s=0.3)) as world:
        json_headers = {**V2, "Content-Type": "application/json"}
        answer = await world.call("POST", V2_LIST, data=dripping(), headers=json_headers)
        assert answer.problem(408)["type"] == "request-timeout"
        assert answer.headers["Version"] == "2.0.0"
        package = (await world.call("POST", PACKAGES, {}, headers={})).must(201).json["id"]
        content = f"{PACKAGES}/{package}/package_content"
        sent = await world.call(
            "PUT", content, data=dripping(b"PK\x03\x04"), headers={"Content-Type": "application/zip"}
        )
        sent.problem(408)
        shown = (await world.call("GET", f"{PACKAGES}/{package}", headers={})).must(200).json
        assert shown["onboardingState"] in {"CREATED", "ERROR"}
        assert [path for path in (tmp_path / "data").rglob("*") if path.is_file() and path.stat().st_size] == []
        (await world.call("DELETE", f"{PACKAGES}/{package}", headers={})).must(204)


async def test_a_stray_content_type_without_a_body_does_no_harm(world: World) -> None:
    stray = {"Version": "2.0.0", "Content-Type": "text/csv"}
    (await world.call("GET", V2_LIST, headers=stray)).must(200)
    (await world.call("DELETE", f"{V2_LIST}/{UNKNOWN}", headers=stray)).problem(404)
    (await world.call("POST", f"/vnflcm/v2/vnf_lcm_op_occs/{UNKNOWN}/retry", headers=stray)).problem(404)
    (await world.call("POST", PACKAGES, headers=stray)).must(201)


async def test_null_for_an_optional_attribute_is_as_absent(world: World) -> None:
    await world.sample()
    body = {"vnfInstanceName": None, "metadata": None}
    made = (await world.lcm("POST", "/vnf_instances", {**body, "vnfdId": "1a27cf0a-6c8f-4f43-93d1-2e4a62b1f9a3"})).must(
        201
    )
    assert "vnfInstanceName" not in made.json
    instance_id = made.json["id"]
    nulls = dict.fromkeys(("extManagedVirtualLinks", "vimConnectionInfo", "additionalParams", "extensions"))
    path = f"/vnf_instances/{instance_id}/instantiate"
    absent = (await world.lcm("POST", path, {**LINKED, **nulls, "extVirtualLinks": None})).problem(422)
    assert absent["detail"].startswith("extVirtualLinks: a virtual link for connection point VDU1_CP1 expected")
    (await world.lcm("POST", path, {**LINKED, **nulls})).must(202)


async def test_a_long_uri_is_served(world: World) -> None:
    name = "x" * 4000
    answer = await world.lcm("GET", "/vnf_instances", params={"filter": f"(eq,vnfInstanceName,{name})"})
    assert answer.must(200).json == []
    (await world.lcm("GET", "/vnf_instances", params={"filter": f"(eq,vnfInstanceName,{'x' * 8000})"})).problem(400)


async def test_a_crash_reveals_nothing_to_the_caller(world: World) -> None:
    world.vims.records["broken"] = {"name": "without id"}
    await world.sample()
    instance_id = await world.create()
    world.vims.records = {"broken": {"is_default": True, "password": "s3cret"}}
    problem = (await world.lcm("POST", f"/vnf_instances/{instance_id}/instantiate", {"flavourId": "simple"})).problem(
        500
    )
    assert problem["detail"] == "unexpected error"
    assert problem["requestId"]


async def test_an_unavailable_database_is_reported(world: World) -> None:
    world.store.is_down = True
    for path in (V2_LIST, f"{V2_LIST}/{UNKNOWN}", PACKAGES):
        answer = await world.call("GET", path)
        answer.problem(503)
        assert int(answer.headers["Retry-After"]) > 0
    world.store.is_down = False


async def test_health_is_reported(world: World) -> None:
    """The parts of the gateway are named, the other services too; the database alone makes it not ready."""
    (await world.call("GET", "/health/live", headers={})).must(200)
    ready = (await world.call("GET", "/health/ready", headers={})).must(200).json
    states = {each["part"]: each["state"] for each in ready["parts"]}
    own = ("store", "broker", "disk", "sandbox", "parked-commands", "certificates")
    others = ("credentials-receiver", "infra-k8s", "infra-openstack", "mgmt-executor", "vim-registry")
    assert (ready["status"], states) == ("ready", {**dict.fromkeys(own, "ready"), **dict.fromkeys(others, "unknown")})
