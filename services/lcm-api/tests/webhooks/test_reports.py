"""The webhooks for values, heals, scales and faults of servers over HTTP, with twins of the subjects that they report to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from aiohttp import ClientSession
from aiohttp.test_utils import TestServer
from callers.documented import judge
from healthy import healthy
from kubevnfm_access.gate import Gate
from kubevnfm_access.middleware import Proxies
from kubevnfm_kit.errors import Conflict, InvalidInput, NotFound
from kubevnfm_lcm_api.automation.domain.trigger import Trigger
from kubevnfm_lcm_api.gateway.app import make_app
from kubevnfm_lcm_api.lifecycle.core.instance import COLLECTION as INSTANCES
from kubevnfm_lcm_api.server_alarms.work import SERVER_FAULTS
from kubevnfm_lcm_api.webhooks.http import routes
from kubevnfm_lcm_api.webhooks.server_faults import ServerFaults
from kubevnfm_lcm_api.webhooks.wiring import webhooks
from kubevnfm_sol.lcm import InstantiationState
from kubevnfm_sol.resources import InstantiatedVnfInfo, ResourceHandle, VnfcInfo, VnfcResourceInfo
from kubevnfm_store.port import StoreUnavailable
from real.alertmanager import FINGERPRINT, STARTED, heal, message, resolved, scale, value
from worlds.lcm_builders import an_instance
from worlds.lcm_world import RING, Answer, FragileStore
from worlds.set_clock import SetClock

NOW: Final = datetime(2026, 6, 22, tzinfo=UTC)
FACT: Final = f"{FINGERPRINT}/{datetime.fromisoformat(STARTED).isoformat()}"


@dataclass
class Twins:
    """PM jobs, thresholds and automatic operations that keep what they are asked for, and refuse if a test says so."""

    asked: list[Any] = field(default_factory=list)
    refusal: Exception | None = None

    async def report(self, **given: Any) -> None:
        self._keep("report", given)

    async def crossing(self, **given: Any) -> None:
        self._keep("crossing", given)

    async def heal(self, instance_id: str, vnfc_ids: Sequence[str], trigger: Trigger) -> None:
        self._keep("heal", instance_id, list(vnfc_ids), trigger)

    async def scale(self, instance_id: str, aspect_id: str, direction: str, trigger: Trigger) -> None:
        self._keep("scale", instance_id, aspect_id, direction, trigger)

    def _keep(self, *given: Any) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.asked.append(given)


@dataclass
class Webhooks:
    """The gateway with webhooks alone."""

    url: str
    session: ClientSession
    twins: Twins
    store: FragileStore
    counts: dict[tuple[str, str], int] = field(default_factory=dict)

    async def post(self, path: str, body: Any) -> Answer:
        async with self.session.post(f"{self.url}{path}", json=body) as response:
            answer = Answer(response.status, response.headers, await response.read())
        judge("POST", path, answer.status, answer.headers, answer.raw)
        return answer

    def count(self, path: str, outcome: str, number: int) -> None:
        self.counts[path, outcome] = self.counts.get((path, outcome), 0) + number


@pytest.fixture
async def hooks(tmp_path: Path) -> AsyncIterator[Webhooks]:
    nothing: Any = None
    async with FragileStore.open(tmp_path / "store.db") as store, ClientSession() as session:
        twins = Twins()
        found = Webhooks("", session, twins, store)
        made = webhooks(nothing, twins, twins, SetClock(NOW))
        add_to = partial(routes.add_to, webhooks=made, servers=ServerFaults(store, twins), count=found.count)
        app = make_app([add_to], nothing, healthy, {}, gate=Gate([]), proxies=Proxies())
        async with TestServer(app) as server:
            found.url = str(server.make_url("")).rstrip("/")
            yield found


# --- values -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "kind", "call", "owner"),
    [("/pm_event", "vnfpm", "report", "job_id"), ("/pm_threshold", "vnfpm_threshold", "crossing", "threshold_id")],
)
async def test_values_are_passed_on_with_the_time_of_their_receipt(
    hooks: Webhooks, path: str, kind: str, call: str, owner: str
) -> None:
    """API-226: numbers and texts; the end of an alert has no value."""
    sub = value(kind, "owner", "inst-1", 99)
    sub["labels"]["sub_object_instance_id"] = "VDU1-vnfc-1"
    (await hooks.post(path, message(value(kind, "owner", "inst-1"), sub, resolved(sub)))).must(204)
    common = {owner: "owner", "metric": "VCpuUsageMeanVnf.inst-1", "object_instance_id": "inst-1", "at": NOW}
    assert hooks.twins.asked == [
        (call, {**common, "value": "42.5", "sub_object_instance_id": None}),
        (call, {**common, "value": 99, "sub_object_instance_id": "VDU1-vnfc-1"}),
    ]
    assert hooks.counts == {(path, "accepted"): 3}


@pytest.mark.parametrize(
    ("refusal", "status", "place"),
    [
        (InvalidInput("value", "a number expected"), 422, "annotations/value"),
        (InvalidInput("metric", "the job does not measure it"), 422, "labels/metric"),
        (InvalidInput("object_instance_id", "the job does not measure it"), 422, "labels/object_instance_id"),
        (NotFound("PM job owner does not exist"), 422, "labels/job_id"),
        (Conflict("the job has ended"), 422, "labels/job_id"),
    ],
)
async def test_a_value_that_no_job_wants_is_named(hooks: Webhooks, refusal: Exception, status: int, place: str) -> None:
    """API-226, API-223."""
    hooks.twins.refusal = refusal
    problem = (await hooks.post("/pm_event", message(value("vnfpm", "owner", "inst-1")))).problem(status)
    assert [each["name"] for each in problem["invalidParams"]] == [f"alerts[0]/{place}"]
    hooks.twins.refusal = StoreUnavailable("the database does not answer")
    (await hooks.post("/pm_event", message(value("vnfpm", "owner", "inst-1"), value("vnfpm", "o", "i")))).problem(503)
    assert hooks.counts == {("/pm_event", "refused"): 1, ("/pm_event", "failed"): 2}


@pytest.mark.parametrize("given", [None, True, [], {"a": 1}, "", "9" * 2000])
async def test_a_value_of_another_type_is_malformed(hooks: Webhooks, given: Any) -> None:
    """API-226."""
    problem = (await hooks.post("/pm_threshold", message(value("vnfpm_threshold", "t", "i", given)))).problem(400)
    assert {each["name"].partition("/value")[0] for each in problem["invalidParams"]} == {"alerts[0]/annotations"}
    assert hooks.twins.asked == []


# --- heal and scale -----------------------------------------------------------------------------------------------------


async def test_alerts_ask_for_heals_and_scales_by_the_fact_that_they_report(hooks: Webhooks) -> None:
    """API-227: the same alert has the same fact; its end asks for nothing."""
    asked = heal("inst-1", "VDU1-vnfc-1")
    (await hooks.post("/alert/auto_healing", message(asked, asked, resolved(asked)))).must(204)
    text = f"The monitoring system asks to heal VNFC VDU1-vnfc-1: FromRule, fingerprint {FINGERPRINT}."
    assert hooks.twins.asked == [("heal", "inst-1", ["VDU1-vnfc-1"], Trigger("auto-healing", FACT, text))] * 2
    hooks.twins.asked.clear()
    inwards = scale("inst-1", "VDU1", "SCALE_IN", fingerprint="f2")
    sent = message(scale("inst-1", "VDU1"), inwards, resolved(inwards))
    (await hooks.post("/alert/auto_scaling", sent)).must(204)
    assert [each[:4] for each in hooks.twins.asked] == [
        ("scale", "inst-1", "VDU1", "SCALE_OUT"),
        ("scale", "inst-1", "VDU1", "SCALE_IN"),
    ]
    triggers = [each[4] for each in hooks.twins.asked]
    assert [each.kind for each in triggers] == ["auto-scaling"] * 2
    assert [each.id.partition("/")[0] for each in triggers] == [FINGERPRINT, "f2"]
    assert "scale in aspect VDU1" in triggers[1].text


@pytest.mark.parametrize(
    ("refusal", "place"),
    [
        (Conflict("isAutohealEnabled is not true"), "labels/vnf_instance_id"),
        (NotFound("VNF instance inst-1 does not exist"), "labels/vnf_instance_id"),
        (InvalidInput("vnfcInstanceId[0]", "no VNFC of the instance"), "labels/vnfc_info_id"),
    ],
)
async def test_a_heal_that_is_not_allowed_is_named(hooks: Webhooks, refusal: Exception, place: str) -> None:
    """API-227."""
    hooks.twins.refusal = refusal
    problem = (await hooks.post("/alert/auto_healing", message(heal("inst-1", "VDU1-vnfc-1")))).problem(422)
    assert [each["name"] for each in problem["invalidParams"]] == [f"alerts[0]/{place}"]
    wrong = scale("inst-1", "VDU1", "SCALE_SIDEWAYS")
    problem = (await hooks.post("/alert/auto_scaling", message(wrong))).problem(400)
    assert problem["invalidParams"][0]["name"] == "alerts[0]/labels/auto_scale_type"


# --- faults of servers ------------------------------------------------------------------------------------------------


SERVER: Final = "8b6f8b5c-0d4c-4c46-8f2e-2f8e8a1a4a01"
NOTIFY: Final = f"/server_notification/vnf_instances/inst-1/servers/{SERVER}/notify"


def notification(**changes: Any) -> dict[str, Any]:
    said = {
        "alarm_id": "alarm-1", "fault_id": "1234", "fault_type": "10", "host_id": "host-1", "fault_option": {"a": 1},
        "further": True, **changes,
    }  # fmt: skip
    return {"notification": {name: each for name, each in said.items() if each is not None}}


async def an_instance_with_servers(hooks: Webhooks, *, parameters: dict[str, Any] | None = None, **info: Any) -> None:
    resources = tuple(
        VnfcResourceInfo(id=f"VDU1-{name}", vdu_id="VDU1", compute_resource=ResourceHandle(resource_id=server))
        for name, server in (("a", SERVER), ("b", "another"))
    )
    vnfcs = tuple(
        VnfcInfo(id=f"VDU1-vnfc-{each.id}", vdu_id="VDU1", vnfc_resource_info_id=each.id) for each in resources
    )
    inner = InstantiatedVnfInfo(flavour_id="simple", vnfc_resource_info=resources, vnfc_info=vnfcs, **info)
    record = an_instance(instantiation_state=InstantiationState.INSTANTIATED, instantiated_vnf_info=inner)
    record = record.with_internals(parameters=parameters or {})
    await hooks.store.insert(INSTANCES, "inst-1", record.document(RING))


@pytest.mark.parametrize(
    "given",
    [
        {"parameters": {"ServerNotifierUri": "http://notifier.example", "ServerNotifierFaultID": ["1111", "1234"]}},
        {"metadata": {"ServerNotifierFaultID": "1234"}},
    ],
)
async def test_a_fault_of_a_server_has_its_vnfc_healed(hooks: Webhooks, given: dict[str, Any]) -> None:
    """API-228."""
    await an_instance_with_servers(hooks, **given)
    assert (await hooks.post(NOTIFY, notification())).must(204).raw == b""
    text = f"The server notifier reports fault 1234 of server {SERVER}."
    why = Trigger("server-notification", f"{SERVER}/alarm-1", text)
    assert hooks.twins.asked == [("heal", "inst-1", ["VDU1-vnfc-VDU1-a"], why)]
    problem = (await hooks.post(NOTIFY, notification(fault_id="9999"))).problem(422)
    assert problem["invalidParams"][0]["name"] == "notification/fault_id"
    (await hooks.post(NOTIFY.replace(SERVER, "unknown"), notification())).problem(404)
    (await hooks.post(NOTIFY.replace("inst-1", "inst-2"), notification())).problem(404)
    hooks.twins.refusal = Conflict("isAutohealEnabled is not true")
    (await hooks.post(NOTIFY, notification())).problem(409)
    hooks.store.is_down = True
    (await hooks.post(NOTIFY, notification())).problem(503)
    hooks.store.is_down = False
    path = SERVER_FAULTS
    assert hooks.counts == {(path, "accepted"): 1, (path, "refused"): 4, (path, "failed"): 1}


async def test_an_instance_that_names_no_faults_or_has_no_server_is_not_healed(hooks: Webhooks) -> None:
    """API-228."""
    await an_instance_with_servers(hooks)
    (await hooks.post(NOTIFY, notification())).problem(422)
    await hooks.store.update(INSTANCES, "inst-1", {}, unset=["instantiatedVnfInfo"])
    (await hooks.post(NOTIFY, notification())).problem(409)
    assert hooks.twins.asked == []


@pytest.mark.parametrize(
    ("body", "place"),
    [
        (notification(alarm_id=None), "notification/alarm_id"),
        (notification(fault_id="123"), "notification/fault_id"),
        (notification(fault_id="12345"), "notification/fault_id"),
        (notification(fault_id=1234), "notification/fault_id"),
        (notification(fault_type="1"), "notification/fault_type"),
        (notification(fault_type=None), "notification/fault_type"),
        (notification(host_id="h" * 256), "notification/host_id"),
        (notification(fault_option=[]), "notification/fault_option"),
        ({}, "notification"),
        ({"notification": 7}, "notification"),
    ],
)
async def test_a_malformed_fault_of_a_server_is_named(hooks: Webhooks, body: Any, place: str) -> None:
    """API-228."""
    problem = (await hooks.post(NOTIFY, body)).problem(400)
    assert [each["name"] for each in problem["invalidParams"]] == [place]
