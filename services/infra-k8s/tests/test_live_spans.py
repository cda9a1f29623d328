"""One trace from a request over a command to a call of an API server, with a write of the store."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer
from kubevnfm_bus.inprocess import InProcessBus
from kubevnfm_clients.cluster_access import ClusterAccess
from kubevnfm_infra_k8s.adapters.call_guard import CallGuard
from kubevnfm_infra_k8s.adapters.region_metrics import RegionMetrics
from kubevnfm_infra_k8s.adapters.transport import Transport
from kubevnfm_infra_k8s.domain.errors import ObjectRefused
from kubevnfm_kit.connections import Limits
from kubevnfm_kit.http import serving
from kubevnfm_kit.metrics import Metrics
from kubevnfm_kit.traces import TraceContext, derived_span_id, trace_of
from kubevnfm_store.measured import measured
from kubevnfm_store.port import DocumentStore
from kubevnfm_store.sqlite.store import SqliteStore
from kubevnfm_worker.outcome import Done, Outcome, StepContext
from kubevnfm_worker.worker import CommandWorker
from live_trace import facts_of, id_of, live_trace, parent_of, trace_id_of
from servers.vnf_networks import networks
from worlds.worker_world import RING, SERVICE, Work, Worked, a_command

CALLER = TraceContext("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331")
STEP = derived_span_id("step", "op-1", "step-1", "2")
PODS = "/api/v1/namespaces/hidden-space/pods"


@dataclass
class Gateway:
    """Answers a request by a command, whose step belongs to the caller's trace."""

    bus: InProcessBus
    store: DocumentStore
    sent: list[asyncio.Task[None]] = field(default_factory=list)

    async def instantiate(self, request: web.Request) -> web.Response:
        await self.store.insert("operations", "hidden-id", {"password": "hidden"})
        caller = trace_of(request.headers)
        assert caller is not None
        step = TraceContext(caller.trace_id, STEP, caller.is_sampled)
        self.sent.append(asyncio.create_task(self.bus.publish(replace(a_command(), traceparent=str(step)))))
        return web.Response(status=202)


async def answer(request: web.Request) -> web.Response:
    if request.path.endswith("secrets"):
        return web.json_response({"message": "hidden"}, status=422)
    return web.json_response({"items": []})


async def flow(folder: Path) -> None:
    """Run one request until its command has ended."""
    api, app = web.Application(), web.Application()
    api.router.add_route("*", "/{path:.*}", answer)
    async with (
        SqliteStore.open(folder / "store.db") as database,
        InProcessBus(RING, drain_s=0.5) as bus,
        TestServer(api) as server,
    ):
        store = measured(database, "sqlite")
        guard = CallGuard("", RegionMetrics(Metrics()).of_region("vim-1"))
        access = ClusterAccess(str(server.make_url("/")).rstrip("/"), bearer_token="hidden")
        transport = await Transport.connect(access, networks(), guard=guard)

        async def work(command: Work, context: StepContext) -> Outcome:
            await transport.call("GET", PODS, query={"labelSelector": "hidden"})
            with pytest.raises(ObjectRefused):
                await transport.call("POST", "/apis/apps/v1/namespaces/x/secrets", body={"password": "hidden"})
            return Done(Worked(number=command.number))

        gateway = Gateway(bus, store)
        app.router.add_post("/vnf_instances/{id}/instantiate", gateway.instantiate)
        async with CommandWorker(service=SERVICE, bus=bus, store=store, key_ring=RING) as worker:
            worker.handle(Work, work)
            await worker.start()
            async with serving(app, host="127.0.0.1", port=0, limits=Limits()) as port, ClientSession() as session:
                url = f"http://127.0.0.1:{port}/vnf_instances/hidden-vnf/instantiate?q=hidden"
                async with session.post(url, headers={"traceparent": str(CALLER)}, json={"p": "hidden"}) as begun:
                    assert begun.status == 202
                await asyncio.gather(*gateway.sent)
        # Without a parent: nothing of it belongs to the operation.
        await transport.call("GET", PODS)
        await transport.close()


async def test_a_request_its_command_and_its_calls_are_one_trace(tmp_path: Path) -> None:
    with live_trace() as trace:
        await flow(tmp_path)
    assert {trace_id_of(span) for span in trace.spans} == {CALLER.trace_id}
    request = trace.one("POST /vnf_instances/{id}/instantiate")
    sent, handled = trace.one(f"send {Work.type}"), trace.one(f"process {Work.type}")
    read, refused = trace.one("GET pods"), trace.one("POST secrets")
    stored, finished = trace.one("insert operations"), trace.one("insert inbox_testing")
    assert parent_of(request) == CALLER.span_id
    assert parent_of(stored) == id_of(request)
    assert {parent_of(span) for span in (sent, handled, read, refused, finished)} == {STEP}
    assert [f"{link.context.span_id:016x}" for link in handled.links] == [id_of(sent)]
    assert facts_of(handled) == {
        "messaging.system": "kubevnfm",
        "messaging.operation.type": "process",
        "messaging.operation.name": "process",
        "messaging.destination.name": facts_of(sent)["messaging.destination.name"],
        "messaging.message.id": facts_of(sent)["messaging.message.id"],
        "kubevnfm.message.type": Work.type,
        "kubevnfm.operation.id": "op-1",
        "kubevnfm.step.id": "step-1",
        "kubevnfm.step.attempt": 2,
        "kubevnfm.verdict": "ack",
    }
    assert facts_of(read) == {
        "http.request.method": "GET",
        "kubevnfm.vim.id": "vim-1",
        "kubevnfm.k8s.resource": "v1/pods",
        "http.response.status_code": 200,
    }
    assert facts_of(refused)["kubevnfm.k8s.resource"] == "apps/v1/secrets"
    assert facts_of(refused)["http.response.status_code"] == 422
    assert facts_of(stored) == {
        "db.system.name": "sqlite",
        "db.operation.name": "insert",
        "db.collection.name": "operations",
    }
    assert "hidden" not in trace.text()
    # Reads are not recorded, nor is the call that belongs to no step.
    assert trace.names.count("GET pods") == 1
    assert {name.split()[0] for name in trace.names} <= {
        "POST",
        "GET",
        "send",
        "process",
        "insert",
        "update",
        "replace",
    }


async def test_nothing_of_it_is_recorded_when_it_is_off(tmp_path: Path) -> None:
    with live_trace() as trace:
        pass
    await flow(tmp_path)
    assert trace.names == []
