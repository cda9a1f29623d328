"""The admission of callers in each mode, over HTTP (API-140, API-141); roles; rate limits; the audit log."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest
import structlog
from certificates import Authority, Pair
from identity import AUDIENCE, CLIENT, KeystoneAccount, SigningKey, a_keystone, an_issuer
from keystoneauth1 import session as keystone_sessions
from keystoneauth1.identity import v3
from keystoneauth1.loading import get_plugin_loader
from kubevnfm_access.passwords import PasswordHash
from kubevnfm_kit.connections import Limits
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_kit.tls import ClientTls
from kubevnfm_lcm_api.settings import Settings
from lcm_world import KEY, TOKEN, Answer, World, lcm_world
from pydantic import ValidationError
from yarl import URL

UNKNOWN: Final = "00000000-0000-4000-8000-000000000000"
V2: Final = {"Version": "2.0.0"}
LIST: Final = "/vnflcm/v2/vnf_instances"
PACKAGES: Final = "/vnfpkgm/v1/vnf_packages"
VIMS: Final = "/v1.0/vims"
PASSWORD: Final = "pass:word-of-nfvo"
HASHED: Final = str(PasswordHash.from_password(PASSWORD))


def users_file(folder: Path, **roles_by_name: list[str]) -> Path:
    path = folder / "users.toml"
    entries = [
        f'[users.{name}]\nroles = {json.dumps(roles)}\npassword = "{HASHED}"\ncertificate = "{name}.example"\n'
        for name, roles in roles_by_name.items()
    ]
    path.write_text("\n".join(entries))
    return path


def basic(name: str, password: str = PASSWORD) -> dict[str, str]:
    return {"Authorization": f"Basic {b64encode(f'{name}:{password}'.encode()).decode()}"}


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def get(world: World, headers: Mapping[str, str], path: str = LIST) -> Answer:
    return await world.call("GET", path, headers={**V2, **headers})


async def refused(world: World, headers: Mapping[str, str], status: int = 401) -> dict[str, Any]:
    """Be refused; return the problem."""
    answer = await get(world, headers)
    problem: dict[str, Any] = answer.problem(status)
    assert ("WWW-Authenticate" in answer.headers) == (status == 401)
    assert answer.headers["Version"]
    return problem


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
def test_mode_none_needs_a_setting_to_listen_beyond_loopback(host: str) -> None:
    """API-140."""
    with pytest.raises(ValidationError, match="loopback"):
        settings(host=host)
    assert settings(host=host, auth_open_to_network=True).host == host


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
        users.write_text(f'[users.nfvo]\nroles = ["reader"]\npassword = "{PasswordHash.from_password("another")}"\n')
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
    """API-140: known without the right is 403; below /v1.0 in the form of its clients."""
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


# --- bearer: JWT ------------------------------------------------------------------------------------------------------


def by_issuer(url: str, **more: Any) -> dict[str, Any]:
    return {"auth_modes": "bearer", "auth_bearer_issuer": url, "auth_bearer_audience": AUDIENCE, **more}


async def test_a_jwt_of_the_issuer_for_us_is_admitted_and_no_other(tmp_path: Path) -> None:
    """API-140."""
    async with an_issuer() as issuer, lcm_world(tmp_path, **by_issuer(issuer.url)) as world:
        (await get(world, bearer(issuer.token()))).must(200)
        (await get(world, {**bearer(issuer.token()), "X-Auth-Token": "the same again"})).must(200)
        (await get(world, bearer(issuer.token(aud=["other", AUDIENCE])))).must(200)
        stranger = SigningKey("k1")
        unsigned = issuer.token().rsplit(".", 1)[0] + "."
        for wrong in (
            issuer.token(exp=1_000_000_000),
            issuer.token(exp=None),
            issuer.token(aud="another-service"),
            issuer.token(aud=None),
            issuer.token(iss="https://elsewhere.example"),
            issuer.token(nbf=4_000_000_000),
            issuer.token(key=stranger),
            issuer.token(header={"kid": "unknown"}),
            issuer.token(sub=None, client_id=None),
            unsigned,
            "not-a-jwt",
            "a.b.c",
        ):
            await refused(world, bearer(wrong))
        answer = await get(world, bearer("a.b.c"))
        assert answer.headers["WWW-Authenticate"] == 'Bearer realm="kubevnfm", error="invalid_token"'
        assert (await get(world, {})).headers["WWW-Authenticate"] == 'Bearer realm="kubevnfm"'
        await refused(world, bearer(issuer.token("unrelated scopes")), 403)


async def test_a_token_signed_with_the_public_key_as_a_shared_secret_is_refused(tmp_path: Path) -> None:
    """RFC 8725 2.1: a token must not choose the algorithm of its verification."""
    import hashlib
    import hmac

    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    async with an_issuer() as issuer, lcm_world(tmp_path, **by_issuer(issuer.url)) as world:
        (await get(world, bearer(issuer.token()))).must(200)
        public = issuer.keys[0].private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

        def part(document: Any) -> str:
            return b64encode(json.dumps(document).encode(), b"-_").rstrip(b"=").decode()

        body = issuer.token().split(".")[1]
        for algorithm in ("HS256", "none"):
            signed = f"{part({'alg': algorithm, 'kid': 'k1', 'typ': 'JWT'})}.{body}"
            signature = b64encode(hmac.digest(public, signed.encode(), hashlib.sha256), b"-_").rstrip(b"=").decode()
            await refused(world, bearer(f"{signed}.{signature}"))


async def test_keys_are_fetched_once_and_again_when_an_unknown_one_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kubevnfm_access.tokens_jwt._ASK_EVERY_S", 0.0)
    async with an_issuer() as issuer, lcm_world(tmp_path, **by_issuer(issuer.url)) as world:
        issuer.more_keys = [{"kty": "new", "kid": "n"}, "odd", {"kty": "oct", "k": "c2VjcmV0", "kid": "o"}]
        answers = await asyncio.gather(*(get(world, bearer(issuer.token())) for _ in range(5)))
        assert [answer.status for answer in answers] == [200] * 5
        assert issuer.asked.count("/jwks") == 1
        old = issuer.token()
        issuer.keys = [SigningKey("k2", algorithm="ES256")]
        (await get(world, bearer(old))).must(200)  # until the keys are fetched again
        (await get(world, bearer(issuer.token()))).must(200)
        assert issuer.asked.count("/jwks") == 2
        await refused(world, bearer(old))  # withdrawn
        issuer.is_down = True
        (await get(world, bearer(issuer.token()))).must(200)


async def test_unknown_keys_do_not_make_us_flood_the_issuer(tmp_path: Path) -> None:
    async with an_issuer() as issuer, lcm_world(tmp_path, **by_issuer(issuer.url)) as world:
        (await get(world, bearer(issuer.token()))).must(200)
        for number in range(10):
            await refused(world, bearer(issuer.token(header={"kid": f"x{number}"})))
        assert issuer.asked.count("/jwks") == 1


async def test_an_issuer_that_is_away_at_first_is_503(tmp_path: Path) -> None:
    async with an_issuer() as issuer, lcm_world(tmp_path, **by_issuer(issuer.url)) as world:
        issuer.is_down = True
        answer = await get(world, bearer(issuer.token()))
        assert answer.problem(503)["type"] == "identity-unavailable"
        assert int(answer.headers["Retry-After"]) > 0


async def test_roles_may_stand_deep_in_a_claim_and_be_named_otherwise(tmp_path: Path) -> None:
    more = {"auth_bearer_roles_claim": "realm_access.roles", "auth_roles": "nfv-boss=admin"}
    async with an_issuer() as issuer:
        jwks = {"auth_bearer_jwks_url": f"{issuer.url}/jwks"}
        async with lcm_world(tmp_path, **by_issuer(issuer.url, **more, **jwks)) as world:
            boss = bearer(issuer.token(realm_access={"roles": ["nfv-boss", 7]}))
            (await world.call("POST", PACKAGES, {}, headers=boss)).must(201)
            for roles in ({"roles": ["admin"]}, {"roles": 5}, {}, "nfv-boss", None):
                await refused(world, bearer(issuer.token(realm_access=roles)), 403)
        assert issuer.asked == ["/jwks"]


# --- bearer: introspection --------------------------------------------------------------------------------------------


async def test_an_opaque_token_is_asked_for_once_while_it_is_remembered(tmp_path: Path) -> None:
    """API-140."""
    async with an_issuer() as issuer:
        asked = {
            "auth_modes": "bearer",
            "auth_bearer_audience": AUDIENCE,
            "auth_bearer_introspection_url": f"{issuer.url}/introspect",
            "auth_bearer_client_id": CLIENT[0],
            "auth_bearer_client_secret": CLIENT[1],
        }
        live = {"active": True, "client_id": "nfvo-1", "scope": "reader"}
        issuer.opaque = {
            "good": {**live, "exp": 4_000_000_000, "aud": AUDIENCE},
            "plain": live,
            "old": {**live, "exp": 1_000_000_000},
            "others": {**live, "aud": ["another-service"]},
        }
        async with lcm_world(tmp_path, **asked) as world:
            answers = await asyncio.gather(*(get(world, bearer("good")) for _ in range(5)))
            assert [answer.status for answer in answers] == [200] * 5
            assert len(issuer.asked) == 1
            (await get(world, bearer("plain"))).must(200)
            for wrong in ("unknown", "old", "others"):
                await refused(world, bearer(wrong))
            issuer.is_down = True
            (await get(world, bearer("good"))).must(200)
            (await get(world, bearer("never-seen"))).problem(503)


# --- keystone ---------------------------------------------------------------------------------------------------------


def by_keystone(url: str, **more: Any) -> dict[str, Any]:
    return {
        "auth_modes": "keystone",
        "auth_keystone_url": url,
        "auth_keystone_username": "gateway",
        "auth_keystone_password": "gateway-s3cret",
        "auth_keystone_projects": "nfv",
        **more,
    }


async def test_a_keystone_token_is_validated_and_its_roles_count(tmp_path: Path) -> None:
    """API-140."""
    accounts = {
        "anna": KeystoneAccount("pw", ("member",)),
        "rita": KeystoneAccount("pw", ("reader",)),
        "boss": KeystoneAccount("pw", ("admin",)),
        "other": KeystoneAccount("pw", ("admin",), "elsewhere"),
    }
    async with a_keystone(**accounts) as keystone, lcm_world(tmp_path, **by_keystone(keystone.url)) as world:
        tokens = {name: {"X-Auth-Token": keystone.token(name)} for name in accounts}
        answers = await asyncio.gather(*(get(world, tokens["anna"]) for _ in range(5)))
        assert [answer.status for answer in answers] == [200] * 5
        assert (keystone.validations, keystone.log_ins) == (1, ["gateway"])
        (await get(world, {**tokens["anna"], "Authorization": "nonsense"})).must(200)
        (await world.call("POST", LIST, {"vnfdId": UNKNOWN}, headers={**V2, **tokens["anna"]})).must(422)
        (await world.call("POST", LIST, {"vnfdId": UNKNOWN}, headers={**V2, **tokens["rita"]})).problem(403)
        (await world.call("POST", PACKAGES, {}, headers=tokens["boss"])).must(201)
        await refused(world, tokens["other"], 403)
        expired = keystone.token("anna", lives_s=-1)
        for wrong in ({}, {"X-Auth-Token": "unknown"}, {"X-Auth-Token": expired}, {"X-Auth-Token": "x" * 9000}):
            await refused(world, wrong)
        assert (await get(world, {})).headers["WWW-Authenticate"] == f'Keystone uri="{keystone.url}"'
        keystone.is_down = True
        (await get(world, tokens["anna"])).must(200)
        (await get(world, {"X-Auth-Token": keystone.token("anna")})).problem(503)


async def test_a_revoked_token_is_refused_once_it_is_asked_for_again(tmp_path: Path) -> None:
    async with (
        a_keystone(anna=KeystoneAccount("pw", ("member",))) as keystone,
        lcm_world(tmp_path, **by_keystone(keystone.url, auth_cache_s=0)) as world,
    ):
        token = keystone.token("anna")
        (await get(world, {"X-Auth-Token": token})).must(200)
        keystone.revoke(token)
        await refused(world, {"X-Auth-Token": token})


async def test_our_own_token_is_fetched_again_when_keystone_no_longer_takes_it(tmp_path: Path) -> None:
    async with (
        a_keystone(anna=KeystoneAccount("pw", ("member",))) as keystone,
        lcm_world(tmp_path, **by_keystone(keystone.url, auth_cache_s=0, auth_keystone_projects="*")) as world,
    ):
        (await get(world, {"X-Auth-Token": keystone.token("anna")})).must(200)
        keystone.tokens.clear()
        (await get(world, {"X-Auth-Token": keystone.token("anna")})).must(200)
        assert keystone.log_ins == ["gateway", "gateway"]
        keystone.accounts["gateway"] = KeystoneAccount("changed", ("service",), "service")
        keystone.tokens.clear()
        (await get(world, {"X-Auth-Token": keystone.token("anna")})).problem(503)


async def test_the_plugins_of_the_command_line_get_in(tmp_path: Path) -> None:
    """API-141: v3password, http_basic and none are keystoneauth1's, which the command line uses."""
    users = users_file(tmp_path, nfvo=["operator"])
    async with a_keystone(anna=KeystoneAccount("pw", ("member",))) as keystone:
        modes = by_keystone(keystone.url, auth_modes="keystone,basic", auth_users_file=users)
        async with lcm_world(tmp_path, **modes) as world:
            keystone.gateway_url = world.url
            password = v3.Password(
                auth_url=keystone.url,
                username="anna",
                password="pw",
                user_domain_name="Default",
                project_name="nfv",
                project_domain_name="Default",
            )
            plain: Any = get_plugin_loader("http_basic").load_from_options(
                endpoint=world.url, username="nfvo", password=PASSWORD
            )
            nothing: Any = get_plugin_loader("none").load_from_options(endpoint=world.url)
            for plugin, status in ((password, 200), (plain, 200), (nothing, 401)):
                answer = await asyncio.to_thread(
                    keystone_sessions.Session(auth=plugin).get,
                    "/vnflcm/v1/vnf_instances",
                    endpoint_filter={"service_type": "nfv-orchestration", "interface": "public"},
                    raise_exc=False,
                )
                assert answer.status_code == status


async def test_both_headers_at_once_do_no_harm(tmp_path: Path) -> None:
    """API-141: with v3oauth2clientcredential the command line sends both."""
    async with a_keystone(anna=KeystoneAccount("pw", ("member",))) as keystone, an_issuer() as issuer:
        modes = {**by_issuer(issuer.url), **by_keystone(keystone.url), "auth_modes": "bearer,keystone"}
        async with lcm_world(tmp_path, **modes) as world:
            good, token = bearer(issuer.token()), {"X-Auth-Token": keystone.token("anna")}
            for headers in (good, token, {**good, **token}, {**good, "X-Auth-Token": "x"}, {**bearer("x"), **token}):
                (await get(world, headers)).must(200)
            await refused(world, {**bearer("x"), "X-Auth-Token": "x"})


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
    async with lcm_world(tmp_path, trusted_proxies="127.0.0.0/8") as world:
        assert (await get(world, forwarded, "/")).json["versions"][0]["links"][0]["href"] == "https://nfv.example/v1.0"
    (tmp_path / "second").mkdir()
    async with lcm_world(tmp_path / "second") as world:
        assert (await get(world, forwarded, "/")).json["versions"][0]["links"][0]["href"] == f"{world.url}/v1.0"


# --- limits -----------------------------------------------------------------------------------------------------------


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
    async with lcm_world(tmp_path, rate_limit_per_s=0.01, rate_limit_burst=1) as world:
        (await get(world, {})).must(200)
        (await get(world, {})).problem(429)
        error = (await get(world, {}, VIMS)).must(429)
        assert error.json["TackerError"]["type"] == "too-many-requests"
        assert "Retry-After" in error.headers


async def test_requests_that_are_too_large_are_problems_before_anybody_is_asked(tmp_path: Path) -> None:
    """API-011, API-016: 414, 431 and 413 in the form of all errors."""
    users = users_file(tmp_path, nfvo=["operator"])
    async with lcm_world(tmp_path, auth_modes="basic", auth_users_file=users) as world:
        (await get(world, {}, f"{LIST}?filter={'x' * 20_000}")).problem(414)
        (await get(world, {"X-Long": "x" * 20_000})).problem(431)
        free = 8192 - len(f"{LIST}?filter=(eq,id,)")
        long = f"{LIST}?filter=(eq,id,{'x' * (free % 6)}{'é' * (free // 6)})"  # each of them is %C3%A9
        assert len(str(URL(long))) == 8192
        (await get(world, basic("nfvo"), long)).must(200)
        headers = {**V2, "Content-Type": "application/json"}
        data = b'{"vnfdId": "' + b"x" * (8 * 1024 * 1024) + b'"}'
        (await world.call("POST", LIST, data=data, headers={**headers, **basic("nfvo")})).problem(413)


async def dripping(begins: bytes = b"") -> AsyncIterator[bytes]:
    """A body of which a byte comes now and then, and that never ends."""
    yield begins
    while True:
        yield b" "
        await asyncio.sleep(0.01)


async def test_bodies_that_drip_are_408_and_leave_nothing(tmp_path: Path) -> None:
    async with lcm_world(tmp_path, limits=Limits(body_window_s=0.3)) as world:
        json_headers = {**V2, "Content-Type": "application/json"}
        answer = await world.call("POST", LIST, data=dripping(), headers=json_headers)
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


# --- the audit log ----------------------------------------------------------------------------------------------------


async def test_changing_calls_are_written_down_with_who_and_what_and_no_secret(tmp_path: Path) -> None:
    users = users_file(tmp_path, o=["operator"], a=["admin"], r=["reader"])
    async with lcm_world(tmp_path, auth_modes="basic", auth_users_file=users) as world:
        operator, admin = {**V2, **basic("o")}, basic("a")
        with structlog.testing.capture_logs() as logs:
            package = (await world.call("POST", PACKAGES, {}, headers=admin)).must(201).json["id"]
            await world.call(
                "PUT", f"{PACKAGES}/{package}/package_content", data=world.zipped("vm"),
                headers={**admin, "Content-Type": "application/zip"},
            )  # fmt: skip
            await world.bus.quiet()
            request = {"vnfdId": "1a27cf0a-6c8f-4f43-93d1-2e4a62b1f9a3"}

            async def made() -> Answer:
                return await world.call("POST", LIST, request, headers=operator)

            while (created := await made()).status == 422:  # not onboarded yet
                await world.bus.quiet()
            instance = created.must(201).json["id"]
            task = await world.call(
                "POST", f"{LIST}/{instance}/instantiate",
                {"flavourId": "simple", "additionalParams": {"password": "s3cret"}}, headers=operator,
            )  # fmt: skip
            (await world.call("DELETE", f"{LIST}/{instance}", headers={**V2, **basic("r")})).problem(403)
            (await world.call("DELETE", f"{LIST}/{instance}", headers=V2)).problem(401)
            await get(world, operator)
            await world.bus.quiet()
        audit = [line for line in logs if line["event"] == "audit"]
        assert all(line["method"] != "GET" for line in audit)
        assert [line["status"] for line in audit][-2:] == [403, 401]
        assert audit[0] == {
            "event": "audit", "log_level": "info", "subject": "a", "mode": "basic", "roles": ["admin"], "project": None,
            "address": "127.0.0.1", "method": "POST", "path": PACKAGES, "status": 201, "occurrence_id": None,
            "request_id": audit[0]["request_id"],
        }  # fmt: skip
        started = next(line for line in audit if line["path"].endswith("/instantiate"))
        assert (started["subject"], started["status"]) == ("o", task.must(202).status)
        assert started["occurrence_id"] == task.headers["Location"].rpartition("/")[2]
        assert (audit[-2]["subject"], audit[-1]["subject"]) == ("r", None)
        for secret in ("s3cret", PASSWORD, HASHED, basic("o")["Authorization"].split()[1]):
            assert secret not in repr(logs)
