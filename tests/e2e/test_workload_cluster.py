"""A workload cluster that Cluster API builds, from one request to a VIM with a CNF on it, and back to nothing."""

from __future__ import annotations

from typing import Any

from callers.user import DRIFT, FORCEFUL, User, sample_body
from clouds.lab_process import LabControl
from clusters.masters import kubectl

GRACEFUL = {"terminationType": "GRACEFUL", "gracefulTerminationTimeout": 0}


async def test_one_request_builds_a_cluster_that_becomes_a_vim_and_takes_a_cnf(user: User, lab: LabControl) -> None:
    """CR-009, CR-039, CR-040, CR-041, CR-043, CR-045, CR-046, CR-048, CR-049, CR-050, CR-077, CR-083, CR-085, CR-089, CR-092, CR-104, CR-105, CR-106, CR-111, CR-113, CR-116, CR-121, CR-123: built, scaled, healed, removed."""
    machines_id = await user.create(await user.sample("cluster"))
    await user.do(machines_id, "instantiate", user.cluster())
    management = await user.vim_of_cluster(machines_id)
    providers_id = await user.create(await user.sample("capi-management"))
    view = await user.do(
        providers_id, "instantiate", user.on_vim(sample_body("capi-management", "instantiate"), management)
    )
    assert [step["name"] for step in view["steps"]] == ["apply_objects", "record_capi_providers"]
    shown = (await user.call("GET", f"/v1.0/vims/{management['vimId']}")).json["vim"]["extra"]["capi"]
    assert (shown["contract"], [each["name"] for each in shown["infrastructure"]]) == ("v1beta2", ["openstack"])
    await heal_a_controller(user, providers_id)

    workload_id = await user.create(await user.sample("capi-workload"))
    view = await user.do(
        workload_id, "instantiate", user.on_vim(sample_body("capi-workload", "instantiate"), management)
    )
    assert [step["name"] for step in view["steps"]] == [
        "apply_cluster_objects", "await_cluster/initialized", "apply_addons", "await_cluster/available",
        "send_credentials", "register_workload_vim",
    ]  # fmt: skip
    instance = await user.instance(workload_id)
    vnfcs = instance["instantiatedVnfInfo"]["vnfcResourceInfo"]
    assert sorted(vnfc["vduId"] for vnfc in vnfcs) == ["controlPlane", "worker"]
    assert all(vnfc["metadata"]["providerId"].startswith("openstack:///") for vnfc in vnfcs)
    connection = instance["vimConnectionInfo"]["workload"]
    assert connection["vimId"] == instance["metadata"]["workloadVimId"]
    assert not connection.get("accessInfo")

    cnf_id = await user.create(await user.sample("cnf"))
    await user.do(cnf_id, "instantiate", user.on_vim(sample_body("cnf", "instantiate"), connection))
    await hold_a_custom_resource(user, lab, connection)
    await scale_out_and_in(user, workload_id, connection)
    await heal(user, workload_id, connection)
    await repair(user, await lab.master_of(machines_id), workload_id, connection)
    for provider_id, user_id in ((workload_id, cnf_id), (providers_id, workload_id)):
        refused = await user.lcm("POST", f"/vnf_instances/{provider_id}/terminate", GRACEFUL)
        assert (refused.status, user_id in refused.detail) == (409, True)
    await user.do(cnf_id, "terminate", GRACEFUL)

    view = await user.do(workload_id, "terminate", GRACEFUL)
    assert [step["name"] for step in view["steps"]] == [
        "deregister_vim", "withdraw_credentials", "delete_cluster_objects"
    ]  # fmt: skip
    gone: dict[str, Any] = await user.instance(workload_id)
    assert (gone["instantiationState"], "workloadVimId" in (gone.get("metadata") or {})) == ("NOT_INSTANTIATED", False)
    inventory = await lab.inventory()
    left = [name for cluster in inventory["clusters"] for name in cluster["objects"] if "workload" in name]
    assert left == []
    await send_by_the_packages_script(user, lab, management)
    view = await user.do(providers_id, "terminate", GRACEFUL)
    assert [step["name"] for step in view["steps"]] == ["check_clusters", "delete_objects", "record_capi_providers"]
    assert "capi" not in (await user.call("GET", f"/v1.0/vims/{management['vimId']}")).json["vim"]["extra"]
    await user.do(machines_id, "terminate", FORCEFUL)


async def hold_a_custom_resource(user: User, lab: LabControl, connection: dict[str, Any]) -> None:
    """Deploy a definition and two objects of it on the workload cluster, and remove them."""
    own_id = await user.create(await user.sample("custom-resource"))
    await user.do(own_id, "instantiate", user.on_vim(sample_body("custom-resource", "instantiate"), connection))
    assert await greetings(lab) == ["hello", "welcome"]
    await user.do(own_id, "terminate", GRACEFUL)
    assert await greetings(lab) == []


async def greetings(lab: LabControl) -> list[str]:
    """Return the names of the custom resources."""
    clusters = (await lab.inventory())["clusters"]
    found = [name for cluster in clusters for name in cluster["objects"] if name.startswith("Greeting/")]
    return sorted(name.rpartition("/")[2] for name in found)


async def send_by_the_packages_script(user: User, lab: LabControl, management: dict[str, Any]) -> None:
    """Build and delete the cluster whose package has a sender of its own: request, script, receiver, VIM, and DELETED.

    The Secret of its cloud is made from the VIM of the lab.
    """
    workload_id = await user.create(await user.sample("capi-workload-sender"))
    body = user.on_vim(sample_body("capi-workload-sender", "instantiate"), management)
    parameters = body["additionalParams"]
    parameters["lcm-kubernetes-def-files"].remove("Files/kubernetes/cloud-config.yaml")
    parameters["capi"]["openstack_vim_id"] = cloud = (await user.vims())["lab"]["id"]
    view = await user.do(workload_id, "instantiate", body)
    assert [step["name"] for step in view["steps"]][-2:] == ["instantiate_end", "register_workload_vim"]
    assert "the receiver answered 201" in await user.log(view["id"])
    made = f"application_credentials/kubevnfm-{workload_id}"
    assert made in await lab.names()
    refused = await user.call("DELETE", f"/v1.0/vims/{cloud}")
    assert (refused.status, workload_id in refused.text) == (409, True)
    instance = await user.instance(workload_id)
    assert instance["vimConnectionInfo"]["workload"]["vimId"] == instance["metadata"]["workloadVimId"]
    view = await user.do(workload_id, "terminate", GRACEFUL)
    assert [step["name"] for step in view["steps"]] == [
        "deregister_vim", "terminate_start", "delete_cluster_objects", "forget_machines"
    ]  # fmt: skip
    assert made not in await lab.names()


async def heal_a_controller(user: User, providers_id: str) -> None:
    """Replace the pod of one provider; its others stay."""
    before = machines_of(await user.instance(providers_id))
    name = next(pod for pod, vdu in before.items() if vdu == "core")
    await user.do(providers_id, "heal", {"vnfcInstanceId": [f"core-{name}"]})
    after = machines_of(await user.instance(providers_id))
    assert (before.keys() - after.keys(), sorted(after.values())) == ({name}, sorted(before.values()))


async def scale_out_and_in(user: User, workload_id: str, connection: dict[str, Any]) -> None:
    """Scale the workers out and in, and the control plane out; the VIM of the cluster stays as it is."""
    before = machines_of(await user.instance(workload_id))
    body = {"type": "SCALE_OUT", "aspectId": "workers", "numberOfSteps": 2}
    view = await user.do(workload_id, "scale", body)
    assert [step["name"] for step in view["steps"]] == [
        "await_settled_cluster/before", "scale_cluster_machines", "await_settled_cluster/after"
    ]  # fmt: skip
    instance = await user.instance(workload_id)
    more = machines_of(instance)
    assert sorted(more.values()) == ["controlPlane", "worker", "worker", "worker"]
    assert before.items() <= more.items()
    assert instance["vimConnectionInfo"]["workload"] == connection
    await user.do(workload_id, "scale", {**body, "type": "SCALE_IN"})
    assert sorted(machines_of(await user.instance(workload_id)).values()) == ["controlPlane", "worker"]
    await user.do(workload_id, "scale", {"type": "SCALE_OUT", "aspectId": "control_plane"})
    left = machines_of(await user.instance(workload_id))
    assert sorted(left.values()) == ["controlPlane", "controlPlane", "controlPlane", "worker"]


async def heal(user: User, workload_id: str, connection: dict[str, Any]) -> None:
    """Heal one worker and one machine of the control plane by name; then there is nothing left to heal."""
    before = machines_of(await user.instance(workload_id))
    worker = next(name for name, vdu in before.items() if vdu == "worker")
    plane = next(name for name, vdu in before.items() if vdu == "controlPlane")
    view = await user.do(workload_id, "heal", {"vnfcInstanceId": [f"controlPlane-{plane}", f"worker-{worker}"]})
    assert [step["name"] for step in view["steps"]] == [
        "check_machines", f"replace_machine/{worker}", f"replace_machine/{plane}"
    ]  # fmt: skip
    instance = await user.instance(workload_id)
    after = machines_of(instance)
    assert (before.keys() - after.keys(), sorted(after.values())) == ({worker, plane}, sorted(before.values()))
    assert instance["vimConnectionInfo"]["workload"] == connection
    view = await user.do(workload_id, "heal", {})
    assert [step["name"] for step in view["steps"]] == ["check_machines"]
    assert machines_of(await user.instance(workload_id)) == after


async def repair(user: User, master: str, workload_id: str, connection: dict[str, Any]) -> None:
    """Have a person delete the MachineDeployment, and with it the worker; the mark comes, and goes with the repair."""
    before = machines_of(await user.instance(workload_id))
    await kubectl(user.installation.lab, master, "delete machinedeployments.cluster.x-k8s.io workload-md-0")
    mark = await user.drifted(workload_id, "INCOMPLETE")
    assert [(one["kind"], one["name"], one["what"]) for one in mark["objects"]] == [
        ("MachineDeployment", "workload-md-0", "missing")
    ]
    view = await user.do(workload_id, "heal", {"additionalParams": {"repair": True}})
    assert [step["name"] for step in view["steps"]] == ["repair_cluster_objects", "await_settled_cluster"]
    instance = await user.instance(workload_id)
    after = machines_of(instance)
    assert sorted(after.values()) == sorted(before.values())
    assert {name for name, vdu in before.items() if vdu == "controlPlane"} == before.keys() & after.keys()
    assert (DRIFT in instance["metadata"], instance["vimConnectionInfo"]["workload"]) == (False, connection)


def machines_of(instance: dict[str, Any]) -> dict[str, str]:
    """Return the VDU of each Machine or pod by name."""
    vnfcs = instance["instantiatedVnfInfo"]["vnfcResourceInfo"]
    return {one["computeResource"]["resourceId"]: one["vduId"] for one in vnfcs}


async def test_parameters_of_a_workload_cluster_are_read_strictly(user: User) -> None:
    """CR-048, CR-069: what is not understood is refused, with the name of the field."""
    workload_id = await user.create(await user.sample("capi-workload"))
    body = sample_body("capi-workload", "instantiate")
    endpoint = {"endpoint": "https://127.0.0.1:1", "ssl_ca_cert": "None"}
    connection = {
        "vimType": "ETSINFV.KUBERNETES.V_1",
        "interfaceInfo": endpoint,
        "accessInfo": {"bearer_token": "none"},
    }
    body["vimConnectionInfo"] = {"management": connection}
    for field, value in {
        "nonsense": 1,
        "ready": "soon",
        "credentials": "token",
        "register_vim": "yes",
        "timeouts": {"workers": 0},
        "addon-def-files": ["Files/none.yaml"],
        "callback_url": "https://user:secret@receiver.example/",
    }.items():
        body["additionalParams"]["capi"] = {field: value}
        answer = await user.lcm("POST", f"/vnf_instances/{workload_id}/instantiate", body)
        assert (answer.status, field in answer.detail) == (400, True), answer.text
        assert "secret" not in answer.text
