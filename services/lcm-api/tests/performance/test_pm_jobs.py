"""PM jobs over HTTP: measured on a Prometheus, reported, notified, changed and deleted."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from callers.etsi import etsi_schemas
from kubevnfm_kit.clock import rfc3339
from kubevnfm_lcm_api.notifications.domain.subscription import COLLECTION as CALLBACKS
from kubevnfm_lcm_api.performance.job_record import COLLECTION, SAMPLES
from kubevnfm_store.query import Query, by
from patience import until
from servers.prometheus import TwinPrometheus
from servers.subscriber import Subscriber
from worlds.cnf_world import deployed
from worlds.lcm_world import Answer, World, lcm_world

MERGE = {"Content_Type": "application/merge-patch+json"}
CPU = "VCpuUsageMeanVnf"


@pytest.fixture
async def prometheus() -> AsyncIterator[TwinPrometheus]:
    async with TwinPrometheus.listening() as twin:
        yield twin


@pytest.fixture
async def world(tmp_path: Path, prometheus: TwinPrometheus) -> AsyncIterator[World]:
    settings = {"prometheus_url": prometheus.url, "prometheus_delay_s": 0, "prometheus_scrape_s": 1}
    async with lcm_world(tmp_path, allowed_networks="127.0.0.0/8", test_callbacks=True, **settings) as running:
        yield running


@pytest.fixture
async def subscriber() -> AsyncIterator[Subscriber]:
    async with Subscriber.listening() as listening:
        yield listening


async def pm(world: World, method: str, path: str, body: Any = None, **headers: str) -> Answer:
    sent = {"Version": "2.2.0", **{name.replace("_", "-"): value for name, value in headers.items()}}
    return await world.call(method, f"/vnfpm/v2{path}", body, headers=sent)


def a_job(instance_id: str, subscriber: Subscriber, **changes: Any) -> dict[str, Any]:
    criteria = {"performanceMetric": [f"{CPU}.{instance_id}"], "collectionPeriod": 1, "reportingPeriod": 2}
    return {
        "objectType": "Vnfc",
        "objectInstanceIds": [instance_id],
        "criteria": {**criteria, **changes.pop("criteria", {})},
        "callbackUri": subscriber.uri,
        **changes,
    }


async def heard(subscriber: Subscriber, count: int) -> list[dict[str, Any]]:
    """Wait for so many notifications, which fit ETSI's types; return their bodies."""
    bodies = await subscriber.was_tried(count)
    for each in bodies:
        if (etsi := etsi_schemas()) is not None:
            etsi.check_type(each["notificationType"], each)
    return bodies


async def test_a_job_is_measured_reported_notified_and_deleted(
    world: World, prometheus: TwinPrometheus, subscriber: Subscriber
) -> None:
    """API-200, API-203, API-205, API-207, API-253."""
    instance_id = await deployed(world)
    prometheus.add("pod_cpu", lambda at: at % 100, namespace="default", pod="web-0")
    prometheus.add("pod_cpu", 7.5, namespace="default", pod="web-1")
    prometheus.add("pod_cpu", 9.0, namespace="other", pod="web-1")
    made = (await pm(world, "POST", "/pm_jobs", a_job(instance_id, subscriber))).must(201)
    job = made.json
    assert made.headers["Location"] == job["_links"]["self"]["href"]
    assert "authentication" not in job
    assert subscriber.tested == [""]
    first, second = (await heard(subscriber, 2))[:2]
    assert first == {
        "id": first["id"],
        "notificationType": "PerformanceInformationAvailableNotification",
        "timeStamp": first["timeStamp"],
        "pmJobId": job["id"],
        "objectType": "Vnfc",
        "objectInstanceId": instance_id,
        "_links": first["_links"],
    }
    assert set(first["_links"]) == {"objectInstance", "pmJob", "performanceReport"}
    assert first["_links"]["performanceReport"] != second["_links"]["performanceReport"]
    assert {each.version for each in subscriber.received} == {"2.2.0"}
    path = f"/pm_jobs/{job['id']}"
    shown = (await pm(world, "GET", path)).must(200).json
    begins = [report["href"].partition("/vnfpm/v2")[2] for report in shown["reports"]]
    assert first["_links"]["performanceReport"]["href"].endswith(begins[0])
    report = (await pm(world, "GET", begins[0])).must(200).json
    assert "metadata" not in report, "there is no gap"
    of_first, of_second = report["entries"]
    assert (of_first["subObjectInstanceId"], of_second["subObjectInstanceId"]) == ("VDU1-web-0", "VDU1-web-1")
    assert [each["value"] for each in of_second["performanceValues"]] == [7.5, 7.5]
    stored = (await world.call("GET", f"/kubevnfm/v1/pm-jobs/{job['id']}")).must(200).json
    instance = (await world.lcm("GET", f"/vnf_instances/{instance_id}")).must(200).json
    assert (stored["state"], stored["vnfInstanceName"]) == ("MEASURING", instance["vnfInstanceName"])
    assert [each["value"] for each in stored["lastValues"] if each["subObjectInstanceId"] == "VDU1-web-1"] == [7.5]
    for each in of_first["performanceValues"]:
        at = datetime.fromisoformat(each["timeStamp"]).timestamp()
        assert each["value"] == pytest.approx(at % 100), "a sample keeps its own time"
    (await pm(world, "DELETE", path)).must(204)
    for wanted in (path, begins[0]):
        (await pm(world, "GET", wanted)).problem(404)
    assert await world.store.find(SAMPLES, Query(by(jobId=job["id"]))) == []
    assert await world.store.get(CALLBACKS, job["id"]) is None
    (await pm(world, "DELETE", path)).problem(404)


async def test_what_cannot_be_measured_is_refused_by_name(world: World, subscriber: Subscriber) -> None:
    """API-201, API-202."""
    instance_id = await deployed(world)
    past = rfc3339(datetime.now(UTC) - timedelta(days=1))
    one = {"performanceMetric": [CPU]}
    refused: list[tuple[dict[str, Any], int, str]] = [
        ({"objectType": "VNFC"}, 400, "objectType"),
        ({"objectInstanceIds": []}, 400, "objectInstanceIds"),
        ({"objectInstanceIds": [instance_id, instance_id]}, 400, "objectInstanceIds"),
        ({"objectInstanceIds": ["another"], "criteria": one}, 422, "objectInstanceIds[0]"),
        ({"subObjectInstanceIds": ["VDU1-another"]}, 422, "subObjectInstanceIds[0]"),
        ({"objectInstanceIds": [instance_id, "b"], "subObjectInstanceIds": ["x"], "criteria": one}, 400, "subObject"),
        ({"criteria": {"performanceMetric": []}}, 400, "criteria"),
        ({"criteria": {"performanceMetric": ["VCpuUsageMeanVn"]}}, 400, "criteria/performanceMetric[0]"),
        ({"criteria": {"performanceMetric": [f"{CPU}.another"]}}, 400, "criteria/performanceMetric[0]"),
        ({"criteria": {"performanceMetric": ["ByteIncomingVnfIntCp"]}}, 400, "criteria/performanceMetric[0]"),
        ({"criteria": {"performanceMetricGroup": ["VnfInternalCp"]}}, 400, "criteria/performanceMetricGroup[0]"),
        ({"criteria": {"collectionPeriod": 0}}, 400, "criteria/collectionPeriod"),
        ({"criteria": {"collectionPeriod": "often"}}, 400, "criteria/collectionPeriod"),
        ({"criteria": {"reportingPeriod": 604_801}}, 400, "criteria/reportingPeriod"),
        ({"criteria": {"collectionPeriod": 2, "reportingPeriod": 3}}, 400, "criteria/reportingPeriod"),
        ({"criteria": {"reportingPeriod": 501}}, 400, "criteria/reportingPeriod"),
        ({"criteria": {"reportingBoundary": past}}, 400, "criteria/reportingBoundary"),
        ({"criteria": {"reportingBoundary": "2022/07/25 10:43:55"}}, 400, "criteria/reportingBoundary"),
        ({"callbackUri": "/nfvo/notify/job"}, 400, "callbackUri"),
        ({"metadata": {"monitoring": {"monitorName": "zabbix"}}}, 400, "metadata/monitoring/monitorName"),
        ({"metadata": {"big": "x" * 20_000}}, 400, "metadata"),
        ({"metadata": _monitored(prometheusUrl="http://10.1.1.1:9090")}, 422, "metadata/monitoring/targetsInfo"),
        ({"metadata": _monitored(prometheusUrl="ftp://x")}, 400, "targetsInfo[0]/prometheusUrl"),
        *(
            ({"metadata": _monitored(prometheusUrl=each)}, 400, "targetsInfo[0]/prometheusUrl")
            for each in ("http://[::1", "http://h\n", "http://a b", "http://user:hidden@h", "http://h?a=b", 5)
        ),
        ({"metadata": _monitored(prometheusHots="x")}, 400, "targetsInfo[0]/prometheusHots"),
        ({"objectTyp": "Vnf"}, 400, "objectTyp"),
    ]
    for changes, status, place in refused:
        problem = (await pm(world, "POST", "/pm_jobs", a_job(instance_id, subscriber, **changes))).problem(status)
        named = [each["name"] for each in problem["invalidParams"]]
        assert any(place in each for each in named), (changes, problem)
    for name, reason in (
        ("VCpuUsageMeanVn", "no such metric of objectType Vnfc: did you mean VCpuUsageMeanVnf?"),
        ("ByteIncomingVnfIntCp", "objectType Vnfc has no such metric: it is one of objectType VnfIntCp"),
    ):
        body = a_job(instance_id, subscriber, criteria={"performanceMetric": [name]})
        assert reason in (await pm(world, "POST", "/pm_jobs", body)).problem(400)["detail"]
    subscriber.tests = 500
    (await pm(world, "POST", "/pm_jobs", a_job(instance_id, subscriber))).problem(422)
    assert await world.store.find(COLLECTION, Query()) == []


def _monitored(**target: Any) -> dict[str, Any]:
    return {"monitoring": {"monitorName": "prometheus", "driverType": "external", "targetsInfo": [target]}}


async def test_jobs_are_listed_filtered_and_changed_by_the_state_that_was_seen(
    world: World, subscriber: Subscriber
) -> None:
    """API-200, API-204."""
    instance_id = await deployed(world)
    slow = {"collectionPeriod": "500", "reportingPeriod": 1000}
    basic = {"authType": ["BASIC"], "paramsBasic": {"userName": "us", "password": "heard-only"}}
    job = a_job(instance_id, subscriber, criteria=slow, authentication=basic)
    made = (await pm(world, "POST", "/pm_jobs", job)).must(201)
    path, etag = f"/pm_jobs/{made.json['id']}", made.headers["ETag"]
    assert made.json["criteria"]["collectionPeriod"] == 500
    assert subscriber.tested[0].startswith("Basic ")
    other = a_job(instance_id, subscriber, objectType="Vnf", criteria=slow)
    (await pm(world, "POST", "/pm_jobs", other)).must(201)
    for query, count in (
        ("", 2),
        ("?filter=(eq,objectType,Vnf)", 1),
        (f"?filter=(cont,objectInstanceIds,{instance_id})", 2),
        ("?filter=(gt,criteria/collectionPeriod,500)", 0),
        ("?exclude_default", 2),
        ("?fields=criteria", 2),
    ):
        listed = (await pm(world, "GET", f"/pm_jobs{query}")).must(200)
        assert len(listed.json) == count, query
        assert b"heard-only" not in listed.raw
    (await pm(world, "GET", "/pm_jobs?filter=(eq,reports/href,x)")).problem(400)
    (await pm(world, "GET", "/pm_jobs?filter=(eq,authentication/authType,BASIC)")).problem(400)
    (await pm(world, "GET", path, If_None_Match=etag)).must(304)
    stored = await world.store.get(COLLECTION, made.json["id"])
    assert stored is not None
    assert "heard-only" not in json.dumps(stored.body)
    moved = {"callbackUri": f"{subscriber.uri}?token=s3cret"}
    (await pm(world, "PATCH", path, moved, If_Match='"another"', **MERGE)).problem(412)
    changed = (await pm(world, "PATCH", path, moved, If_Match=etag, **MERGE)).must(200)
    assert changed.json == {"callbackUri": f"{subscriber.uri}?token=***"}
    assert subscriber.tested[-1].startswith("Basic "), "what is not named stays"
    (await pm(world, "PATCH", path, moved, If_Match=etag, **MERGE)).problem(412)
    assert (await pm(world, "GET", path)).must(200).headers["ETag"] == changed.headers["ETag"]
    (await pm(world, "PATCH", path, {"authentication": None}, **MERGE)).must(200)
    assert subscriber.tested[-1] == ""
    assert subscriber.queries[-1] == "token=s3cret"
    followed = await world.store.get(CALLBACKS, made.json["id"])
    assert followed is not None
    assert "authentication" not in followed.body
    wrong: list[Any] = [{"callbackUri": None}, {}, {"criteria": {}}, [], {"callbackUri": "x"}]
    for each in wrong:
        (await pm(world, "PATCH", path, each, **MERGE)).problem(400)
    (await pm(world, "PATCH", "/pm_jobs/none", moved, **MERGE)).problem(404)


async def test_the_body_of_a_user_of_tacker_is_taken_without_its_credentials(
    world: World, prometheus: TwinPrometheus, subscriber: Subscriber
) -> None:
    """API-202."""
    instance_id = await deployed(world)
    metadata = _monitored(
        prometheusHost="127.0.0.1",
        prometheusHostPort=22,
        authInfo={"ssh_username": "ubuntu", "ssh_password": "hidden-one"},
        alertRuleConfigPath="/etc/prometheus/rules",
        prometheusReloadApiEndpoint=f"{prometheus.url}/-/reload",
    )
    made = (await pm(world, "POST", "/pm_jobs", a_job(instance_id, subscriber, metadata=metadata))).must(201)
    (target,) = made.json["metadata"]["monitoring"]["targetsInfo"]
    assert "authInfo" not in target
    assert target["alertRuleConfigPath"] == "/etc/prometheus/rules"
    warned = made.json["metadata"]["kubevnfm_warnings"]
    assert [each.partition(":")[0].rpartition("/")[2] for each in warned] == [
        "prometheusHost", "prometheusHostPort", "authInfo", "alertRuleConfigPath"
    ]  # fmt: skip
    stored = await world.store.get(COLLECTION, made.json["id"])
    assert stored is not None
    assert "hidden-one" not in json.dumps(stored.body)
    assert "ubuntu" not in json.dumps(stored.body)


async def test_a_prometheus_that_is_away_delays_a_report_and_has_one_line_in_the_log(
    world: World, prometheus: TwinPrometheus, subscriber: Subscriber, capsys: pytest.CaptureFixture[str]
) -> None:
    """API-206."""
    instance_id = await deployed(world)
    prometheus.add("pod_cpu", 1.0, namespace="default", pod="web-0")
    prometheus.is_away = True
    job = (await pm(world, "POST", "/pm_jobs", a_job(instance_id, subscriber))).must(201).json

    async def turned_away() -> bool | None:
        return prometheus.turned_away >= 2 or None

    await until(turned_away, timeout_s=300)
    prometheus.is_away = False
    first = (await heard(subscriber, 1))[0]
    href = first["_links"]["performanceReport"]["href"].partition("/vnfpm/v2")[2]
    report = (await pm(world, "GET", href)).must(200).json
    assert len(report["entries"][0]["performanceValues"]) == 2
    assert "metadata" not in report, "all was measured later"
    (await pm(world, "DELETE", f"/pm_jobs/{job['id']}")).must(204)
    lines = capsys.readouterr().out
    assert lines.count("prometheus_does_not_answer") == 1
    assert lines.count("prometheus_answers_again") == 1


async def test_a_threshold_is_created_crossed_notified_changed_and_deleted(
    world: World, prometheus: TwinPrometheus, subscriber: Subscriber
) -> None:
    """API-210, API-211."""
    instance_id = await deployed(world)
    prometheus.add("pod_cpu", 70.0, namespace="default", pod="web-0")
    prometheus.add("pod_cpu", 90.0, namespace="default", pod="web-1")
    criteria = {
        "performanceMetric": CPU, "thresholdType": "SIMPLE",
        "simpleThresholdDetails": {"thresholdValue": 75.5, "hysteresis": 4},
    }  # fmt: skip
    body = {
        "objectType": "Vnf", "objectInstanceId": instance_id, "criteria": criteria, "callbackUri": subscriber.uri
    }  # fmt: skip
    for name, value in (("thresholdValue", True), ("hysteresis", False), ("hysteresis", -1), ("thresholdValue", "NaN")):
        wrong = {**criteria, "simpleThresholdDetails": {"thresholdValue": 1, "hysteresis": 0, name: value}}
        problem = (await pm(world, "POST", "/thresholds", {**body, "criteria": wrong})).problem(400)
        assert problem["invalidParams"][0]["name"] == f"criteria/simpleThresholdDetails/{name}"
    made = (await pm(world, "POST", "/thresholds", body)).must(201)
    path, etag = f"/thresholds/{made.json['id']}", made.headers["ETag"]
    (crossed,) = await heard(subscriber, 1)
    assert crossed == {
        "id": crossed["id"],
        "notificationType": "ThresholdCrossedNotification",
        "timeStamp": crossed["timeStamp"],
        "thresholdId": made.json["id"],
        "crossingDirection": "UP",
        "objectType": "Vnf",
        "objectInstanceId": instance_id,
        "performanceMetric": CPU,
        "performanceValue": 80.0,
        "_links": crossed["_links"],
    }
    assert set(crossed["_links"]) == {"objectInstance", "threshold"}
    assert (await pm(world, "GET", path)).must(200).headers["ETag"] == etag
    listed = (await pm(world, "GET", "/thresholds?filter=(eq,criteria/performanceMetric,VCpuUsageMeanVnf)")).must(200)
    assert [each["id"] for each in listed.json] == [made.json["id"]]
    changed = (await pm(world, "PATCH", path, {"callbackUri": f"{subscriber.uri}/"}, **MERGE)).problem(422)
    assert "404" in changed["detail"]
    (await pm(world, "PATCH", path, {"callbackUri": subscriber.uri}, If_Match=etag, **MERGE)).must(200)
    (await pm(world, "DELETE", path)).must(204)
    (await pm(world, "GET", path)).problem(404)
    refused: list[tuple[dict[str, Any], int, str]] = [
        ({"objectInstanceId": "another"}, 422, "objectInstanceId"),
        ({"criteria": {**criteria, "performanceMetric": "Heat"}}, 400, "criteria/performanceMetric"),
        ({"criteria": {**criteria, "thresholdType": "DOUBLE"}}, 400, "criteria/thresholdType"),
        ({"criteria": {**criteria, "simpleThresholdDetails": None}}, 400, "criteria/simpleThresholdDetails"),
        (
            {"criteria": {**criteria, "simpleThresholdDetails": {"thresholdValue": 1, "hysteresis": -1}}},
            400,
            "criteria/simpleThresholdDetails/hysteresis",
        ),
        ({"metadata": {"automation": {"onUp": "OUT"}}}, 400, "metadata/automation/onUp"),
        ({"metadata": {"automation": {"onUp": "HEAL"}}}, 400, "metadata/automation/onUp"),
        ({"metadata": {"automation": {"onUp": "SCALE_OUT", "aspectId": "none"}}}, 400, "metadata/automation/aspectId"),
    ]
    for changes, status, place in refused:
        problem = (await pm(world, "POST", "/thresholds", {**body, **changes})).problem(status)
        assert [each["name"] for each in problem["invalidParams"]] == [place]
