"""How many connections calls open, when open ones are used again, and what many clusters cost one another."""

from __future__ import annotations

import asyncio
import socket
import threading
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from kubevnfm_clients.vnf_addresses import read_networks
from kubevnfm_clients.vnf_networks import VnfNetworks
from kubevnfm_events import VimConnection
from kubevnfm_infra_k8s.adapters.clusters import KubernetesClusters
from kubevnfm_infra_k8s.adapters.shared_connections import KEPT_S, MOST_KEPT, SharedConnections
from kubevnfm_infra_k8s.domain.errors import AddressRefused, ClusterUnavailable
from kubevnfm_infra_k8s.domain.objects import ObjectKey, Resource
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_kit.http import serving
from kubevnfm_kit.tls import ServerTls
from kubevnfm_secrets import KeyRing
from patience import until_true
from servers.certificates import Authority
from servers.connect_proxy import connect_proxy, environment
from servers.ports import free_port
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
    kinds: list[dict[str, Any]] = field(default_factory=list)
    """Those of ``v1``."""
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
        if request.path == "/api/v1" and self.kinds:
            return web.json_response({"kind": "APIResourceList", "resources": self.kinds})
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


async def test_a_proxy_of_the_environment_leads_to_clusters_and_to_judged_addresses_of_those_of_vnfs(
    server: Server,
) -> None:
    port = server.endpoint.rpartition(":")[2]

    def vim(host: str, *, of_vnf: bool = False) -> VimConnection:
        endpoint = {"endpoint": f"http://{host}:{port}"}
        return VimConnection(interface_info=endpoint, access_info={"bearer_token": "t"}, of_vnf=of_vnf)

    named = VnfNetworks(read_networks("10.20.0.0/16"))
    async with connect_proxy("user:pw") as proxy:
        with environment(http_proxy=proxy.url, NO_PROXY="10.30.0.0/16"):
            async with KubernetesClusters.open(RING, named) as clusters:
                for given in (vim("cluster.example"), vim("10.20.0.7", of_vnf=True)):
                    async with clusters.cluster(given) as cluster:
                        await read(cluster, "a")
                async with clusters.cluster(vim("127.0.0.1")) as cluster:
                    await read(cluster, "a")
                for refused in ("10.40.0.7", "127.0.0.1"):
                    with pytest.raises(AddressRefused):
                        async with clusters.cluster(vim(refused, of_vnf=True)) as cluster:
                            await read(cluster, "a")
    assert proxy.requests == [(f"{host}:{port}", "basic dxnlcjpwdw==") for host in ("cluster.example", "10.20.0.7")]
    assert server.asked == [(f"{host}:{port}", "") for host in ("cluster.example", "10.20.0.7", "127.0.0.1")]


async def test_a_proxy_that_is_off_is_named_instead_of_the_cluster() -> None:
    port = free_port()
    vim = VimConnection(interface_info={"endpoint": "https://cluster.example"}, access_info={"bearer_token": "t"})
    with environment(HTTPS_PROXY=f"127.0.0.1:{port}"):
        async with KubernetesClusters.open(RING, networks()) as clusters:
            with pytest.raises(ClusterUnavailable) as failed:
                async with clusters.cluster(vim) as cluster:
                    await read(cluster, "a")
    assert str(failed.value) == f"https://cluster.example: proxy 127.0.0.1:{port}: connection refused"


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


async def test_a_connection_with_tls_takes_little_memory(clusters: KubernetesClusters, tmp_path: Path) -> None:
    """MC-142: 500 regions have thousands of watches, each with a connection; asyncio reserves 256 KiB at each end."""
    authority, server, app = Authority(tmp_path), Server(), web.Application()
    pair = authority.issue("cluster")
    app.router.add_route("*", "/{path:.*}", server.answer)
    server.held = {f"held-{n}" for n in range(10)}
    tls = ServerTls(pair.certificate, pair.key)
    async with serving(app, host="127.0.0.1", port=0, tls=tls) as port:
        interface = {"endpoint": f"https://127.0.0.1:{port}", "ssl_ca_cert": authority.file.read_text()}
        vim = VimConnection(interface_info=interface, access_info={"bearer_token": "t"})
        async with clusters.cluster(vim) as cluster:
            await read(cluster, "a")
            tracemalloc.start()
            try:
                reads = asyncio.create_task(read(cluster, *sorted(server.held)))
                await until_true(lambda: _is(lambda: server.waiting == 10))
                taken, _ = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
                server.released.set()
            await reads
    assert len(server.connections) == 10
    # Both ends of ten connections, one of which was open before.
    assert taken / 9 < 200 * 1024


async def test_clusters_whose_names_are_not_answered_hold_up_no_other(
    server: Server, clusters: KubernetesClusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MC-142: a look-up that gets no answer takes half a minute of a thread, and the event loop has six on two cores."""
    asked, answered = set[str](), threading.Event()
    known = socket.getaddrinfo

    def look_up(host: Any, *arguments: Any, **options: Any) -> Any:
        if not str(host).endswith(".example"):
            return known(host, *arguments, **options)
        if str(host).startswith("away"):
            asked.add(host)
            answered.wait(300)
            raise socket.gaierror(socket.EAI_AGAIN, "no answer")
        return known("127.0.0.1", *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)

    async def call(name: str) -> None:
        endpoint = f"http://{name}.example:{server.endpoint.rpartition(':')[2]}"
        vim = VimConnection(interface_info={"endpoint": endpoint}, access_info={"bearer_token": "t"})
        async with clusters.cluster(vim) as cluster:
            await read(cluster, "a")

    away = [asyncio.create_task(call(f"away-{n}")) for n in range(40)]
    try:
        await until_true(lambda: _is(lambda: len(asked) == 40), timeout_s=60)
        async with asyncio.timeout(60):
            await call("here")
    finally:
        answered.set()
        for each in away:
            each.cancel()
        await asyncio.gather(*away, return_exceptions=True)
    assert [host.partition(":")[0] for host, _ in server.asked] == ["here.example"]


async def test_clusters_that_serve_a_kind_alike_share_what_is_known_of_it(
    server: Server, clusters: KubernetesClusters
) -> None:
    """MC-142: of 500 clusters, each with hundreds of kinds."""
    server.kinds = [{"name": "pods", "kind": "Pod", "namespaced": True, "verbs": ["get", "list"]}]
    found = []
    for token in ("one", "two"):
        async with clusters.cluster(server.vim(token)) as cluster:
            found.append(await cluster.resource("v1", "Pod"))
    assert found[0] is not None
    assert found[0] is found[1]
