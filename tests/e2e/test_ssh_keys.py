"""Machines that refuse passwords, as those of cloud images do: a key pair made for the instance, and a bastion."""

from __future__ import annotations

import asyncio
from pathlib import Path

from callers.user import User, sample_body
from clouds.lab_process import LabControl
from packages.package_variants import keyed_cluster


async def test_a_cluster_comes_up_with_a_key_pair_of_its_own_behind_a_bastion(
    user: User, lab: LabControl, tmp_path: Path
) -> None:
    """SEQ-194, 195: the pair is made once, is never shown, and goes with the stack."""
    jump_id = await user.create(await user.sample("vm"), vnfInstanceName="jump")
    await user.do(jump_id, "instantiate", sample_body("vm", "instantiate"))
    servers = (await lab.inventory())["servers"]
    jump = next(each for each in servers if each["name"].startswith(f"vnf-{jump_id}"))["addresses"][0]

    package = await user.upload(await asyncio.to_thread(keyed_cluster, tmp_path))
    assert package["onboardingState"] == "ONBOARDED", package
    installation = user.installation.lab
    body = user.cluster()
    cluster = body["additionalParams"]["k8s_cluster_installation_param"]
    cluster["x_key_pair_parameter"] = "ssh_public_key"
    for role in ("master_node", "worker_node"):
        del cluster[role]["password"]
    cluster["worker_node"]["ssh_port"] = installation.ssh_port
    cluster["worker_node"]["bastion"] = {
        "host": jump, "port": installation.ssh_port, "username": "ubuntu", "password": installation.machine_password,
    }  # fmt: skip
    cluster_id = await user.create(package["vnfdId"])
    await lab.forget_calls()
    async with lab.fault("ssh", "connect"):
        operation = await user.start(cluster_id, "instantiate", body)
        view = await user.rest(operation)
    assert view["state"] == "FAILED_TEMP"
    assert "refuses the login" in view["error"]["detail"]
    view = await user.act(operation, "retry")
    assert view["state"] == "COMPLETED", view.get("error")
    assert sum((await lab.calls("nova", "keypair_create")).values()) == 1
    assert (await user.instance(cluster_id))["instantiatedVnfInfo"]["vnfState"] == "STARTED"
    assert user.heard
    assert not any("PRIVATE KEY" in text for text in [*user.heard, await user.log(operation)])

    await user.terminate(cluster_id)
    assert sum((await lab.calls("nova", "keypair_delete")).values()) == 1
    await user.terminate(jump_id)
