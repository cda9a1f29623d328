"""The rules for every route, checked for every route: methods, media types, parameters; the table is the document's."""

from __future__ import annotations

import asyncio
import re
from itertools import product
from typing import Final

import pytest
from aiohttp import ClientError, ClientSession, web
from aiohttp.test_utils import TestServer
from callers.documented import an_app
from callers.metrics import metrics_text
from kubevnfm_kit.metrics import Metrics
from kubevnfm_kit.request_metrics import RequestMetrics
from kubevnfm_lcm_api.http.routes import ROUTES
from worlds.lcm_world import TOKEN, World
from yarl import URL

DESCRIBED = an_app()[ROUTES]
UNKNOWN = "00000000-0000-4000-8000-000000000000"
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
PATHS = sorted({path for _, path in DESCRIBED})
OPEN_TO_ALL = ("/", "/health/live", "/health/ready")


def real(path: str) -> str:
    return (
        path.replace("{id}", UNKNOWN)
        .replace("{vnfdId}", UNKNOWN)
        .replace("{path}", "any/file")
        .replace("{owner}", "op")
        .replace("{region}", "edge")
        .replace("{reference}", "so")
        .replace("{csar_id}", UNKNOWN)
        .replace("{revision}", "1")
        .replace("{operation}", "instantiate")
        .replace("{kind}", "none")
        .replace("{reportId}", UNKNOWN)
        .replace("{serverId}", UNKNOWN)
    )


def headers_for(path: str, **more: str) -> dict[str, str]:
    return {
        **({"Version": "2.0.0"} if path.startswith(("/vnflcm/v2", "/vnfpkgm/v2")) else {}),
        **({"Version": "1.5.0"} if path.startswith("/vnffm/") else {}),
        **({"Version": "2.2.0"} if path.startswith("/vnfpm/") else {}),
        **({"Authorization": f"Bearer {TOKEN}"} if path.startswith("/internal/") else {}),
        **more,
    }


async def test_a_method_that_is_not_defined_is_405_whatever_the_id(world: World) -> None:
    """API-003, API-011: decided before the Version, the body and the resource are checked."""
    for path in PATHS:
        defined = {method for method, other in DESCRIBED if other == path}
        for method in METHODS:
            if method in defined:
                continue
            answer = await world.call(method, real(path), headers={})
            assert answer.status == 405, f"{method} {path}: {answer.status}"
            allowed = {each.strip() for each in answer.headers["Allow"].split(",")}
            assert allowed - {"HEAD"} == defined, path
            if not path.startswith("/v1.0/"):
                answer.problem(405)
    # This gateway is a process of its own: it has its own metrics, and no route of them has an id.
    metrics = (await world.call("GET", "/kubevnfm/v1/metrics", headers={})).must(200).raw.decode()
    assert 'kubevnfm_http_requests_total{method="GET",route="none",service="lcm-api",status="4xx"}' in metrics
    assert UNKNOWN not in metrics
    assert "kubevnfm_region" not in metrics


async def test_a_fault_is_counted_as_one_and_what_the_end_of_the_gateway_ends_as_unanswered() -> None:
    metrics, app, has_begun = Metrics(), web.Application(), asyncio.Event()

    async def fail(_: web.Request) -> web.Response:
        raise ValueError

    async def move(_: web.Request) -> web.Response:
        raise web.HTTPSeeOther("/ui/")

    async def hang(_: web.Request) -> web.Response:
        has_begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    for handler in (fail, move, hang):
        app.router.add_get(f"/{handler.__name__}", handler)
    RequestMetrics(metrics, "lcm-api").add_to(app)
    server = TestServer(app)
    await server.start_server(shutdown_timeout=0.01)
    async with ClientSession() as session:
        assert (await session.get(server.make_url("/fail"))).status == 500
        assert (await session.get(server.make_url("/move"), allow_redirects=False)).status == 303
        unanswered = asyncio.create_task(session.get(server.make_url("/hang")))
        await has_begun.wait()
        await server.close()
        with pytest.raises(ClientError):
            await unanswered
    found = re.findall(
        r'requests_total\{method="GET",route="/(\w+)",service="lcm-api",status="(\w+)"\} 1\.0',
        text := await metrics_text(metrics),
    )
    assert dict(found) == {"fail": "5xx", "move": "3xx", "hang": "none"}
    assert 'kubevnfm_http_requests_running{service="lcm-api"} 0.0' in text


NOT_BUILT: Final = (
    f"/vnffm/v1/alarms/{UNKNOWN}/escalate",
    "/vnfpm/v1/pm_jobs",
    f"/vnfpm/v2/pm_jobs/{UNKNOWN}/reports",
    "/vnflcm/v1/vnf_snapshots",
    f"/vnflcm/v1/vnf_instances/{UNKNOWN}/create_snapshot",
    f"/vnflcm/v1/vnf_instances/{UNKNOWN}/change_vnfpkg",
    "/vnflcm/v3/vnf_instances",
    "/vnfpkgm/v3/vnf_packages",
    # Paths of ONAP's multicloud-k8s (docs/onap.md).
    "/v1/vnf_instances",
    "/v1/instance",
    "/v1/rb/definition",
    "/v1/connectivity-info",
    "/api/multicloud-k8s/v1/v1/instance",
    "/nothing",
)


async def test_apis_that_are_not_built_are_404(world: World) -> None:
    """API-003, API-059: change_vnfpkg is there in v2 only."""
    for method, path in product(METHODS, NOT_BUILT):
        answer = await world.call(method, path, headers={})
        assert answer.status == 404, f"{method} {path}: {answer.status}"
        answer.problem(404)


async def test_what_answers_json_is_406_to_who_takes_none(world: World) -> None:
    """API-007: an artifact is what it is, whatever Accept says; what only changes something answers nothing."""
    for (method, path), described in DESCRIBED.items():
        answers_json = any(answer.model is not None for answer in described.answers.values())
        if method != "GET" or not answers_json or path in OPEN_TO_ALL or path.startswith("/internal/"):
            continue
        answer = await world.call("GET", real(path), headers=headers_for(path, Accept="text/html"))
        assert answer.status == 406, f"GET {path}: {answer.status}"
        if not path.startswith("/v1.0/"):
            answer.problem(406)


async def test_a_body_of_another_media_type_is_415(world: World) -> None:
    """API-007."""
    for (method, path), described in DESCRIBED.items():
        if described.body is None:
            continue
        sent = headers_for(path, **{"Content-Type": "text/csv"})
        answer = await world.call(method, real(path), headers=sent, data=b'{"a": 1}')
        assert answer.status == 415, f"{method} {path}: {answer.status}"


async def test_a_body_that_is_no_json_or_missing_is_400(world: World) -> None:
    """API-010."""
    for (method, path), described in DESCRIBED.items():
        if described.body is None:
            continue
        sent = headers_for(path, **{"Content-Type": described.body_types[0]})
        for data in (b'{"a": ', b"[1]", b"7", *((b"",) if described.is_body_required else ())):
            answer = await world.call(method, real(path), headers=sent, data=data)
            assert answer.status == 400, f"{method} {path} {data!r}: {answer.status}"


async def test_an_unknown_parameter_is_400_on_every_get(world: World) -> None:
    """API-012."""
    for method, path in DESCRIBED:
        if method != "GET" or path in OPEN_TO_ALL or path.startswith("/internal/"):
            continue
        answer = await world.call("GET", f"{real(path)}?attribute_not_exist=x", headers=headers_for(path))
        assert answer.status == 400, f"GET {path}: {answer.status}"
        assert "attribute_not_exist" in answer.raw.decode()


async def test_every_method_on_a_missing_resource_is_404(world: World) -> None:
    """API-009, API-011: with a stray Content-Type and no body too."""
    for (method, path), described in DESCRIBED.items():
        if "{" not in path or described.body is not None or method == "PUT" or path.endswith("/users"):
            continue  # an upload has another Content-Type; a VIM that does not exist has an empty list of users
        stray = headers_for(path, **{"Content-Type": "application/csv"})
        answer = await world.call(method, real(path), headers=stray)
        assert answer.status == 404, f"{method} {path}: {answer.status}"


async def raw_status(url: URL, method: str, target: str, path: str) -> int:
    """Send a request whose target is not normalized by a client; return the status."""
    assert url.host is not None
    assert url.port is not None
    reader, writer = await asyncio.open_connection(url.host, url.port)
    fields = {"Host": f"{url.host}:{url.port}", "Connection": "close", "Content-Length": "2", **headers_for(path)}
    described = DESCRIBED[method, path]
    if described.body is not None:
        fields["Content-Type"] = described.body_types[0]
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    writer.write(f"{method} {target} HTTP/1.1\r\n{head}\r\n{{}}".encode())
    line = await reader.readline()
    writer.close()
    return int(line.split()[1])


@pytest.mark.parametrize(
    "hostile",
    [
        f"{UNKNOWN}%2fconnection",
        f"{UNKNOWN}%2Fusers",
        f"{UNKNOWN}%252fconnection",
        "..",
        "%2e%2e",
        "..%2f..%2finternal%2fv1%2fvims",
        f"{UNKNOWN}%3fall_records=yes",
        f"{UNKNOWN}%23fragment",
        f"{UNKNOWN}%00",
        "a%20b",
        "x" * 129,
    ],
)
async def test_an_id_that_no_resource_can_have_is_404_and_goes_no_further(
    world: World, monkeypatch: pytest.MonkeyPatch, hostile: str
) -> None:
    """API-003: with %2f, .., ? and # too. No other service is asked, and no document."""
    asked: list[str] = []

    async def get(vim_id: str) -> dict[str, str]:
        asked.append(vim_id)
        return {"id": vim_id}

    monkeypatch.setattr(world.vims, "get", get)
    for method, path in DESCRIBED:
        if "{" not in path:
            continue
        target = path.replace("{id}", hostile).replace("{vnfdId}", hostile).replace("{path}", "any/file")
        status = await raw_status(URL(world.url), method, target, path)
        assert status == 404, f"{method} {target}: {status}"
    assert asked == []
