"""``/multicloud/v1/vnf_instances/{id}/events`` (multicloud.md MC-054)."""

from __future__ import annotations

from pathlib import Path

import pytest
from kubevnfm_lcm_api.notifications import event_feed
from kubevnfm_lcm_api.notifications.http import events as http_events
from worlds.event_stream import Stream, watching
from worlds.multicloud_world import VNFS, a_gateway, a_pod


async def until(stream: Stream, name: str) -> list[str]:
    """Return the names of the events up to the first one of this name."""
    heard = [(await stream.event())["event"]]
    while heard[-1] != name:
        heard.append((await stream.event())["event"])
    return heard


async def test_progress_and_changes_are_heard_until_the_vnf_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MC-054, and its bad input."""
    async with a_gateway(tmp_path) as gateway:
        world = gateway.world
        world.twins.waiting.add("infra.k8s.apply_objects")
        vnf_id = (await gateway.bring_up(headers={"Prefer": "wait=0"})).must(202).json["vnf_id"]
        events = f"{VNFS}/{vnf_id}/events"
        await world.twins.has_asked(1)
        async with watching(world, events) as stream:
            await world.bus.publish(a_pod("another", "other"))
            await world.bus.publish(a_pod(vnf_id, "a"))
            placed = await stream.event()
            assert (placed["event"], placed["data"]["data"]["name"]) == ("infra.placement.changed", "a")
            await world.twins.release()
            heard = await until(stream, "lcm.operation.changed")
            assert "lcm.step.changed" in heard

        # Events that no stream was open for come first; an unknown place is reported.
        world.twins.waiting.clear()
        async with watching(world, events, after=placed["id"]) as stream:
            assert "lcm.operation.changed" in await until(stream, "lcm.operation.changed")
        async with watching(world, events, after="never-given") as stream:
            missed = await stream.event()
            assert (missed["event"], missed["data"]) == ("reset", {"lastEventId": "never-given"})
            monkeypatch.setattr(event_feed, "_MOST_WATCHERS", 1)
            refused = await gateway.call("GET", events, Accept="text/event-stream")
            refused.problem(429)
            assert int(refused.headers["Retry-After"]) > 0
            await world.until(lambda: [each.state for each in world.changes][-1] == "COMPLETED")
            monkeypatch.undo()
            with monkeypatch.context() as short:
                short.setattr(http_events, "_HEARTBEAT_S", 0.01)
                async with watching(world, events) as other:
                    assert await other.block() == [": alive"]
                    world.store.is_down = True
                    # No second answer follows in the middle of the stream: the watcher connects again.
                    with pytest.raises(AssertionError, match=r"^the stream ended after \[\]$"):
                        await until(other, "no such event")
                    world.store.is_down = False
            (await gateway.call("DELETE", f"{VNFS}/{vnf_id}")).must(204)
            assert await until(stream, "lcm.instance.deleted")
            with pytest.raises(AssertionError, match="the stream ended"):
                await stream.block()
        (await gateway.call("GET", events)).problem(404)
        of_sol = await world.create("cnf")
        (await gateway.call("GET", f"{VNFS}/{of_sol}/events")).problem(404)
        (await gateway.call("GET", f"{events}?since=1")).problem(400)
        (await gateway.call("GET", events, Accept="application/json")).problem(406)
