"""The cloud answers like the recorded real one: status, form and wording of 32 calls, replayed in the same order.

`facts.json` describes the real answers: method, status, content type, the shape of the body (keys and kinds
of values), the type and text of errors, the status and reason of stacks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from clouds.openstack_stand import Answer, Stand
from packages.openstack_templates import CLUSTER, CLUSTER_FILES, VERSION

FACTS: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "facts.json").read_text())
SHOWN_TO_EVERYONE = "OS-EXT-SRV-ATTR:host"
"""The only key that the lab adds on purpose: nodes are labelled with the host of their server."""

KINDS = {str: "text", int: "number", float: "number", bool: "boolean", type(None): "null"}


def differences(fact: Any, seen: Any, where: str = "body") -> Iterator[str]:
    """Yield how a body differs from a shape; ``any`` fits everything, an empty list fits every list."""
    if fact == "any":
        return
    if isinstance(fact, dict):
        if not isinstance(seen, dict):
            yield f"{where}: an object was seen on the real one, here {seen!r}"
            return
        if missing := fact.keys() - seen.keys():
            yield f"{where}: lacks {sorted(missing)}"
        if extra := seen.keys() - fact.keys() - {SHOWN_TO_EVERYONE}:
            yield f"{where}: has {sorted(extra)} on top"
        for key in fact.keys() & seen.keys():
            yield from differences(fact[key], seen[key], f"{where}.{key}")
    elif isinstance(fact, list):
        if not isinstance(seen, list):
            yield f"{where}: a list was seen on the real one, here {seen!r}"
        elif fact and not seen:
            yield f"{where}: is empty"
        elif fact and seen:
            yield from differences(fact[0], seen[0], f"{where}[0]")
    elif fact in ("html", "empty"):
        if not isinstance(seen, str) or seen.startswith("<html>") != (fact == "html"):
            yield f"{where}: {fact} was seen on the real one, here {seen!r}"
    elif KINDS.get(type(seen)) != fact:
        yield f"{where}: {fact} was seen on the real one, here {seen!r}"


class Replay:
    """Repeats the calls of the recording, and stores each answer under its label."""

    def __init__(self, stand: Stand) -> None:
        self.stand = stand
        self.answers: dict[str, Answer] = {}

    async def call(self, label: str, method: str, path: str, body: Any = None) -> Answer:
        assert FACTS[label]["method"] == method
        answer = self.answers[label] = await self.stand.call(method, path, body)
        return answer

    async def run(self) -> None:
        stand, heat = self.stand, self.stand.heat
        request: dict[str, Any] = {
            "stack_name": "rec",
            "template": CLUSTER,
            "files": CLUSTER_FILES,
            "parameters": {"workers": 2},
            "timeout_mins": 10,
        }
        held = stand.faults.add(part="nova", verb="server_boot", effect="hang")
        made = await self.call("stack-create", "POST", f"{heat}/stacks", request)
        path = made.headers["Location"].removeprefix(stand.base_url)
        await self.call("stack-show-in-progress", "GET", path)
        await self.call("stack-create-same-name", "POST", f"{heat}/stacks", request)
        stand.faults.remove(held.fault_id)
        await stand.settled(path)
        await self.call("stack-show-complete", "GET", path)
        await self.call("stack-show-by-name", "GET", f"{heat}/stacks/rec")
        await self.call("stack-list-by-name", "GET", f"{heat}/stacks?name=rec")
        nested = await self.call("resources-nested", "GET", f"{path}/resources?nested_depth=5")
        await self.call("resources-flat", "GET", f"{path}/resources")
        await self.call("resource-show-server", "GET", f"{path}/resources/masterNode")
        await self.call("resource-show-group", "GET", f"{path}/resources/worker_group")
        await self.call("outputs", "GET", f"{path}/outputs/worker_ips")
        for part in ("template", "files", "environment"):
            await self.call(f"stack-{part}", "GET", f"{path}/{part}")
        ids = {r["resource_name"]: r["physical_resource_id"] for r in nested.body["resources"]}
        await self.call("nova-server", "GET", f"/compute/v2.1/servers/{ids['masterNode']}")
        await self.call("neutron-port", "GET", f"/network/v2.0/ports/{ids['masterNode_port']}")
        await self.call("cinder-volume", "GET", f"{stand.cinder}/volumes/{ids['storage']}")
        because = {"mark_unhealthy": True, "resource_status_reason": "because"}
        await self.call("resource-mark-unhealthy", "PATCH", f"{path}/resources/masterNode", because)
        held = stand.faults.add(part="nova", verb="server_boot", effect="hang")
        await self.call("stack-patch", "PATCH", path, {"parameters": {"workers": 3}})
        await self.call("stack-show-updating", "GET", path)
        stand.faults.remove(held.fault_id)
        await stand.settled(path)
        await self.call("stack-show-updated", "GET", path)
        await self.call("resources-nested-updated", "GET", f"{path}/resources?nested_depth=5")
        await self.call("stack-delete", "DELETE", path)
        await stand.settled(path)
        await self.call("stack-show-deleted-by-id", "GET", path)
        await self.call("stack-show-deleted-by-name", "GET", f"{heat}/stacks/rec")
        await self.call("stack-delete-again", "DELETE", path)
        bad = {**request, "stack_name": "bad"}
        unknown_flavor = {**bad, "parameters": {"flavor": "nosuchflavor"}}
        await self.call("stack-create-unknown-flavor", "POST", f"{heat}/stacks", unknown_flavor)
        unknown_type = {**bad, "template": VERSION + 'resources: {a: {type: "OS::No::Such"}}'}
        await self.call("stack-create-unknown-type", "POST", f"{heat}/stacks", unknown_type)
        impossible = {**bad, "parameters": {"flavor": "m1.impossible", "workers": 0}}
        made = await self.call("stack-create-impossible", "POST", f"{heat}/stacks", impossible)
        path = made.headers["Location"].removeprefix(stand.base_url)
        await stand.settled(path)
        await self.call("stack-show-failed", "GET", path)
        await self.call("resources-failed", "GET", f"{path}/resources?nested_depth=5")
        await self.call("events-failed", "GET", f"{path}/events")


async def test_every_recorded_call_is_answered_as_the_real_cloud_does(stand: Stand) -> None:
    replay = Replay(stand)
    await replay.run()
    assert replay.answers.keys() == FACTS.keys()
    wrong: list[str] = []
    for label, fact in FACTS.items():
        answer = replay.answers[label]
        if answer.status != fact["status"]:
            wrong.append(f"{label}: {fact['status']} was seen on the real one, here {answer}")
            continue
        if fact["content_type"] and answer.content_type != fact["content_type"]:
            wrong.append(f"{label}: content type {answer.content_type}")
        if fact["location"] != ("Location" in answer.headers):
            wrong.append(f"{label}: Location {answer.headers}")
        wrong += [f"{label}: {one}" for one in differences(fact["shape"], answer.body)]
        if "error_type" in fact:
            assert answer.body["error"]["type"] == fact["error_type"], label
            assert answer.body["error"]["message"] == fact["message"], label
        if "stack_status" in fact:
            assert answer.body["stack"]["stack_status"] == fact["stack_status"], label
            assert answer.body["stack"]["stack_status_reason"] == fact["stack_status_reason"], label
    assert not wrong, "\n".join(wrong)


async def test_members_of_a_group_are_listed_as_the_real_cloud_lists_them(stand: Stand) -> None:
    path = (await stand.begin_stack("rec", CLUSTER, files=CLUSTER_FILES)).removeprefix(stand.base_url)
    await stand.settled(path)
    listed = await stand.resources(path)
    members = [r for r in listed if r["resource_type"] == "worker.yaml"]
    assert len(members) == 2
    for member in members:
        assert len(member["resource_name"]) == 12
        assert member["parent_resource"] == "worker_group"
        nested = {link["rel"]: link["href"] for link in member["links"]}["nested"]
        assert nested.endswith(f"/{member['physical_resource_id']}")
        inside = [r for r in listed if r.get("parent_resource") == member["resource_name"]]
        assert {r["resource_name"] for r in inside} == {"CP", "VDU"}


@pytest.mark.parametrize("label", ["stack-show-complete", "resource-show-server", "neutron-port"])
def test_a_fact_is_not_met_by_just_anything(label: str) -> None:
    assert list(differences(FACTS[label]["shape"], {"stack": {}, "resource": {}, "port": {}}))
