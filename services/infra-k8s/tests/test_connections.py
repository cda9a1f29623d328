"""How many connections calls open, and when open ones are used again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from aiohttp import web
from kubevnfm_events import VimConnection
from kubevnfm_infra_k8s.adapters.clusters import KubernetesClusters
from kubevnfm_infra_k8s.adapters.shared_connections import KEPT_S, MOST_KEPT, SharedConnections
from kubevnfm_infra_k8s.domain.objects import ObjectKey, Resource
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_kit.http import serving
from kubevnfm_secrets import KeyRing
from patience import until_true
from servers.vnf_networks import networks

CONFIG_MAPS = Resource("v1", "ConfigMap", "configmaps", namespaced=True)
RING = KeyRing.from_text(KeyRing.new_key())


@dataclass
class Server:
    """An API server without objects, and the connections that were made to it."""

    endpoint: str = ""
    connections: set[web.RequestHandler] = field(default_factory=set)
    asked: list[tuple[str, str]] = field(default_factory=list)
    """The host of each request, and the login for a proxy."""
    held: set[str] = field(default_factory=set)
    """The names of objects whose reads wait."""
    waiting: int = 0
    released: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, request: web.Request) -> web.Response:
        self.connections.add(request.protocol)
        self.asked.append((request.host, request.headers.get("Proxy-Authorization", "")))
        if request.path.rsplit("/", 1)[-1] in self.held:
            self.waiting += 1
            await self.released.wait()
        return web.json_response({"message": 'configmaps "x" not found'}, status=404)

    @property
    def open(self) -> int:
        return sum(one.transport is not None for one in self.connections)

    def vim(self, token: str = "t", *, of_vnf: bool = False) -> VimConnection:
        return VimConnection(
            interface_info={"endpoint": self.endpoint}, access_info={"bearer_token": token}, of_vnf=of_vnf
        )


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    server, app = Server(), web.Application()
    app.router.add_route("*", "/{path:.*}", server.answer)
    async with serving(app, host="127.0.0.1", port=0) as port:
        server.endpoint = f"http://127.0.0.1:{port}"
        yield server


@pytest.fixture
async def clusters() -> AsyncIterator[KubernetesClusters]:
    async with KubernetesClusters.open(RING, networks()) as clusters:
        yield clusters


async def read(cluster: Cluster, *names: str) -> None:
    """Read objects that do not exist, all at the same time."""
    keys = [ObjectKey("v1", "ConfigMap", "default", name) for name in names]
    assert await asyncio.gather(*(cluster.get(CONFIG_MAPS, key) for key in keys)) == [None] * len(names)


async def test_a_proxy_of_the_environment_is_between_the_service_and_clusters_of_operators_only(
    server: Server, clusters: KubernetesClusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", server.endpoint.replace("://", "://user:pw@"))
    behind = VimConnection(interface_info={"endpoint": "http://cluster.example"}, access_info={"bearer_token": "t"})
    async with clusters.cluster(behind) as cluster:
        await read(cluster, "a")
    assert server.asked == [("cluster.example", "Basic dXNlcjpwdw==")]
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    async with clusters.cluster(server.vim(of_vnf=True)) as cluster:
        await read(cluster, "a")
    assert server.asked[1:] == [(server.endpoint.removeprefix("http://"), "")]


async def test_a_login_in_netrc_is_not_for_clusters(
    server: Server, clusters: KubernetesClusters, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It was tried beside the token of the VIM, and the two together are a ValueError."""
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login user password pw\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    async with clusters.cluster(server.vim()) as cluster:
        await read(cluster, "a")
    assert len(server.asked) == 1


async def test_commands_use_one_connection_one_after_another(server: Server, clusters: KubernetesClusters) -> None:
    for _ in range(3):
        async with clusters.cluster(server.vim()) as cluster:
            await read(cluster, "a", "b", "c", "d")
    assert len(server.connections) == 1


async def test_many_calls_at_a_time_get_a_connection_each(server: Server, clusters: KubernetesClusters) -> None:
    server.held = {f"held-{n}" for n in range(8)}
    async with clusters.cluster(server.vim()) as cluster:
        reads = asyncio.create_task(read(cluster, *sorted(server.held)))
        await until_true(lambda: _is(lambda: server.waiting == 8))
        server.released.set()
        await reads
    assert len(server.connections) == 8


async def test_a_call_that_takes_long_delays_no_other(server: Server, clusters: KubernetesClusters) -> None:
    server.held = {"held"}
    async with clusters.cluster(server.vim()) as cluster:
        slow = asyncio.create_task(read(cluster, "held"))
        await until_true(lambda: _is(lambda: server.waiting == 1))
        await read(cluster, "a")
        await read(cluster, "b")
        assert not slow.done()
        server.released.set()
        await slow
    assert len(server.connections) == 2


@pytest.mark.parametrize(("token", "of_vnf"), [("other", False), ("t", True)])
async def test_other_access_data_never_use_an_open_connection(
    server: Server, clusters: KubernetesClusters, token: str, of_vnf: bool
) -> None:
    """A token stands for all access data, whose fingerprint names the pool; ``of_vnf`` has other rules for addresses."""
    for vim in (server.vim(), server.vim(token, of_vnf=of_vnf), server.vim()):
        async with clusters.cluster(vim) as cluster:
            await read(cluster, "a")
    assert len(server.connections) == 2


async def test_all_connections_are_closed_at_the_end(server: Server) -> None:
    async with KubernetesClusters.open(RING, networks()) as clusters:
        async with clusters.cluster(server.vim()) as cluster:
            await read(cluster, "a")
        assert server.open == 1
    await until_true(lambda: _is(lambda: server.open == 0))


def _is(condition: Callable[[], bool]) -> Awaitable[bool]:
    return asyncio.sleep(0, condition())


@pytest.mark.looptime
async def test_more_than_the_limit_wait_and_are_then_closed_after_use() -> None:
    shared, kept = SharedConnections(), []
    ended = asyncio.Event()

    async def call() -> None:
        async with shared.turn() as is_kept:
            kept.append(is_kept)
            await ended.wait()

    calls = [asyncio.create_task(call()) for _ in range(MOST_KEPT + 2)]
    await asyncio.sleep(0.5)
    assert kept == [True] * len(kept)
    await asyncio.sleep(1.0)
    assert (kept.count(True), kept.count(False)) == (MOST_KEPT, 2)
    ended.set()
    await asyncio.gather(*calls)


@pytest.mark.looptime
async def test_after_the_idle_time_calls_begin_with_one_connection_again() -> None:
    shared, running, most = SharedConnections(), 0, 0

    async def call() -> None:
        nonlocal running, most
        async with shared.turn():
            running += 1
            most = max(most, running)
            await asyncio.sleep(0.1)
            running -= 1

    for pause_s, calls, expected in ((0.0, 8, 5), (KEPT_S / 2, 4, 4), (KEPT_S * 2, 4, 1)):
        await asyncio.sleep(pause_s)
        most = 0
        await asyncio.gather(*(call() for _ in range(calls)))
        assert most == expected
