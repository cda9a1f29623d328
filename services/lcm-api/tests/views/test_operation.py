"""Our own view of an operation: its plan as a graph, what it waits for, and how long it will still take."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yarl
from kubevnfm_clients.multicloud.links import VirtualLink
from kubevnfm_events import Envelope, Message
from kubevnfm_events.mgmt import TaskProgressed
from kubevnfm_kit.traces import TraceContext, read_traceparent
from kubevnfm_lcm_api.lifecycle.core.occurrence import OccurrenceRecord
from kubevnfm_lcm_api.views.earlier_runs import Run, estimated, usual_s
from kubevnfm_lcm_api.views.waits import waits_of
from kubevnfm_store.query import Query, by
from servers.subscriber import Subscriber
from worlds.lcm_builders import LINK
from worlds.lcm_world import JSON_HEADERS, World, lcm_world, sample_request
from worlds.pm_documents import store_job

PAGE = Path(__file__).parents[4] / "docs/views.md"
CURL = ArgumentParser()
CURL.add_argument("-sN", "-s", "-N", action="store_true")
CURL.add_argument("-X", dest="method", default="GET")
CURL.add_argument("-H", dest="headers", action="append", default=[])
CURL.add_argument("-d", dest="body")
CURL.add_argument("url")
PHASE = "mgmt.run_phase"
T0 = datetime(2026, 11, 27, 10, tzinfo=UTC)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with lcm_world(tmp_path, allowed_networks="127.0.0.0/8") as running:
        await running.sample("cluster")
        yield running


async def view(world: World, operation_id: str) -> Any:
    return (await world.call("GET", f"/kubevnfm/v1/operations/{operation_id}")).must(200).json


async def report(world: World, command: Envelope[Message], **news: Any) -> None:
    await world.bus.publish(command.follow_up(TaskProgressed(**news), source="/kubevnfm/mgmt-executor"))
    await world.bus.quiet()


async def test_an_operation_is_shown_with_its_plan_its_waits_and_the_time_left(world: World) -> None:
    first = await world.instantiate(await world.create("cluster"), "cluster")
    await world.reached(first, "COMPLETED")
    ended = await view(world, first)
    assert {"estimate", "cause"}.isdisjoint(ended)
    assert (ended["waits"], ended["next"], ended["endTime"]) == ([], [], ended["stateEnteredTime"])

    world.twins.waiting.add(PHASE)
    begun = len(world.twins.commands)
    caller = TraceContext("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", is_sampled=False)
    path, body = f"/vnf_instances/{await world.create('cluster')}/instantiate", sample_request("cluster", "instantiate")
    asked = await world.lcm("POST", path, body, headers={**JSON_HEADERS, "traceparent": str(caller)})
    operation_id = asked.must(202).headers["Location"].rpartition("/")[2]
    phase = (await world.twins.has_asked(begun + 2))[-1]
    shown = await view(world, operation_id)
    # Each operation without a caller's trace has one of its own.
    traces = [read_traceparent(each.traceparent) for each in world.twins.commands]
    found = {each.trace_id: each.is_sampled for each in traces if each}
    assert found == {ended["traceId"]: True, shown["traceId"]: False, caller.trace_id: False}
    assert len({each.span_id for each in traces if each}) == len(world.twins.commands)
    plan = {step["name"]: step for step in shown["steps"]}
    running = plan[phase.stepid]
    assert (running["state"], running["attempt"]) == ("asked", 1)
    assert [plan[name]["state"] for name in running["after"]] == ["done"] * len(running["after"])
    assert running["usualS"] >= 0
    assert shown["estimate"]["fromRuns"] == 1
    assert (shown["waits"], shown["isReversible"]) == ([], True)

    since = datetime(2026, 11, 27, 10, tzinfo=UTC)
    reason, silent = "10.0.0.9: no route to host", {"since": since, "code": "node-unreachable", "tries": 3}
    said = f"waiting since 2026-11-27T10:00:00.000Z: {reason}"
    await report(world, phase, task="wait", state="started", message=said, **silent)
    await report(world, phase, node="worker1", task="prepare", state="started")
    await report(world, phase, node="worker2", task="prepare", state="progressed", message="waits for the lock of dpkg")
    said_at = (await view(world, operation_id))["waits"][1]["since"]
    await report(world, phase, node="worker2", task="prepare", state="progressed", message="waits for the lock of dpkg")
    await report(world, phase, node="worker3", task="join", state="finished", message="joined", duration_s=2.5)
    stuck = ["Deployment default/web: 0 of 2 ready", "Service default/web: no address"]
    ready = {"task": "ready", "state": "progressed", "message": stuck[1], "obstacles": stuck}
    await report(world, phase, **ready)
    before = [(wait["text"], wait["since"]) for wait in (await view(world, operation_id))["waits"][2:]]
    later = ["Deployment default/web: 1 of 2 ready", stuck[1]]
    await report(world, phase, **{**ready, "message": later[0], "obstacles": later})
    shown = await view(world, operation_id)
    found = {wait["text"]: wait["since"] for wait in shown["waits"][2:]}
    assert (list(found), [text for text, _ in before]) == ([stuck[1], later[0]], stuck)
    assert found[stuck[1]] == before[1][1] < found[later[0]]
    del shown["waits"][2:]
    of_step = {"step": phase.stepid}
    assert shown["waits"] == [
        {
            **of_step,
            "task": "wait",
            "text": reason,
            "since": "2026-11-27T10:00:00.000Z",
            "lastError": reason,
            "code": "node-unreachable",
            "attempts": 3,
        },
        {**of_step, "node": "worker2", "task": "prepare", "text": "waits for the lock of dpkg", "since": said_at},
    ]
    tasks = {node["name"]: node["tasks"] for node in shown["nodes"]}
    assert set(tasks) == {"worker1", "worker2", "worker3"}
    assert (tasks["worker3"][0]["state"], tasks["worker3"][0]["durationS"]) == ("finished", 2.5)
    assert shown["cause"]["isWait"]
    listed = (await world.call("GET", "/kubevnfm/v1/operations?state=open")).must(200).json["items"]
    for name in ("id", "cause", "next", "vnfInstanceName", "startTime", "_links"):
        assert listed[0].get(name) == shown.get(name), f"{name} of the list and of the view"

    again = replace(phase, attempt=phase.attempt + 1)
    await report(world, again, **{**ready, "message": later[0], "obstacles": later})
    (task,) = await world.store.find("operation_progress", Query(by(operationId=operation_id, task="ready")))
    began = task.body["updatedAt"]
    assert (task.body["saidAt"], task.body["obstacleTimes"]) == (began, [began, began]), (
        "those of another try count no more"
    )

    await world.twins.release()
    await world.reached(operation_id, "COMPLETED")
    assert (await view(world, operation_id))["waits"] == []


async def test_an_operation_without_earlier_runs_has_no_estimate(world: World) -> None:
    world.twins.waiting.add(PHASE)
    operation_id = await world.instantiate(await world.create("cluster"), "cluster")
    await world.twins.has_asked(2)
    shown = await view(world, operation_id)
    assert "estimate" not in shown
    assert all("usualS" not in step for step in shown["steps"])
    for name in ("lost", "x" * 3000, "%00", "..%2F..", "$where"):
        (await world.call("GET", f"/kubevnfm/v1/operations/{name}")).problem(404)


def a_step(step_id: str, kind: str, *, began: float | None = None, took: float | None = None, attempt: int = 1) -> Any:
    state = "waiting" if began is None else "asked" if took is None else "done"
    step = {"id": step_id, "kind": kind, "arguments": {}, "timeoutS": 60, "state": state}
    if began is None:
        return step | {"attempt": 0}
    step |= {"attempt": attempt, "startedAt": (T0 + timedelta(seconds=began)).isoformat()}
    return step | ({"endedAt": (T0 + timedelta(seconds=began + took)).isoformat()} if took is not None else {})


def an_operation(*steps: Any, vnfd_id: str = "a", state: str = "PROCESSING", lasted: float = 0.0) -> Any:
    return {
        "id": "1", "vnfInstanceId": "i", "operation": "INSTANTIATE", "operationState": state,
        "startTime": T0.isoformat(), "stateEnteredTime": (T0 + timedelta(seconds=lasted)).isoformat(),
        "internal": {"apiVersion": "v2", "plan": "p", "steps": list(steps), "draft": {}, "facts": {"vnfdId": vnfd_id}, "isInternal": False},
    }  # fmt: skip


def a_run(*, create: float, nodes: float, vnfd_id: str = "a", attempt: int = 1) -> Run | None:
    """Return a run that created a stack, then joined two nodes side by side, then verified for 10 s."""
    steps = (
        a_step("create", "create_resources", began=0, took=create, attempt=attempt),
        a_step("join/1", "join", began=create, took=nodes / 2),
        a_step("join/2", "join", began=create, took=nodes),
        a_step("verify", "verify", began=create + nodes, took=10),
    )
    return Run.from_document(an_operation(*steps, vnfd_id=vnfd_id, state="COMPLETED", lasted=create + nodes + 10))


RUNS = [run for run in (a_run(create=100, nodes=60), a_run(create=120, nodes=40), a_run(create=140, nodes=80)) if run]
CREATED = a_step("create", "create_resources", began=0, took=100)


@pytest.mark.parametrize(
    ("steps", "after_s", "remaining_s"),
    [
        ([a_step("create", "create_resources", began=0)], 30, 140),  # of 170, with the steps that the stack is to add
        ([a_step("create", "create_resources", began=0)], 900, 70),  # late, and what comes behind it is not shorter
        ([CREATED, a_step("join/1", "join", began=100), a_step("verify", "verify")], 120, 50),
        ([CREATED, a_step("join/1", "join", began=100, took=20), a_step("join/2", "join", began=100)], 150, 20),
        ([CREATED, a_step("join/1", "join", began=100, took=60), a_step("verify", "verify", began=160)], 164, 6),
        ([CREATED, a_step("join/1", "join", began=100, took=60), a_step("verify", "verify", began=160)], 999, None),
    ],
)
def test_the_time_left_is_what_earlier_runs_needed_from_there(
    steps: list[Any], after_s: float, remaining_s: float | None
) -> None:
    record = OccurrenceRecord.from_document(an_operation(*steps))
    found = estimated(RUNS, record, T0 + timedelta(seconds=after_s))
    assert (found and round(found.remaining_s)) == remaining_s
    assert found is None or found.runs == 3


def test_runs_of_the_same_vnfd_are_compared_first_and_retried_ones_never() -> None:
    assert a_run(create=100, nodes=60, attempt=2) is None
    record = OccurrenceRecord.from_document(
        an_operation(a_step("create", "create_resources", began=0), vnfd_id="large")
    )
    larger = [run for run in (a_run(create=500, nodes=500, vnfd_id="large"),) if run]
    found = estimated([*RUNS, *larger], record, T0)
    assert found is not None
    assert (found.remaining_s, found.runs) == (1010, 1)
    assert usual_s([*RUNS, *larger], record) == {"create": 500}
    assert usual_s(RUNS, record) == {"create": 120}
    assert estimated([], record, T0) is None
    for state in ("FAILED_TEMP", "ROLLING_BACK", "COMPLETED"):
        resting = OccurrenceRecord.from_document(an_operation(CREATED, state=state))
        assert estimated(RUNS, resting, T0) is None


def test_of_very_many_waits_the_longest_are_listed_and_the_rest_counted() -> None:
    record = OccurrenceRecord.from_document(an_operation(a_step("join", "join", began=0)))
    tasks = [
        {
            "step": "join", "attempt": 1, "node": f"worker{node}", "task": "ready", "state": "progressed", "message": "0",
            "obstacles": [f"Pod {number}: no address" for number in range(10)],
            "obstacleTimes": [(T0 + timedelta(seconds=100 - node, milliseconds=number)).isoformat() for number in range(10)],
        }
        for node in range(20)
    ]  # fmt: skip
    found = waits_of(record, tasks)
    assert (len(found["waits"]), found["moreWaits"]) == (100, 100)
    nodes = [wait["node"] for wait in found["waits"]]
    assert nodes == [f"worker{node}" for node in range(19, 9, -1) for _ in range(10)]
    assert list(waits_of(record, tasks[:10])) == ["waits"], "a hundred are listed"


async def test_the_examples_of_the_page_about_views_work(world: World) -> None:
    operation_id = await world.instantiate(await world.create("cluster"), "cluster")
    await world.reached(operation_id, "COMPLETED")
    shown = await view(world, operation_id)
    world.links.by_id["link-1"] = VirtualLink.model_validate(LINK)
    world.regions.add("op/edge", "vim-1")
    async with Subscriber.listening() as subscriber:
        subscription = (await world.lcm("POST", "/subscriptions", {"callbackUri": subscriber.uri})).must(201).json
    await store_job(world.store, "job-1", shown["vnfInstanceId"])
    values = {
        "$URL": world.url,
        "$JOB": "job-1",
        "$INSTANCE": shown["vnfInstanceId"],
        "$LINK": "link-1",
        "$SUBSCRIPTION": subscription["id"],
        "$OPERATION": operation_id,
        "$VNF": shown["vnfInstanceId"],
        "$SEQUENCE": shown["sequence"],
        "$VIM": "vim-1",
        "$PACKAGE": (await world.packages("GET")).must(200).json[0]["id"],
    }
    text = PAGE.read_text(encoding="utf-8").replace("\\\n", " ")
    commands = [line.strip() for line in text.splitlines() if line.startswith("    curl ")]
    assert len(commands) > 8
    for command in commands:
        for name, value in values.items():
            command = command.replace(name, value)
        given = CURL.parse_args(shlex.split(command)[1:])
        assert "$" not in given.url, "a reader does not know this variable"
        headers = {"Accept": "*/*", **dict(header.split(": ", 1) for header in given.headers)}
        url = yarl.URL(given.url, encoded=True)
        async with world.session.request(given.method, url, headers=headers, data=given.body) as response:
            assert response.status == 200, (command, await response.text())
            assert await response.content.readline(), command
