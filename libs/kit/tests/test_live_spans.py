"""Live spans: what they have as their parent, which are recorded, and what a collector that is away costs."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer
from kubevnfm_kit import live_spans, opentelemetry_spans
from kubevnfm_kit.connections import Limits
from kubevnfm_kit.errors import Conflict
from kubevnfm_kit.http import serving
from kubevnfm_kit.opentelemetry_spans import sent_by_sdk
from kubevnfm_kit.otlp_settings import OtlpSettings
from kubevnfm_kit.traces import TraceContext, derived_span_id, is_in_ratio, operation_trace_id
from live_trace import facts_of, id_of, live_trace, parent_of, trace_id_of
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.trace import StatusCode
from patience import until_true
from pydantic import SecretStr
from servers.connect_proxy import connect_proxy, environment
from structlog.testing import capture_logs

CALLER = TraceContext("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331")
FACTS: dict[str, live_spans.Value] = {"db.operation.name": "insert"}


def test_nothing_is_recorded_unless_it_is_on() -> None:
    with live_spans.under(CALLER), live_spans.span("insert", "client", FACTS) as span:
        assert (span, span.context) == (live_spans.NOT_RECORDED, None)
        assert live_spans.present() is None
    with live_trace() as trace, live_spans.span("insert", "client", FACTS):
        pass
    assert trace.names == [], "work that belongs to nothing has no trace"


async def test_what_outlives_its_parent_is_not_recorded() -> None:
    """A background task that a request has begun, for example."""
    ended = asyncio.Event()

    async def background() -> None:
        with live_spans.span("early", "client", FACTS):
            pass
        await ended.wait()
        with live_spans.span("late", "client", FACTS):
            pass

    with live_trace() as trace:
        with live_spans.under(CALLER):
            task = asyncio.create_task(background())
            await asyncio.sleep(0)
        ended.set()
        await task
    assert trace.names == ["early"]
    assert (trace_id_of(trace.spans[0]), parent_of(trace.spans[0])) == (CALLER.trace_id, CALLER.span_id)


def test_a_failure_is_its_kind_and_not_its_text() -> None:
    with live_trace() as trace, live_spans.under(CALLER):
        for error in (Conflict("the password hidden-1 is taken"), ValueError("hidden-2"), asyncio.CancelledError()):
            with pytest.raises(type(error)), live_spans.span("call", "client", FACTS):
                raise error
    assert [facts_of(span)["error.type"] for span in trace.spans] == ["conflict", "ValueError", "cancelled"]
    assert all(span.status.status_code is StatusCode.ERROR for span in trace.spans)
    assert "hidden" not in trace.text()


def test_the_callers_flag_decides_and_else_the_ratio() -> None:
    """For the trace of an operation alone, the same decision as for its derived spans."""
    unwanted = TraceContext(CALLER.trace_id, CALLER.span_id, is_sampled=False)
    with live_trace(ratio=0.5) as trace:
        for caller in (CALLER, unwanted):
            parent = live_spans.derived_parent(str(caller), "op-1")
            with live_spans.span(f"sampled {caller.is_sampled}", "client", FACTS, parent=parent):
                pass
        assert trace.names == ["sampled True"]
        trace.exporter.clear()
        operations = [f"op-{number}" for number in range(100)]
        for operation in operations:
            own = TraceContext(operation_trace_id(operation), derived_span_id("step", operation))
            parent = live_spans.derived_parent(str(own), operation)
            with live_spans.span(operation, "client", FACTS, parent=parent):
                pass
    wanted = [each for each in operations if is_in_ratio(operation_trace_id(each), 0.5)]
    assert trace.names == wanted
    assert 20 < len(wanted) < 80


@pytest.mark.parametrize(("ratio", "least", "most"), [(0.0, 0, 0), (0.5, 20, 80), (1.0, 100, 100)])
def test_the_ratio_decides_on_requests_without_a_caller_and_on_all_below_them(
    ratio: float, least: int, most: int
) -> None:
    with live_trace(ratio=ratio) as trace:
        for _ in range(100):
            with live_spans.root_span("GET", "server", FACTS, None) as root, live_spans.under(root.context):
                with live_spans.span("find", "client", FACTS):
                    pass
                assert (live_spans.present() is None) == (root.context is None)
    assert least <= trace.names.count("GET") <= most
    assert trace.names.count("find") == trace.names.count("GET")


def test_one_trace_in_ten_has_live_spans_and_never_more_than_are_sent() -> None:
    assert OtlpSettings().live_ratio == 0.1
    assert OtlpSettings(trace_ratio=0.01).live_ratio == 0.01
    assert OtlpSettings(live_span_ratio=1.0).live_ratio == 1.0


async def test_a_request_is_a_span_of_its_callers_trace() -> None:
    async def answer(request: web.Request) -> web.Response:
        with live_spans.span("insert vnfs", "client", FACTS):
            pass
        if request.query.get("token") == "hidden-broken":
            raise web.HTTPServiceUnavailable(text="hidden")
        return web.json_response({})

    app = web.Application()
    app.router.add_post("/vnfs/{id}", answer)
    app.router.add_get("/health/live", answer)
    with live_trace() as trace:
        async with serving(app, host="127.0.0.1", port=0, limits=Limits()) as port, ClientSession() as session:
            url = f"http://127.0.0.1:{port}"
            for query in ("hidden-fine", "hidden-broken"):
                headers = {"traceparent": str(CALLER), "Authorization": "Bearer hidden"}
                await session.post(f"{url}/vnfs/hidden?token={query}", headers=headers, data=b"hidden")
            await session.request("PURGE", f"{url}/nowhere-hidden")
            await session.get(f"{url}/health/live")
    inserted, fine, _, broken, nowhere = trace.spans
    assert (fine.name, trace_id_of(fine), parent_of(fine)) == ("POST /vnfs/{id}", CALLER.trace_id, CALLER.span_id)
    assert facts_of(fine) == {
        "http.request.method": "POST",
        "http.route": "/vnfs/{id}",
        "http.response.status_code": 200,
    }
    assert parent_of(inserted) == id_of(fine)
    assert (facts_of(broken)["http.response.status_code"], facts_of(broken)["error.type"]) == (503, "503")
    assert (nowhere.name, parent_of(nowhere)) == ("HTTP", "")
    assert facts_of(nowhere) == {"http.request.method": "_OTHER", "http.response.status_code": 404}
    assert "hidden" not in trace.text()


async def test_calls_of_other_services_name_the_present_parent() -> None:
    named: list[str | None] = []

    async def answer(request: web.Request) -> web.Response:
        named.append(request.headers.get("traceparent"))
        return web.Response()

    app = web.Application()
    app.router.add_get("/", answer)
    async with TestServer(app) as server, ClientSession(middlewares=[live_spans.send_parent]) as session:
        await session.get(server.make_url("/"))
        with live_trace(), live_spans.under(CALLER):
            await session.get(server.make_url("/"))
    assert named == [None, str(CALLER)]


@dataclass
class Receiver:
    """A collector."""

    url: str = ""
    status: int = 200
    requests: int = 0
    headers: set[str | None] = field(default_factory=set)
    spans: list[str] = field(default_factory=list)
    held: asyncio.Event | None = None

    async def receive(self, request: web.Request) -> web.Response:
        self.requests += 1
        self.headers.add(request.headers.get("Authorization"))
        if self.held is not None:
            await self.held.wait()
        if self.status == 200:
            message = ExportTraceServiceRequest.FromString(await request.read())
            self.spans += [span.name for each in message.resource_spans for span in each.scope_spans[0].spans]
        return web.Response(status=self.status, headers={"Location": "/elsewhere"})


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    found = Receiver()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", found.receive)
    async with TestServer(app) as server:
        found.url = str(server.make_url("/"))
        yield found


def measure(name: str) -> None:
    with live_spans.under(CALLER), live_spans.span(name, "client", FACTS):
        pass


async def test_spans_reach_the_collector_also_those_of_the_end(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An outage of the collector is one line, drops its spans, and holds nothing up; a redirect is not followed."""
    monkeypatch.setattr(opentelemetry_spans, "_EVERY_MS", 20)
    given = OtlpSettings(otlp_endpoint=receiver.url, otlp_headers=SecretStr("Authorization=Bearer%20hidden"))
    with capture_logs() as lines:
        async with live_spans.sending(given, "testing"):
            for receiver.status in (500, 307, 403):
                before = receiver.requests

                async def was_asked(before: int = before) -> bool:
                    return receiver.requests > before

                measure(f"lost {receiver.status}")
                await until_true(was_asked)
            receiver.status = 200
            measure("again")

            async def has_arrived() -> bool:
                return "again" in receiver.spans

            await until_true(has_arrived)
            measure("at the end")
        assert not live_spans.is_on()
    assert receiver.spans == ["again", "at the end"]
    assert receiver.headers == {"Bearer hidden"}
    outages = [line for line in lines if line["event"] in {"outage_began", "outage_ended"}]
    assert [line["event"] for line in outages] == ["outage_began", "outage_ended"]
    assert outages[0]["reason"] == "the collector answered 500"
    assert "hidden" not in str(lines)


async def test_spans_pass_the_proxy_of_the_environment(receiver: Receiver) -> None:
    given = OtlpSettings(otlp_endpoint=receiver.url.replace("127.0.0.1", "collector.example"))
    async with connect_proxy("ada:s3cret") as proxy:
        with environment(HTTP_PROXY=proxy.url):
            async with live_spans.sending(given, "testing"):
                measure("through")
        assert proxy.hosts == {"collector.example"}
    assert receiver.spans == ["through"]


async def test_a_collector_that_hangs_holds_up_neither_work_nor_the_end(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opentelemetry_spans, "_END_S", 0.05)
    receiver.held = asyncio.Event()
    given, begun = OtlpSettings(otlp_endpoint=receiver.url), time.monotonic()
    async with sent_by_sdk(given, "testing") as recorder:
        with live_spans.recording(recorder):
            # More than the queue has room for.
            for number in range(5000):
                measure(str(number))
    assert time.monotonic() - begun < 8
    receiver.held.set()


async def test_without_the_extra_one_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "kubevnfm_kit.opentelemetry_spans")
    monkeypatch.setitem(sys.modules, "opentelemetry.context", None)
    with capture_logs() as lines:
        async with live_spans.sending(OtlpSettings(otlp_endpoint="http://127.0.0.1:9"), "lcm-api"):
            assert not live_spans.is_on()
        async with live_spans.sending(OtlpSettings(), "lcm-api"):
            assert not live_spans.is_on()
    assert [line["event"] for line in lines] == ["live_spans_not_sent"]
    assert "extra `traces` of lcm-api" in lines[0]["reason"]
