"""The Cluster port's adapter: discovery, watches, errors, credentials."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web
from kubevnfm_clients.cluster_access import read_access
from kubevnfm_events import VimConnection
from kubevnfm_infra_k8s.adapters.clusters import KubernetesClusters
from kubevnfm_infra_k8s.adapters.transport import Answer
from kubevnfm_infra_k8s.domain.errors import (
    AccessRefused,
    AddressRefused,
    AddressUnnamed,
    ClusterUnavailable,
    FieldConflict,
    ObjectRefused,
    WebhookUnavailable,
)
from kubevnfm_infra_k8s.domain.objects import ObjectKey, Resource
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_infra_k8s.domain.step_warnings import StepWarnings, listening
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_kit.http import serving
from kubevnfm_lab.faults import CallLedger, FaultBook
from kubevnfm_lab.kubernetes import LabCluster
from kubevnfm_secrets import KeyRing, Mask, Secret
from servers.vnf_networks import networks

Make = Callable[..., dict[str, Any]]
CONFIG_MAPS = Resource("v1", "ConfigMap", "configmaps", namespaced=True)
RING = KeyRing.from_text(KeyRing.new_key())


def key(name: str) -> ObjectKey:
    return ObjectKey("v1", "ConfigMap", "default", name)


def a_vim(lab: LabCluster | str, **access: Any) -> VimConnection:
    endpoint, ca = (lab, "") if isinstance(lab, str) else (lab.endpoint, lab.ca_pem)
    return VimConnection(interface_info={"endpoint": endpoint, "ssl_ca_cert": ca}, access_info=access)


async def test_kinds_are_read_once_and_again_if_one_is_missing(cluster: Cluster, ledger: CallLedger) -> None:
    """CR-010: discovery is cached for each cluster."""
    deployment = await cluster.resource("apps/v1", "Deployment")
    assert deployment is not None
    assert (deployment.plural, deployment.namespaced, deployment.has_status) == ("deployments", True, True)
    assert "scale" in deployment.subresources
    node = await cluster.resource("v1", "Node")
    assert node is not None
    assert not node.namespaced
    assert [call["count"] for call in ledger.calls() if call["verb"] == "get /apis"] == [1]
    before = sum(call["count"] for call in ledger.calls())
    assert await cluster.resource("acme.example/v1", "Thing") is None
    # The kinds of that version, and not again those of all.
    assert sum(call["count"] for call in ledger.calls()) == before + 1
    assert [call["count"] for call in ledger.calls() if call["verb"] == "get /apis"] == [1]


@asynccontextmanager
async def an_old_server(paths: dict[str, Any]) -> AsyncIterator[str]:
    """Serve an API server that supports only discovery by group."""

    async def answer(request: web.Request) -> web.Response:
        found = paths.get(request.path)
        if isinstance(found, int):
            return web.json_response({"message": "broken"}, status=found)
        return web.json_response(found or {"message": "not found"}, status=200 if found else 404)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    async with serving(app, host="127.0.0.1", port=0) as port:
        yield f"http://127.0.0.1:{port}"


async def test_an_old_server_is_read_by_group_and_a_broken_group_hides_no_other() -> None:
    """CR-010, CR-016: discovery falls back to the form for each group; the APIService of a broken one is named."""
    paths = {
        "/api": {"kind": "APIVersions", "versions": ["v1"]},
        "/apis": {"kind": "APIGroupList", "groups": []},
        "/api/v1": {
            "resources": [
                {"name": "pods", "kind": "Pod", "namespaced": True, "verbs": ["get", "patch"]},
                {"name": "pods/status", "kind": "Pod", "namespaced": True, "verbs": ["get"]},
            ]
        },
        "/apis/metrics.k8s.io/v1": 503,
    }
    async with (
        an_old_server(paths) as endpoint,
        KubernetesClusters.open(RING, networks()) as clusters,
        clusters.cluster(a_vim(endpoint, bearer_token="t")) as cluster,
    ):
        pod = await cluster.resource("v1", "Pod")
        assert pod is not None
        assert pod.has_status
        assert await cluster.resource("acme.example/v1", "Thing") is None
        with pytest.raises(ClusterUnavailable, match="broken"):
            await cluster.resource("metrics.k8s.io/v1", "PodMetrics")
        missing = {"type": "Available", "status": "False", "reason": "MissingEndpoints", "message": "no endpoints"}
        paths["/apis/apiregistration.k8s.io/v1/apiservices/v1.metrics.k8s.io"] = {"status": {"conditions": [missing]}}
        said = r"API group metrics\.k8s\.io is not available: APIService v1\.metrics\.k8s\.io: MissingEndpoints: no endpoints"
        with pytest.raises(ClusterUnavailable, match=said):
            await cluster.resource("metrics.k8s.io/v1", "PodMetrics")
        assert await cluster.resource("v1", "Pod") is not None


async def test_without_server_side_apply_objects_are_created_and_then_patched() -> None:
    """CR-015: 415 of the apply leads to a create, and 409 of that to a patch."""
    calls: list[tuple[str, str]] = []
    there: dict[str, Any] = {}

    async def answer(request: web.Request) -> web.Response:
        kind = request.headers.get("Content-Type", "")
        calls.append((request.method, kind))
        if kind == "application/apply-patch+yaml":
            return web.json_response({"message": "no apply here"}, status=415)
        body = await request.json()
        if request.method == "POST" and there:
            return web.json_response({"message": "exists"}, status=409)
        there.update(body)
        return web.json_response({**there, "metadata": {**there["metadata"], "uid": "u1"}})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    async with (
        serving(app, host="127.0.0.1", port=0) as port,
        KubernetesClusters.open(RING, networks()) as clusters,
        clusters.cluster(a_vim(f"http://127.0.0.1:{port}", bearer_token="t")) as cluster,
    ):
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "1"}}
        assert (await cluster.apply(CONFIG_MAPS, key("c"), body))["metadata"]["uid"] == "u1"
        await cluster.apply(CONFIG_MAPS, key("c"), {**body, "data": {"a": "2"}})
    assert there["data"] == {"a": "2"}
    assert [method for method, _ in calls] == ["PATCH", "POST", "PATCH", "POST", "PATCH"]


async def test_a_field_that_another_manager_takes_during_an_apply_is_left() -> None:
    """MC-106b: what takes fields of kubevnfm alone is forced for the version of which that is true, and for no other."""
    sent: list[tuple[str | None, str | None]] = []

    def refused(manager: str) -> web.Response:
        cause = {"reason": "FieldManagerConflict", "message": f'conflict with "{manager}"', "field": ".data.a"}
        return web.json_response({"reason": "Conflict", "details": {"causes": [cause]}}, status=409)

    async def answer(request: web.Request) -> web.Response:
        present = str(1 + sum(force == "true" for force, _ in sent))
        metadata = {"name": "c", "namespace": "default", "uid": "u1", "resourceVersion": present}
        if request.method == "GET":
            return web.json_response({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
        force, asked = request.query.get("force"), (await request.json())["metadata"].get("resourceVersion")
        sent.append((force, asked))
        if force == "true":
            # Another manager has written it since it was read.
            return web.json_response({"reason": "Conflict", "message": "it has been modified"}, status=409)
        return refused("kubevnfm" if present == "1" else "kubectl-edit")

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    async with (
        serving(app, host="127.0.0.1", port=0) as port,
        KubernetesClusters.open(RING, networks()) as clusters,
        clusters.cluster(a_vim(f"http://127.0.0.1:{port}", bearer_token="t")) as cluster,
    ):
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "1"}}
        with pytest.raises(FieldConflict, match=r"^\.data\.a of ConfigMap c is managed by kubectl-edit"):
            await cluster.apply(CONFIG_MAPS, key("c"), body, takes_fields=False)
    assert sent == [("false", None), ("false", "1"), ("true", "1"), ("false", "2")]


async def test_following_shows_the_objects_and_each_change(cluster: Cluster, make: Make) -> None:
    mark = {"labels": {"mine": "yes"}}
    await cluster.apply(CONFIG_MAPS, key("a"), make("ConfigMap", "a", metadata=mark))
    async with (
        asyncio.timeout(300),
        aclosing(cluster.follow(CONFIG_MAPS, namespace="default", labels="mine=yes")) as found,
    ):
        first = await anext(found)
        await cluster.apply(CONFIG_MAPS, key("b"), make("ConfigMap", "b", metadata=mark))
        second = await anext(found)
        await cluster.delete(CONFIG_MAPS, key("a"))
        while not (last := await anext(found)).gone:
            pass
    assert (set(first.found), first.is_all) == ({"a"}, True)
    assert (set(second.found), second.is_all) == ({"b"}, False)
    assert (set(last.found), set(last.gone)) == (set(), {"a"})
    assert "managedFields" not in first.found["a"]["metadata"]


async def test_long_lists_and_watches_are_read_page_by_page(
    cluster: Cluster, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list of some thousand objects is longer than an answer may be."""
    names, mark = {f"c{number}" for number in range(7)}, {"labels": {"mine": "yes"}}
    for name in sorted(names):
        await cluster.apply(CONFIG_MAPS, key(name), make("ConfigMap", name, metadata=mark, data={"a": "x" * 1000}))
    monkeypatch.setattr("kubevnfm_infra_k8s.adapters.kubernetes._PAGE", 4)
    monkeypatch.setattr("kubevnfm_infra_k8s.adapters.transport.LARGEST_ANSWER", 4000)  # two objects
    listed = await cluster.list(CONFIG_MAPS, namespace="default", labels="mine=yes")
    assert {body["metadata"]["name"] for body in listed} == names
    async with asyncio.timeout(300), aclosing(cluster.follow(CONFIG_MAPS, labels="mine=yes")) as following:
        first = await anext(following)
    assert (set(first.found), first.is_all) == ({f"default/{name}" for name in names}, True)


async def test_a_list_that_is_too_large_is_refused(
    cluster: Cluster, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    await cluster.apply(CONFIG_MAPS, key("a"), make("ConfigMap", "a", data={"a": "x" * 1000}))
    monkeypatch.setattr("kubevnfm_infra_k8s.adapters.kubernetes._LARGEST_LIST", 1000)
    with pytest.raises(ObjectRefused, match="list of configmaps: its objects have more than 1000 bytes"):
        await cluster.list(CONFIG_MAPS, namespace="default")
    monkeypatch.setattr("kubevnfm_infra_k8s.adapters.transport.LARGEST_ANSWER", 1000)
    with pytest.raises(ClusterUnavailable, match="more than 1000 bytes"):
        await cluster.list(CONFIG_MAPS, namespace="default")


async def test_no_more_objects_are_followed_than_can_be_kept(
    cluster: Cluster, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list may be without end, and so may a watch of ever new objects."""
    monkeypatch.setattr("kubevnfm_infra_k8s.adapters.kubernetes._MOST_OBJECTS", 2)
    await cluster.apply(CONFIG_MAPS, key("a"), make("ConfigMap", "a"))
    followed = cluster.follow_metadata(CONFIG_MAPS, str, namespace="default", labels="x=y")
    async with aclosing(followed):
        assert (await anext(followed)).found == {}
        for name in ("b", "c", "d"):
            body = make("ConfigMap", name)
            body["metadata"]["labels"] = {"x": "y"}
            await cluster.apply(CONFIG_MAPS, key(name), body)
        assert [[*(await anext(followed)).found] for _ in range(2)] == [["b"], ["c"]]
        with pytest.raises(ObjectRefused, match="watch of configmaps: it has more than 2 objects"):
            await anext(followed)
    with pytest.raises(ObjectRefused, match="list of configmaps: it has more than 2 objects"):
        async with aclosing(cluster.follow_metadata(CONFIG_MAPS, str, namespace="default")) as followed:
            await anext(followed)


async def test_following_continues_after_its_version_has_expired(
    cluster: Cluster, make: Make, faults: FaultBook
) -> None:
    await cluster.apply(CONFIG_MAPS, key("a"), make("ConfigMap", "a"))
    faults.add(part="kubernetes", verb="watch configmaps", status=410, message="too old resource version", times=1)
    async with asyncio.timeout(300), aclosing(cluster.follow(CONFIG_MAPS, namespace="default", name="a")) as found:
        await anext(found)
        await anext(found)
        await cluster.apply(CONFIG_MAPS, key("a"), make("ConfigMap", "a", data={"x": "1"}))
        while (await anext(found)).found["a"].get("data") != {"x": "1"}:
            pass


async def test_following_an_unreachable_cluster_ends_with_an_error(cluster: Cluster, faults: FaultBook) -> None:
    faults.add(part="kubernetes", verb="watch *", effect="drop")

    async def follow() -> None:
        async for _ in cluster.follow(CONFIG_MAPS, namespace="default"):
            pass

    with pytest.raises(ClusterUnavailable):
        await asyncio.wait_for(follow(), 60)


async def test_delete_sends_the_uid_and_returns_whether_the_object_is_left(cluster: Cluster, make: Make) -> None:
    """The API server answers with a Status what it has removed, and with the object what waits for a finalizer."""
    body = await cluster.apply(CONFIG_MAPS, key("a"), make("ConfigMap", "a"))
    assert await cluster.delete(CONFIG_MAPS, key("a"), uid="another"), "a refusal does not say that it is gone"
    assert await cluster.get(CONFIG_MAPS, key("a")) is not None
    await cluster.patch(CONFIG_MAPS, key("a"), {"metadata": {"finalizers": ["example.org/held"]}})
    assert await cluster.delete(CONFIG_MAPS, key("a"), uid=body["metadata"]["uid"])
    await cluster.patch(CONFIG_MAPS, key("a"), {"metadata": {"finalizers": None}})
    assert not await cluster.delete(CONFIG_MAPS, key("a"))
    assert await cluster.get(CONFIG_MAPS, key("a")) is None
    again = await cluster.apply(CONFIG_MAPS, key("a"), make("ConfigMap", "a"))
    assert not await cluster.delete(CONFIG_MAPS, key("a"), uid=again["metadata"]["uid"])
    assert await cluster.get(CONFIG_MAPS, key("a")) is None


async def test_a_wrong_token_fails_and_is_not_shown(lab: LabCluster) -> None:
    vim = a_vim(lab, bearer_token=Secret("hunter2-token"))
    async with KubernetesClusters.open(RING, networks()) as clusters, clusters.cluster(vim) as cluster:
        with pytest.raises(AccessRefused) as caught:
            await cluster.get(CONFIG_MAPS, key("a"))
    assert "hunter2" not in str(caught.value)


async def test_each_connection_to_a_cluster_of_a_vnf_is_judged_and_to_that_of_an_operator_is_not(
    lab: LabCluster,
) -> None:
    vim = a_vim(lab, bearer_token=Secret(lab.admin_token))
    of_vnf = vim.model_copy(update={"of_vnf": True})
    async with KubernetesClusters.open(RING, networks("10.0.0.0/8")) as clusters:
        async with clusters.cluster(vim) as cluster:
            assert await cluster.get(CONFIG_MAPS, key("a")) is None
        async with clusters.cluster(of_vnf) as cluster:
            with pytest.raises(AddressUnnamed, match="is a loopback address, which needs a network inside"):
                await cluster.get(CONFIG_MAPS, key("a"))
        never = a_vim("https://169.254.169.254", bearer_token=Secret("t")).model_copy(update={"of_vnf": True})
        async with clusters.cluster(never) as cluster:
            with pytest.raises(AddressRefused, match="is never granted") as caught:
                await cluster.get(CONFIG_MAPS, key("a"))
            assert not isinstance(caught.value, AddressUnnamed)
    async with KubernetesClusters.open(RING, networks()) as clusters, clusters.cluster(of_vnf) as cluster:
        assert await cluster.get(CONFIG_MAPS, key("a")) is None


async def test_a_server_of_another_authority_is_not_trusted(lab: LabCluster) -> None:
    vim = VimConnection(interface_info={"endpoint": lab.endpoint}, access_info={"bearer_token": lab.admin_token})
    async with KubernetesClusters.open(RING, networks()) as clusters, clusters.cluster(vim) as cluster:
        with pytest.raises(ClusterUnavailable, match="certificate"):
            await cluster.get(CONFIG_MAPS, key("a"))


async def test_the_ca_may_be_that_of_the_system_or_none(
    lab: LabCluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """CR-007: the two texts of ``ssl_ca_cert`` that are no PEM."""

    async def read(ca: str) -> None:
        access = {"bearer_token": lab.admin_token}
        vim = VimConnection(interface_info={"endpoint": lab.endpoint, "ssl_ca_cert": ca}, access_info=access)
        async with KubernetesClusters.open(RING, networks()) as clusters, clusters.cluster(vim) as cluster:
            assert await cluster.get(CONFIG_MAPS, key("a")) is None

    await read("None")
    with pytest.raises(ClusterUnavailable, match="certificate"):
        await read("system")
    (tmp_path / "ca.pem").write_text(lab.ca_pem)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    await read("system")


async def test_a_client_certificate_is_accepted(lab: LabCluster) -> None:
    """CR-007."""
    user = yaml.safe_load(lab.kubeconfig_admin())["users"][0]["user"]
    pems = {name: base64.b64decode(user[f"client-{name}-data"]).decode() for name in ("certificate", "key")}
    vim = a_vim(lab, client_certificate=pems["certificate"], client_key=Secret(pems["key"]))
    async with KubernetesClusters.open(RING, networks()) as clusters, clusters.cluster(vim) as cluster:
        assert await cluster.resource("v1", "Pod") is not None


async def test_a_server_that_starts_forbids_everything_and_is_awaited() -> None:
    """A real API server answers 403 until it knows its rules; what is still forbidden once it is ready is a refusal."""
    # It does not know who may read its state either, at first; the rules of some clusters forbid that to all.
    ready = iter([403, 500, 500, 200, *[403] * 20])
    lists = iter([403, 403, 403, 200])

    async def readyz(request: web.Request) -> web.Response:
        return web.Response(status=next(ready))

    async def config_maps(request: web.Request) -> web.Response:
        return web.json_response({"items": [], "metadata": {}, "message": "no"}, status=next(lists, 403))

    app = web.Application()
    app.router.add_get("/readyz", readyz)
    app.router.add_get("/api/v1/namespaces/default/configmaps", config_maps)
    async with (
        serving(app, host="127.0.0.1", port=0) as port,
        KubernetesClusters.open(RING, networks()) as clusters,
        clusters.cluster(a_vim(f"http://127.0.0.1:{port}", bearer_token=Secret("t"))) as cluster,
    ):
        assert await cluster.list(CONFIG_MAPS, namespace="default") == []
        with pytest.raises(ObjectRefused, match="no"):
            await cluster.list(CONFIG_MAPS, namespace="default")


async def test_a_user_with_a_password_logs_in_by_basic() -> None:
    """SEQ-033: Kubernetes has none since 1.19; servers in front of it have."""
    seen: list[str] = []

    async def api(request: web.Request) -> web.Response:
        seen.append(request.headers["Authorization"])
        return web.json_response({"resources": []})

    app = web.Application()
    app.router.add_get("/{path:.*}", api)
    async with serving(app, host="127.0.0.1", port=0) as port, KubernetesClusters.open(RING, networks()) as clusters:
        vim = a_vim(f"http://127.0.0.1:{port}", username="u", password=Secret("p"))
        async with clusters.cluster(vim) as cluster:
            await cluster.resource("v1", "Pod")
    assert set(seen) == {"Basic " + base64.b64encode(b"u:p").decode()}


async def test_a_token_of_an_openid_provider_is_requested_once(lab: LabCluster) -> None:
    """CR-007."""
    asked: list[dict[str, str]] = []
    claims = base64.urlsafe_b64encode(b'{"exp": 99999999999}').decode().rstrip("=")

    async def token(request: web.Request) -> web.Response:
        asked.append({name: str(value) for name, value in (await request.post()).items()})
        return web.json_response({"id_token": f"h.{claims}.s"})

    seen: list[str] = []

    async def api(request: web.Request) -> web.Response:
        seen.append(request.headers["Authorization"])
        return web.json_response({"kind": "APIVersions"})

    app = web.Application()
    app.router.add_post("/token", token)
    app.router.add_get("/{path:.*}", api)
    async with serving(app, host="127.0.0.1", port=0) as port, KubernetesClusters.open(RING, networks()) as clusters:
        url = f"http://127.0.0.1:{port}"
        vim = a_vim(url, oidc_token_url=f"{url}/token", username="u", password=Secret("p"), client_id="c")
        async with clusters.cluster(vim) as cluster:
            await cluster.get(CONFIG_MAPS, key("a"))
            await cluster.get(CONFIG_MAPS, key("b"))
    assert asked == [{"grant_type": "password", "scope": "openid", "client_id": "c", "username": "u", "password": "p"}]
    assert seen == [f"Bearer h.{claims}.s"] * 2


async def test_connections_with_the_same_credentials_are_shared(lab: LabCluster) -> None:
    async with KubernetesClusters.open(RING, networks()) as clusters:
        mine, other = a_vim(lab, bearer_token="a"), a_vim(lab, bearer_token="b")
        async with clusters.cluster(mine) as one, clusters.cluster(mine) as two, clusters.cluster(other) as three:
            assert one is two
            assert one is not three


@pytest.mark.parametrize(
    ("interface", "access", "field"),
    [
        ({}, {"bearer_token": "t"}, "vimConnectionInfo.interfaceInfo.endpoint"),
        ({"endpoint": "ftp://x"}, {"bearer_token": "t"}, "vimConnectionInfo.interfaceInfo.endpoint"),
        ({"endpoint": "https://x"}, {}, "vimConnectionInfo.accessInfo"),
        ({"endpoint": "https://x"}, {"username": "u"}, "vimConnectionInfo.accessInfo"),
        ({"endpoint": "https://x"}, {"oidc_token_url": "https://i"}, "vimConnectionInfo.accessInfo.client_id"),
    ],
)
def test_a_missing_attribute_of_a_connection_is_named(
    interface: dict[str, object], access: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_access(VimConnection(interface_info=interface, access_info=access), RING)
    assert caught.value.field == field


async def test_invalid_certificates_are_rejected(lab: LabCluster) -> None:
    vim = VimConnection(
        interface_info={"endpoint": lab.endpoint, "ssl_ca_cert": "x"}, access_info={"bearer_token": "t"}
    )
    async with KubernetesClusters.open(RING, networks()) as clusters:
        with pytest.raises(InvalidInput, match="PEM"):
            async with clusters.cluster(vim):
                pass


async def test_warnings_of_an_api_server_are_bounded_and_show_no_secret() -> None:
    """CR-017: an API server can be hostile; a webhook chooses the texts."""

    async def answer(request: web.Request) -> web.Response:
        response = web.json_response(await request.json())
        number = int(request.path.rpartition("c")[2])
        for each in range(10):
            response.headers.add("Warning", f'299 - "\\"w{number}-{each}\\" sword-fish {"x" * 600}"')
        response.headers.add("Warning", "nonsense")
        return response

    app, heard = web.Application(), StepWarnings()
    app.router.add_route("*", "/{path:.*}", answer)
    async with (
        serving(app, host="127.0.0.1", port=0) as port,
        KubernetesClusters.open(RING, networks()) as clusters,
        clusters.cluster(a_vim(f"http://127.0.0.1:{port}", bearer_token="t")) as cluster,
    ):
        with listening(heard):
            for number in range(5):
                body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"c{number}"}}
                await cluster.hiding(["sword-fish"]).apply(CONFIG_MAPS, key(f"c{number}"), body)
    said = str(heard)
    assert said.startswith('ConfigMap default/c0: the API server warns: "w0-0" *** xxx')
    assert heard.count == 30
    assert len(said) < 8100
    assert said.endswith("; ...")
    assert "sword" not in said
    refusal = Answer(422, {"message": "no sword\x1b[0m-fish"}, mask=Mask(["sword-fish"]))
    assert refusal.message == "no ***"


@pytest.mark.parametrize("kind", ["application/json", "text/plain"])
async def test_a_deletion_that_is_answered_without_an_object_is_one(kind: str) -> None:
    """CR-109: API servers of extensions answer 200 with nothing, or with a text; the wait then says when the object is gone."""
    calls: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        calls.append(request.method)
        return web.Response(text="" if kind.endswith("json") else "deleted", content_type=kind)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    async with (
        serving(app, host="127.0.0.1", port=0) as port,
        KubernetesClusters.open(RING, networks()) as clusters,
        clusters.cluster(a_vim(f"http://127.0.0.1:{port}", bearer_token="t")) as cluster,
    ):
        assert await cluster.delete(CONFIG_MAPS, key("c"), uid="u1")
    assert calls == ["DELETE"]


@pytest.mark.parametrize(
    ("status", "message", "error"),
    [
        (400, "bad", ObjectRefused),
        (422, 'admission webhook "w" denied the request: failed calling webhook is a word in it', ObjectRefused),
        (403, "no", ObjectRefused),
        (500, 'failed calling webhook "w": x509: certificate signed by unknown authority', WebhookUnavailable),
        (500, "conversion webhook for a/v1, Kind=B failed: Post: connection refused", WebhookUnavailable),
        (500, "conversion webhook for a/v1, Kind=B returned invalid metadata: name", ObjectRefused),
        (500, "etcdserver: request is too large", ObjectRefused),
        (
            500,
            "rpc error: code = ResourceExhausted desc = trying to send message larger than max (3 vs. 2)",
            ObjectRefused,
        ),
        (500, "etcdserver: leader changed", ClusterUnavailable),
        (503, "starting", ClusterUnavailable),
        (429, "slow", ClusterUnavailable),
    ],
)
async def test_each_error_answer_has_its_error(
    cluster: Cluster, faults: FaultBook, make: Make, status: int, message: str, error: type[Exception]
) -> None:
    """CR-016: what is about the request itself is a refusal, whatever its status."""
    faults.add(part="kubernetes", verb="patch configmaps", status=status, message=message)
    with pytest.raises(error):
        await cluster.apply(CONFIG_MAPS, key("a"), make("ConfigMap", "a"))
