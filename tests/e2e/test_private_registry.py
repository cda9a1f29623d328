"""A private registry as a VNF, and a cluster that pulls from it, over HTTP."""

from __future__ import annotations

import re
from typing import Any

import aiohttp
import pytest
from callers.user import ApiVersion, User, sample_body
from clouds.lab_process import LabControl
from kubevnfm_cluster.registry_vnf import REGISTRY_VNF
from kubevnfm_lab.machines.registry import RegistryPort, RegistrySettings
from servers.ports import free_port
from servers.wirings import variants


def registry_body(user: User, version: ApiVersion, **changes: Any) -> dict[str, Any]:
    """Return the sample's request for the lab's machines."""
    body = sample_body("registry", "instantiate.v1" if version == "v1" else "instantiate")
    body["additionalParams"][REGISTRY_VNF] |= {"ssh_password": user.installation.lab.machine_password, **changes}
    return body


async def address_of(user: User, registry_id: str) -> str:
    """Return the address of the registry's machine."""
    (point,) = (await user.instance(registry_id))["instantiatedVnfInfo"]["extCpInfo"]
    (protocol,) = point["cpProtocolInfo"]
    return str(protocol["ipOverEthernet"]["ipAddresses"][0]["addresses"][0])


async def answers(address: str, login: dict[str, str] | None = None) -> int:
    """Return the status of the registry's API."""
    headers = {"Authorization": aiohttp.encode_basic_auth(*login.values())} if login else {}
    async with aiohttp.ClientSession() as session, session.get(f"http://{address}/v2/", headers=headers) as response:
        return response.status


@pytest.mark.parametrize(
    ("installation", "form"),
    variants(("v1", "v2"), every_run=lambda wiring, form: (wiring, form) == ("single", "v1")),
    indirect=["installation"],
)
async def test_a_registry_serves_a_cluster_is_healed_and_terminated(user: User, v1: User, form: ApiVersion) -> None:
    """SEQ-110, SEQ-118 to SEQ-121, SEQ-123."""
    caller = v1 if form == "v1" else user
    registry_id = await caller.create(await caller.sample("registry"))
    login = {"username": "puller", "password": "pull-word"}
    asked = registry_body(caller, form, port_no="5001", x_username="puller", x_password="pull-word")
    view = await caller.do(registry_id, "instantiate", asked)
    assert [step["name"] for step in view["steps"]] == ["create_resources", "instantiate_end"]
    (node,) = view["nodes"]
    assert [task["task"] for task in node["tasks"]] == ["reach", "copy", "engine", "image", "serve"]
    server = f"{await address_of(user, registry_id)}:5001"
    assert (await answers(server, login), await answers(server)) == (200, 401)
    assert "pull-word" not in str(await user.instance(registry_id)) + await user.log(view["id"])

    scaling = {"type": "SCALE_OUT", "aspectId": "any", "numberOfSteps": 1}
    assert "it is a private registry" in (await caller.ask(registry_id, "scale", scaling)).must(404).detail

    if form == "v2":
        cluster_id = await user.create(await user.sample("cluster"))
        body = user.cluster()
        parameters = body["additionalParams"]["k8s_cluster_installation_param"]
        parameters["private_registry_connection_info"] = [{"connection_type": "0", "server": server, **login}]
        built = await user.do(cluster_id, "instantiate", body)
        assert {node["name"] for node in built["nodes"] for task in node["tasks"] if task["task"] == "registries"} == {
            node["name"] for node in built["nodes"]
        }
        await user.terminate(cluster_id)

    view = await caller.do(registry_id, "heal", sample_body("registry", "heal"))
    assert view["steps"][-1]["name"] == "heal_end"
    assert await answers(f"{await address_of(user, registry_id)}:5001", login) == 200
    await caller.terminate(registry_id)


@pytest.mark.deep
async def test_a_registry_that_nodes_cannot_pull_from_is_named_and_retries_go_on_at_the_node(
    user: User, lab: LabControl
) -> None:
    """SEQ-137: it does not answer, then it refuses the login, then it serves; the request stays as it was."""
    logins: set[tuple[str, str]] = set()
    port = free_port()
    registry = RegistryPort(["127.0.0.1"], port, RegistrySettings(knows=lambda *given: given in logins))
    login = {"username": "puller", "password": "pull-word"}
    body = user.cluster()
    parameters = body["additionalParams"]["k8s_cluster_installation_param"]
    server = f"127.0.0.1:{port}"
    parameters["private_registry_connection_info"] = [{"connection_type": "0", "server": server, **login}]
    cluster_id = await user.create(await user.sample("cluster"))
    await lab.forget_calls()

    view = await user.rest(await user.start(cluster_id, "instantiate", body))
    unreachable = _node_that_cannot_pull(view, f"registry {server}: cannot be reached at http://{server}/v2/")
    await registry.open()
    try:
        view = await user.act(view["id"], "retry")
        refused = _node_that_cannot_pull(view, f"registry {server}: http://{server}/v2/ refuses the login (status 401)")
        assert await lab.calls("program", "kubeadm init") == {}
        logins.add(("puller", "pull-word"))
        view = await user.act(view["id"], "retry")
    finally:
        registry.close()
    assert view["state"] == "COMPLETED", view
    states = {(task["task"], node["name"]): task["state"] for node in view["nodes"] for task in node["tasks"]}
    for node in {unreachable, refused}:
        # The files of the registry are there since the first attempt; each one looks whether the registry answers.
        assert {states["prepare", node], states["registries", node]} == {"skipped"}
    assert sum((await lab.calls("program", "kubeadm init")).values()) == 1
    assert "pull-word" not in str(view) + await user.log(view["id"])
    await user.terminate(cluster_id)


def _node_that_cannot_pull(view: dict[str, Any], reason: str) -> str:
    """Return the node that the error of the failed operation names, with the task, the reason and no password."""
    detail = view["error"]["detail"]
    assert view["state"] == "FAILED_TEMP"
    found = re.match(r"instantiate_end: node (\S+): task registries: ", detail)
    assert found is not None, detail
    assert detail[found.end() :].startswith(reason)
    assert "pull-word" not in str(view)
    return found[1]


async def test_a_request_for_a_registry_that_cannot_work_is_refused_before_anything_is_made(user: User) -> None:
    """SEQ-115, SEQ-116, SEQ-117 (by its image, which this package does not have), SEQ-191."""
    registry_id = await user.create(await user.sample("registry"))
    place = f"additionalParams/{REGISTRY_VNF}"
    without = registry_body(user, "v2")
    del without["additionalParams"][REGISTRY_VNF]
    assert f"{place}: missing" in (await user.ask(registry_id, "instantiate", without)).must(400).detail
    for changes, status, field in (
        ({"ssh_cp_name": None}, 400, "ssh_cp_name: missing"),
        ({"ssh_username": ""}, 400, "ssh_username: missing"),
        ({"ssh_password": None}, 400, "ssh_password: missing"),
        ({"port_no": "22"}, 400, "port_no: a port from 1 to 65535, but not 22"),
        ({"port_no": True}, 400, "port_no"),
        ({"x_username": "u"}, 400, "x_password: missing"),
        ({"ssh_cp_name": "CP9"}, 422, "ssh_cp_name: the templates has no resource CP9"),
        (
            {"image_path": "Files/images/private_registry.tar"},
            422,
            "image_path: the package has no file Files/images/private_registry.tar",
        ),
        (
            {"x_certificate_path": "Scripts/private_registry_mgmt.py", "x_certificate_key": "k"},
            422,
            "x_certificate_path: a certificate in PEM form expected",
        ),
    ):
        refused = (await user.ask(registry_id, "instantiate", registry_body(user, "v2", **changes))).must(status)
        assert f"{place}/{field}" in refused.detail, changes
    await user.delete(registry_id)
