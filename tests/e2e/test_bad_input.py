"""Invalid requests are rejected with the field and the rule, before anything is created (sequences.md 2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from callers.user import User, sample_body
from clouds.lab_process import LabControl

Params = dict[str, Any]


def _overlapping(install: Params) -> None:
    install["master_node"]["pod_cidr"] = "10.96.0.0/16"


def _no_script(install: Params) -> None:
    install["script_path"] = "Scripts/not_there.sh"


def _script_outside(install: Params) -> None:
    install["script_path"] = "../../etc/passwd"


def _no_cidr(install: Params) -> None:
    install["master_node"]["pod_cidr"] = "192.168.0.0/33"


def _no_user(install: Params) -> None:
    del install["master_node"]["username"]


def _no_aspect(install: Params) -> None:
    install["worker_node"]["aspect_id"] = "not_an_aspect"


BAD: list[tuple[Callable[[Params], None], int, str]] = [
    (_overlapping, 422, "pod_cidr"),
    (_no_script, 422, "script_path"),
    (_script_outside, 400, "script_path"),
    (_no_cidr, 400, "pod_cidr"),
    (_no_user, 400, "username"),
    (_no_aspect, 422, "aspect_id"),
]


@pytest.mark.parametrize(("spoil", "status", "field"), BAD, ids=[spoil.__name__.strip("_") for spoil, _, _ in BAD])
async def test_bad_cluster_parameters_are_refused_by_name(
    user: User, lab: LabControl, spoil: Callable[[Params], None], status: int, field: str
) -> None:
    """API-010, sequences.md 2.2 to 2.4."""
    body = user.cluster()
    spoil(body["additionalParams"]["k8s_cluster_installation_param"])
    cluster_id = await user.create(await user.sample("cluster"))
    await lab.forget_calls()
    answer = await user.ask(cluster_id, "instantiate", body)
    assert answer.status in {400, 422}
    assert answer.status == status, answer.text
    assert field in answer.detail
    assert any(field in each["name"] for each in answer.json["invalidParams"])
    assert await lab.calls("heat", "stack_create") == {}
    occurrences = (await user.lcm("GET", f"/vnf_lcm_op_occs?filter=(eq,vnfInstanceId,{cluster_id})")).must(200)
    assert occurrences.json == []
    await user.delete(cluster_id)


@pytest.mark.parametrize(
    ("change", "status", "field"),
    [
        ({"flavourId": "unknown"}, 400, "flavourId"),
        ({"instantiationLevelId": "unknown"}, 400, "instantiationLevelId"),
        ({"flavourId": 7}, 400, "flavourId"),
        ({"flavourId": None}, 400, "flavourId"),
        ({"vimConnectionInfo": {"a": {"vimType": "ETSINFV.OPENSTACK_KEYSTONE.V_3", "vimId": "unknown"}}}, 422, "vimId"),
        ({"vimConnectionInfo": {"a": {"vimType": "aws"}}}, 422, "vimType"),
        ({"additionalParams": {"lcm-operation-user-data": "UserData/x.py"}}, 400, "lcm-operation-user-data"),
    ],
)
async def test_a_bad_instantiate_names_its_attribute(user: User, change: Params, status: int, field: str) -> None:
    """API-010, API-031, API-032."""
    instance_id = await user.create(await user.sample("vm"))
    answer = (await user.ask(instance_id, "instantiate", {**sample_body("vm", "instantiate"), **change})).must(status)
    assert field in answer.detail
    await user.delete(instance_id)


async def test_a_vim_that_does_not_answer_is_not_registered(user: User) -> None:
    """Done-list of issue 2; api.md chapter 8: the VIM is contacted before the 201."""
    away = user.installation.lab.vim(name="away", is_default=False, auth_url="http://127.0.0.1:9/identity/v3")
    refused = await user.call("POST", "/v1.0/vims", {"vim": away})
    assert refused.status in {502, 503, 504}, refused.text
    assert "127.0.0.1:9" in refused.json["TackerError"]["message"]
    assert "away" not in await user.vims()


async def test_a_vim_with_a_wrong_password_is_not_registered(user: User) -> None:
    """The response reports Keystone's refusal, without the password."""
    wrong = user.installation.lab.vim(name="wrong", is_default=False)
    wrong["auth_cred"]["password"] = "not-the-password"
    refused = await user.call("POST", "/v1.0/vims", {"vim": wrong})
    assert refused.status in {400, 401, 422}, refused.text
    assert "not-the-password" not in refused.text
    wrong["auth_cred"]["pasword"] = "not-the-password"
    named = (await user.call("POST", "/v1.0/vims", {"vim": wrong})).must(400).json["invalidParams"]
    assert [each["name"] for each in named] == ["vim.auth_cred.pasword"]
    assert "wrong" not in await user.vims()


async def test_two_nodes_that_share_an_address_are_refused_before_any_machine_is_touched(
    user: User, lab: LabControl
) -> None:
    """Done-list of issue 2: a request whose names give two nodes the same address."""
    body = user.cluster(level="instantiation_level_1")
    install = body["additionalParams"]["k8s_cluster_installation_param"]
    install["worker_node"]["aspect_id"] = "master_instance"
    install["worker_node"]["ssh_cp_name"] = install["worker_node"]["nic_cp_name"] = "masterNode_CP1"
    cluster_id = await user.create(await user.sample("cluster"))
    await lab.forget_calls()
    answer = await user.ask(cluster_id, "instantiate", body)
    if answer.status == 202:  # the conflict shows only in the addresses of the stack
        operation = answer.headers["Location"].rsplit("/", 1)[-1]
        view = await user.rest(operation)
        assert view["state"] == "FAILED_TEMP"
        assert "address" in view["error"]["detail"]
        assert await lab.calls("ssh", "connect") == {}
        await user.act(operation, "rollback")
    else:
        assert answer.status in {400, 422}
        assert "aspect_id" in answer.detail or "ssh_cp_name" in answer.detail
    await user.delete(cluster_id)
