"""How kubevnfm logs in to cloud regions: tokens by TokenRequest, clients of OpenID providers, proxies (multicloud.md MC-074, MC-082)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web
from kubevnfm_events import VimConnection
from kubevnfm_kit.http import serving
from kubevnfm_lab.kubernetes.cluster import LabCluster
from kubevnfm_lab.lab import Lab
from kubevnfm_secrets import Secret
from kubevnfm_vim_registry.records import COLLECTION
from kubevnfm_vim_registry.settings import Settings
from servers.connect_proxy import connect_proxy
from worlds.kubeconfigs import a_kubeconfig, encoded
from worlds.lcm_world import Answer
from worlds.region_world import REGIONS, RegionWorld, region_world
from worlds.vim_world import RING

OP_EDGE = f"{REGIONS}/op/edge"
SECRET = "swordfish-of-the-client"
RBAC = "rbac.authorization.k8s.io"
ORDER = {"namespace": "kube-system", "service_account": "kubevnfm", "expiration_s": 600}


def pointers(answer: Answer) -> list[str]:
    """Return the pointers of a 422."""
    return [error["pointer"] for error in answer.problem(422)["errors"]]


def message(answer: Answer) -> str:
    return str(answer.problem(422)["errors"][0]["message"])


def an_account(cluster: LabCluster, name: str, rules: list[dict[str, Any]]) -> None:
    """Make a ServiceAccount with these rights."""
    cluster.plane.create("serviceaccounts", {"metadata": {"name": name, "namespace": "kube-system"}})
    role = {"apiGroup": RBAC, "kind": "ClusterRole", "name": name}
    subjects = [{"kind": "ServiceAccount", "name": name, "namespace": "kube-system"}]
    cluster.plane.create(f"clusterroles.{RBAC}", {"metadata": {"name": name}, "rules": rules})
    binding = {"metadata": {"name": name}, "roleRef": role, "subjects": subjects}
    cluster.plane.create(f"clusterrolebindings.{RBAC}", binding)


async def stored(world: RegionWorld, vim_id: str) -> str:
    found = await world.registry.store.get(COLLECTION, vim_id)
    assert found is not None
    return json.dumps(found.body)


async def test_tokens_of_a_service_account_are_used_in_place_of_the_credentials(
    world: RegionWorld, cluster: LabCluster
) -> None:
    """MC-074, MC-081, MC-082: its rights count, and those of the kubeconfig only for TokenRequest."""
    refused = await world.region(cluster, token_request=ORDER)
    assert pointers(refused) == ["/token_request/service_account"]
    assert 'ServiceAccount kube-system/kubevnfm: serviceaccounts "kubevnfm" not found' in message(refused)

    an_account(cluster, "kubevnfm", [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}])
    an_account(cluster, "issuer", [{"apiGroups": [""], "resources": ["serviceaccounts/token"], "verbs": ["create"]}])
    an_account(cluster, "powerless", [])

    async def user(name: str) -> dict[str, Any]:
        path = f"{cluster.endpoint}/api/v1/namespaces/kube-system/serviceaccounts/{name}/token"
        headers = {"Authorization": f"Bearer {cluster.admin_token}"}
        async with world.session.post(
            path, json={"spec": {"expirationSeconds": 30 * 86400}}, headers=headers, ssl=False
        ) as response:
            token = (await response.json())["status"]["token"]
        return {"kubeconfig": encoded(a_kubeconfig(cluster, user={"token": token}))}

    powerless = await world.region(cluster, token_request=ORDER, **await user("powerless"))
    assert pointers(powerless) == ["/token_request/service_account"]
    assert "forbidden" in message(powerless)
    of_issuer = await user("issuer")
    assert "lacks permissions" in message(await world.region(cluster, **of_issuer))

    made = (await world.region(cluster, token_request=ORDER, **of_issuer)).must(201).json
    assert (made["auth"], made["token_request"]) == ("token-request", {**ORDER, "audiences": []})
    assert made["missing_permissions"] == []
    assert (await world.call("GET", f"{OP_EDGE}/health")).must(200).json["reachable"] is True
    connection = await world.registry.directory.connection(VimConnection(vim_id=made["vim_id"]))
    assert connection.access_info["service_account"] == {**ORDER, "audiences": []}
    again = (await world.region(cluster, token_request=ORDER, **of_issuer)).must(200).json
    assert again["updated_at"] == made["updated_at"]
    changed = (await world.region(cluster, token_request={**ORDER, "expiration_s": 700}, **of_issuer)).must(200).json
    assert changed["token_request"]["expiration_s"] == 700
    rotated = (await world.call("PUT", f"{OP_EDGE}/kubeconfig", await user("issuer"))).must(200).json
    assert rotated["auth"] == "token-request"


async def test_a_client_certificate_is_presented_for_tokens_only(world: RegionWorld, cluster: LabCluster) -> None:
    """MC-074: an API server takes the user of a certificate before that of a token."""
    objects = ["namespaces", "pods", "services", "configmaps", "secrets", "deployments"]
    verbs = ["get", "list", "watch", "create", "patch", "delete"]
    an_account(cluster, "kubevnfm", [{"apiGroups": ["", "apps"], "resources": objects, "verbs": verbs}])
    admin = {"kubeconfig": encoded(cluster.kubeconfig_admin())}
    made = (await world.region(cluster, token_request=ORDER, **admin)).must(201).json
    assert made["auth"] == "token-request"
    assert "list nodes" in made["missing_permissions"]


@asynccontextmanager
async def provider(cluster: LabCluster) -> AsyncIterator[tuple[str, list[dict[str, str]]]]:
    """Serve the token endpoint of a provider that the cluster trusts; yield its URL and the forms that came."""
    forms: list[dict[str, str]] = []

    async def answer(request: web.Request) -> web.Response:
        forms.append({name: str(value) for name, value in (await request.post()).items()})
        if forms[-1]["client_secret"] != SECRET:
            return web.json_response({"error": "invalid_client"}, status=401)
        return web.json_response({"access_token": cluster.admin_token, "token_type": "Bearer"})

    app = web.Application()
    app.router.add_post("/token", answer)
    async with serving(app, host="127.0.0.1", port=0) as port:
        yield f"http://127.0.0.1:{port}/token", forms


async def test_a_region_by_oidc_client_credentials(world: RegionWorld, cluster: LabCluster) -> None:
    """MC-082, MC-075: the kubeconfig has the server and its CA alone."""
    config = yaml.safe_load(a_kubeconfig(cluster))
    del config["users"], config["contexts"][0]["context"]["user"]
    alone = {"kubeconfig": encoded(yaml.safe_dump(config))}
    assert pointers(await world.region(cluster, **alone)) == ["/kubeconfig"]
    async with provider(cluster) as (url, forms):
        client = {"token_url": url, "client_id": "kubevnfm", "client_secret": SECRET, "scope": "api/.default"}
        twice = await world.region(cluster, oidc=client)
        assert "users[].user.token: no value expected beside oidc" in message(twice)
        wrong = await world.region(cluster, oidc={**client, "client_secret": "guessed"}, **alone)
        assert pointers(wrong) == ["/kubeconfig"]
        assert "invalid_client" in message(wrong)
        made = (await world.region(cluster, oidc=client, **alone)).must(201)
        assert made.json["auth"] == "oidc"
        assert {(each["grant_type"], each["scope"]) for each in forms} == {("client_credentials", "api/.default")}
        assert "oidc" not in made.json
        assert SECRET not in await stored(world, made.json["vim_id"])
        for event in world.registry.events.envelopes:
            assert SECRET not in json.dumps(event.document(RING))
        other = (await world.region(cluster, oidc={**client, "scope": "api/other"}, **alone)).must(200)
        assert "api/other" in {each["scope"] for each in forms}
        assert other.headers["ETag"] != made.headers["ETag"]


async def test_a_proxy_that_an_operator_allows(
    lab: Lab, settings: Settings, tmp_path: Path, cluster: LabCluster
) -> None:
    """MC-074, MC-075: TLS to the API server goes through it, and its login is a secret."""
    ca = encoded(cluster.ca_pem)
    allowed = settings.model_copy(update={"region_proxy": True})
    async with connect_proxy() as proxy, region_world(lab, allowed, tmp_path) as world:
        entry = {"server": cluster.endpoint, "certificate-authority-data": ca}

        def through(url: str) -> dict[str, Any]:
            return {"kubeconfig": encoded(a_kubeconfig(cluster, entry={**entry, "proxy-url": url}))}

        for wrong in ("https://proxy:3128", "socks5://proxy:1080", "http://", "http://u:swordfish@[x", "http://p/?q"):
            refused = await world.region(cluster, **through(wrong))
            assert "clusters[].cluster.proxy-url: an http URL" in message(refused)
            assert b"swordfish" not in refused.raw
        an_account(cluster, "kubevnfm", [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}])
        url = f"http://user:{SECRET}@127.0.0.1:{proxy.port}"
        made = (await world.region(cluster, token_request=ORDER, **through(url))).must(201)
        target = cluster.endpoint.removeprefix("https://")
        assert len(proxy.requests) > 1
        assert {each for each, _ in proxy.requests} == {target}
        assert all(login.startswith("basic ") for _, login in proxy.requests)
        assert SECRET.encode() not in made.raw
        assert SECRET not in await stored(world, made.json["vim_id"])
        connection = await world.registry.directory.connection(VimConnection(vim_id=made.json["vim_id"]))
        assert isinstance(connection.access_info["proxy_url"], Secret)
        for event in world.registry.events.envelopes:
            assert SECRET not in json.dumps(event.document(RING))


OIDC = {"token_url": "https://idp.example/token", "client_id": "c", "client_secret": SECRET}
BAD: list[tuple[str, dict[str, Any], str]] = [
    ("a short life", {"token_request": {**ORDER, "expiration_s": 599}}, "/token_request/expiration_s"),
    ("a long life", {"token_request": {**ORDER, "expiration_s": 2**32 + 1}}, "/token_request/expiration_s"),
    ("no account", {"token_request": {"namespace": "default"}}, "/token_request/service_account"),
    (
        "account with a slash",
        {"token_request": {**ORDER, "service_account": "a/../b"}},
        "/token_request/service_account",
    ),
    ("namespace", {"token_request": {**ORDER, "namespace": "A"}}, "/token_request/namespace"),
    ("audience", {"token_request": {**ORDER, "audiences": ["a b"]}}, "/token_request/audiences/0"),
    ("a token in it", {"token_request": {**ORDER, "token": "x"}}, "/token_request/token"),
    ("provider by ftp", {"oidc": {**OIDC, "token_url": "ftp://idp.example"}}, "/oidc/token_url"),
    ("provider with a password", {"oidc": {**OIDC, "token_url": "https://u:p@idp.example"}}, "/oidc/token_url"),
    ("no secret", {"oidc": {**OIDC, "client_secret": None}}, "/oidc/client_secret"),
    ("scope", {"oidc": {**OIDC, "scope": "a\nb"}}, "/oidc/scope"),
]


@pytest.mark.parametrize(("_", "changes", "pointer"), BAD, ids=[name for name, _, _ in BAD])
async def test_bad_logins_are_refused_with_a_pointer(
    world: RegionWorld, cluster: LabCluster, _: str, changes: dict[str, Any], pointer: str
) -> None:
    """MC-006, chapter 11."""
    refused = await world.region(cluster, **changes)
    assert pointers(refused) == [pointer]
    assert "token_url" not in pointer or b"http or https URL without credentials" in refused.raw
    assert SECRET.encode() not in refused.raw
