"""Rules in the form that users of Tacker have, in a real Prometheus and Alertmanager: alarms, values, thresholds, heals and scales."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import pytest
from callers.user import User, sample_body
from patience import until
from real.monitoring import Monitoring, rule
from servers.subscriber import Subscriber

pytestmark = pytest.mark.monitoring

_ALLOWED: Final = {"isAutohealEnabled": True, "isAutoscaleEnabled": True}
_CPU: Final = "VCpuUsageMeanVnf"
_RULE_FILES: Final[dict[str, dict[str, Any]]] = {
    "monitoring": {"monitorName": "prometheus", "driverType": "external", "targetsInfo": []}
}
"""In the metadata of jobs and thresholds whose values rules report."""
_PM: Final = {"Version": "2.1.0"}
_FM: Final = {"Version": "1.3.0"}
"""The versions that clients of Tacker send."""


@dataclass(frozen=True)
class Watched:
    """A VNF that Prometheus watches."""

    operator: User
    monitoring: Monitoring
    id: str
    aspect: str

    async def resources(self) -> dict[str, str]:
        """Return the pods or servers by the id of their VNFC (vnfcInfo)."""
        info = (await self.operator.instance(self.id))["instantiatedVnfInfo"]
        names = {each["id"]: each["computeResource"]["resourceId"] for each in info["vnfcResourceInfo"]}
        return {each["id"]: names[each["vnfcResourceInfoId"]] for each in info["vnfcInfo"]}

    def load(self, name: str) -> str:
        """Return the series of a pod or a server."""
        return f'vnf_load{{namespace="default",pod="{name}"}}'

    async def use_memory(self, percent: float) -> None:
        """Have the series of the pods or the machines say that so much of their memory is used."""
        info = (await self.operator.instance(self.id))["instantiatedVnfInfo"]
        for each in info["vnfcResourceInfo"]:
            if each["computeResource"].get("vimLevelResourceType") != "OS::Nova::Server":
                pod = f'namespace="default",pod="{each["computeResource"]["resourceId"]}"'
                await self.monitoring.set(f"pod_memory_working_set_bytes{{{pod}}}", percent)
                limits = f'kube_pod_container_resource_limits{{{pod},container="web",resource="memory",unit="byte"}}'
                await self.monitoring.set(limits, 100)
                continue
            protocols = [one for cp in each["vnfcCpInfo"] for one in cp["cpProtocolInfo"]]
            address = protocols[0]["ipOverEthernet"]["ipAddresses"][0]["addresses"][0]
            await self.monitoring.set(f'node_memory_MemTotal_bytes{{instance="{address}:9100"}}', 100)
            await self.monitoring.set(f'node_memory_MemAvailable_bytes{{instance="{address}:9100"}}', 100 - percent)

    async def create(self, kind: str, body: Mapping[str, Any]) -> str:
        """Create a PM job or a threshold; return its id."""
        made = await self.operator.call("POST", f"/vnfpm/v2/{kind}", body, headers=_PM)
        return str(made.must(201).json["id"])

    async def reported(self, job: str, value: float) -> None:
        """Wait until a report of a PM job has a value."""

        async def found() -> bool | None:
            shown = (await self.operator.call("GET", f"/vnfpm/v2/pm_jobs/{job}", headers=_PM)).must(200).json
            for each in shown.get("reports", ()):
                path = each["href"].partition("/vnfpm/v2")[2]
                report = (await self.operator.call("GET", f"/vnfpm/v2{path}", headers=_PM)).must(200).json
                if value in [one["value"] for entry in report["entries"] for one in entry["performanceValues"]]:
                    return True
            return None

        await until(found)

    async def delete(self, kind: str, id: str) -> None:
        """Delete a PM job or a threshold."""
        (await self.operator.call("DELETE", f"/vnfpm/v2/{kind}/{id}", headers=_PM)).must(204)

    async def automatic(self, operation: str) -> dict[str, Any]:
        """Wait until the automatic operation of this type has ended; return its occurrence, which is the only one."""

        async def found() -> str | None:
            query = f"?filter=(eq,vnfInstanceId,{self.id});(eq,operation,{operation})"
            begun = (await self.operator.lcm("GET", f"/vnf_lcm_op_occs{query}")).must(200).json
            assert len(begun) < 2, begun
            return begun[0]["id"] if begun else None

        operation_id = await until(found)
        view = await self.operator.rest(operation_id)
        assert view["state"] == "COMPLETED", view
        occurrence = await self.operator.occurrence(operation_id)
        assert occurrence["isAutomaticInvocation"] is True
        return occurrence

    async def alarm(self, *, is_open: bool) -> dict[str, Any]:
        """Wait until the one alarm of a rule is there, or is cleared; return it."""

        async def found() -> dict[str, Any] | None:
            path = f"/vnffm/v1/alarms?filter=(eq,managedObjectId,{self.id});(eq,faultType,Load)"
            alarms = (await self.operator.call("GET", path, headers=_FM)).must(200).json
            assert len(alarms) < 2, alarms
            return next((each for each in alarms if ("alarmClearedTime" not in each) is is_open), None)

        return await until(found)

    @asynccontextmanager
    async def rule(self, name: str, expression: str, **labels: str) -> AsyncIterator[None]:
        """Have a rule in Prometheus during the block; its value is an annotation."""
        said = {
            "probable_cause": "busy", "fault_type": "Load", "fault_details": "{{ $labels.pod }} has {{ $value }}",
            "value": "{{ $value }}",
        }  # fmt: skip
        file = f"{self.id}-{name}"
        await self.monitoring.add_rules(file, [rule(expression, labels, said)])
        try:
            yield
        finally:
            await self.monitoring.remove_rules(file)


@pytest.fixture(params=["cnf", "vm"])
async def vnf(request: pytest.FixtureRequest, operator: User, monitoring: Monitoring) -> AsyncIterator[Watched]:
    """A VNF of containers or of machines that may be healed and scaled."""
    sample: str = request.param
    cluster_id = None
    body: Mapping[str, Any] = sample_body(sample, "instantiate")
    if sample == "cnf":
        cluster_id = await operator.create(await operator.sample("cluster"))
        await operator.do(cluster_id, "instantiate", operator.cluster())
        body = operator.on_vim(body, await operator.vim_of_cluster(cluster_id))
    instance_id = await operator.create(await operator.sample(sample))
    await operator.do(instance_id, "instantiate", {**body, "vnfConfigurableProperties": _ALLOWED})
    (status,) = (await operator.instance(instance_id))["instantiatedVnfInfo"]["scaleStatus"]
    yield Watched(operator, monitoring, instance_id, status["aspectId"])
    await operator.terminate(instance_id)
    if cluster_id is not None:
        await operator.terminate(cluster_id)


async def raise_and_clear_an_alarm(vnf: Watched) -> None:
    """Have a rule raise an alarm of a VNFC, and clear it."""
    vnfc_id, name = next(iter((await vnf.resources()).items()))
    load, of_it = vnf.load(name), {"vnf_instance_id": vnf.id}
    await vnf.monitoring.set(load, 95)
    fm = {"pod": "{{ $labels.pod }}", "perceived_severity": "MAJOR", "event_type": "QOS_ALARM", "node": "node-1"}
    async with vnf.rule("alarm", f"{load} > 80", function_type="vnffm", **of_it, **fm):
        raised = await vnf.alarm(is_open=True)
        assert raised["rootCauseFaultyResource"]["faultyResource"]["resourceId"] == name
        assert raised["vnfcInstanceIds"] == [vnfc_id]
        assert raised["faultDetails"][0] == f"{name} has 95"
        assert (raised["probableCause"], raised["perceivedSeverity"]) == ("busy", "MAJOR")
        await vnf.monitoring.set(load, 10)
        assert (await vnf.alarm(is_open=False))["id"] == raised["id"]


async def scale_and_heal(vnf: Watched) -> None:
    """Have a rule scale the VNF by a step, and another one heal a VNFC."""
    before = await vnf.resources()
    vnfc_id, name = next(iter(before.items()))
    load, of_it = vnf.load(name), {"vnf_instance_id": vnf.id}
    await vnf.monitoring.set(load, 99)
    wanted = {"function_type": "auto_scale", "auto_scale_type": "SCALE_OUT", "aspect_id": vnf.aspect}
    async with vnf.rule("scale", f"{load} > 80", **wanted, **of_it):
        scaled = await vnf.automatic("SCALE")
        assert scaled["operationParams"]["aspectId"] == vnf.aspect
    after = await vnf.resources()
    assert len(after) == len(before) + 1
    async with vnf.rule("heal", f"{load} > 80", function_type="auto_heal", vnfc_info_id=vnfc_id, **of_it):
        healed = await vnf.automatic("HEAL")
        assert healed["operationParams"]["vnfcInstanceId"] == [vnfc_id]
    healed_ones = await vnf.resources()
    assert len(healed_ones) == len(after)
    assert name not in healed_ones.values()


async def report_values(vnf: Watched, subscriber: Subscriber) -> None:
    """Have rules report the values of a PM job and cross a threshold, as Tacker's rule files do."""
    job = await vnf.create("pm_jobs", {
        "objectType": "Vnf",
        "objectInstanceIds": [vnf.id],
        "criteria": {"performanceMetric": [f"{_CPU}.{vnf.id}"], "collectionPeriod": 2, "reportingPeriod": 6},
        "callbackUri": subscriber.uri,
        "metadata": _RULE_FILES,
    })  # fmt: skip
    threshold = await vnf.create("thresholds", {
        "objectType": "Vnf",
        "objectInstanceId": vnf.id,
        "criteria": {
            "performanceMetric": f"{_CPU}.{vnf.id}",
            "thresholdType": "SIMPLE",
            "simpleThresholdDetails": {"thresholdValue": 50, "hysteresis": 5},
        },
        "callbackUri": subscriber.uri,
        "metadata": _RULE_FILES,
    })  # fmt: skip
    name = next(iter((await vnf.resources()).values()))
    load = vnf.load(name)
    labels = {"object_instance_id": vnf.id, "metric": f"{_CPU}.{vnf.id}"}
    await vnf.monitoring.set(load, 42.5)
    async with vnf.rule("job", load, function_type="vnfpm", job_id=job, **labels):
        await vnf.reported(job, 42.5)
        await notified(subscriber, "PerformanceInformationAvailableNotification", pmJobId=job)
    async with vnf.rule("threshold", load, function_type="vnfpm_threshold", threshold_id=threshold, **labels):
        for value, direction in ((60, "UP"), (40, "DOWN")):
            await vnf.monitoring.set(load, value)
            crossed = await notified(
                subscriber, "ThresholdCrossedNotification", thresholdId=threshold, crossingDirection=direction
            )
            assert crossed["performanceValue"] == value
    await vnf.delete("pm_jobs", job)
    await vnf.delete("thresholds", threshold)


async def measure_by_pull(vnf: Watched, subscriber: Subscriber) -> None:
    """Have a PM job measured by queries, without any rule."""
    await vnf.use_memory(25)
    target = {"prometheusUrl": vnf.monitoring.prometheus_url}
    job = await vnf.create("pm_jobs", {
        "objectType": "Vnf",
        "objectInstanceIds": [vnf.id],
        "criteria": {"performanceMetric": [f"VMemoryUsageMeanVnf.{vnf.id}"], "collectionPeriod": 3, "reportingPeriod": 6},
        "callbackUri": subscriber.uri,
        "metadata": {"monitoring": {**_RULE_FILES["monitoring"], "targetsInfo": [target]}},
    })  # fmt: skip
    await vnf.reported(job, 25.0)
    await vnf.delete("pm_jobs", job)


async def notified(subscriber: Subscriber, kind: str, **equal: Any) -> dict[str, Any]:
    """Wait for a notification of this type with these attributes."""

    async def found() -> dict[str, Any] | None:
        bodies = (each.body for each in subscriber.received)
        wanted = {"notificationType": kind, **equal}
        return next((each for each in bodies if wanted.items() <= each.items()), None)

    return await until(found)


async def test_rules_of_prometheus_reach_a_vnf(vnf: Watched) -> None:
    """API-229."""
    await raise_and_clear_an_alarm(vnf)
    async with Subscriber.listening() as subscriber:
        await report_values(vnf, subscriber)
        await measure_by_pull(vnf, subscriber)
    await scale_and_heal(vnf)
