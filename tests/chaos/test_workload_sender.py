"""A workload cluster whose package sends its credentials: with SIGKILL at each step of the sending, and every message twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pytest
from callers.user import GRACEFUL, sample_body
from clouds.holds import Hold
from servers.broker import everything_twice
from servers.chaos import IN_TURN, Chaos
from servers.installations import SixInstallation

pytestmark = [pytest.mark.chaos, pytest.mark.deep, pytest.mark.timeout(900)]

SENDER: Final = "capi-workload-sender"
SENDING: Final[Sequence[Hold]] = (
    Hold("reading the Secret", "kubernetes", "get secrets"),
    Hold("the token of the script", "kubernetes", "create serviceaccounts/token"),
    Hold("the receiver has the credentials", "kubernetes", "delete serviceaccounts"),
)
ERASING: Final[Sequence[Hold]] = SENDING[1:]
LOGIN: Final[Sequence[Hold]] = (
    Hold("the application credential is being made", "keystone", "application_credential_create"),
    Hold("the Secret of the cloud", "kubernetes", "patch secrets"),
)
TAKEN_BACK: Final[Sequence[Hold]] = (
    Hold("the application credential is being deleted", "keystone", "application_credential_delete"),
)


async def sent(chaos: Chaos, target: str, sending: Sequence[Hold], erasing: Sequence[Hold]) -> None:
    """Build the cluster and delete it while the target is hit: it is one VIM, and then none; no account of a script is left.

    It has one application credential of the lab's OpenStack, and then none.
    """
    machines_id = await chaos.build_cluster(target, ())
    management = (await chaos.user.vims())[f"kubernetes_vim_{machines_id}"]
    on_it = {"management": {"vimId": management["id"], "vimType": "ETSINFV.KUBERNETES.V_1"}}
    providers_id = await chaos.user.create(await chaos.user.sample("capi-management"))
    await chaos.run(providers_id, "instantiate", _on("capi-management", on_it), (), target)
    before = set(await chaos.user.vims())
    workload_id = await chaos.user.create(await chaos.user.sample(SENDER))
    body = _on(SENDER, on_it)
    body["additionalParams"]["lcm-kubernetes-def-files"].remove("Files/kubernetes/cloud-config.yaml")
    body["additionalParams"]["capi"]["openstack_vim_id"] = (await chaos.user.vims())["lab"]["id"]
    await chaos.run(workload_id, "instantiate", body, sending, target)
    assert await _cloud_logins(chaos) == [f"kubevnfm-{workload_id}"]
    (name,) = set(await chaos.user.vims()) - before
    assert name == f"workload-{workload_id[:8]}"
    instance = await chaos.user.instance(workload_id)
    assert instance["vimConnectionInfo"]["workload"]["vimId"] == (await chaos.user.vims())[name]["id"]
    assert await _accounts(chaos) == []
    await chaos.run(workload_id, "terminate", GRACEFUL, erasing, target)
    assert await _cloud_logins(chaos) == []
    assert set(await chaos.user.vims()) == before
    assert await _accounts(chaos) == []
    await chaos.run(providers_id, "terminate", GRACEFUL, (), target)
    await chaos.end_cluster(machines_id, target, ())


def _on(sample: str, vims: dict[str, Any]) -> dict[str, Any]:
    return {**sample_body(sample, "instantiate"), "vimConnectionInfo": vims}


async def _accounts(chaos: Chaos) -> list[str]:
    clusters = (await chaos.lab.inventory())["clusters"]
    return [name for cluster in clusters for name in cluster["objects"] if "kubevnfm-reader" in name]


async def _cloud_logins(chaos: Chaos) -> list[str]:
    return [one["name"] for one in (await chaos.lab.inventory()).get("application_credentials", [])]


@pytest.mark.parametrize("target", ["infra-k8s", "vim-registry"])
async def test_a_process_killed_while_a_cluster_gets_its_login_makes_no_second_one(
    six_chaos: Chaos, target: str
) -> None:
    """CR-049: an application credential whose secret was lost is replaced, and none is left."""
    await sent(six_chaos, target, LOGIN, TAKEN_BACK)


@pytest.mark.parametrize("target", ["mgmt-executor", IN_TURN])
async def test_a_process_killed_while_a_package_sends_credentials_harms_nothing(six_chaos: Chaos, target: str) -> None:
    """CR-009, CR-078: the script runs again and sends the same request; the receiver takes it once."""
    await sent(six_chaos, target, SENDING, ERASING)


async def test_every_message_of_a_package_that_sends_credentials_delivered_twice_harms_nothing(
    six_chaos: Chaos,
) -> None:
    """CR-073, CR-081: commands, and the events of receiver and registry."""
    assert isinstance(six_chaos.installation, SixInstallation)
    async with everything_twice(six_chaos.installation.rabbit) as doubled:
        await sent(six_chaos, "nothing", (), ())
    kinds = {kind.removeprefix("kubevnfm.").removesuffix(".v1") for kind in doubled}
    assert {"credentials.received", "credentials.deleted", "mgmt.run_script", "vim.register_received"} <= kinds
