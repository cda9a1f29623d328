"""The metrics of operations, steps and notifications, and of what is stored, as Prometheus reads them of a gateway."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from kubevnfm_kit.clock import SystemClock
from kubevnfm_lcm_api.measurement_sources import SourceStates
from kubevnfm_store.query import Exists, Query
from patience import until_true
from servers.subscriber import Subscriber
from worlds.lcm_world import World, lcm_world, sample_request

METRICS = "/kubevnfm/v1/metrics"
OPENMETRICS = {"Accept": "application/openmetrics-text;version=1.0.0"}
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with lcm_world(tmp_path, allowed_networks="127.0.0.0/8", test_callbacks=False) as running:
        await running.sample()
        yield running


async def lines(world: World) -> set[str]:
    return set((await world.call("GET", METRICS)).must(200).raw.decode().splitlines())


async def test_operations_are_counted_by_outcome_and_cause_and_steps_by_kind(world: World) -> None:
    for state in ("COMPLETED", "FAILED", "ROLLED_BACK", "PROCESSING"):
        await world.an_operation_in(state)
    states = SourceStates(world.store, SystemClock())
    for address in ("http://prometheus:9090", "metrics.k8s.io/vim-1", "metrics.k8s.io/vim-2"):
        await states.failed(address, "no route")
    shown = await lines(world)
    of = 'operation="INSTANTIATE"'
    assert {
        f'kubevnfm_operations_total{{cause="none",{of},outcome="COMPLETED"}} 1.0',
        f'kubevnfm_operations_total{{cause="none",{of},outcome="ROLLED_BACK"}} 1.0',
        f"kubevnfm_operation_seconds_count{{{of}}} 3.0",
        f"kubevnfm_operations_running{{{of}}} 1.0",
        'kubevnfm_operations_running{operation="SCALE"} 0.0',
        "kubevnfm_operations_failed_temp 0.0",
        'kubevnfm_steps_total{kind="create_resources",outcome="failed"} 2.0',
        'kubevnfm_steps_total{kind="create_resources",outcome="done"} 1.0',
        'kubevnfm_steps_total{kind="create_resources",outcome="undone"} 1.0',
        'kubevnfm_step_seconds_count{kind="create_resources"} 4.0',
        'kubevnfm_vnf_instances{state="INSTANTIATED"} 1.0',
        'kubevnfm_vnf_instances{state="NOT_INSTANTIATED"} 3.0',
        "kubevnfm_vnf_instances_drifted 0.0",
        'kubevnfm_vnf_packages{state="ONBOARDED"} 1.0',
        'kubevnfm_alarms_open{severity="CRITICAL"} 0.0',
        'kubevnfm_measurement_sources_away{source="named"} 1.0',
        'kubevnfm_measurement_sources_away{source="cluster"} 2.0',
        'kubevnfm_measurement_sources_away{source="site"} 0.0',
    } <= shown
    # The table of causes decides which: "no host" of Heat has a row.
    causes = [re.findall(r'cause="([^"]+)",.*outcome="(\w+)"\} (\S+)', line) for line in shown]
    failed = sorted(found[0][1:] for found in causes if found and found[0][0] != "none")
    assert failed == [("FAILED", "1.0"), ("FAILED_TEMP", "2.0")]
    (oldest,) = [float(line.split()[1]) for line in shown if line.startswith("kubevnfm_step_oldest_seconds ")]
    assert 0.0 < oldest < 300.0
    assert not any(TRACE in line for line in shown)


async def test_the_trace_of_a_caller_is_the_exemplar_of_its_request_its_operation_and_its_steps(world: World) -> None:
    instance_id = await world.create()
    traced = {"Version": "2.0.0", "traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}
    path = f"/vnflcm/v2/vnf_instances/{instance_id}/instantiate"
    accepted = (await world.call("POST", path, sample_request("vm", "instantiate"), headers=traced)).must(202)
    await world.reached(accepted.headers["Location"].rsplit("/", 1)[1], "COMPLETED")
    text = (await world.call("GET", METRICS, headers=OPENMETRICS)).must(200).raw.decode()
    with_trace = {line.partition("_bucket")[0] for line in text.splitlines() if f'# {{trace_id="{TRACE}"}}' in line}
    assert with_trace == {"kubevnfm_http_request_seconds", "kubevnfm_operation_seconds", "kubevnfm_step_seconds"}


async def test_notifications_are_counted_and_those_that_wait_are_shown(world: World) -> None:
    async with Subscriber.listening() as subscriber:
        (await world.lcm("POST", "/subscriptions", {"callbackUri": subscriber.uri})).must(201)
        subscriber.refuses = 1
        instance_id = await world.create()

        async def waits() -> bool:
            return 'kubevnfm_notifications_total{outcome="failed"} 1.0' in await lines(world)

        await until_true(waits)
        await subscriber.has_heard(instance_id, 1)

        async def is_delivered() -> bool:
            return 'kubevnfm_notifications_total{outcome="delivered"} 1.0' in await lines(world)

        await until_true(is_delivered)
    assert 'kubevnfm_notifications_total{outcome="dropped"} 0.0' in await lines(world)


async def test_what_waits_for_a_subscriber_is_shown_with_its_age(world: World) -> None:
    (await world.lcm("POST", "/subscriptions", {"callbackUri": "http://127.0.0.1:9/"})).must(201)
    await world.create()

    async def fails() -> bool:
        return bool(await world.store.find("subscriptions", Query(Exists("failingSince"))))

    await until_true(fails)
    shown = await lines(world)
    assert {"kubevnfm_notifications_pending 1.0", "kubevnfm_subscriptions_failing 1.0"} <= shown
    (oldest,) = [float(line.split()[1]) for line in shown if line.startswith("kubevnfm_notifications_oldest_seconds ")]
    assert 0.0 < oldest < 300.0
