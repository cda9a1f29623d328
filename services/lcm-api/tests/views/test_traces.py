"""The trace of an operation: `/kubevnfm/v1/operations/{id}/trace`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from kubevnfm_events import Envelope, Message
from kubevnfm_events.mgmt import TaskProgressed
from kubevnfm_kit.traces import TraceContext, read_traceparent
from kubevnfm_lcm_api.lifecycle.core.occurrence import OccurrenceRecord
from kubevnfm_lcm_api.lifecycle.core.progress import Progress
from worlds.lcm_world import JSON_HEADERS, World, lcm_world, sample_request
from worlds.trace_checks import whole_trace

PHASE = "mgmt.run_phase"
CALLER = TraceContext("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331")


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with lcm_world(tmp_path, allowed_networks="127.0.0.0/8") as running:
        await running.sample("cluster")
        yield running


async def begun(world: World) -> tuple[str, Envelope[Message]]:
    """Begin the instantiation of a cluster; return the operation and the command of the phase that waits."""
    world.twins.waiting.add(PHASE)
    path, body = f"/vnf_instances/{await world.create('cluster')}/instantiate", sample_request("cluster", "instantiate")
    asked = await world.lcm("POST", path, body, headers={**JSON_HEADERS, "traceparent": str(CALLER)})
    operation_id = asked.must(202).headers["Location"].rpartition("/")[2]
    return operation_id, (await world.twins.has_asked(2))[-1]


async def report(world: World, command: Envelope[Message], *, after_s: float = 0.0, **news: Any) -> None:
    event = command.follow_up(TaskProgressed(**news), source="/kubevnfm/mgmt-executor")
    await world.bus.publish(replace(event, time=event.time + timedelta(seconds=after_s)))
    await world.bus.quiet()


async def trace(world: World, operation_id: str) -> dict[str, dict[str, Any]]:
    """Return the spans by step or task, with attributes as a mapping."""
    answer = (await world.call("GET", f"/kubevnfm/v1/operations/{operation_id}/trace")).must(200).json
    spans = dict[str, dict[str, Any]]()
    for of_service in answer["resourceSpans"]:
        service = values(of_service["resource"]["attributes"])["service.name"]
        for span in of_service["scopeSpans"][0]["spans"]:
            facts = values(span["attributes"])
            parts = [facts.get(name) for name in ("step.id", "step.attempt", "task", "node")]
            name = "/".join(str(part) for part in parts if part is not None) or "operation"
            assert name not in spans
            spans[name] = {**span, "attributes": facts, "service": service}
    return spans


def values(attributes: list[dict[str, Any]]) -> dict[str, Any]:
    return {each["key"].removeprefix("kubevnfm."): next(iter(each["value"].values())) for each in attributes}


async def test_an_operation_is_a_trace_while_it_runs_and_after_its_end(world: World) -> None:
    """API-164"""
    operation_id, phase = await begun(world)
    step = f"{phase.stepid}/1"
    since = phase.time + timedelta(milliseconds=1)
    silent: dict[str, Any] = {"task": "wait", "since": since, "message": "10.0.0.9: no route to host"}
    await report(world, phase, **silent, state="started", code="node-unreachable", tries=3)
    await report(world, phase, node="worker1", task="prepare", state="started")
    running = await trace(world, operation_id)
    for open_span in ("operation", step, f"{step}/prepare/worker1"):
        assert running[open_span]["attributes"]["unfinished"] is True
        assert running[open_span]["status"] == {"code": 0}
    assert running["operation"]["parentSpanId"] == CALLER.span_id
    sent = read_traceparent(phase.traceparent)
    assert sent is not None
    assert (running[step]["traceId"], running[step]["spanId"]) == (CALLER.trace_id, sent.span_id)

    # The worker is killed and another one begins the task again: it is one span from the first beginning.
    first = running[f"{step}/prepare/worker1"]["startTimeUnixNano"]
    await report(world, phase, after_s=0.001, node="worker1", task="prepare", state="started")
    await report(world, phase, after_s=0.002, node="worker1", task="prepare", state="failed", code="apt-locked")
    await report(world, phase, node="worker2", task="prepare", state="progressed")
    world.twins.failing.add(PHASE)
    await world.twins.release()
    await world.reached(operation_id, "FAILED_TEMP")
    failed = await trace(world, operation_id)
    prepared = failed[f"{step}/prepare/worker1"]
    assert (prepared["startTimeUnixNano"], prepared["status"]["code"]) == (first, 2)
    assert (prepared["attributes"]["error.type"], prepared["service"]) == ("apt-locked", "mgmt-executor")
    assert failed[f"{step}/prepare/worker2"]["attributes"]["task.state"] == "cancelled"
    (wait,) = failed[step]["events"]
    assert (wait["name"], values(wait["attributes"])["wait.tries"]) == ("wait", "3")
    assert wait["timeUnixNano"] == str(int(since.timestamp() * 1000) * 10**6)

    world.twins.failing.clear()
    world.twins.waiting.add(PHASE)
    (await world.lcm("POST", f"/vnf_lcm_op_occs/{operation_id}/retry")).must(202)
    again = (await world.twins.has_asked(3))[-1]
    await report(world, again, node="worker1", task="prepare", state="finished", duration_s=0.001)
    await report(world, phase, node="worker1", task="prepare", state="progressed", message="late, of the first try")
    await world.twins.release()
    await world.reached(operation_id, "COMPLETED")
    ended = await trace(world, operation_id)
    assert [ended[f"{phase.stepid}/{each}"]["status"]["code"] for each in (1, 2)] == [2, 1]
    assert ended[f"{phase.stepid}/2"]["links"][0]["spanId"] == ended[step]["spanId"]
    tries = [ended[f"{phase.stepid}/{each}/prepare/worker1"] for each in (1, 2)]
    assert [values["attributes"]["task.state"] for values in tries] == ["failed", "finished"]
    assert not [span for span in ended.values() if "unfinished" in span["attributes"]]
    states = [values(event["attributes"])["operation.state"] for event in ended["operation"]["events"]]
    assert states == ["STARTING", "PROCESSING", "FAILED_TEMP", "PROCESSING", "COMPLETED"]
    stored = await world.store.get("vnf_lcm_op_occs", operation_id)
    assert stored is not None
    record = OccurrenceRecord.from_document(stored.body)
    made = whole_trace(record, await Progress(world.store).trace_of(record))
    assert {span.span_id for span in made} == {span["spanId"] for span in ended.values()}
    # No text that came from a request, a machine or an error.
    text = str(ended)
    for said in ("no route", "late, of"):
        assert said not in text
    (await world.call("GET", "/kubevnfm/v1/operations/absent/trace")).must(404)
