"""Packages fetched from an address: credentials, redirects, address rules, and the errors."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import io
import ssl
import zipfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from kubevnfm_kit.tls import ServerTls
from patience import until
from servers.certificates import Authority
from worlds.lcm_world import Answer, World, lcm_world

BASIC = aiohttp.encode_basic_auth("reader", "pw-marked-1")
TOKEN = "token-marked-2"
CLIENT = aiohttp.encode_basic_auth("client", "pw-marked-3")
MARKS = ("pw-marked-1", "token-marked-2", "pw-marked-3", "query-marked-4")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Repository:
    """A web server with one package, in the ways that servers answer."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.asked: list[web.Request] = []
        self.other = ""
        """Where redirects to another server lead."""
        self.hangs = asyncio.Event()
        self.begun = asyncio.Event()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer as the path's last name says."""
        self.asked.append(request)
        authorization = request.headers.get("Authorization")
        match request.path.rpartition("/")[2]:
            case "open":
                return self.whole()
            case "basic":
                return self.whole() if authorization == BASIC else web.Response(status=401)
            case "bearer":
                return self.whole() if authorization == f"Bearer {TOKEN}" else web.Response(status=401)
            case "token":
                form = await request.post()
                is_right = authorization == CLIENT and form["grant_type"] == "client_credentials"
                return web.json_response(
                    {"access_token": TOKEN, "token_type": "Bearer"}, status=200 if is_right else 401
                )
            case "moved":
                return web.Response(status=302, headers={"Location": request.query["to"]})
            case "loop":
                raise web.HTTPFound("loop")
            case "packed":
                return web.Response(body=gzip.compress(self.content), headers={"Content-Encoding": "gzip"})
            case "broken":
                response = await self.begin(request, len(self.content))
                assert request.transport is not None
                request.transport.close()
                return response
            case "hanging":
                response = await self.begin(request, None)
                self.begun.set()
                await self.hangs.wait()
                await response.write(self.content[100:])
                return response
            case _:
                return web.Response(status=404)

    def whole(self) -> web.Response:
        return web.Response(body=self.content)

    async def begin(self, request: web.Request, length: int | None) -> web.StreamResponse:
        """Send the first 100 bytes, with a Content-Length of ``length``."""
        response = web.StreamResponse()
        response.content_length = length
        await response.prepare(request)
        await response.write(self.content[:100])
        return response


@asynccontextmanager
async def served(answer: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """Serve; yield the address."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
        await site.start()
        yield f"{'https' if tls else 'http'}://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def context(authority: Authority) -> ssl.SSLContext:
    pair = authority.issue(f"server-of-{authority.name}")
    return ServerTls(pair.certificate, pair.key).context()


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with lcm_world(tmp_path, allowed_networks="127.0.0.0/8") as running:
        yield running


@pytest.fixture
async def repository(world: World) -> Repository:
    return Repository(world.zipped("vm"))


@pytest.fixture
async def url(repository: Repository) -> AsyncIterator[str]:
    async with served(repository.answer) as address:
        yield address


async def ask(world: World, package_id: str, **body: Any) -> None:
    answer = await world.packages("POST", f"/{package_id}/package_content/upload_from_uri", body)
    assert answer.must(202).raw == b""


async def fetched(world: World, **body: Any) -> dict[str, Any]:
    """Ask for it; return the package once it is taken in or refused."""
    package_id = str((await world.packages("POST", body={})).must(201).json["id"])
    await ask(world, package_id, **body)
    return await world.onboarded(package_id)


def reason(package: dict[str, Any]) -> str:
    assert package["onboardingState"] == "ERROR", package
    assert package["operationalState"] == "DISABLED"
    details = package["onboardingFailureDetails"]
    assert details["status"] >= 400
    return str(details["detail"])


async def test_a_package_is_fetched_without_credentials(world: World, url: str, repository: Repository) -> None:
    """API-113, API-110."""
    package = await fetched(world, addressInformation=f"{url}/open")
    assert (package["onboardingState"], package["operationalState"]) == ("ONBOARDED", "ENABLED")
    content = await world.packages("GET", f"/{package['id']}/package_content")
    assert content.must(200).raw == repository.content
    assert "Authorization" not in repository.asked[0].headers


async def test_a_package_is_fetched_with_basic_credentials(world: World, url: str) -> None:
    """API-113."""
    body = {"addressInformation": f"{url}/basic", "userName": "reader"}
    assert "401" in reason(await fetched(world, **body, password="wrong"))
    assert (await fetched(world, **body, password="pw-marked-1"))["onboardingState"] == "ONBOARDED"


async def test_a_package_is_fetched_with_client_credentials(world: World, url: str) -> None:
    """API-113 with SOL005 V3's authType."""
    params = {"clientId": "client", "clientPassword": "pw-marked-3", "tokenEndpoint": f"{url}/token"}
    body = {"addressInformation": f"{url}/bearer", "authType": "OAUTH2_CLIENT_CREDENTIALS"}
    wrong = {**params, "clientPassword": "wrong"}
    assert "token endpoint answered 401" in reason(await fetched(world, **body, paramsOauth2ClientCredentials=wrong))
    package = await fetched(world, **body, paramsOauth2ClientCredentials=params)
    assert package["onboardingState"] == "ONBOARDED"


async def test_https_is_judged_by_the_configured_authorities(tmp_path: Path) -> None:
    """API-113 over https; MC-137: authorities that replace those in the file are trusted without a restart."""
    known, stranger = Authority(tmp_path), Authority(tmp_path, "stranger")
    async with lcm_world(tmp_path, allowed_networks="127.0.0.0/8", outbound_ca_file=known.file) as world:
        repository = Repository(world.zipped("vm"))
        async with served(repository.answer, context(known)) as url:
            assert (await fetched(world, addressInformation=f"{url}/open"))["onboardingState"] == "ONBOARDED"
        async with served(repository.answer, context(stranger)) as url:
            assert "certificate" in reason(await fetched(world, addressInformation=f"{url}/open"))
            known.file.write_bytes(stranger.file.read_bytes())

            async def is_trusted() -> bool | None:
                # It is read, and refused as another package of the first one's VNFD.
                return (
                    "belongs to VNF package" in reason(await fetched(world, addressInformation=f"{url}/open")) or None
                )

            assert await until(is_trusted, pause_s=0.5)


async def test_a_failed_fetch_is_reported_and_a_new_upload_repairs_it(world: World, url: str) -> None:
    """API-113, API-112: unreachable, missing, broken off, packed; errors never contain the query, it may have a secret."""
    package_id = str((await world.packages("POST", body={})).must(201).json["id"])
    for address, said in (
        ("http://127.0.0.1:1/x", "did not answer"),
        ("http://no-such-host.invalid/x", "cannot be resolved"),
        (f"http://{'a' * 70}.invalid/x", "did not answer"),
        (f"{url}/nothing", "404"),
        (f"{url}/broken", "broke off"),
        (f"{url}/packed", "content coding"),
        (f"{url}/loop", "redirects"),
        (f"{url}/moved?to=ftp://127.0.0.1/x", "not followed"),
        (f"{url}/moved?to=http://[", "an invalid address"),
    ):
        await ask(world, package_id, addressInformation=f"{address}{'&' if '?' in address else '?'}q=query-marked-4")
        detail = reason(await world.onboarded(package_id))
        assert said in detail
        assert "query-marked-4" not in detail
        assert address.partition("?")[0] in detail
    await ask(world, package_id, addressInformation=f"{url}/open")
    repaired = await world.onboarded(package_id)
    assert repaired["onboardingState"] == "ONBOARDED"
    assert "onboardingFailureDetails" not in repaired


async def test_content_that_is_no_package_is_rejected(world: World) -> None:
    """API-113, API-112."""
    async with served(Repository(b"<html>no zip</html>").answer) as url:
        assert "zip archive" in reason(await fetched(world, addressInformation=f"{url}/open"))
    async with served(Repository(b"PK\x03\x04 not really").answer) as url:
        assert "zip archive" in reason(await fetched(world, addressInformation=f"{url}/open"))


async def test_too_large_content_is_rejected(tmp_path: Path) -> None:
    """API-113."""
    async with lcm_world(tmp_path, allowed_networks="127.0.0.0/8", package_limit_gib=1000 / 2**30) as world:
        async with served(Repository(world.zipped("vm")).answer) as url:
            assert "1000 bytes" in reason(await fetched(world, addressInformation=f"{url}/open"))
        assert not list((world.folder / "data/packages").glob("*/*"))


async def test_redirects_are_followed_and_credentials_stay_with_their_server(
    world: World, url: str, repository: Repository
) -> None:
    """API-113."""
    async with served(repository.answer) as other:
        body = {"userName": "reader", "password": "pw-marked-1"}
        package = await fetched(world, addressInformation=f"{url}/moved?to={other}/open", **body)
        assert package["onboardingState"] == "ONBOARDED"
    sent = [request.headers.get("Authorization") for request in repository.asked]
    assert sent == [BASIC, None]


async def test_redirects_on_one_server_keep_the_credentials(world: World, url: str) -> None:
    """API-113."""
    body = {"userName": "reader", "password": "pw-marked-1"}
    package = await fetched(world, addressInformation=f"{url}/moved?to=/basic", **body)
    assert package["onboardingState"] == "ONBOARDED"


async def test_internal_networks_are_not_reached_unless_allowed(tmp_path: Path) -> None:
    """API-113, API-161: neither by an address, nor by a name, nor for an artifact; errors contain nothing of them."""
    async with lcm_world(tmp_path, allowed_networks="10.0.0.0/8") as world:
        repository = Repository(world.zipped("vm"))
        async with served(repository.answer) as url:
            port = url.rpartition(":")[2]
            for host in ("127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0.0.0.0"):
                said = reason(await fetched(world, addressInformation=f"http://{host}:{port}/open"))
                assert "network that calls may not go to" in said, host
            said = reason(await world.upload(with_external(repository.content, f"{url}/open")))
            assert "network that calls may not go to" in said
        assert repository.asked == []


async def test_a_redirect_into_an_internal_network_is_not_followed(world: World, url: str) -> None:
    """API-113."""
    said = reason(await fetched(world, addressInformation=f"{url}/moved?to=http://169.254.169.254/latest/meta-data"))
    assert "network that calls may not go to" in said


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"addressInformation": 5},
        {"addressInformation": "ftp://127.0.0.1/x"},
        {"addressInformation": "file:///etc/passwd"},
        {"addressInformation": "/relative"},
        {"addressInformation": "http://"},
        {"addressInformation": "http://host:port/"},
        {"addressInformation": "http://reader:pw-marked-1@127.0.0.1/x"},
        {"addressInformation": "http://127.0.0.1/x", "password": "pw-marked-1"},
        {"addressInformation": "http://127.0.0.1/x", "userName": "a:b", "password": "pw-marked-1"},
        {"addressInformation": "http://127.0.0.1/x", "authType": "BASIC"},
        {"addressInformation": "http://127.0.0.1/x", "authType": "OTHER"},
        {"addressInformation": "http://127.0.0.1/x", "authType": "OAUTH2_CLIENT_CREDENTIALS"},
        {"addressInformation": "http://127.0.0.1/x", "paramsOauth2ClientCredentials": {"clientId": "a"}},
        {
            "addressInformation": "http://127.0.0.1/x",
            "paramsOauth2ClientCredentials": {"clientId": "a", "clientPassword": "b", "tokenEndpoint": "ftp://x/y"},
        },
    ],
)
async def test_a_request_that_cannot_be_meant_is_refused(world: World, body: dict[str, Any]) -> None:
    """API-113, API-010: 400, and what may be a secret is not repeated."""
    package_id = str((await world.packages("POST", body={})).must(201).json["id"])
    refused = await world.packages("POST", f"/{package_id}/package_content/upload_from_uri", body)
    refused.problem(400)
    assert b"pw-marked" not in refused.raw
    assert (await world.packages("GET", f"/{package_id}")).json["onboardingState"] == "CREATED"


async def test_while_it_is_fetched_nothing_else_can_be_done_with_it(
    world: World, url: str, repository: Repository, capfd: pytest.CaptureFixture[str]
) -> None:
    """API-111, API-030: 409 while UPLOADING; secrets are in no answer, document, event or log."""
    package_id = str((await world.packages("POST", body={})).must(201).json["id"])
    address = f"{url}/hanging?signature=query-marked-4"
    await ask(world, package_id, addressInformation=address, userName="reader", password="pw-marked-1")
    await asyncio.wait_for(repository.begun.wait(), 60)
    shown = (await world.packages("GET", f"/{package_id}")).must(200)
    assert shown.json["onboardingState"] == "UPLOADING"
    listed = (await world.packages("GET", params={"all_fields": ""})).must(200)
    (await world.packages("DELETE", f"/{package_id}")).problem(409)
    again = await world.packages(
        "POST", f"/{package_id}/package_content/upload_from_uri", {"addressInformation": address}
    )
    again.problem(409)
    zipped = {"Content-Type": "application/zip"}
    (await world.packages("PUT", f"/{package_id}/package_content", data=b"PK\x03\x04", headers=zipped)).problem(409)
    for filtered in ("(eq,internal/source/userName,reader)", "(eq,source,x)"):
        (await world.packages("GET", params={"filter": filtered})).problem(400)
    stored = b"".join(file.read_bytes() for file in world.folder.glob("store.db*"))
    repository.hangs.set()
    assert (await world.onboarded(package_id))["onboardingState"] == "ONBOARDED"
    document = await world.store.get("vnf_packages", package_id)
    assert document is not None
    assert "source" not in document.body["internal"]
    out, err = capfd.readouterr()
    for mark in MARKS:
        assert mark.encode() not in shown.raw + listed.raw + again.raw + stored
        assert mark not in out + err


async def test_a_fetch_that_takes_too_long_is_given_up(tmp_path: Path) -> None:
    """API-113."""
    async with lcm_world(tmp_path, allowed_networks="127.0.0.0/8", fetch_timeout_s=0.2) as world:
        repository = Repository(world.zipped("vm"))
        async with served(repository.answer) as url:
            assert "too long" in reason(await fetched(world, addressInformation=f"{url}/hanging"))
            repository.hangs.set()


async def test_an_unreachable_token_endpoint_is_reported(world: World, url: str) -> None:
    """API-113."""
    body = {"addressInformation": f"{url}/bearer"}
    params = {"clientId": "client", "clientPassword": "pw-marked-3"}
    for endpoint, said in (
        ("http://127.0.0.1:1/token", "did not answer"),
        (f"http://{'a' * 70}.invalid/token", "did not answer"),
        ("http://169.254.169.254/token", "network that calls may not go to"),
        (f"{url}/open", "no access token"),
    ):
        asked = {**params, "tokenEndpoint": endpoint}
        assert said in reason(await fetched(world, **body, paramsOauth2ClientCredentials=asked)), endpoint


async def test_a_fetch_that_a_restart_cut_off_begins_again(tmp_path: Path) -> None:
    """API-113: what was asked for is remembered; the address is asked once more after the restart."""
    allowed = {"allowed_networks": "127.0.0.0/8"}
    repository = Repository(b"")
    async with served(repository.answer) as url:
        async with lcm_world(tmp_path, **allowed) as world:
            repository.content = world.zipped("vm")
            package_id = str((await world.packages("POST", body={})).must(201).json["id"])
            await ask(world, package_id, addressInformation=f"{url}/hanging")
            await asyncio.wait_for(repository.begun.wait(), 60)
        repository.hangs.set()
        async with lcm_world(tmp_path, **allowed) as world:
            assert (await world.onboarded(package_id))["onboardingState"] == "ONBOARDED"
    assert len(repository.asked) == 2


# --- artifacts outside of a package ---------------------------------------------------------------------------------------


SCRIPT = b"#!/bin/sh\necho from outside\n"


def with_external(package: bytes, *uris: str, content: bytes = SCRIPT) -> bytes:
    """Return a package that lists artifacts outside of it, all with this content."""
    archive = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(package)) as old, zipfile.ZipFile(archive, "w") as new:
        for name in old.namelist():
            raw = old.read(name)
            if name == "TOSCA-Metadata/TOSCA.meta":
                digest = hashlib.sha512(content).hexdigest()
                raw += b"".join(f"\nName: {uri}\nAlgorithm: SHA-512\nHash: {digest}\n".encode() for uri in uris)
            new.writestr(name, raw)
    return archive.getvalue()


async def access(world: World, method: str, package_id: str, body: Any = None) -> Answer:
    path = f"/vnfpkgm/v2/vnf_packages/{package_id}/ext_artifacts_access"
    return await world.call(method, path, body, headers={"Version": "2.4.0"})


async def test_artifacts_outside_of_a_package_are_fetched_with_the_configured_access(
    world: World, url: str, repository: Repository
) -> None:
    """API-161: refused without them, and fetched once the access is right; the credentials are never shown."""
    package = with_external(repository.content, f"{url}/open", f"{url}/bearer")
    repository.content = SCRIPT
    failed = await world.upload(package)
    assert "/bearer" in reason(failed)
    assert "401" in reason(failed)
    assert (await access(world, "GET", failed["id"])).must(200).json == {}
    params = {"clientId": "client", "clientPassword": "wrong", "tokenEndpoint": f"{url}/token?q=query-marked-4"}
    one = {
        "artifactUri": f"{url}/bearer",
        "authType": "OAUTH2_CLIENT_CREDENTIALS",
        "paramsOauth2ClientCredentials": params,
    }
    for password in ("wrong", "pw-marked-3"):
        params["clientPassword"] = password
        assert (await access(world, "PUT", failed["id"], {"artifact": one})).must(202).raw == b""
        shown = await world.onboarded(failed["id"])
        assert shown["onboardingState"] == ("ERROR" if password == "wrong" else "ONBOARDED"), shown
    # Content that had been fetched before is not fetched again.
    assert [request.path for request in repository.asked].count("/open") == 1
    found = {one["artifactURI"][0]: one for one in shown["additionalArtifacts"] if "artifactURI" in one}
    assert found.keys() == {f"{url}/open", f"{url}/bearer"}
    for artifact in found.values():
        read = await world.packages("GET", f"/{shown['id']}/artifacts/{artifact['artifactPath']}")
        assert read.must(200).raw == SCRIPT
        assert artifact["metadata"]["size"] == len(SCRIPT)
    paths = {one["artifactPath"] for one in found.values()}
    for query, expected in (("", set()), ("?include_external_artifacts", paths)):
        archive = (await world.packages("GET", f"/{shown['id']}/artifacts{query}")).must(200).raw
        assert set(zipfile.ZipFile(io.BytesIO(archive)).namelist()) & paths == expected
    public = {"artifactUri": f"{url}/bearer", "authType": "OAUTH2_CLIENT_CREDENTIALS"}
    assert (await access(world, "GET", shown["id"])).must(200).json == {"artifact": [public]}
    (await access(world, "PUT", shown["id"], {"artifact": one})).problem(409)
    for file in world.folder.rglob("store.db*"):
        assert not [mark for mark in MARKS if mark.encode() in file.read_bytes()]


async def test_an_artifact_may_have_another_address_and_must_have_its_digest(
    world: World, url: str, repository: Repository
) -> None:
    """API-161."""
    uri = "https://no-such-host.invalid/script.sh"
    package = with_external(repository.content, uri)
    repository.content = SCRIPT
    package_id = str((await world.packages("POST", body={})).must(201).json["id"])
    basic = {"userName": "reader", "password": "pw-marked-1"}
    given = {
        "artifactUri": uri,
        "overrideUri": f"{url}/basic?q=query-marked-4",
        "authType": "BASIC",
        "paramsBasic": basic,
    }
    other = {"artifactUri": f"{url}/none"}
    stored = (await access(world, "PUT", package_id, {"artifact": [given, other]})).must(200)
    assert [one["artifactUri"] for one in stored.json["artifact"]] == [uri, other["artifactUri"]]
    assert not [mark for mark in MARKS if mark in stored.raw.decode()]
    repository.content = b"something else"
    failed = await world.upload(package, package_id)
    assert reason(failed).startswith(f"{uri}: ")
    assert "sha512 checksum" in reason(failed)
    assert "marked" not in reason(failed)
    repository.content = SCRIPT
    (await access(world, "PUT", package_id, {"artifact": [given, other]})).must(202)
    shown = await world.onboarded(package_id)
    assert shown["onboardingState"] == "ONBOARDED"
    assert f"ext_artifacts_access: the package lists no artifact {other['artifactUri']}" in shown["warnings"]


@pytest.mark.parametrize(
    ("artifact", "named"),
    [
        ({"artifactUri": "ftp://h/x"}, "artifact/artifactUri"),
        ([{"artifactUri": "http://u:p@h/x"}], "artifact[0]/artifactUri"),
        ({"artifactUri": "http://h/x", "overrideUri": "h"}, "artifact/overrideUri"),
        ([{"artifactUri": "http://h/x"}, {"artifactUri": "http://h/x"}], "each artifactUri once"),
        ({"artifactUri": "http://h/x", "authType": "BASIC"}, "needs its parameters"),
        ({"artifactUri": "http://h/x", "authTyp": "BASIC"}, "artifact/authTyp"),
    ],
)
async def test_a_configuration_that_cannot_be_meant_is_refused(world: World, artifact: Any, named: str) -> None:
    """API-161."""
    package_id = str((await world.packages("POST", body={})).must(201).json["id"])
    assert named in (await access(world, "PUT", package_id, {"artifact": artifact})).problem(400)["detail"]
