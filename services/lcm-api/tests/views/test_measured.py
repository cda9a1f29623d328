"""PM jobs and thresholds as people list them: the newest first, by VNF instance, with their last values."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from worlds.lcm_world import World, lcm_world
from worlds.pm_documents import METRIC, store_job, store_threshold


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with lcm_world(tmp_path) as running:
        yield running


async def view(world: World, path: str) -> Any:
    return (await world.call("GET", f"/kubevnfm/v1/{path}")).must(200).json


async def ids(world: World, path: str) -> list[str]:
    return [each["id"] for each in (await view(world, path))["items"]]


async def test_jobs_are_listed_with_their_state_and_shown_with_their_last_values(world: World) -> None:
    """API-252, API-253."""
    await world.sample()
    web, other = await world.create(vnfInstanceName="web"), await world.create()
    await store_job(world.store, "job-1", web, other, vnfInstanceName="web")
    await store_job(world.store, "job-2", other, failures=3, error="No answer since yesterday: refused")
    await store_job(world.store, "job-3", other, dueAt="")
    await store_job(world.store, "job-4", other, sources=[])
    await store_job(world.store, "job-5", other, sources=["metrics.k8s.io"], error="no metrics-server")
    listed = {each["id"]: each for each in (await view(world, "pm-jobs"))["items"]}
    assert {key: each["state"] for key, each in listed.items()} == {
        "job-1": "MEASURING", "job-2": "WAITING", "job-3": "ENDED", "job-4": "RECEIVING",
        "job-5": "WAITING",
    }  # fmt: skip
    assert listed["job-2"]["text"] == "No answer since yesterday: refused (3 times in a row)"
    assert listed["job-5"]["text"] == "no metrics-server"
    row = listed["job-1"]
    assert (row["vnfInstanceName"], row["vnfInstanceIds"]) == ("web", [web, other])
    assert row["performanceMetric"] == [METRIC, "VirtualisedComputeResource"]
    assert (row["reportCount"], row["lastReport"]["end"]) == (1, "2026-11-28T10:02:00.000Z")
    assert "word" not in str(listed), "no login of a callback is shown"
    assert await ids(world, f"pm-jobs?vnfInstanceId={web}") == ["job-1"]
    assert sorted(await ids(world, f"pm-jobs?vnfInstanceId={other}")) == sorted(listed)
    assert await ids(world, "pm-jobs?id=job-3,job-9") == ["job-3"]
    first = await view(world, "pm-jobs?limit=3")
    rest = (await world.call("GET", first["next"].removeprefix(world.url))).must(200).json
    assert {each["id"] for each in [*first["items"], *rest["items"]]} == listed.keys()
    one = await view(world, "pm-jobs/job-1")
    assert {name: one[name] for name in row} == row
    values = [(each["subObjectInstanceId"], each["value"], each["at"][14:16]) for each in one["lastValues"]]
    assert values == [("web-0", 30.0, "03"), ("web-1", 21.0, "02")], "the newest of each, also without a report"
    assert one["gap"]["reason"] == "no value of web-1"
    address = one["reports"][-1]["href"].removeprefix(world.url)
    report = (await world.call("GET", address, headers={"Version": "2.2.0"})).must(200).json
    assert [len(each["performanceValues"]) for each in report["entries"]] == [2, 2]
    (await world.call("GET", "/kubevnfm/v1/pm-jobs/job-9")).problem(404)
    (await world.call("GET", "/kubevnfm/v1/pm-jobs?vnfInstance=x")).problem(400)


async def test_thresholds_are_listed_with_their_side(world: World) -> None:
    """API-254."""
    await world.sample()
    web = await world.create(vnfInstanceName="web")
    await store_threshold(world.store, "threshold-1", web, vnfInstanceName="web")
    await store_threshold(world.store, "threshold-2", "gone", sides=[], events=0, dueAt="")
    listed = {each["id"]: each for each in (await view(world, "thresholds"))["items"]}
    row, ended = listed["threshold-1"], listed["threshold-2"]
    found = {
        name: row[name] for name in ("vnfInstanceName", "side", "up", "down", "crossings", "thresholdValue", "state")
    }
    assert found == {
        "vnfInstanceName": "web", "side": "UP", "up": 1, "down": 1, "crossings": 3, "thresholdValue": 80.0, "state": "MEASURING",
    }  # fmt: skip
    assert row["automation"] == {"aspectId": "web", "onUp": "SCALE_OUT"}
    assert (ended["state"], "side" in ended, "vnfInstanceName" in ended) == ("ENDED", False, False)
    assert await ids(world, f"thresholds?vnfInstanceId={web}") == ["threshold-1"]
    one = await view(world, "thresholds/threshold-1")
    assert [(each["subObjectInstanceId"], each["side"]) for each in one["sides"]] == [
        ("web-1", "UP"),
        ("web-0", "DOWN"),
    ]
    (await world.call("GET", "/kubevnfm/v1/thresholds/none")).problem(404)
