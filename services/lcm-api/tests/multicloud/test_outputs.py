"""Outputs over HTTP: in the instance, in SOL003 and in events, and each line of bad input (multicloud.md MC-138)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
import pytest_asyncio
from kubevnfm_bus.port import Ack, Delivery, Verdict
from kubevnfm_csar.artifact_order import ArtifactOrder, OrderedArtifact
from kubevnfm_events import Envelope
from kubevnfm_events.objects import ApplyObjects, ObjectsApplied, ObjectsReplaced, ReplaceObjects
from kubevnfm_events.outputs import ObjectOutputsChanged, OutputsChanged, OutputsRead
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_lcm_api.lifecycle.containers.outputs import wanted_outputs
from kubevnfm_lcm_api.lifecycle.core.outputs import KEY
from kubevnfm_secrets import hide
from packages.package_variants import variant
from patience import until_true
from worlds.lcm_builders import ANSWERS
from worlds.lcm_world import Answer, World, lcm_world

VNFS = "/multicloud/v1/vnf_instances"
FOLDER = "Files/kubernetes"
ORDER = f"{FOLDER}/artifact-order.yaml"
MAP = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {mode: x}}\n"
SECRET = "{apiVersion: v1, kind: Secret, metadata: {name: b}}\n"
FROM_ORDER = "{object: {kind: ConfigMap, name: a}, jsonpath: data.mode}"
FILES = {
    ORDER: f"artifacts: [{{file: a.yaml}}, {{file: b.yaml}}]\noutputs:\n  mode: {FROM_ORDER}\n  other: {FROM_ORDER}\n",
    f"{FOLDER}/a.yaml": MAP,
    f"{FOLDER}/b.yaml": SECRET,
}
A: Mapping[str, Any] = {"kind": "ConfigMap", "name": "a"}


def an_output(jsonpath: str = "data.mode", **of: Any) -> dict[str, Any]:
    return {"object": {**A, **of}, "jsonpath": jsonpath}


class Gateway:
    """A world with a region and a package whose order has outputs; it records the events about outputs."""

    def __init__(self, world: World, csar_id: str) -> None:
        self.world, self.csar_id = world, csar_id
        self.events: list[OutputsChanged] = []

    async def keep(self, delivery: Delivery) -> Verdict:
        assert isinstance(delivery.envelope.data, OutputsChanged)
        self.events.append(delivery.envelope.data)
        return Ack()

    async def bring_up(self, **members: Any) -> Answer:
        asked = {"cloud_region_id": "op/edge", "csar_id": self.csar_id, **members}
        return await self.world.call("POST", VNFS, asked)

    def read(self, number: int, **values: Any) -> OutputsRead:
        return OutputsRead(number=number, values=values)

    async def changes(self, vnf_id: str, number: int, **values: Any) -> None:
        """Publish what a watch has read."""
        event = ObjectOutputsChanged(vnf_instance_id=vnf_id, read=self.read(number, **values))
        await self.world.bus.publish(Envelope(event, source="/kubevnfm/infra-k8s", subject=vnf_id))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Gateway]:
    folder = tmp_path_factory.mktemp("outputs")
    async with lcm_world(folder) as world:
        world.vims.add("vim-edge", "kubernetes")
        world.regions.add("op/edge", "vim-edge")
        onboarded = await world.upload(variant(folder, files=FILES))
        assert onboarded["onboardingState"] == "ONBOARDED", onboarded
        gateway = Gateway(world, onboarded["id"])
        await world.bus.consume_events("tests.outputs", ["lcm.outputs.changed"], gateway.keep)
        yield gateway


@pytest.mark.asyncio(loop_scope="module")
async def test_outputs_are_in_the_instance_in_sol003_and_in_events(gateway: Gateway) -> None:
    """MC-138: of the operation, of watches afterwards, and gone with the objects; each change is one event."""
    world = gateway.world
    reported = ANSWERS["infra.k8s.apply_objects"]
    assert isinstance(reported, ObjectsApplied)
    first = gateway.read(5, mode="active", address=None, login=hide({"token": "open-sesame"}))
    world.twins.answers["infra.k8s.apply_objects"] = reported.model_copy(update={"outputs": first})
    mine = {"mode": an_output("{.data.mode}"), "address": an_output("data.none"), "login": an_output()}
    made = (await gateway.bring_up(outputs=mine)).must(201).json
    one, shown = f"{VNFS}/{made['vnf_id']}", {"mode": "active", "address": None, "login": {"token": "***"}}
    assert made["outputs"] == shown
    sent = world.twins.commands[-1].data
    assert isinstance(sent, ApplyObjects)
    assert {each.name: each.jsonpath for each in sent.outputs} == {
        "mode": "{.data.mode}", "other": "data.mode", "address": "data.none", "login": "data.mode",
    }  # fmt: skip
    assert [each.changed for each in gateway.events] == [("address", "login", "mode")]
    assert "open-sesame" not in gateway.events[0].model_dump_json()

    async def is_shown(**values: Any) -> bool:
        return bool((await world.call("GET", one)).must(200).json["outputs"] == values)

    await gateway.changes(made["vnf_id"], 6, mode="active", address="203.0.113.7")
    await until_true(lambda: is_shown(mode="active", address="203.0.113.7"))
    of_sol = (await world.lcm("GET", f"/vnf_instances/{made['vnf_id']}")).must(200).json
    assert of_sol["metadata"][KEY] == {"mode": "active", "address": "203.0.113.7"}
    # An earlier reading that arrives late, and the same one again, change nothing.
    await gateway.changes(made["vnf_id"], 5, mode="late")
    await gateway.changes(made["vnf_id"], 6, mode="again")
    await gateway.changes(made["vnf_id"], 7, mode="active", address=[8])
    await until_true(lambda: is_shown(mode="active", address=[8]))
    assert [each.changed for each in gateway.events[1:]] == [("address", "login"), ("address",)]
    # A filter by region finds them (MC-052).
    assert {each.vim_ids for each in gateway.events} == {("vim-edge",)}
    refused = await world.lcm("PATCH", f"/vnf_instances/{made['vnf_id']}", {"metadata": {KEY: {"mode": "mine"}}})
    assert refused.problem(400)["detail"]

    replaced = ANSWERS["infra.k8s.replace_objects"]
    assert isinstance(replaced, ObjectsReplaced)
    world.twins.answers["infra.k8s.replace_objects"] = replaced.model_copy(update={"outputs": gateway.read(8, mode=1)})
    changed = (await world.call("PATCH", one, {"values": {"level": 2}})).must(200).json
    assert (changed["status"], changed["outputs"]) == ("READY", {"mode": 1})
    sent = world.twins.commands[-1].data
    assert isinstance(sent, ReplaceObjects)
    assert {each.name for each in sent.outputs} == {"mode", "other", "address", "login"}
    (await world.call("DELETE", one)).must(204)
    await gateway.changes(made["vnf_id"], 9, mode="of one that is gone")


MANY = {f"o{number}": an_output() for number in range(65)}
_BAD: list[tuple[Any, str]] = [
    ([], "/outputs"),
    ({"a-b c": an_output()}, "/outputs/a-b c"),
    ({"a": {"jsonpath": ".data"}}, "/outputs/a/object"),
    ({"password": an_output()}, "/outputs/password"),
    ({"a": an_output(kind="Secret", name="b")}, "/outputs/a/object/kind"),
    ({"a": an_output(colour="red")}, "/outputs/a/object/colour"),
    ({"a": an_output("data[")}, "/outputs/a/jsonpath"),
    ({"a": an_output("x" * 1003)}, "/outputs/a/jsonpath"),
    ({"a": an_output(name="none")}, "/outputs/a"),
    ({"a": an_output(api_version="v2")}, "/outputs/a"),
    ({"a": an_output(namespace="elsewhere")}, "/outputs/a"),
    (MANY, "/outputs"),
    (dict(list(MANY.items())[:64]), "/outputs"),
]


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(("outputs", "pointer"), _BAD, ids=lambda value: str(value)[:60])
async def test_bad_outputs_are_refused(gateway: Gateway, outputs: Any, pointer: str) -> None:
    """MC-138, and chapter 8, Bad input: 422 before anything is stored; the 65th may be one of the order."""
    refused = await gateway.bring_up(outputs=outputs)
    assert [each["pointer"] for each in refused.problem(422)["errors"]] == [pointer]
    assert (await gateway.world.call("GET", VNFS)).must(200).json == []


@pytest.mark.asyncio(loop_scope="module")
async def test_bad_outputs_of_an_order_and_of_sol003_are_refused(gateway: Gateway, tmp_path: Any) -> None:
    """MC-138, and chapter 8, Bad input: the line of the order is named."""
    world = gateway.world
    lines = f"artifacts: [{{file: a.yaml}}]\noutputs:\n  mode: {FROM_ORDER}\n  b: {{object: {{kind: Service, name: a}}, jsonpath: x}}\n"
    files = {**FILES, ORDER: lines}
    package = await world.upload(variant(tmp_path, vnfd_id="0bd8ff5b-6b2d-4b44-9c2a-0d9b6ad4a1c2", files=files))
    asked = {"cloud_region_id": "op/edge", "csar_id": package["id"]}
    (error,) = (await world.call("POST", VNFS, asked)).problem(422)["errors"]
    assert (error["pointer"], f"{ORDER}:4" in error["message"]) == ("/order_artifact", True)
    created = (await world.lcm("POST", "/vnf_instances", {"vnfdId": package["vnfdId"]})).must(201).json
    request = {
        "flavourId": "simple",
        "vimConnectionInfo": {"vim1": {"vimId": "vim-edge", "vimType": "kubernetes"}},
        "additionalParams": {"order_artifact": ORDER, "outputs": {"a": an_output("data[")}},
    }
    refused = await world.lcm("POST", f"/vnf_instances/{created['id']}/instantiate", request)
    assert "additionalParams/outputs/a/jsonpath" in str(refused.problem(422))


async def test_an_output_may_be_of_an_object_that_a_chart_makes() -> None:
    """MC-048, MC-138: only the region knows what a chart makes, so infra-k8s looks for the object."""
    given = {"outputs": {"address": an_output(kind="Service", name="web")}}
    for chart in (True, False):
        order = ArtifactOrder("o.yaml", [OrderedArtifact("charts/web", is_chart=chart)], {}, frozenset())
        if chart:
            (found,) = await wanted_outputs(order, given, [], namespace="mine")
            assert (found.name, found.object_name) == ("address", "web")
        else:
            with pytest.raises(Unprocessable, match="no Service web"):
                await wanted_outputs(order, given, [], namespace="mine")
