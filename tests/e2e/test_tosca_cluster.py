"""A Kubernetes cluster whose package has neither Base HOT nor user data (sequences.md 1.9)."""

from __future__ import annotations

import uuid

import pytest
from callers.user import GRACEFUL, ApiVersion, User, sample_body
from clouds.lab_process import LabControl
from packages.tosca_clusters import free_range, tosca_cluster, tosca_request
from servers.wirings import variants


def _in_every_run(wiring: str, version: str) -> bool:
    return (wiring, version) == ("single", "v1")


@pytest.mark.parametrize(
    ("installation", "version"), variants(("v1", "v2"), every_run=_in_every_run), indirect=["installation"]
)
async def test_a_cluster_is_built_by_tosca_alone(user: User, v1: User, lab: LabControl, version: ApiVersion) -> None:
    """SEQ-019, SEQ-020, SEQ-021, SEQ-026, SEQ-027, SEQ-163."""
    caller = v1 if version == "v1" else user
    machines = user.installation.lab
    package = await caller.upload(tosca_cluster(str(uuid.uuid4()), free_range(machines)))
    assert (package["onboardingState"], package.get("warnings", [])) == ("ONBOARDED", []), package
    cluster_id = await caller.create(package["vnfdId"])
    view = await caller.do(cluster_id, "instantiate", tosca_request(machines, version=version))
    assert [step["name"] for step in view["steps"]] == ["create_resources", "instantiate_end", "register_vim"]

    # The nodes talk over the internal network; the login comes by the external one.
    vim = await user.vim_of_cluster(cluster_id)
    endpoint = vim["interfaceInfo"]["endpoint"]
    assert endpoint.startswith("https://" + free_range(machines).removesuffix("0/24"))
    (kubernetes,) = [each for each in (await lab.inventory())["clusters"] if each["endpoint"] == endpoint]
    shown = await user.instance(cluster_id)
    vnfcs = shown["instantiatedVnfInfo"]["vnfcResourceInfo"]
    assert sorted(vnfc["vduId"] for vnfc in vnfcs) == ["masterNode", "workerNode"]
    assert {vnfc["metadata"]["node_name"] for vnfc in vnfcs} == {node["name"] for node in kubernetes["nodes"]}
    assert len({vnfc["metadata"]["host"] for vnfc in vnfcs}) == 2
    # The cloud's own for the master, and one of the VNFD's size for the worker.
    flavors = {vnfc["vduId"]: vnfc["metadata"]["flavor"] for vnfc in vnfcs}
    assert flavors["masterNode"] != flavors["workerNode"]
    (link,) = shown["instantiatedVnfInfo"]["extVirtualLinkInfo"]
    assert link["resourceHandle"]["resourceId"] == "net0"

    healed = {vnfc["vduId"]: vnfc["id"] for vnfc in shown["instantiatedVnfInfo"]["vnfcInfo"]}
    if version == "v1":
        healed = {vnfc["vduId"]: vnfc["id"] for vnfc in vnfcs}
    only_master = (await caller.ask(cluster_id, "heal", {"vnfcInstanceId": [healed["masterNode"]]})).must(422)
    assert "master" in only_master.detail
    await caller.do(cluster_id, "heal", {"vnfcInstanceId": [healed["workerNode"]]})
    after = {
        vnfc["vduId"]: vnfc for vnfc in (await user.instance(cluster_id))["instantiatedVnfInfo"]["vnfcResourceInfo"]
    }
    for vnfc in vnfcs:
        is_same = vnfc["computeResource"]["resourceId"] == after[vnfc["vduId"]]["computeResource"]["resourceId"]
        assert is_same == (vnfc["vduId"] == "masterNode")
        assert vnfc["metadata"]["flavor"] == after[vnfc["vduId"]]["metadata"]["flavor"]

    cnf_id = await user.create(await user.sample("cnf"))
    await user.do(cnf_id, "instantiate", user.on_vim(sample_body("cnf", "instantiate"), vim))
    assert (await caller.ask(cluster_id, "terminate", GRACEFUL)).status == 409
    # It has no scaling aspect.
    assert (await caller.ask(cluster_id, "scale", {"type": "SCALE_OUT", "aspectId": "workerNode"})).status == 404
    await user.terminate(cnf_id)
    await caller.do(cluster_id, "terminate", GRACEFUL)
    await caller.delete(cluster_id)
