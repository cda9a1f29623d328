"""The views of PM jobs, thresholds and automatic actions: a monitoring system sends values, and kubevnfm scales by itself."""

from __future__ import annotations

import re
from typing import Any, Final

import pytest
from callers.browser import Client, Tab
from callers.user import sample_body
from real.alertmanager import fault, message, value
from servers.subscriber import Subscriber

ASPECT: Final = "VDU1_scale"
MONITORED: Final = {"monitoring": {"monitorName": "prometheus", "driverType": "external"}}
NAME: Final = "measured <img src=x onerror=alert(1)>"

pytestmark = [pytest.mark.page, pytest.mark.asyncio(loop_scope="session")]


async def test_values_reports_crossings_and_automatic_actions_are_seen_as_they_come(tab: Tab, client: Client) -> None:
    page = tab.page
    vm_id = await client.create(await client.sample("vm"), vnfInstanceName=NAME)
    allowed = {"vnfConfigurableProperties": {"isAutoscaleEnabled": True}}
    await client.rest(await client.start(vm_id, "instantiate", {**sample_body("vm", "instantiate"), **allowed}))
    async with Subscriber.listening() as subscriber:
        common = {"objectType": "Vnf", "callbackUri": subscriber.uri, "metadata": MONITORED}
        criteria = {"performanceMetric": ["VCpuUsageMeanVnf"], "collectionPeriod": 1, "reportingPeriod": 10}
        job = await made(client, "pm_jobs", {**common, "objectInstanceIds": [vm_id], "criteria": criteria})
        await tab.log_in("anna", f"/ui/instances/{vm_id}")
        await page.locator("main").get_by_role("link", name="PM jobs").click()
        await (
            page.get_by_role("row").filter(has_text="its values are sent").get_by_role("link", name="VCpuUsage").click()
        )
        await page.get_by_role("heading", name=f"PM job of {NAME}").wait_for()
        await report(client, "/pm_event", value("vnfpm", job, vm_id, "42.5"))
        await page.get_by_role("cell", name="42.5").first.wait_for()
        await page.get_by_role("combobox", name="Report").wait_for()
        await page.get_by_role("columnheader", name="Greatest").wait_for()
        assert await page.get_by_role("cell", name="42.5").count() == 4, "the newest value; least, mean and greatest"
        await tab.picture("pm-job")
        await tab.faultless()
        await a_threshold_is_crossed(tab, client, vm_id, common)
    await page.goto(f"{tab.url}/ui/pm-jobs/{job}")
    await page.get_by_role("button", name="Delete …").click()
    await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    await page.get_by_text("There is no PM job.").wait_for()
    await an_alarm_of_a_monitoring_system_is_a_problem(tab, client, vm_id)
    await client.do(vm_id, "terminate", {"terminationType": "FORCEFUL"})
    await client.delete(vm_id)


async def a_threshold_is_crossed(tab: Tab, client: Client, vm_id: str, common: dict[str, Any]) -> None:
    """It scales the VNF, which is seen; a reader may delete nothing."""
    page = tab.page
    details = {"thresholdValue": 80, "hysteresis": 5}
    criteria = {"performanceMetric": "VCpuUsageMeanVnf", "thresholdType": "SIMPLE", "simpleThresholdDetails": details}
    metadata = {**MONITORED, "automation": {"aspectId": ASPECT, "onUp": "SCALE_OUT"}}
    wanted = {**common, "objectInstanceId": vm_id, "criteria": criteria, "metadata": metadata}
    threshold = await made(client, "thresholds", wanted)
    await page.goto(f"{tab.url}/ui/automatic-actions?instance={vm_id}")
    await page.get_by_text("kubevnfm has done nothing by itself, and nothing waits.").wait_for()
    await page.goto(f"{tab.url}/ui/thresholds?instance={vm_id}")
    row = page.get_by_role("row").filter(has_text="80 ± 5")
    await row.filter(has_text="no value yet").wait_for()
    for given in ("10", "91"):
        await report(client, "/pm_threshold", value("vnfpm_threshold", threshold, vm_id, given))
    await row.filter(has_text="above").wait_for()
    await tab.faultless()
    await row.get_by_role("link", name="VCpuUsageMeanVnf").click()
    await page.get_by_role("heading", name=f"Threshold of {NAME}").wait_for()
    await page.get_by_text("aspectId: VDU1_scale, onUp: SCALE_OUT").wait_for()
    await tab.faultless()
    await page.get_by_role("link", name="Its automatic actions").click()
    action = page.get_by_role("row").filter(has_text=f"Scale out {ASPECT}")
    await action.get_by_text(re.compile("^. done$")).wait_for()
    await action.get_by_role("link", name="completed").wait_for()
    await tab.picture("automatic-actions")
    await tab.faultless()
    await page.get_by_label("State").select_option("TRIAL")
    await page.get_by_text("kubevnfm has done nothing by itself").wait_for()
    await page.get_by_label("State").select_option("DONE")
    await action.get_by_role("link", name="Scale out").click()
    await page.get_by_text("threshold, ").wait_for()
    await page.get_by_role("button", name="Log out").click()
    await page.get_by_text("You have logged out.").wait_for()
    await tab.log_in("rita", f"/ui/thresholds/{threshold}")
    await page.get_by_text("Deleting it needs the role operator.").wait_for()
    assert await page.get_by_role("button", name="Delete").count() == 0
    await page.get_by_role("button", name="Log out").click()
    await page.get_by_text("You have logged out.").wait_for()
    await tab.log_in("anna", f"/ui/thresholds/{threshold}")
    await page.get_by_role("button", name="Delete …").click()
    await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    await page.get_by_text("There is no threshold.").wait_for()


async def an_alarm_of_a_monitoring_system_is_a_problem(tab: Tab, client: Client, vm_id: str) -> None:
    """It is seen in the list of instances as soon as it is raised, and its end too."""
    page = tab.page
    await page.goto(f"{tab.url}/ui/instances")
    row = page.get_by_role("row").filter(has_text=NAME)
    await row.filter(has_text="ok").wait_for()
    firing = fault(vm_id)
    await report(client, "/alert", firing)
    await row.filter(has_text="alarm Server Down (WARNING): No answer.").wait_for()
    await report(client, "/alert", {**firing, "status": "resolved", "endsAt": "2026-11-28T10:00:00Z"})
    await row.filter(has_text="ok").wait_for()


async def made(client: Client, kind: str, body: dict[str, Any]) -> str:
    """Create a PM job or a threshold; return its id."""
    answer = await client.call("POST", f"/vnfpm/v2/{kind}", body, headers={"Version": "2.2.0"})
    return str(answer.must(201).json["id"])


async def report(client: Client, path: str, *alerts: Any) -> None:
    (await client.call("POST", path, message(*alerts))).must(204)
