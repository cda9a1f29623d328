"""A CNF is measured, and scaled by its load, where there is no Prometheus: by metrics.k8s.io of its cluster."""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from callers.user import User, sample_body
from clouds.lab_process import LabControl
from clusters.kubeconfigs import admin_kubeconfig
from clusters.metrics_server import api_service, server
from kubevnfm_lab.kubernetes.podmetrics import CPU_ANNOTATION
from patience import until
from servers.subscriber import Subscriber
from servers.wirings import GIVEN_URL

pytestmark = pytest.mark.skipif(GIVEN_URL is not None, reason="a given installation has pauses of its own")

VERSION = {"Version": "2.2.0"}
CPU, MEMORY = "VCpuUsageMeanVnf", "VMemoryUsagePeakVnf"
PODS = "/api/v1/namespaces/default/pods"


@asynccontextmanager
async def api_of(user: User, lab: LabControl, cluster_id: str) -> AsyncIterator[aiohttp.ClientSession]:
    """Yield a session with the API server of a cluster, as its administrator."""
    config = json.loads(base64.b64decode(await admin_kubeconfig(user, lab, cluster_id)))
    (cluster,), (login,) = config["clusters"], config["users"]
    ca = base64.b64decode(cluster["cluster"]["certificate-authority-data"]).decode()
    async with aiohttp.ClientSession(
        cluster["cluster"]["server"],
        connector=aiohttp.TCPConnector(ssl=ssl.create_default_context(cadata=ca)),
        headers={"Authorization": f"Bearer {login['user']['token']}"},
        raise_for_status=True,
    ) as session:
        yield session


async def has_metrics_server(api: aiohttp.ClientSession) -> None:
    """Create the objects of metrics-server, and wait until it answers."""
    await api.post("/apis/apiregistration.k8s.io/v1/apiservices", json=api_service())
    for body in server():
        await api.post(f"/api/v1/namespaces/kube-system/{body['kind'].lower()}s", json=body)

    async def answers() -> bool | None:
        async with api.get("/apis/metrics.k8s.io/v1beta1/pods", raise_for_status=False) as answer:
            return answer.status == 200 or None

    await until(answers)


async def load(api: aiohttp.ClientSession, instance_id: str, cpu: str) -> None:
    """Have the pods of an instance use so much from now on."""
    async with api.get(f"{PODS}?labelSelector=kubevnfm.io/vnf-instance-id%3D{instance_id}") as answer:
        names = [each["metadata"]["name"] for each in (await answer.json())["items"]]
    headers = {"Content-Type": "application/merge-patch+json"}
    for name in names:
        patch = {"metadata": {"annotations": {CPU_ANNOTATION: cpu}}}
        await api.patch(f"{PODS}/{name}", data=json.dumps(patch), headers=headers)


async def test_a_cnf_is_measured_and_scaled_by_the_metrics_of_its_cluster(user: User, lab: LabControl) -> None:
    """API-216, API-217, API-218, API-237."""
    cluster_id = await user.create(await user.sample("cluster"))
    await user.do(cluster_id, "instantiate", user.cluster())
    cnf_id = await user.create(await user.sample("cnf"))
    body = user.on_vim(sample_body("cnf", "instantiate"), await user.vim_of_cluster(cluster_id))
    await user.do(cnf_id, "instantiate", {**body, "vnfConfigurableProperties": {"isAutoscaleEnabled": True}})
    async with api_of(user, lab, cluster_id) as api, Subscriber.listening() as heard, Subscriber.listening() as crossed:
        job: dict[str, Any] = {
            "objectType": "Vnfc",
            "objectInstanceIds": [cnf_id],
            "criteria": {"performanceMetric": [CPU, MEMORY], "collectionPeriod": 2, "reportingPeriod": 2},
            "callbackUri": heard.uri,
        }
        refused = (await user.call("POST", "/vnfpm/v2/pm_jobs", job, headers=VERSION)).must(422).json
        assert "the cluster has no metrics.k8s.io (metrics-server)" in refused["detail"]
        await has_metrics_server(api)
        (await user.call("POST", "/vnfpm/v2/pm_jobs", job, headers=VERSION)).must(201)
        href = (await heard.was_tried(1))[0]["_links"]["performanceReport"]["href"]
        path = href[href.index("/vnfpm/v2") :]
        report = (await user.call("GET", path, headers=VERSION)).must(200).json
        info = (await user.instance(cnf_id))["instantiatedVnfInfo"]
        assert {each["subObjectInstanceId"] for each in report["entries"]} == {each["id"] for each in info["vnfcInfo"]}
        values = {
            (each["performanceMetric"], one["value"]) for each in report["entries"] for one in each["performanceValues"]
        }
        assert values == {(CPU, 10.0), (MEMORY, 100.0)}, "100m of one CPU, and 64Mi of a limit of 64Mi"

        details = {"thresholdValue": 50, "hysteresis": 10}
        threshold = {
            "objectType": "Vnf",
            "objectInstanceId": cnf_id,
            "criteria": {"performanceMetric": CPU, "thresholdType": "SIMPLE", "simpleThresholdDetails": details},
            "callbackUri": crossed.uri,
            "metadata": {"automation": {"aspectId": "web_aspect", "onUp": "SCALE_OUT"}},
        }
        made = (await user.call("POST", "/vnfpm/v2/thresholds", threshold, headers=VERSION)).must(201).json
        await load(api, cnf_id, "900m")
        (first, *_) = await crossed.was_tried(1)
        assert (first["thresholdId"], first["crossingDirection"]) == (made["id"], "UP")
        assert first["performanceValue"] >= 60

        async def scaled() -> bool | None:
            listed = await user.call("GET", f"/kubevnfm/v1/automatic-actions?vnfInstanceId={cnf_id}")
            actions = listed.must(200).json["items"]
            return [each["state"] for each in actions] == ["DONE"] or None

        await until(scaled)
    info = (await user.instance(cnf_id))["instantiatedVnfInfo"]
    assert len(info["vnfcInfo"]) == 3
    await user.terminate(cnf_id)
    await user.terminate(cluster_id)
