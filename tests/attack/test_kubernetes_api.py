"""A hostile Kubernetes API, and a hostile OpenID provider, against infra-k8s and vim-registry."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager

import aiohttp
import pytest
from aiohttp import web
from kubevnfm_clients.cluster_access import ClusterAccess, OidcUser
from kubevnfm_clients.cluster_login import ClusterTokens
from kubevnfm_infra_k8s.adapters.clusters import KubernetesClusters
from kubevnfm_infra_k8s.adapters.kubernetes import KubernetesCluster
from kubevnfm_infra_k8s.adapters.transport import LARGEST_ANSWER, Transport
from kubevnfm_infra_k8s.domain.errors import AccessRefused, ClusterUnavailable, ObjectRefused
from kubevnfm_infra_k8s.domain.objects import ObjectKey, Resource
from kubevnfm_kit.back_off import BackOff
from kubevnfm_kit.errors import VnfmError
from kubevnfm_kit.http import serving
from kubevnfm_secrets import KeyRing
from kubevnfm_vim_registry.adapters.kubernetes import KubernetesProbe
from kubevnfm_vim_registry.domain.errors import VimRefused, VimUnauthorized, VimUnreachable
from kubevnfm_vim_registry.domain.record import VimRecord
from servers.hostile import (
    ATTACKS,
    BLOCK,
    HEAD,
    MIB,
    Hostile,
    Speech,
    answers,
    endless,
    flat_memory,
    hostile_server,
    json_attack,
)
from servers.vnf_networks import networks

PODS = Resource("v1", "Pod", "pods", namespaced=True)
KEY = ObjectKey("v1", "Pod", "default", "pod-1")
TOKEN = "s3cret-token"
MOST_MIB = 160
"""An answer of 16 MiB as bytes, as text, and as objects of Python."""
QUIET = b"\n" * 1000
WATCHED = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod-1", "resourceVersion": "2"}}


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubevnfm_infra_k8s.adapters.transport._TIMEOUT", aiohttp.ClientTimeout(total=1.0))
    monkeypatch.setattr("kubevnfm_infra_k8s.adapters.transport._PAUSES_S", ())
    monkeypatch.setattr("kubevnfm_infra_k8s.adapters.kubernetes._PAUSES", BackOff(first_s=0.01, longest_s=2.0))


@asynccontextmanager
async def cluster(server: Hostile, oidc: OidcUser | None = None) -> AsyncIterator[KubernetesCluster]:
    access = ClusterAccess(server.url, bearer_token="" if oidc else TOKEN, oidc=oidc)
    found = KubernetesCluster(await Transport.connect(access, networks(), ClusterTokens(timeout_s=1)))
    try:
        yield found
    finally:
        await found.close()


@asynccontextmanager
async def attacked(attack: str) -> AsyncIterator[tuple[Hostile, Hostile]]:
    """Yield the hostile server, and the one that its redirects lead to."""
    async with (
        hostile_server(answers(b"{}")) as elsewhere,
        hostile_server(json_attack(attack, elsewhere.url)) as server,
    ):
        yield server, elsewhere


def check_reason(error: Exception) -> None:
    """An error is short, readable, and without credentials."""
    text = str(error)
    assert text
    assert len(text) < 5000
    assert text.replace("\n", "").isprintable()
    assert TOKEN not in text


@pytest.mark.parametrize("attack", ATTACKS)
async def test_hostile_answers_of_an_api_server_are_errors_of_the_cluster(attack: str) -> None:
    async with attacked(attack) as (server, elsewhere), cluster(server) as api:
        calls: dict[str, Callable[[], object]] = {
            "get": lambda: api.get(PODS, KEY),
            "list": lambda: api.list(PODS, namespace="default"),
            "kind": lambda: api.resource("apps/v1", "Deployment"),
            "apply": lambda: api.apply(PODS, KEY, WATCHED),
            "follow": lambda: anext(api.follow(PODS, namespace="default")),
        }
        with flat_memory(MOST_MIB):
            for name, call in calls.items():
                try:
                    async with asyncio.timeout(30):
                        await call()  # type: ignore[misc]
                except (ClusterUnavailable, ObjectRefused) as error:
                    check_reason(error)
                else:
                    # An object without members is an empty list, and an object without attributes.
                    assert attack == "an empty object", name
        assert elsewhere.requests == []
        assert server.requests


@pytest.mark.parametrize("attack", ATTACKS)
async def test_hostile_answers_of_an_openid_provider_are_errors_of_the_cluster(attack: str) -> None:
    oidc = "s3cret-password"
    async with attacked(attack) as (server, elsewhere):
        known = OidcUser(f"{server.url}/token", "user", "client", oidc)
        async with cluster(elsewhere, known) as api:
            with flat_memory(MOST_MIB), pytest.raises((AccessRefused, ClusterUnavailable)) as caught:
                async with asyncio.timeout(30):
                    await api.get(PODS, KEY)
        check_reason(caught.value)
        assert elsewhere.requests == []


def a_vim(server: Hostile, **credentials: str) -> VimRecord:
    return VimRecord(
        id="vim-1",
        name="hostile",
        tenant_id="default",
        type="kubernetes",
        auth_url=server.url,
        auth_cred=credentials or {"bearer_token": TOKEN},
        created_at="",
        updated_at="",
    )


@pytest.mark.parametrize("attack", ATTACKS)
async def test_a_hostile_api_server_is_not_registered_as_a_vim(attack: str) -> None:
    async with attacked(attack) as (server, elsewhere), aiohttp.ClientSession() as session:
        probe = KubernetesProbe(session, session, KeyRing([bytes(32)]), timeout_s=1)
        vims = [
            a_vim(server),
            a_vim(server, oidc_token_url=f"{server.url}/token", username="u", password=TOKEN, client_id="c"),
        ]
        for vim in vims:
            with flat_memory(MOST_MIB), pytest.raises((VimRefused, VimUnreachable, VimUnauthorized)) as caught:
                async with asyncio.timeout(30):
                    await probe.verify(vim)
            check_reason(caught.value)
        assert elsewhere.requests == []


@pytest.mark.parametrize(
    "namespaces", [7, {}, [7], [{}], [{"metadata": 7}], [{"metadata": {"name": "x" * 100}}] * 20_000]
)
async def test_a_wrong_list_of_namespaces_is_refused_or_cut(namespaces: object) -> None:
    async def speak(head: bytes, writer: asyncio.StreamWriter) -> None:
        body: object = {"gitVersion": "v1.31.0"} if b"/version" in head else {"items": namespaces}
        await answers(json.dumps(body).encode())(head, writer)

    async with hostile_server(speak) as server, aiohttp.ClientSession() as session:
        probe = KubernetesProbe(session, session, KeyRing([bytes(32)]), timeout_s=10)
        try:
            verified = await probe.verify(a_vim(server))
        except VimRefused as error:
            check_reason(error)
        else:
            assert len(verified.regions) <= 500


def a_watch(events: Speech) -> Speech:
    """An honest list, then these events."""

    async def speak(head: bytes, writer: asyncio.StreamWriter) -> None:
        if b"watch=true" in head:
            await events(head, writer)
        else:
            body = {"metadata": {"resourceVersion": "1"}, "items": [WATCHED]}
            await answers(json.dumps(body).encode())(head, writer)

    return speak


def event(type: object, body: object) -> bytes:
    return json.dumps({"type": type, "object": body}).encode() + b"\n"


def new_pods() -> Speech:
    """Ever more objects, each with 1 MiB of annotations."""

    async def speak(_: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        number = 0
        while True:
            number += 1
            line = event("ADDED", {"metadata": {"name": f"p{number}", "annotations": {"a": "x" * MIB}}})
            writer.write(b"%x\r\n%s\r\n" % (len(line), line))
            await writer.drain()

    return speak


async def follow(api: KubernetesCluster) -> None:
    async with asyncio.timeout(300), aclosing(api.follow(PODS, namespace="default")) as following:
        sizes: dict[str, int] = {}
        async for seen in following:
            sizes |= {name: len(str(body)) for name, body in seen.found.items()}
            assert sum(sizes.values()) < 3 * LARGEST_ANSWER


@pytest.mark.parametrize(
    "events",
    [
        endless(b"", b"\x00\xff garbage\n" * 1000),
        endless(b"", b"x" * BLOCK),
        endless(b"", b"[" * BLOCK + b"\n"),
        endless(event("ADDED", 7), QUIET),
        endless(event("ADDED", {"metadata": {"name": ["a"]}}), QUIET),
        endless(event("MODIFIED", {"metadata": {"name": "a", "labels": [1]}}), QUIET),
        endless(event(["ADDED"], WATCHED), QUIET),
        endless(event("ERROR", {"code": "410"}), QUIET),
        endless(event("ERROR", ["code"]), QUIET),
        endless(b"null\n", b"7\n" * 1000),
        new_pods(),
    ],
    ids=range(11),
)
async def test_a_hostile_watch_ends_with_an_error_of_the_cluster(events: Speech) -> None:
    async with hostile_server(a_watch(events)) as server, cluster(server) as api:
        with flat_memory(MOST_MIB), pytest.raises((ClusterUnavailable, ObjectRefused)) as caught:
            await follow(api)
        check_reason(caught.value)


async def test_the_message_of_a_refusal_cannot_change_a_terminal() -> None:
    body = {"message": "no\x1b[2J\x1b]0;owned\x07 more\u202e" + "x" * 100_000, "reason": "Forbidden", "code": 403}
    refusal = answers(json.dumps(body).encode(), status="403 Forbidden")
    async with hostile_server(refusal) as server, cluster(server) as api:
        with pytest.raises(VnfmError) as caught:
            await api.get(PODS, KEY)
    check_reason(caught.value)
    assert "no more" in str(caught.value)


@pytest.mark.parametrize(
    ("status", "is_temporary"),
    [
        (404, True),
        (408, True),
        (429, True),
        (500, True),
        (503, True),
        (400, False),
        (401, False),
        (403, False),
        (302, False),
    ],
)
async def test_both_services_judge_a_failing_openid_provider_alike(status: int, is_temporary: bool) -> None:
    """429 and 404 were temporary in vim-registry and permanent in infra-k8s."""
    asked: list[str] = []

    async def token(request: web.Request) -> web.Response:
        asked.append(request.path)
        return web.json_response({"error": TOKEN}, status=status, headers={"Location": "/elsewhere"})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", token)
    async with serving(app, host="127.0.0.1", port=0) as port, aiohttp.ClientSession() as session:
        url = f"http://127.0.0.1:{port}"
        given = {"oidc_token_url": f"{url}/token", "username": "u", "password": TOKEN, "client_id": "c"}
        vim = a_vim(Hostile(port), **given)
        with pytest.raises((VimUnreachable, VimUnauthorized, VimRefused)) as registered:
            await KubernetesProbe(session, session, KeyRing([bytes(32)]), timeout_s=60).check(vim)
        async with (
            KubernetesClusters.open(KeyRing([bytes(32)]), networks()) as clusters,
            clusters.cluster(vim.connection) as api,
        ):
            with pytest.raises((ClusterUnavailable, AccessRefused)) as applied:
                await api.get(PODS, KEY)
    assert isinstance(registered.value, VimUnreachable) == isinstance(applied.value, ClusterUnavailable) == is_temporary
    assert set(asked) == {"/token"}
    for error in (registered.value, applied.value):
        check_reason(error)
