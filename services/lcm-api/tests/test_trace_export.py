"""The export of traces: each operation's trace reaches the collector, whatever is killed, and no longer than it is wanted."""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from callers.shown_trace import spans_in
from google.protobuf.json_format import Parse  # type: ignore[import-untyped]  # it has no types
from kubevnfm_kit.metrics import Metrics
from kubevnfm_kit.traces import TraceContext
from kubevnfm_lcm_api.lifecycle.core import occurrence as occurrences
from kubevnfm_lcm_api.lifecycle.core.occurrence import OccurrenceRecord
from kubevnfm_lcm_api.lifecycle.core.progress import Progress
from kubevnfm_lcm_api.lifecycle.core.spans import spans_of
from kubevnfm_lcm_api.tracing import wiring
from kubevnfm_lcm_api.tracing.collector import OtlpCollector
from kubevnfm_lcm_api.tracing.export import TraceExport, TraceMetrics, is_wanted
from kubevnfm_lcm_api.tracing.settings import TraceSettings
from kubevnfm_sol.lcm import InstantiationState, OperationState
from kubevnfm_store.sqlite.store import SqliteStore
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from patience import until_true
from pydantic import ValidationError
from structlog.testing import capture_logs
from worlds.engine_world import EngineWorld
from worlds.lcm_builders import a_cnf_draft, an_instance, an_instantiate_draft, an_operation
from worlds.lcm_world import lcm_world

SETTLED = timedelta(seconds=10)


@dataclass
class Receiver:
    """A collector: takes OTLP, and merges spans by their ids as stores of traces do."""

    url: str = ""
    status: int = 200
    retry_after: str = ""
    breaks_at: str = ""
    """A text of a request that is answered with 500."""
    requests: int = 0
    authorization: set[str | None] = field(default_factory=set)
    spans: dict[str, Any] = field(default_factory=dict)

    async def receive(self, request: web.Request) -> web.Response:
        self.requests += 1
        self.authorization.add(request.headers.get("Authorization"))
        if self.breaks_at and self.breaks_at in await request.text():
            return web.Response(status=500)
        if self.status >= 300:
            return web.Response(status=self.status, headers={"Retry-After": self.retry_after})
        # aiohttp has decompressed the body.
        for resource in decoded(await request.json()).resource_spans:
            for span in resource.scope_spans[0].spans:
                self.spans[span.span_id.hex()] = span
        return web.json_response({}, status=self.status) if self.status == 200 else web.Response(status=self.status)


def decoded(body: Any) -> ExportTraceServiceRequest:
    """Return the message of OTLP. Raises ParseError for anything that it does not have."""

    def with_bytes(value: Any) -> Any:
        if isinstance(value, list):
            return [with_bytes(each) for each in value]
        if not isinstance(value, dict):
            return value
        # OTLP has ids in hexadecimal, where JSON of protobuf has base64.
        ids = {"traceId", "spanId", "parentSpanId"}
        return {
            name: base64.b64encode(bytes.fromhex(each)).decode() if name in ids else with_bytes(each)
            for name, each in value.items()
        }

    message: ExportTraceServiceRequest = Parse(json.dumps(with_bytes(body)), ExportTraceServiceRequest())
    return message


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    found = Receiver()
    app = web.Application()
    app.router.add_post("/v1/traces", found.receive)
    async with TestServer(app) as server:
        found.url = str(server.make_url("/")).rstrip("/")
        yield found


@dataclass
class Site:
    """A store with operations, and a clock."""

    world: EngineWorld
    receiver: Receiver
    metrics: Metrics = field(default_factory=Metrics)

    @asynccontextmanager
    async def gateway(self, store: Any = None, **more: Any) -> AsyncIterator[TraceExport]:
        async with SqliteStore.open(self.world.folder / "store.db") as opened, aiohttp.ClientSession() as session:
            collector = OtlpCollector(session, f"{self.receiver.url}/v1/traces", {"Authorization": "Bearer one"})
            facts: dict[str, Any] = {
                "ratio": 1.0,
                "longest": timedelta(hours=1),
                "settles": SETTLED,
                "clock": self.world.clock,
            }
            facts |= {"counts": TraceMetrics(self.metrics), **more}
            used = store(opened) if store is not None else opened
            yield TraceExport(store=used, tasks=Progress(opened), collector=collector, **facts)

    async def run(self, *drafts: Any) -> list[OccurrenceRecord]:
        """Carry operations out; return their records."""
        records = []
        for number, draft in enumerate(drafts, 1):
            instance = f"inst-{number}"
            vnf = an_instance(instantiation_state=InstantiationState.NOT_INSTANTIATED)
            await self.world.put(vnf.model_copy(update={"vnf": vnf.vnf.model_copy(update={"id": instance})}))
            operation = an_operation(draft).with_occ(id=f"op-{number}", vnf_instance_id=instance)
            async with self.world.life() as user:
                await user.accept(operation)
                await user.reaches(f"op-{number}", "COMPLETED")
                record = await user.record(f"op-{number}")
                assert record is not None
                records.append(record)
        self.pass_s(SETTLED.total_seconds())
        return records

    def pass_s(self, seconds: float) -> None:
        self.world.clock.ahead_s += seconds

    async def stored(self, operation_id: str = "op-1") -> OccurrenceRecord:
        async with SqliteStore.open(self.world.folder / "store.db") as store:
            found = await store.get(occurrences.COLLECTION, operation_id)
        assert found is not None
        return OccurrenceRecord.from_document(found.body)

    async def counted(self) -> dict[str, float]:
        """Return how many traces had each outcome that there was."""
        text = (await self.metrics.text())[0].decode()
        found = re.findall(r'^kubevnfm_traces_total\{outcome="(\w+)"\} (\S+)$', text, re.MULTILINE)
        return {outcome: float(count) for outcome, count in found if float(count)}

    def ids(self, *records: OccurrenceRecord) -> set[str]:
        return {span.span_id for each in records for span in spans_of(each, (), self.world.clock.now())}


@pytest.fixture
def site(tmp_path: Path, receiver: Receiver) -> Site:
    return Site(EngineWorld(tmp_path), receiver)


async def test_the_trace_of_an_operation_is_sent_once_it_has_ended(site: Site) -> None:
    """API-165"""
    (record,) = await site.run(an_instantiate_draft())
    assert record.trace_due is not None
    async with site.gateway() as one:
        await asyncio.gather(one.send_due(), replace(one).send_due())
        assert (site.receiver.requests, set(site.receiver.spans)) == (1, site.ids(record))
        assert site.receiver.authorization == {"Bearer one"}
        root = next(span for span in site.receiver.spans.values() if not span.parent_span_id)
        assert (root.name, root.status.code, len(root.events)) == ("INSTANTIATE", 1, 3)
        site.pass_s(1000)
        await one.send_due()
        assert site.receiver.requests == 1
    assert (await site.stored()).trace_due is None
    assert await site.counted() == {"sent": 1.0}


class Dying:
    """A store whose process dies at one of its writes."""

    def __init__(self, store: SqliteStore, at: int) -> None:
        self._store, self._left = store, at

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def update(self, *given: Any, **more: Any) -> Any:
        self._left -= 1
        if self._left == 0:
            raise asyncio.CancelledError("killed")
        return await self._store.update(*given, **more)


async def test_a_kill_between_sending_and_marking_sends_the_same_spans_again(site: Site) -> None:
    """API-165"""
    (record,) = await site.run(a_cnf_draft())
    for killed_at in (1, 2):
        async with site.gateway(lambda store, at=killed_at: Dying(store, at)) as gateway:
            with pytest.raises(asyncio.CancelledError):
                await gateway.send_due()
    assert site.receiver.requests == 1, "killed before the claim, then between sending and marking"
    first = dict(site.receiver.spans)
    assert (await site.stored()).trace_due is not None
    site.pass_s(1000)
    async with site.gateway() as gateway:
        await gateway.send_due()
    assert site.receiver.requests == 2
    assert site.receiver.spans == first, "the same ids, times and attributes"
    assert set(first) == site.ids(record)
    assert (await site.stored()).trace_due is None


async def test_a_collector_that_is_away_is_tried_with_pauses_and_logged_once(site: Site) -> None:
    """API-165"""
    records = await site.run(a_cnf_draft(), an_instantiate_draft())
    site.receiver.status, site.receiver.retry_after = 503, "20"
    async with site.gateway() as gateway:
        with capture_logs() as logs:
            for _ in range(3):
                await gateway.send_due()
            assert site.receiver.requests == 1, "it has asked for a pause"
            for _ in range(4):
                site.pass_s(100)
                await gateway.send_due()
            assert site.receiver.requests == 5
            site.receiver.status = 200
            site.pass_s(100)
            await gateway.send_due()
    assert [each["event"] for each in logs] == ["traces_not_sent", "traces_sent_again"]
    assert set(site.receiver.spans) == site.ids(*records)


@pytest.mark.parametrize(("status", "waited_s", "outcome"), [(400, 0.0, "refused"), (503, 4000.0, "too_old")])
async def test_a_trace_that_is_refused_or_too_old_is_given_up(
    site: Site, status: int, waited_s: float, outcome: str
) -> None:
    """API-165: with a line, counted, and without a mark, also if it was never tried."""
    await site.run(a_cnf_draft(), an_instantiate_draft())
    site.receiver.status = status
    async with site.gateway() as gateway:
        with capture_logs() as logs:
            await gateway.send_due()
        site.pass_s(waited_s)
        site.receiver.status = 200 if waited_s else status
        with capture_logs() as again:
            for _ in range(2):
                site.pass_s(200)
                await gateway.send_due()
    assert site.receiver.spans == {}
    assert await site.counted() == {outcome: 2.0}
    lines = [each for each in (*logs, *again) if each["event"] == "trace_not_sent"]
    assert sorted(each["operation_id"] for each in lines) == ["op-1", "op-2"]
    assert [(await site.stored(each)).trace_due for each in ("op-1", "op-2")] == [None, None]


async def test_traces_of_a_time_without_a_collector_are_left_alone(site: Site) -> None:
    """API-165: they are neither sent nor lines."""
    await site.run(a_cnf_draft())
    site.pass_s(4000)
    async with site.gateway() as gateway:
        with capture_logs() as logs:
            await gateway.send_due()
    assert (site.receiver.requests, logs, await site.counted()) == (0, [], {})


async def test_a_trace_that_breaks_the_collector_holds_up_no_other(site: Site) -> None:
    """API-165"""
    _, other = await site.run(a_cnf_draft(), an_instantiate_draft())
    site.receiver.breaks_at = "op-1"
    async with site.gateway() as gateway:
        await gateway.send_due()
        assert site.receiver.spans == {}
        site.pass_s(100)
        await gateway.send_due()
    assert set(site.receiver.spans) == site.ids(other)


@pytest.mark.parametrize("status", [202, 204])
async def test_each_status_of_success_acknowledges_a_trace(site: Site, status: int) -> None:
    (record,) = await site.run(a_cnf_draft())
    site.receiver.status = status
    async with site.gateway() as gateway:
        await gateway.send_due()
    assert set(site.receiver.spans) == site.ids(record)
    assert (await site.stored()).trace_due is None


async def test_a_caller_or_the_ratio_decides_but_failures_are_always_sent(site: Site) -> None:
    """API-165"""
    (record,) = await site.run(a_cnf_draft())
    async with site.gateway(ratio=0.0) as gateway:
        await gateway.send_due()
    assert (site.receiver.requests, (await site.stored()).trace_due) == (0, None)
    assert (is_wanted(record, 1.0), is_wanted(record, 0.0)) == (True, False)
    named = TraceContext("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331")
    asked = record.model_copy(update={"traceparent": str(named)})
    assert is_wanted(asked, 0.0)
    refused = record.model_copy(update={"traceparent": f"{str(named)[:-2]}00"})
    assert not is_wanted(refused, 1.0)
    assert is_wanted(refused.with_occ(operation_state=OperationState.FAILED), 0.0)
    half = [is_wanted(record.with_occ(id=f"op-{number}"), 0.5) for number in range(400)]
    assert 140 < sum(half) < 260


async def test_a_gateway_with_a_collector_sends_the_traces_of_its_operations(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """API-165"""
    monkeypatch.setattr(wiring, "_EVERY_S", 0.05)
    monkeypatch.setattr(wiring, "_SETTLES", timedelta(0))
    settings: dict[str, Any] = {"otlp_endpoint": f"{receiver.url}/", "otlp_headers": "Authorization=Bearer%20two"}
    async with lcm_world(tmp_path, allowed_networks="127.0.0.0/8", **settings) as world:
        await world.sample()
        operation = await world.instantiate(await world.create())
        await world.reached(operation, "COMPLETED")

        async def arrived() -> bool:
            return bool(receiver.spans)

        await until_true(arrived)
        shown = (await world.call("GET", f"/kubevnfm/v1/operations/{operation}/trace")).must(200).json
    assert set(receiver.spans) == {span["spanId"] for span in spans_in(shown)}
    assert receiver.authorization == {"Bearer two"}


def test_settings_name_what_is_wrong_and_no_secret() -> None:
    given = TraceSettings(otlp_endpoint="https://c:4318", otlp_headers="Authorization=Bearer%20x, X-Org=1")
    assert given.given_otlp_headers == {"Authorization": "Bearer x", "X-Org": "1"}
    for wrong in ("no-value", "a b=c", "A=x%0d%0aB: y"):
        with pytest.raises(ValidationError, match="otlp_headers: <name>=<value> expected") as error:
            TraceSettings(otlp_headers=wrong)
        assert wrong not in str(error.value).partition("[type=")[0]
    for url in ("collector:4318", "http://user:pass@collector"):
        with pytest.raises(ValidationError, match="otlp_endpoint: an http or https URL"):
            TraceSettings(otlp_endpoint=url)
