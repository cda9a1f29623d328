"""Clusters of regions that answer as no API server does: what they say is bounded before it is kept, shown or asked for again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from kubevnfm_clients.multicloud.errors import RegionUnavailable
from kubevnfm_clients.multicloud.regions import ObjectsWanted
from kubevnfm_kit.clock import SystemClock
from kubevnfm_secrets import Secret
from kubevnfm_vim_registry.adapters import kubernetes_regions
from kubevnfm_vim_registry.adapters.kubernetes import KubernetesProbe
from kubevnfm_vim_registry.adapters.kubernetes_regions import KubernetesRegions
from kubevnfm_vim_registry.domain.errors import VimRefused
from kubevnfm_vim_registry.domain.record import VimRecord
from kubevnfm_vim_registry.region_reading import RegionReading
from servers.hostile import Hostile, hostile_server
from worlds.vim_world import RING

Bodies = Callable[[str], Any]
"""The body of an answer, by the path of the request."""


def a_vim(endpoint: str) -> VimRecord:
    return VimRecord(
        id="vim",
        name="op/edge",
        tenant_id="default",
        type="kubernetes",
        auth_url=endpoint,
        auth_cred={"bearer_token": Secret("swordfish")},
        created_at="2026-01-01T00:00:00.000Z",
        updated_at="2026-01-01T00:00:00.000Z",
    )


@asynccontextmanager
async def a_cluster(body_of: Bodies) -> AsyncIterator[tuple[KubernetesProbe, VimRecord, Hostile]]:
    """Yield the client of a server that answers with these bodies, its VIM, and the server."""

    async def speak(head: bytes, writer: asyncio.StreamWriter) -> None:
        body = json.dumps(body_of(head.split()[1].decode())).encode()
        lines = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(lines.encode() + body)
        await writer.drain()

    async with hostile_server(speak) as server, aiohttp.ClientSession() as session:
        yield KubernetesProbe(session, session, RING, timeout_s=300.0), a_vim(server.url), server


@pytest.mark.parametrize(
    ("version", "namespace"), [("v1.31." + "4" * 64, "default"), ("v1.31.4", "n" * 64)], ids=["version", "namespace"]
)
async def test_long_facts_are_refused(version: str, namespace: str) -> None:
    """They would be stored, shown and published."""

    def body_of(path: str) -> Any:
        listed = {"items": [{"metadata": {"name": namespace}}]}
        return {"gitVersion": version} if path == "/version" else listed

    async with a_cluster(body_of) as (probe, vim, _):
        with pytest.raises(VimRefused) as refused:
            await probe.verify(vim)
    assert len(str(refused.value)) < 200


async def test_a_list_of_empty_answers_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their bytes alone would reach the limit after a million of them."""
    monkeypatch.setattr(kubernetes_regions, "_MOST_ANSWERS", 5)
    async with a_cluster(lambda _: {"items": [], "metadata": {"continue": "more"}}) as (probe, vim, server):
        with pytest.raises(VimRefused, match="the last of at most 5 answers"):
            await KubernetesRegions(probe).nodes(vim)
    assert len(server.requests) == 5


async def test_an_answer_with_more_objects_than_a_page_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubernetes_regions, "_MOST", 3)
    async with a_cluster(lambda _: {"items": [{}] * 10, "metadata": {"continue": "more"}}) as (probe, vim, server):
        assert len(await KubernetesRegions(probe).nodes(vim)) == 3
    assert len(server.requests) == 1


@pytest.mark.parametrize("mark", ["m" * 2049, ["m"], {"m": 1}, 7])
async def test_where_the_next_answer_begins_is_a_short_text(mark: Any) -> None:
    """It becomes a part of URLs and of the header Link."""

    def body_of(path: str) -> Any:
        served = {"resources": [{"name": "pods", "kind": "Pod", "namespaced": True}]}
        return served if path == "/api/v1" else {"items": [], "metadata": {"continue": mark}}

    wanted = ObjectsWanted(apiVersion="v1", kind="Pod")
    async with a_cluster(body_of) as (probe, vim, _):
        with pytest.raises(VimRefused, match="continue with at most 2048 characters"):
            await KubernetesRegions(probe).objects(vim, wanted, limit=10, after=None)


async def test_all_calls_for_one_answer_have_one_time_limit() -> None:
    """Each call has a limit of its own, but there may be a thousand of them."""
    wanted = ObjectsWanted(apiVersion="v1", kind="Pod")
    async with a_cluster(lambda _: {"items": []}) as (probe, vim, _):
        reading = RegionReading(KubernetesRegions(probe), SystemClock(), timeout_s=300.0, reading_s=0.0)
        with pytest.raises(RegionUnavailable, match="within 0 s"):
            await reading.features(vim)
        with pytest.raises(RegionUnavailable, match="within 0 s"):
            await reading.resources(vim, wanted, limit=10, after=None)
