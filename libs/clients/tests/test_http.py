"""The clients over real HTTP: errors come back as ours, packages are fetched once and are whole or not there."""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import os
import shutil
import time
import zipfile
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from kubevnfm_clients.http import ServiceUnavailable
from kubevnfm_clients.logs import HttpNodeLogs
from kubevnfm_clients.multicloud.errors import ChartNotFetched, ChartRefused, ChartUnavailable
from kubevnfm_clients.packages import HttpPackages
from kubevnfm_clients.ports import LogPart
from kubevnfm_clients.vims import HttpVimDirectory, HttpVims, HttpVimUsers
from kubevnfm_events import PackageRef, VimConnection
from kubevnfm_kit.errors import Conflict, InvalidInput, NotFound, TimedOut, Unprocessable, VnfmError
from kubevnfm_kit.http import serving
from kubevnfm_secrets import Secret

TOKEN = "internal"
PACKAGE = PackageRef(package_id="p-1", vnfd_id="d-1", checksum="c0ffee")


@dataclass
class Service:
    """Another service with answers that the test sets."""

    status: int = 200
    body: object = field(default_factory=dict)
    cut_short: bool = False
    calls: list[str] = field(default_factory=list)
    sent: list[str] = field(default_factory=list)
    """The targets of the requests as they were sent."""
    url: str = ""

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_route("*", "/internal/v1/packages/{id}/archive", self.archive)
        app.router.add_route("*", "/{path:.*}", self.answer)
        return app

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.calls.append(f"{request.method} {request.path_qs}")
        self.sent.append(request.raw_path)
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return web.json_response({"detail": "the internal token is required"}, status=401)
        if isinstance(self.body, bytes):
            return web.Response(body=self.body, status=self.status)
        return web.json_response(self.body, status=self.status)

    async def archive(self, request: web.Request) -> web.StreamResponse:
        self.calls.append(request.path)
        response = web.StreamResponse()
        packed = an_archive()
        response.content_length = len(packed)
        await response.prepare(request)
        if self.cut_short:
            await response.write(packed[:40])
            assert request.transport is not None
            request.transport.close()
            return response
        await response.write(packed)
        return response


def an_archive() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("TOSCA-Metadata/TOSCA.meta", "TOSCA-Meta-File-Version: 1.0")
        archive.writestr("Files/kubernetes/deployment.yaml", "kind: Deployment")
    return packed.getvalue()


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    service = Service()
    async with serving(service.app(), host="127.0.0.1", port=0) as port:
        service.url = f"http://127.0.0.1:{port}"
        yield service


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (404, NotFound),
        (409, Conflict),
        (400, InvalidInput),
        (422, Unprocessable),
        (503, ServiceUnavailable),
        (504, TimedOut),
    ],
)
async def test_a_problem_comes_back_as_our_error(
    service: Service, session: aiohttp.ClientSession, status: int, error: type[VnfmError]
) -> None:
    service.status = status
    service.body = {
        "status": status,
        "detail": "what is wrong",
        "invalidParams": [
            {"name": "vim/name", "reason": "what is wrong"},
            {"name": "vim/type", "reason": "a text expected"},
        ],
    }
    with pytest.raises(error, match="what is wrong") as raised:
        await HttpVims(service.url, TOKEN, session).get("x")
    assert type(raised.value) is error
    assert raised.value.status == status
    if isinstance(raised.value, InvalidInput):
        assert raised.value.places == (("vim/name", "what is wrong"), ("vim/type", "a text expected"))


@pytest.mark.parametrize("error", [ChartRefused, ChartNotFetched, ChartUnavailable])
async def test_errors_of_charts_keep_their_codes(
    service: Service, session: aiohttp.ClientSession, error: type[VnfmError]
) -> None:
    """MC-048: a dry run ends with the code that an operation would end with."""
    service.status, service.body = error.status, {"type": error.code, "detail": "what is wrong"}
    with pytest.raises(error, match="what is wrong") as raised:
        await HttpVims(service.url, TOKEN, session).get("x")
    assert type(raised.value) is error


async def test_an_answer_that_is_no_problem_still_names_service_and_status(
    service: Service, session: aiohttp.ClientSession
) -> None:
    service.status, service.body = 418, b"<html>"
    with pytest.raises(VnfmError, match="vim-registry answered 418"):
        await HttpVims(service.url, TOKEN, session).get("x")


async def test_a_service_that_is_not_there_is_unavailable_and_the_token_is_in_no_error(
    session: aiohttp.ClientSession,
) -> None:
    with pytest.raises(ServiceUnavailable, match="lcm-api does not answer") as raised:
        await HttpVimUsers("http://127.0.0.1:9", TOKEN, session).users("x")
    assert raised.value.retryable
    assert TOKEN not in str(raised.value)


@pytest.mark.parametrize(
    ("vim_id", "called"),
    [
        ("v/connection", "v%2Fconnection"),
        ("v%2fconnection", "v%252fconnection"),
        ("v?is_default=True", "v%3Fis_default=True"),
        ("v#w", "v%23w"),
        ("../packages/p", "..%2Fpackages%2Fp"),
        ("é %", "%C3%A9%20%25"),
    ],
)
async def test_an_id_is_one_segment_whatever_signs_it_has(
    service: Service, session: aiohttp.ClientSession, vim_id: str, called: str
) -> None:
    await HttpVims(service.url, TOKEN, session).get(vim_id)
    service.body = {"users": []}
    await HttpVimUsers(service.url, TOKEN, session).users(vim_id)
    assert service.sent == [f"/internal/v1/vims/{called}", f"/internal/v1/vims/{called}/users"]


@pytest.mark.parametrize("vim_id", ["", ".", ".."])
async def test_an_id_that_a_path_cannot_hold_is_not_found_and_not_sent(
    service: Service, session: aiohttp.ClientSession, vim_id: str
) -> None:
    vims = HttpVims(service.url, TOKEN, session)
    for call in (vims.get(vim_id), vims.delete(vim_id), vims.update(vim_id, {})):
        with pytest.raises(NotFound):
            await call
    assert service.sent == []


async def test_filters_are_repeated_parameters(service: Service, session: aiohttp.ClientSession) -> None:
    service.body = {"vims": [{"id": "1"}]}
    vims = HttpVims(service.url, TOKEN, session)

    assert await vims.list({"name": ["a", "b"], "type": ["openstack"]}) == [{"id": "1"}]
    assert await vims.default() == {"id": "1"}
    service.body = {"vims": []}
    assert await vims.default() is None
    assert service.calls[0] == "GET /internal/v1/vims?name=a&name=b&type=openstack"


async def test_a_connection_is_asked_once_in_a_burst_and_not_at_all_when_it_is_complete(
    service: Service, session: aiohttp.ClientSession
) -> None:
    service.body = {"vim_id": "v", "vim_type": "t", "access_info": {"bearer_token": {"$sealed": "v1.x.y"}}}
    directory = HttpVimDirectory(service.url, TOKEN, session)

    found = await directory.connection(VimConnection(vim_id="v"))
    assert await directory.connection(VimConnection(vim_id="v")) == found
    complete = VimConnection(vim_id="v", access_info={"bearer_token": Secret("x")})
    assert await directory.connection(complete) is complete

    assert len(service.calls) == 1
    assert isinstance(found.access_info["bearer_token"], Secret)

    service.body = {"vim_id": "v", "vim_type": "t", "access_info": {}}
    directory.forget(VimConnection(vim_id="v"))
    assert (await directory.connection(VimConnection(vim_id="v"))).access_info == {}


async def test_a_package_is_fetched_once_for_all_who_ask_at_the_same_time(
    service: Service, session: aiohttp.ClientSession, tmp_path: Path
) -> None:
    packages = HttpPackages(service.url, TOKEN, session, cache_dir=tmp_path / "cache")

    folders = await asyncio.gather(*(packages.folder(PACKAGE) for _ in range(8)))
    later = await HttpPackages(service.url, TOKEN, session, cache_dir=tmp_path / "cache").folder(PACKAGE)

    assert len({*folders, later}) == 1
    assert (later / "Files/kubernetes/deployment.yaml").read_text() == "kind: Deployment"
    assert service.calls == ["/internal/v1/packages/p-1/archive"]
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["c0ffee"]


async def test_a_package_that_was_cut_short_is_not_there_and_is_fetched_again(
    service: Service, session: aiohttp.ClientSession, tmp_path: Path
) -> None:
    packages = HttpPackages(service.url, TOKEN, session, cache_dir=tmp_path)
    service.cut_short = True
    with pytest.raises(ServiceUnavailable):
        await packages.folder(PACKAGE)
    assert list(tmp_path.iterdir()) == []

    service.cut_short = False
    assert (await packages.folder(PACKAGE)).is_dir()


async def test_copies_that_are_not_used_make_room(
    service: Service, session: aiohttp.ClientSession, tmp_path: Path
) -> None:
    """MC-125: the least recently used ones above the limit, and those that no operation needs; what may be in use stays, or is not ours."""
    now, day = time.time(), 86_400.0
    old, older, unused, recent = (hashlib.sha256(each).hexdigest() for each in (b"old", b"older", b"unused", b"recent"))
    ages = {old: 3, older: 4, unused: 31, recent: 0.9, "fetching-x": 2, "fetching-y": 0.9, "lost+found": 90}
    for name, days in ages.items():
        for place in (tmp_path / name, tmp_path / "charts" / f"{name}.tgz"):
            place.parent.mkdir(exist_ok=True)
            if place.parent == tmp_path:
                place.mkdir()
                (place / "file").write_bytes(b"x" * 40_000)
            else:
                place.write_bytes(b"x" * 40_000)
            os.utime(place, (now - days * day,) * 2)
    kibibytes = 2**20
    left = {recent, "fetching-y", "lost+found", "c0ffee"}

    async def have(limit_kib: float, *named: str) -> set[str]:
        for each in tmp_path.glob("c0ffee"):
            shutil.rmtree(each)
        packages = HttpPackages(service.url, TOKEN, session, cache_dir=tmp_path, cache_gib=limit_kib / kibibytes)
        for name in named:
            await packages.folder(PackageRef(package_id="p", vnfd_id="d", checksum=name))
        await packages.folder(PACKAGE)
        return {each.relative_to(tmp_path).as_posix() for each in (*tmp_path.iterdir(), *tmp_path.glob("charts/*"))}

    charts = {"charts", *(f"charts/{name}.tgz" for name in (old, recent, "fetching-y", "lost+found"))}
    assert await have(190) == {old, *left, *charts}
    # One that was asked for is used.
    assert await have(1, old) == {old, *left, *charts} - {f"charts/{old}.tgz"}
    assert service.calls == ["/internal/v1/packages/p-1/archive"] * 2


async def test_files_and_logs_are_streamed(service: Service, session: aiohttp.ClientSession, tmp_path: Path) -> None:
    service.body = b"x" * 1_000_000
    packages = HttpPackages(service.url, TOKEN, session, cache_dir=tmp_path)

    image = [chunk async for chunk in packages.stream(PACKAGE, "Files/images/a b.img")]
    log = [chunk async for chunk in HttpNodeLogs(service.url, TOKEN, session).log("op-1", node="worker-1")]

    assert len(image) > 1
    assert sum(map(len, image)) == sum(map(len, log)) == 1_000_000
    assert service.calls == [
        "GET /internal/v1/packages/p-1/files/Files/images/a%20b.img",
        "GET /internal/v1/operations/op-1/log?node=worker-1",
    ]
    service.body = json.dumps({"text": "kubeadm joined \u00e4", "place": {"from": "now"}}).encode()
    part = await HttpNodeLogs(service.url, TOKEN, session).following("op/1", {"from": "then"}, 0.0, task="join")
    assert part == LogPart("kubeadm joined \u00e4".encode(), {"from": "now"})
    assert service.calls[2:] == ["POST /internal/v1/operations/op%2F1/log/following"]
