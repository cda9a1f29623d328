"""Automatic operations on the lab: a lost machine is replaced, and an alert of a monitoring system scales a CNF, without a person."""

from __future__ import annotations

import pytest
from callers.automatic import actions_of, ended, operations_of
from callers.user import User, sample_body
from clouds.cloud_faults import CloudFaults
from clouds.lab_process import LabControl
from clouds.machine_vnfs import machines, servers_of
from real import alertmanager
from real.real_cloud import REAL_CLOUD
from servers.wirings import GIVEN_URL

pytestmark = pytest.mark.skipif(GIVEN_URL is not None, reason="a given installation has pauses of its own")


async def test_a_lost_machine_is_replaced_once_without_a_person(user: User, lab: LabControl) -> None:
    """API-187, API-236, API-247."""
    faults = await CloudFaults.from_user(user, lab)
    instance_id = await user.create(await user.sample("vm"))
    allowed = {"vnfConfigurableProperties": {"isAutohealEnabled": True}}
    await user.do(instance_id, "instantiate", {**sample_body("vm", "instantiate"), **allowed})
    await user.do(instance_id, "scale", sample_body("vm", "scale_out"))
    before = servers_of(await user.instance(instance_id))
    info = (await user.instance(instance_id))["instantiatedVnfInfo"]
    lost = info["vnfcResourceInfo"][0]
    server_id = lost["computeResource"]["resourceId"]
    await faults.delete_server(server_id)

    alarm = await user.alarm(instance_id, is_open=False)
    assert (alarm["faultType"], alarm["rootCauseFaultyResource"]["faultyResource"]["resourceId"]) == (
        "machine-lost",
        server_id,
    )
    (action,) = await ended(user, instance_id, count=1)
    assert (action["operation"], action["state"]) == ("HEAL", "DONE"), action
    view = await user.rest(action["operationId"])
    assert (view["state"], view["operation"]) == ("COMPLETED", "HEAL")
    why = view["automatic"]
    assert (why["trigger"], why["triggerId"], why["actionId"]) == ("alarm", alarm["id"], action["id"])
    assert why["reason"] == alarm["faultDetails"][0]
    occurrence = await user.occurrence(view["id"])
    assert occurrence["isAutomaticInvocation"] is True
    (named,) = occurrence["operationParams"]["vnfcInstanceId"]
    assert named in {each["id"] for each in info["vnfcInfo"] if each["vnfcResourceInfoId"] == lost["id"]}

    # The healthy machine is the same one, and the lost one was replaced by one.
    after = servers_of(await user.instance(instance_id))
    assert (before - after, len(after)) == ({server_id}, 2)
    assert after == set(await machines(lab, instance_id))
    await user.drifted(instance_id, None)
    assert [each["id"] for each in await operations_of(user, instance_id, "HEAL")] == [view["id"]]
    await user.terminate(instance_id)


@pytest.mark.skipif(REAL_CLOUD is not None, reason="clusters are installed on `make test-machines`")
async def test_alerts_of_a_monitoring_system_scale_a_cnf_up_to_its_maximum(user: User, lab: LabControl) -> None:
    """API-227, API-237."""
    cluster_id = await user.create(await user.sample("cluster"))
    await user.do(cluster_id, "instantiate", user.cluster())
    cnf_id = await user.create(await user.sample("cnf"))
    body = user.on_vim(sample_body("cnf", "instantiate"), await user.vim_of_cluster(cluster_id))
    firings = [alertmanager.scale(cnf_id, "web_aspect", startsAt=f"2026-06-21T23:4{minute}:00Z") for minute in range(4)]
    await user.do(cnf_id, "instantiate", body)
    path = "/alert/auto_scaling"
    refused = (await user.call("POST", path, alertmanager.message(firings[0]))).must(422)
    assert "isAutoscaleEnabled" in refused.text
    allow = {"vnfConfigurableProperties": {"isAutoscaleEnabled": True}}
    changed = {"Content-Type": "application/merge-patch+json"}
    modify = (await user.lcm("PATCH", f"/vnf_instances/{cnf_id}", allow, headers=changed)).must(202)
    await user.rest(modify.headers["Location"].rsplit("/", 1)[-1])

    for number, firing in enumerate(firings, 1):
        for _ in range(2):  # Alertmanager repeats an alert that keeps firing
            (await user.call("POST", path, alertmanager.message(firing))).must(204)
        await ended(user, cnf_id, count=number)
    too_many, *done = await actions_of(user, cnf_id)
    assert [each["state"] for each in done] == ["DONE"] * 3
    assert (too_many["state"], "operationId" in too_many) == ("NOT_DONE", False)
    assert "at its maximum (level 3)" in too_many["reason"]
    scaled = await operations_of(user, cnf_id, "SCALE")
    assert {each["id"] for each in scaled} == {each["operationId"] for each in done}
    assert all(each["isAutomaticInvocation"] and each["operationState"] == "COMPLETED" for each in scaled)

    info = (await user.instance(cnf_id))["instantiatedVnfInfo"]
    pods = {pod["name"] for pod in (await lab.cluster_of(cluster_id))["pods"] if cnf_id in pod["labels"].values()}
    assert {each["computeResource"]["resourceId"] for each in info["vnfcResourceInfo"]} == pods
    assert (info["scaleStatus"][0]["scaleLevel"], len(pods)) == (3, 5)
    await user.terminate(cnf_id)
    await user.terminate(cluster_id)
