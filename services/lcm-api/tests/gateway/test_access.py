"""The admission of callers in each mode, over HTTP (API-140, API-141); roles and rate limits. Tokens: `test_tokens`."""

from __future__ import annotations

import os
import re
from base64 import b64encode
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest
from callers.callers import LIST, PACKAGES, UNKNOWN, V2, VIMS, get, refused
from callers.documented import an_onap_app
from callers.users import basic, bearer, hashed, users_file
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_kit.tls import ClientTls
from kubevnfm_lcm_api.http.documents import document_of
from kubevnfm_lcm_api.http.routes import ROUTES
from kubevnfm_lcm_api.multicloud.services import DOCUMENT as MULTICLOUD
from kubevnfm_lcm_api.multicloud.services import PREFIX
from kubevnfm_lcm_api.onap.answers import DOCUMENT as ONAP
from kubevnfm_lcm_api.settings import Settings
from pydantic import ValidationError
from servers.certificates import Authority, Pair
from worlds.lcm_world import KEY, TOKEN, World, lcm_world

# --- mode none --------------------------------------------------------------------------------------------------------


async def test_mode_none_admits_every_caller_with_any_headers(tmp_path: Path) -> None:
    """API-141: `--os-auth-type none` sends X-Auth-Token: notused."""
    async with lcm_world(tmp_path) as world:
        for headers in (
            {},
            {"X-Auth-Token": "notused"},
            {"Authorization": "nonsense"},
            {**basic("unknown"), "X-Auth-Token": "both"},
        ):
            (await get(world, headers)).must(200)
        (await world.call("POST", PACKAGES, {}, headers={})).must(201)


def settings(**changes: Any) -> Settings:
    return Settings(**{"internal_token": TOKEN, "keys": KEY, **changes})


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "nfv.example", ""])
def test_mode_none_does_not_listen_beyond_loopback(host: str) -> None:
    """API-140."""
    with pytest.raises(ValidationError, match="loopback"):
        settings(host=host)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.7", "::1", "localhost"])
def test_mode_none_listens_on_loopback(host: str) -> None:
    assert settings(host=host).auth_modes == ("none",)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"auth_modes": "none,basic", "auth_users_file": "u"}, "none, or one or more"),
        ({"auth_modes": ""}, "none, or one or more"),
        ({"auth_modes": "magic"}, "auth_modes"),
        ({"auth_modes": "basic"}, "auth_users_file"),
        ({"auth_modes": "keystone"}, "auth_keystone_url, auth_keystone_username"),
        ({"auth_modes": "bearer", "auth_bearer_issuer": "https://i"}, "auth_bearer_audience"),
        ({"auth_modes": "bearer", "auth_bearer_audience": "a"}, "one of both"),
        (
            {"auth_modes": "bearer", "auth_bearer_audience": "a", "auth_bearer_introspection_url": "https://i"},
            "client_id",
        ),
        ({"auth_roles": "admin=king"}, "auth_roles"),
        ({"auth_modes": "certificate", "auth_users_file": "u"}, "tls_client_ca needed"),
        ({"auth_modes": "certificate", "auth_users_file": "u", "auth_certificate_header": "C"}, "trusted_proxies"),
        ({"tls_key": "k"}, "both or none"),
        ({"tls_client_ca": "c"}, "needs tls_certificate"),
    ],
)
def test_settings_that_do_not_fit_together_are_refused(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        settings(**given)


def test_settings_come_from_the_environment_divided_by_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "INTERNAL_TOKEN": TOKEN,
        "KEYS": KEY,
        "HOST": "0.0.0.0",
        "AUTH_MODES": "basic, certificate",
        "AUTH_CERTIFICATE_HEADER": "Client-Cert",
        "AUTH_USERS_FILE": "/etc/users.toml",
        "AUTH_ROLES": "nfv-admin=admin, nfv=operator",
        "TRUSTED_PROXIES": "10.0.0.0/8,fd00::/8",
    }.items():
        monkeypatch.setenv(f"KUBEVNFM_LCM_API_{name}", value)
    read = Settings()
    assert read.auth_modes == ("basic", "certificate")
    assert read.auth_roles == {"nfv-admin": "admin", "nfv": "operator"}
    assert [str(network) for network in read.trusted_proxies] == ["10.0.0.0/8", "fd00::/8"]


# --- basic ------------------------------------------------------------------------------------------------------------


async def test_basic_admits_the_right_and_refuses_the_wrong(tmp_path: Path) -> None:
    """API-140."""
    users = users_file(tmp_path, nfvo=["operator"])
    async with lcm_world(tmp_path, auth_modes="basic", auth_users_file=users) as world:
        (await get(world, basic("nfvo"))).must(200)
        (await get(world, {**basic("nfvo"), "X-Auth-Token": "of the other kind"})).must(200)
        (await get(world, {"Authorization": basic("nfvo")["Authorization"].replace("Basic", "bAsIc")})).must(200)
        for wrong in ({}, basic("nfvo", "wrong"), basic("unknown"), bearer("abc"), {"X-Auth-Token": "abc"}):
            assert "pass:word" not in str(await refused(world, wrong))
        answer = await get(world, {})
        assert answer.headers["WWW-Authenticate"] == 'Basic realm="kubevnfm", charset="UTF-8"'
        (await get(world, basic("nfvo"))).must(200)  # after a wrong password as before


@pytest.mark.parametrize(
    "value",
    [
        "Basic",
        "nonsense",
        "Basic ???",
        "Basic bm9jb2xvbg==",
        "Basic /w==",
        " ",
        "Bearer with spaces in it",
        "Ba(sic) abc",
    ],
)
async def test_an_authorization_that_cannot_be_parsed_is_400(tmp_path: Path, value: str) -> None:
    """API-140."""
    modes: dict[str, Any] = {"auth_modes": "basic", "auth_users_file": users_file(tmp_path, nfvo=["operator"])}
    if value.startswith("Bearer"):
        modes = {"auth_modes": "bearer", "auth_bearer_audience": "a", "auth_bearer_issuer": "http://127.0.0.1:9"}
    async with lcm_world(tmp_path, **modes) as world:
        problem = await refused(world, {"Authorization": value}, 400)
        assert problem["invalidParams"][0]["name"] == "Authorization"


async def test_users_change_without_a_restart(tmp_path: Path) -> None:
    users = users_file(tmp_path, nfvo=["reader"])
    async with lcm_world(tmp_path, auth_modes="basic", auth_users_file=users) as world:
        (await get(world, basic("nfvo"))).must(200)
        users.write_text("[users.nfvo\n")  # half written: what was, stays
        (await get(world, basic("nfvo"))).must(200)
        users.write_text(f'[users.nfvo]\nroles = ["reader"]\npassword = "{hashed("another")}"\n')
        await refused(world, basic("nfvo"))
        (await get(world, basic("nfvo", "another"))).must(200)
        users_file(tmp_path, alice=["reader"])
        await refused(world, basic("nfvo", "another"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[users]\nx = 1",
        "[users.a]\nroles = ['king']\npassword = 'p'",
        "[users.a]\nroles = ['reader']",
        "[users.a]\nroles = ['reader']\npassword = 's3cret-in-clear'",
        "[users.a]\nroles = ['reader']\npassword = 's3cret-in-clear",
        "[users.a]\nroles = ['reader']\npasswort = 's3cret-in-clear'",
        "[users.'a:b']\nroles = ['reader']\npassword = 's3cret-in-clear'",
    ],
)
async def test_a_users_file_that_cannot_be_used_stops_the_start_and_is_not_repeated(tmp_path: Path, text: str) -> None:
    users = tmp_path / "users.toml"
    users.write_text(text)
    with pytest.raises(InvalidInput, match=r"users\.toml") as caught:
        async with lcm_world(tmp_path, auth_modes="basic", auth_users_file=users):
            pass
    assert "s3cret" not in str(caught.value)


# --- what roles may ---------------------------------------------------------------------------------------------------


async def test_each_role_may_what_it_may(tmp_path: Path) -> None:
    """API-140, MC-135: known without the right is 403; below /v1.0 in the form of its clients."""
    users = users_file(tmp_path, r=["reader"], o=["operator"], a=["admin"], none=[])
    async with lcm_world(tmp_path, auth_modes="basic", auth_users_file=users) as world:
        instance, task = {"vnfdId": UNKNOWN}, f"{LIST}/{UNKNOWN}/instantiate"
        ranks = {"r": 1, "o": 2, "a": 3, "none": 0}
        for method, path, body, needs, does in (
            ("GET", LIST, None, 1, 200),
            ("HEAD", PACKAGES, None, 1, 200),
            ("GET", VIMS, None, 1, 200),
            ("GET", "/vnflcm/api_versions", None, 1, 200),
            ("POST", LIST, instance, 2, 422),
            ("POST", task, {"flavourId": "simple"}, 2, 404),
            ("DELETE", f"{LIST}/{UNKNOWN}", None, 2, 404),
            ("DELETE", f"/vnfpkgm/v1/subscriptions/{UNKNOWN}", None, 2, 404),
            ("POST", PACKAGES, {}, 3, 201),
            ("DELETE", f"{PACKAGES}/{UNKNOWN}", None, 3, 404),
            ("DELETE", f"{VIMS}/{UNKNOWN}", None, 3, 404),
            ("GET", f"{PREFIX}/vnf_instances", None, 1, 200),
            ("GET", f"{PREFIX}/cloud-regions/op/none", None, 1, 404),
            ("POST", f"{PREFIX}/vnf_instances", {}, 2, 422),
            ("DELETE", f"{PREFIX}/vnf_instances/{UNKNOWN}", None, 2, 404),
            ("PUT", f"{PREFIX}/vnf_instances/{UNKNOWN}/suspension", {"reason": "r"}, 2, 404),
            ("POST", f"{PREFIX}/virtual-links", {}, 2, 422),
            ("POST", f"{PREFIX}/persistent-volumes", {}, 2, 422),
            ("POST", f"{PREFIX}/cloud-regions", {}, 3, 422),
            ("DELETE", f"{PREFIX}/cloud-regions/op/none", None, 3, 404),
            ("PUT", f"{PREFIX}/cloud-regions/op/none/suspension", {"reason": "r"}, 3, 404),
        ):
            for name, rank in ranks.items():
                answer = await world.call(
                    method, path, body, headers={**V2, **basic(name)} if path != PACKAGES else basic(name)
                )
                answer.must(does if rank >= needs else 403)
        problem = (await world.call("POST", LIST, instance, headers={**V2, **basic("r")})).problem(403)
        assert "operator" in problem["detail"]
        for status, headers in ((403, basic("o")), (401, {})):
            answer = (await world.call("POST", VIMS, {"vim": {}}, headers=headers)).must(status)
            error = answer.json["TackerError"]
            assert set(error) == {"type", "message", "detail"}
            assert error["message"]
            assert answer.headers["Content-Type"].startswith("application/json")
        assert (await world.call("PATCH", VIMS, headers={})).must(405).json["TackerError"]["message"]


M: Final = "/multicloud/v1"
VNF, REGION, LINK = f"{M}/vnf_instances/{{id}}", f"{M}/cloud-regions/{{owner}}/{{region}}", f"{M}/virtual-links/{{id}}"
VOLUME, CSAR, RB = f"{M}/persistent-volumes/{{id}}", f"{M}/artifacts/{{csar_id}}", "/v1/rb/definition"
RB_ONE, INSTANCE = f"{RB}/{{name}}/{{version}}", "/v1/instance/{id}"
RB_PROFILE, NOTICE = f"{RB_ONE}/profile/{{profile}}", f"{INSTANCE}/status/subscription"
NCM: Final = "/v2/cluster-providers/{provider}/clusters/{cluster}"
OPERATORS: Final = frozenset(
    f"{method} {path}"
    for methods, path in (
        ("POST", f"{M}/vnf_instances"), ("PATCH DELETE", VNF), ("POST", f"{VNF}/rollback"),
        ("PUT DELETE", f"{VNF}/suspension"),
        ("POST", f"{M}/group-operations/{{id}}/cancel"), ("POST", f"{M}/group-operations/{{id}}/retry"),
        ("POST", f"{M}/virtual-links"), ("DELETE", LINK), ("PUT DELETE", f"{LINK}/references/{{reference}}"),
        ("POST", f"{M}/persistent-volumes"), ("PATCH DELETE", VOLUME),
        ("POST", f"{M}/subscriptions"), ("DELETE", f"{M}/subscriptions/{{id}}"),
        ("POST", "/v1/vnf_instances"), ("DELETE", "/v1/vnf_instances/{region}/{namespace}/{id}"),
        ("POST", "/v1/instance"), ("DELETE", INSTANCE), ("POST", f"{INSTANCE}/upgrade"),
        ("POST", f"{INSTANCE}/healthcheck"), ("DELETE", f"{INSTANCE}/healthcheck/{{check}}"),
        ("POST", NOTICE), ("PUT DELETE", f"{NOTICE}/{{name}}"),
        *(("POST", f"{NCM}/{kind}") for kind in ("networks", "provider-networks", "apply", "terminate")),
        *(("PUT DELETE", f"{NCM}/{kind}/{{name}}") for kind in ("networks", "provider-networks")),
    )
    for method in methods.split()
)  # fmt: skip
ADMINS: Final = frozenset(
    f"{method} {path}"
    for methods, path in (
        ("POST", f"{M}/cloud-regions"), ("PATCH DELETE", REGION), ("PUT", f"{REGION}/kubeconfig"),
        ("PUT DELETE", f"{REGION}/suspension"), ("POST DELETE", CSAR), ("POST", f"{M}/inventory/resync"),
        ("POST", "/v1/connectivity-info"), ("DELETE", "/v1/connectivity-info/{region}"),
        ("POST", RB), ("PUT DELETE", RB_ONE), ("POST", f"{RB_ONE}/content"), ("POST", f"{RB_ONE}/profile"),
        ("PUT DELETE", RB_PROFILE), ("POST", f"{RB_PROFILE}/content"),
    )
    for method in methods.split()
)  # fmt: skip


async def test_every_route_of_multi_cloud_and_of_onap_needs_its_role(tmp_path: Path) -> None:
    """MC-128, MC-135: a route that changes something is in one of both lists; each role is refused before anything is read."""
    app = an_onap_app()
    routes = [key for key in app[ROUTES] if document_of(app, key[1]) in (MULTICLOUD, ONAP)]
    changing = {f"{method} {path}" for method, path in routes if method != "GET"}
    assert changing == OPERATORS | ADMINS
    assert not OPERATORS & ADMINS
    ranks = {"none": 0, "reader": 1, "operator": 2, "admin": 3}
    users = users_file(tmp_path, none=[], **{name: [name] for name in ranks if name != "none"})
    paths = [(method, root, path) for method, path in routes for root in ("", *document_of(app, path).roots)]
    async with lcm_world(tmp_path, auth_modes="basic", auth_users_file=users, onap_compat=True) as world:
        for method, root, path in paths:
            needed = 3 if f"{method} {path}" in ADMINS else 2 if method != "GET" else 1
            real = root + re.sub(r"\{\w+\}", "none", path)
            for name, rank in ranks.items():
                answer = await world.call(method, real, headers=basic(name))
                if rank < needed:
                    assert answer.status == 403, f"{method} {path} as {name}: {answer.status}"
                    assert list(ranks)[needed].encode() in answer.raw
                else:
                    assert answer.status not in {401, 403}, f"{method} {path} as {name}: {answer.status}"
            assert (await world.call(method, real, headers={})).status == 401


async def test_a_package_from_elsewhere_needs_an_admin(tmp_path: Path) -> None:
    """MC-122, MC-135: it names hosts that kubevnfm calls."""
    users = users_file(tmp_path, operator=["operator"], admin=["admin"])
    sources = ({"url": "https://h.example/x", "sha256": "0" * 64}, {"oci": "oci://h/x", "digest": f"sha256:{'0' * 64}"})
    async with lcm_world(tmp_path, auth_modes="basic", auth_users_file=users, onap_compat=True) as world:
        world.regions.add("op/edge", "vim-edge")
        world.vims.add("vim-edge", "kubernetes")
        for source in sources:
            for path, region in ((f"{M}/vnf_instances", "op/edge"), (f"{M}/vnf_instances?dry_run=server", "op/edge")):
                asked = {"cloud_region_id": region, "artifacts": source}
                answer = await world.call("POST", path, asked, headers=basic("operator"))
                assert "admin" in answer.problem(403)["detail"]
                assert (await world.call("POST", path, asked, headers=basic("admin"))).status not in {401, 403}
            by_onap = {"cloud_region_id": "edge", "csar_id": None, "artifacts": source}
            for name in ("operator", "admin"):
                refusal = await world.call("POST", "/v1/vnf_instances", by_onap, headers=basic(name))
                assert b"artifacts" in refusal.must(422).raw


async def test_who_calls_is_asked_after_path_and_method_and_before_all_else(tmp_path: Path) -> None:
    """The order of api.md 1.2; health and / are outside."""
    users = users_file(tmp_path, nfvo=["operator"])
    async with lcm_world(tmp_path, auth_modes="basic", auth_users_file=users) as world:
        (await world.call("GET", "/nowhere", headers={})).problem(404)
        (await world.call("PUT", LIST, headers={})).problem(405)
        (await world.call("OPTIONS", LIST, headers={})).must(204)
        for headers in ({}, {"Version": "abc"}, {"Version": "2.0.0", "Accept": "text/html"}):
            (await world.call("POST", LIST, data=b"{", headers=headers)).problem(401)
        (await world.call("GET", LIST, headers=basic("nfvo"))).problem(400)
        for path in ("/", "/health/live", "/health/ready"):
            (await world.call("GET", path, headers={})).must(200)


async def test_the_internal_api_keeps_its_own_token(tmp_path: Path) -> None:
    users = users_file(tmp_path, nfvo=["admin"])
    async with lcm_world(tmp_path, auth_modes="basic", auth_users_file=users) as world:
        (await world.call("POST", PACKAGES, {}, headers={})).problem(401)
        path = f"/internal/v1/instances/{UNKNOWN}"
        for headers in ({}, basic("nfvo"), bearer("wrong")):
            (await world.call("GET", path, headers=headers)).problem(401)
        (await world.call("GET", path, headers=bearer(TOKEN))).problem(404)
        (await get(world, bearer(TOKEN))).problem(401)  # and it opens nothing else


# --- certificates -----------------------------------------------------------------------------------------------------


async def call_with(world: World, ca: Authority, pair: Pair | None, path: str = LIST) -> int:
    tls = ClientTls(ca.file, pair.certificate if pair else None, pair.key if pair else None).context()
    url = world.url.replace("http://", "https://")
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls)) as session,
        session.get(f"{url}{path}", headers=V2) as response,
    ):
        return response.status


async def test_a_certificate_is_a_user(tmp_path: Path) -> None:
    """API-140."""
    ca = Authority(tmp_path)
    server = ca.issue("server")
    tls = {
        "auth_modes": "certificate",
        "auth_users_file": users_file(tmp_path, nfvo=["reader"]),
        "tls_certificate": server.certificate,
        "tls_key": server.key,
        "tls_client_ca": ca.file,
    }
    async with lcm_world(tmp_path, **tls) as world:
        assert await call_with(world, ca, ca.issue("any", dns="nfvo.example")) == 200
        assert await call_with(world, ca, ca.issue("nfvo.example")) == 200  # by its common name: it has no other
        assert await call_with(world, ca, ca.issue("nfvo.example", dns="else.example", file="second")) == 401
        assert await call_with(world, ca, ca.issue("stranger")) == 401
        with pytest.raises((aiohttp.ClientError, ConnectionError)):
            await call_with(world, ca, None)
    (tmp_path / "second").mkdir()
    async with lcm_world(tmp_path / "second", tls_client_required=False, **tls) as world:
        assert await call_with(world, ca, None) == 401
        assert await call_with(world, ca, None, "/health/live") == 200


async def test_only_a_trusted_proxy_forwards_certificates(tmp_path: Path) -> None:
    from urllib.parse import quote

    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding

    ca = Authority(tmp_path)
    pem = ca.issue("nfvo.example").certificate.read_bytes()
    der = x509.load_pem_x509_certificate(pem).public_bytes(Encoding.DER)
    forms = (f":{b64encode(der).decode()}:", quote(pem.decode()))
    behind = {
        "auth_modes": "certificate",
        "auth_users_file": users_file(tmp_path, nfvo=["reader"]),
        "auth_certificate_header": "Client-Cert",
    }
    async with lcm_world(tmp_path, trusted_proxies="127.0.0.0/8", **behind) as world:
        for form in forms:
            answer = await get(world, {"Client-Cert": form}, "/vnflcm/v2/vnf_instances")
            answer.must(200)
        await refused(world, {})
        await refused(world, {"Client-Cert": "rubbish"}, 400)
    (tmp_path / "second").mkdir()
    async with lcm_world(tmp_path / "second", trusted_proxies="10.0.0.0/8", **behind) as world:
        await refused(world, {"Client-Cert": forms[0]})


async def test_links_are_what_the_caller_of_a_trusted_proxy_sees(tmp_path: Path) -> None:
    forwarded = {"X-Forwarded-Proto": "https", "X-Forwarded-Host": "nfv.example"}
    async with lcm_world(tmp_path, trusted_proxies="127.0.0.0/8", allowed_hosts="nfv.example") as world:
        assert (await get(world, forwarded, "/")).json["versions"][0]["links"][0]["href"] == "https://nfv.example/v1.0"
    (tmp_path / "second").mkdir()
    async with lcm_world(tmp_path / "second") as world:
        assert (await get(world, forwarded, "/")).json["versions"][0]["links"][0]["href"] == f"{world.url}/v1.0"


# --- rate limits ------------------------------------------------------------------------------------------------------


async def test_only_the_caller_above_the_rate_limit_must_wait(tmp_path: Path) -> None:
    users = users_file(tmp_path, busy=["reader"], calm=["reader"])
    limits = {"rate_limit_per_s": 0.01, "rate_limit_burst": 3, "trusted_proxies": "127.0.0.0/8"}
    async with lcm_world(tmp_path, auth_modes="basic", auth_users_file=users, **limits) as world:
        for _ in range(3):
            (await get(world, basic("busy"))).must(200)
        answer = await get(world, basic("busy"))
        assert answer.problem(429)["type"] == "too-many-requests"
        assert 1 <= int(answer.headers["Retry-After"]) <= 100
        (await get(world, basic("calm"))).must(200)
        (await get(world, {}, "/health/live")).must(200)
        guesser = {"X-Forwarded-For": "198.51.100.7, 127.0.0.9"}
        for _ in range(3):
            await refused(world, {**basic("calm", "guess"), **guesser})
        (await get(world, {**basic("calm", "guess"), **guesser})).problem(429)
        (await get(world, basic("calm"))).must(200)


async def test_the_rate_limit_holds_in_mode_none_by_address(tmp_path: Path) -> None:
    async with lcm_world(tmp_path, rate_limit_per_s=0.01, rate_limit_burst=1, onap_compat=True) as world:
        (await get(world, {})).must(200)
        (await get(world, {})).problem(429)
        of_onap = (await get(world, {}, "/v1/instance")).must(429)
        assert of_onap.headers["Content-Type"].startswith("text/plain")
        assert "Retry-After" in of_onap.headers
        error = (await get(world, {}, VIMS)).must(429)
        assert error.json["TackerError"]["type"] == "too-many-requests"
        assert "Retry-After" in error.headers


async def test_wrong_passwords_are_limited_by_default_and_right_ones_are_not(tmp_path: Path) -> None:
    """API-140: a guesser has 30 tries, then 10 a minute; the callers at its address that were right before are served."""
    users = users_file(tmp_path, calm=["reader"], late=["reader"])
    known = settings()
    async with lcm_world(
        tmp_path,
        auth_modes="basic",
        auth_users_file=users,
        auth_tries_burst=3,
        auth_tries_per_min=0.1,
        trusted_proxies="127.0.0.0/8",
    ) as world:
        (await get(world, basic("calm"))).must(200)
        for _ in range(5):
            await refused(world, {})
        for number in range(3):
            await refused(world, basic("calm", f"guess {number}"))
        answer = await get(world, basic("late", "guess"))
        assert answer.problem(429)["type"] == "too-many-requests"
        assert 1 <= int(answer.headers["Retry-After"]) <= 600
        (await get(world, basic("late"))).problem(429)
        (await get(world, basic("calm"))).must(200)
        elsewhere = {"X-Forwarded-For": "2001:db8::1"}
        for number in range(3):
            neighbour = {"X-Forwarded-For": f"2001:db8::{number}:1"}
            await refused(world, {**basic("calm", "guess"), **neighbour})
        (await get(world, {**basic("late"), **elsewhere})).problem(429)
        (await get(world, {**basic("late"), "X-Forwarded-For": "2001:db8:1::1"})).must(200)
    assert (known.auth_tries_per_min, known.auth_tries_burst) == (10, 30)


async def test_a_password_that_was_right_and_is_not_any_more_counts(tmp_path: Path) -> None:
    users = users_file(tmp_path, calm=["reader"])
    limits: dict[str, Any] = {"auth_tries_burst": 2, "auth_tries_per_min": 0.1}
    async with lcm_world(tmp_path, auth_modes="basic", auth_users_file=users, **limits) as world:
        (await get(world, basic("calm"))).must(200)
        users.write_text("[users.other]\nroles = ['reader']\ncertificate = 'c'\n")
        os.utime(users, (1, 1))
        for _ in range(2):
            await refused(world, basic("calm"))
        (await get(world, basic("calm"))).problem(429)
