"""How many calls an API server gets, and that one which does not answer gets one at a time (multicloud.md MC-083, MC-136)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import aiohttp
import pytest
from callers.metrics import metrics_text
from kubevnfm_clients.cluster_access import ClusterAccess
from kubevnfm_clients.multicloud.inventory import ExportHealth
from kubevnfm_clients.outbound import AddressNotAllowed
from kubevnfm_events import VimConnection
from kubevnfm_infra_k8s.adapters.call_guard import CallGuard, CircuitBreaker, RateLimit, RegionAway
from kubevnfm_infra_k8s.adapters.clusters import KubernetesClusters
from kubevnfm_infra_k8s.adapters.link_metrics import count_links
from kubevnfm_infra_k8s.adapters.region_metrics import RegionMetrics
from kubevnfm_infra_k8s.adapters.transport import Transport
from kubevnfm_infra_k8s.domain.errors import ClusterUnavailable
from kubevnfm_infra_k8s.domain.objects import ObjectKey, Resource
from kubevnfm_kit.metrics import Metrics
from kubevnfm_secrets import KeyRing
from servers.vnf_networks import networks

CONFIG_MAPS = Resource("v1", "ConfigMap", "configmaps", namespaced=True)
KEY = ObjectKey("v1", "ConfigMap", "default", "a")
RING = KeyRing.from_text(KeyRing.new_key())


@dataclass
class Time:
    s: float = 0.0

    def __call__(self) -> float:
        return self.s


def fail(breaker: CircuitBreaker, error: Exception) -> None:
    with pytest.raises(type(error)), breaker.call():
        raise error


def is_refused(breaker: CircuitBreaker) -> bool:
    try:
        breaker.check()
    except RegionAway:
        return True
    return False


def test_after_five_calls_without_an_answer_one_probes_after_pauses_that_double() -> None:
    """MC-083."""
    time = Time()
    breaker = CircuitBreaker("https://edge", time)
    for _ in range(4):
        fail(breaker, TimeoutError())
    with breaker.call():
        pass
    for _ in range(4):
        fail(breaker, TimeoutError())
    assert not breaker.is_open
    fail(breaker, ConnectionRefusedError("refused"))
    with pytest.raises(RegionAway, match=r"https://edge: no answer since 20\d\d-.*Z; the last error: refused"):
        breaker.check()
    pauses = []
    for _ in range(7):
        before = time.s
        while is_refused(breaker):
            time.s += 0.5
        pauses.append(time.s - before)
        fail(breaker, TimeoutError())
    assert pauses == [1, 2, 4, 8, 16, 30, 30]
    time.s += 30
    with breaker.call():
        # One probes, and no other call is sent meanwhile.
        assert is_refused(breaker)
    assert not is_refused(breaker)
    assert not breaker.is_open


def test_a_probe_that_is_given_up_leaves_its_place_to_the_next() -> None:
    time = Time()
    breaker = CircuitBreaker("https://edge", time)
    for _ in range(5):
        fail(breaker, aiohttp.ServerDisconnectedError())
    time.s += 1
    with pytest.raises(asyncio.CancelledError), breaker.call():
        raise asyncio.CancelledError
    assert not is_refused(breaker)
    with breaker.call():
        pass
    assert not breaker.is_open


def test_calls_that_were_sent_before_make_no_pause_longer() -> None:
    """MC-083: a server that restarts ends hundreds of watches at one moment."""
    time = Time()
    breaker = CircuitBreaker("https://edge", time)
    error = aiohttp.ServerDisconnectedError()
    sent = [breaker.call() for _ in range(50)]
    for each in sent:
        each.__enter__()
    for each in sent:
        each.__exit__(type(error), error, None)
    assert is_refused(breaker)
    time.s += 1
    assert not is_refused(breaker)


async def test_a_probe_without_an_answer_ends_though_it_is_a_watch() -> None:
    """MC-083: no other call is sent meanwhile, and a watch alone would wait for minutes."""
    time = Time()
    async with dead_server(is_silent=True) as (url, came):
        guard = CallGuard(url, probe_s=0.2, monotonic=time)
        for _ in range(5):
            fail(guard.breaker, TimeoutError())
        time.s += 1
        transport = await Transport.connect(ClusterAccess(url, bearer_token="t"), networks(), guard=guard)
        try:
            with pytest.raises(ClusterUnavailable, match="no answer in time"):
                async with transport.stream("/api/v1/pods", query={"watch": "1"}):
                    raise AssertionError("a silent server has answered")
        finally:
            await transport.close()
        assert len(came) == 1
        assert is_refused(guard.breaker)
        time.s += 2
        assert not is_refused(guard.breaker)


def test_an_address_that_is_not_allowed_says_nothing_about_the_server() -> None:
    breaker = CircuitBreaker("https://edge", Time())
    for _ in range(9):
        fail(breaker, AddressNotAllowed())
    assert not breaker.is_open


def test_calls_wait_in_their_order_once_the_burst_is_spent() -> None:
    time = Time()
    limit = RateLimit(50, 100, time)

    def waits(count: int) -> list[float]:
        return [round(limit.reserve(), 3) for _ in range(count)]

    assert waits(100) == [0.0] * 100
    assert waits(3) == [0.02, 0.04, 0.06]
    time.s = 1.0
    assert waits(48) == [0.0] * 47 + [0.02]
    time.s = 1000.0
    assert waits(101) == [0.0] * 100 + [0.02]


async def test_a_call_that_is_given_up_leaves_its_turn_to_another() -> None:
    limit = RateLimit(0.001, 1, Time())
    assert limit.reserve() == 0
    for _ in range(3):
        waiting = asyncio.create_task(limit.turn())
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    assert limit.reserve() == 1000


@asynccontextmanager
async def dead_server(*, is_silent: bool = False) -> AsyncIterator[tuple[str, list[int]]]:
    """Yield the URL of a server that answers no request, and the connections that came. ``is_silent``: it keeps them open."""
    came: list[int] = []

    async def close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        came.append(1)
        await reader.readuntil(b"\r\n\r\n")
        if is_silent:
            await reader.read()
        writer.close()

    server = await asyncio.start_server(close, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", came


async def test_calls_and_watches_of_a_dead_region_are_not_sent_and_those_of_others_are() -> None:
    """MC-083: the connections of an idle region may be closed, and what is known of it stays."""
    async with (
        dead_server() as (dead, came),
        dead_server() as (other, came_there),
        KubernetesClusters.open(RING, networks()) as clusters,
    ):
        vim = VimConnection(interface_info={"endpoint": dead}, access_info={"bearer_token": "t"})
        for _ in range(3):
            async with clusters.cluster(vim) as cluster:
                with pytest.raises(ClusterUnavailable):
                    await cluster.get(CONFIG_MAPS, KEY)
        # aiohttp connects twice for a GET.
        assert len(came) == 10
        with pytest.raises(RegionAway, match=f"{dead}: no answer since .*the last error: Server disconnected"):
            async with clusters.cluster(vim) as cluster:
                await cluster.get(CONFIG_MAPS, KEY)
        elsewhere = vim.model_copy(update={"interface_info": {"endpoint": other}})
        async with clusters.cluster(elsewhere) as cluster:
            with pytest.raises(ClusterUnavailable):
                await cluster.get(CONFIG_MAPS, KEY)
        assert (len(came), len(came_there)) == (10, 6)


async def test_requests_of_tokens_are_calls_of_the_region() -> None:
    """MC-083, MC-074: without a token each call of a dead region would wait for the time limit of a request of one."""
    async with dead_server() as (dead, came), KubernetesClusters.open(RING, networks()) as clusters:
        order = {"namespace": "system", "service_account": "kubevnfm", "expiration_s": 600}
        access = {"bearer_token": "t", "service_account": order}
        vim = VimConnection(vim_id="edge", interface_info={"endpoint": dead}, access_info=access)
        async with clusters.cluster(vim) as cluster:
            for _ in range(5):
                with pytest.raises(ClusterUnavailable):
                    await cluster.get(CONFIG_MAPS, KEY)
            assert len(came) == 5
            with pytest.raises(ClusterUnavailable, match=r"no answer since .*the last error: Server disconnected"):
                await cluster.get(CONFIG_MAPS, KEY)
        assert len(came) == 5
        text = await metrics_text(clusters.metrics.registry)
    assert 'kubevnfm_region_requests_total{code="none",method="POST",vim_id="edge"} 5.0' in text.splitlines()


async def test_a_watch_counts_as_a_call_does() -> None:
    async with dead_server() as (url, came):
        time = Time()
        guard = CallGuard(url, monotonic=time)
        transport = await Transport.connect(ClusterAccess(url, bearer_token="t"), networks(), guard=guard)
        try:
            for _ in range(7):
                with pytest.raises(ClusterUnavailable):
                    async with transport.stream("/api/v1/pods", query={"watch": "1"}):
                        raise AssertionError("a dead server has answered")
            assert len(came) == 10
            time.s = 1.0
            with pytest.raises(ClusterUnavailable, match="the last error: Server disconnected"):
                await transport.call("GET", "/api/v1/pods")
            assert len(came) == 12
        finally:
            await transport.close()


async def test_metrics_count_the_calls_of_each_region() -> None:
    """MC-136: of VIMs that callers make up there are no more than a limit."""
    async with dead_server() as (dead, _), KubernetesClusters.open(RING, networks()) as clusters:
        vim = VimConnection(vim_id="edge", interface_info={"endpoint": dead}, access_info={"bearer_token": "t"})
        async with clusters.cluster(vim) as cluster:
            for _ in range(2):
                with pytest.raises(ClusterUnavailable):
                    await cluster.apply(CONFIG_MAPS, KEY, {"metadata": {"name": "a"}})
        for number in range(1200):
            clusters.metrics.of_region(f"made-up-{number}").watch()
        count_links(clusters.metrics.registry, Links())
        text = await metrics_text(clusters.metrics.registry)
    lines = set(text.splitlines())
    assert {
        'kubevnfm_region_requests_total{code="none",method="PATCH",vim_id="edge"} 5.0',
        'kubevnfm_region_request_seconds_count{vim_id="edge"} 5.0',
        'kubevnfm_region_objects_total{result="failed",vim_id="edge"} 2.0',
        'kubevnfm_region_away{vim_id="edge"} 1.0',
        'kubevnfm_region_virtual_links{status="READY",vim_id="edge"} 2.0',
    } <= lines
    assert sum(line.startswith("kubevnfm_region_watch_starts_total") for line in lines) == 1000
    assert "_created" not in text


async def test_calls_count_for_the_vim_that_made_them_and_a_dead_cluster_stays_dead_for_its_next_vim() -> None:
    """MC-083, MC-136: a region that is removed and registered again has the same access data, and another VIM."""
    async with dead_server() as (dead, _), KubernetesClusters.open(RING, networks()) as clusters:
        for vim_id in ("first", "second"):
            vim = VimConnection(vim_id=vim_id, interface_info={"endpoint": dead}, access_info={"bearer_token": "t"})
            async with clusters.cluster(vim) as cluster:
                for _ in range(2):
                    with pytest.raises(ClusterUnavailable):
                        await cluster.apply(CONFIG_MAPS, KEY, {"metadata": {"name": "a"}})
        lines = set((await metrics_text(clusters.metrics.registry)).splitlines())
    assert {
        'kubevnfm_region_requests_total{code="none",method="PATCH",vim_id="first"} 5.0',
        'kubevnfm_region_objects_total{result="failed",vim_id="first"} 2.0',
        'kubevnfm_region_objects_total{result="failed",vim_id="second"} 2.0',
    } <= lines
    # The breaker was open already: no call of the second VIM has reached the cluster.
    assert not any(line.startswith("kubevnfm_region_requests_total") and "second" in line for line in lines)
    assert 'kubevnfm_region_away{vim_id="second"} 1.0' in lines


async def test_a_region_without_calls_loses_its_series() -> None:
    """MC-136: a deleted region is not away for ever, and its place is free; codes that HTTP does not have share a series."""
    time = Time()
    metrics = RegionMetrics(Metrics(), time)
    gone, stays = metrics.of_region("gone"), metrics.of_region("edge")
    for region in (gone, stays):
        region.away(is_away=True)
        region.object(is_applied=True)
        for status in (200, 299, 799):
            with region.request("GET") as sent:
                sent.status = status
    for number in range(1200):
        metrics.of_region(f"made-up-{number}").watch()
    assert 'kubevnfm_region_away{vim_id="gone"} 1.0' in await metrics_text(metrics.registry)
    time.s = 3000.0
    lines = (await metrics_text(metrics.registry)).splitlines()
    assert not any(line.startswith("kubevnfm_region_away{") for line in lines)
    assert 'kubevnfm_region_objects_total{result="applied",vim_id="gone"} 1.0' in lines
    stays.away(is_away=True)
    time.s = 3250.0
    stays.watch()
    time.s = 3500.0
    assert 'kubevnfm_region_away{vim_id="edge"} 1.0' in await metrics_text(metrics.registry)
    time.s = 4000.0
    stays.watch()
    text = await metrics_text(metrics.registry)
    assert "gone" not in text
    assert "made-up" not in text
    assert "others" not in text
    assert {
        'kubevnfm_region_away{vim_id="edge"} 1.0',
        'kubevnfm_region_requests_total{code="200",method="GET",vim_id="edge"} 1.0',
        'kubevnfm_region_requests_total{code="other",method="GET",vim_id="edge"} 2.0',
    } <= set(text.splitlines())
    gone.away(is_away=False)
    assert 'kubevnfm_region_away{vim_id="gone"} 0.0' in await metrics_text(metrics.registry)


async def test_an_open_watch_shows_how_long_it_was_silent() -> None:
    time = Time()
    metrics = RegionMetrics(Metrics(), time)
    with metrics.of_region("edge").watch() as quiet, metrics.of_region("edge").watch() as lively:
        time.s = 40.0
        lively.heard()
        time.s = 50.0
        assert {
            'kubevnfm_region_watches{vim_id="edge"} 2.0',
            'kubevnfm_region_watch_silence_seconds{vim_id="edge"} 50.0',
        } <= set((await metrics_text(metrics.registry)).splitlines())
        quiet.heard()
        text = await metrics_text(metrics.registry)
        assert 'kubevnfm_region_watch_silence_seconds{vim_id="edge"} 10.0' in text
    text = await metrics_text(metrics.registry)
    assert "kubevnfm_region_watches{" not in text
    assert 'kubevnfm_region_watch_starts_total{vim_id="edge"} 2.0' in text


async def test_two_servers_that_read_at_the_same_time_both_see_everything() -> None:
    """MC-136: the second one begins when the first one has read what is stored, and writes its answer."""
    metrics, exports = RegionMetrics(Metrics()), Exports()
    count_links(metrics.registry, Links())
    metrics.export.waiting = exports
    for number in range(500):
        metrics.of_region(f"edge-{number}").watch()
    first = asyncio.create_task(metrics_text(metrics.registry))
    await exports.begun.wait()
    second = asyncio.create_task(metrics_text(metrics.registry))
    for _ in range(10):
        await asyncio.sleep(0)
    exports.may_end.set()
    for text in await asyncio.gather(first, second):
        assert {
            'kubevnfm_region_virtual_links{status="READY",vim_id="edge"} 2.0',
            'kubevnfm_region_export_lag_seconds{vim_id="edge"} 7.0',
        } <= set(text.splitlines())


class Exports:
    """An export of which something waits. The reader that comes first waits for its lags, others for its health."""

    def __init__(self) -> None:
        self.begun, self.may_end = asyncio.Event(), asyncio.Event()

    async def health(self) -> ExportHealth:
        if self.begun.is_set():
            await self.may_end.wait()
        return ExportHealth(reachable=True, waiting=1, lag_s=7.0, refused=0)

    async def lags(self) -> Mapping[str, float]:
        is_first = not self.begun.is_set()
        self.begun.set()
        await self.may_end.wait()
        if not is_first:
            await asyncio.sleep(0.05)
        return {"edge": 7.0}


class Links:
    async def states(self) -> AsyncIterator[tuple[str, str]]:
        for _ in range(2):
            yield "edge", "READY"
