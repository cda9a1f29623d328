"""Callers with tokens of identity servers, over HTTP (API-140, API-141): JWT, introspection, Keystone."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from callers.callers import LIST, PACKAGES, UNKNOWN, V2, get, refused
from callers.users import PASSWORD, bearer, users_file
from clouds.identity import AUDIENCE, CLIENT, KeystoneAccount, SigningKey, a_keystone, an_issuer
from keystoneauth1 import session as keystone_sessions
from keystoneauth1.identity import v3
from keystoneauth1.loading import get_plugin_loader
from worlds.lcm_world import lcm_world

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
