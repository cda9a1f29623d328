"""The lines about an operation: its begin, its end, and why it has failed."""

from __future__ import annotations

from pathlib import Path

from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs
from worlds.lcm_world import JSON_HEADERS, lcm_world, sample_request

CREATE = "infra.openstack.create_resources"


async def test_an_operation_has_a_begin_and_each_end_in_the_log(tmp_path: Path) -> None:
    async with lcm_world(tmp_path) as world:
        await world.sample()
        instance_id = await world.create()
        with capture_logs([merge_contextvars]) as lines:
            world.twins.failing.add(CREATE)
            path, body = f"/vnf_instances/{instance_id}/instantiate", sample_request("vm", "instantiate")
            begun = await world.lcm("POST", path, body, headers={**JSON_HEADERS, "X-Request-ID": "first"})
            operation_id = begun.must(202).headers["Location"].rpartition("/")[2]
            await world.reached(operation_id, "FAILED_TEMP")
            await world.bus.quiet()
            world.twins.failing.clear()
            headers = {**JSON_HEADERS, "X-Request-ID": "second"}
            (await world.lcm("POST", f"/vnf_lcm_op_occs/{operation_id}/retry", headers=headers)).must(202)
            await world.reached(operation_id, "COMPLETED")
            await world.bus.quiet()
    said = [line for line in lines if line["event"].startswith("operation_")]
    assert [(line["event"], line.get("state"), line["log_level"], line["request_id"]) for line in said] == [
        ("operation_begun", None, "info", "first"),
        ("operation_changed", "PROCESSING", "info", "first"),
        ("operation_ended", "FAILED_TEMP", "error", "first"),
        ("operation_changed", "PROCESSING", "info", "second"),
        ("operation_ended", "COMPLETED", "info", "second"),
    ]
    facts = {"operation_id": operation_id, "operation": "INSTANTIATE", "vnf_instance_id": instance_id}
    assert all(facts.items() <= line.items() for line in said)
    failed, completed = said[2], said[4]
    assert (failed["code"], completed["code"], completed["detail"]) == ("stack-failed", None, None)
    assert "create_resources" in failed["detail"]
    assert completed["duration_s"] >= failed["duration_s"] >= 0
