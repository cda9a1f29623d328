"""Resources that a person deletes behind kubevnfm's back: what the instance shows, and which operations lead on."""

from __future__ import annotations

from typing import Any

import pytest
from callers.user import DRIFT, FORCEFUL, GRACEFUL, User, sample_body
from clouds.cloud_faults import CloudFaults
from clouds.lab_process import LabControl
from clouds.machine_vnfs import built, machines, servers_of
from patience import until
from servers.wirings import deep_in_single


@deep_in_single
async def test_a_stack_deleted_by_hand_is_noticed_and_a_heal_builds_it_again(
    user: User, v1: User, lab: LabControl
) -> None:
    """API-154: both versions show it, refuse what needs the stack, and heal."""
    faults = await CloudFaults.from_user(user, lab)
    instance_id = await built(user)
    await user.do(instance_id, "scale", sample_body("vm", "scale_out"))
    for healer, ending in ((user, {}), (v1, {"cause": "deleted by hand"})):
        before = servers_of(await user.instance(instance_id))
        await faults.delete_stack(instance_id)
        mark = await user.drifted(instance_id, "MISSING")
        assert f"vnf-{instance_id}" in mark["reason"]
        assert await v1.drifted(instance_id, "MISSING") == mark
        refused = (await healer.ask(instance_id, "scale", sample_body("vm", "scale_in"))).must(409)
        assert "does not exist" in refused.detail
        await healer.do(instance_id, "heal", ending)
        assert (await user.instance(instance_id)).get("metadata", {}).get(DRIFT) is None
        after = servers_of(await user.instance(instance_id))
        assert len(after) == 2
        assert not after & before
        assert set(await machines(lab, instance_id)) == after
    await user.terminate(instance_id)


@pytest.mark.parametrize("body", [GRACEFUL, FORCEFUL], ids=["GRACEFUL", "FORCEFUL"])
async def test_a_vnf_whose_stack_was_deleted_by_hand_is_terminated(
    user: User, lab: LabControl, body: dict[str, Any]
) -> None:
    """API-154."""
    faults = await CloudFaults.from_user(user, lab)
    instance_id = await built(user)
    await faults.delete_stack(instance_id)
    await user.do(instance_id, "terminate", body)
    assert DRIFT not in (await user.instance(instance_id)).get("metadata", {})
    await user.delete(instance_id)


async def test_a_machine_deleted_by_hand_is_noticed_and_healed(user: User, lab: LabControl) -> None:
    """API-154."""
    faults = await CloudFaults.from_user(user, lab)
    instance_id = await built(user)
    await user.do(instance_id, "scale", sample_body("vm", "scale_out"))
    lost = (await user.instance(instance_id))["instantiatedVnfInfo"]["vnfcResourceInfo"][0]
    await faults.delete_server(lost["computeResource"]["resourceId"])
    mark = await user.drifted(instance_id, "INCOMPLETE")
    assert mark["vnfc_ids"] == [lost["id"]]
    (await user.ask(instance_id, "operate", sample_body("vm", "stop"))).must(409)
    await user.do(instance_id, "heal", {"vnfcInstanceId": [lost["id"]]})
    shown = await user.instance(instance_id)
    assert DRIFT not in shown.get("metadata", {})
    assert len(servers_of(shown)) == 2
    assert servers_of(shown) == set(await machines(lab, instance_id))
    await user.terminate(instance_id)


async def test_a_scale_out_whose_stack_is_deleted_is_rolled_back(user: User, lab: LabControl) -> None:
    """API-154: the rollback leads out, and the drift is shown after it."""
    faults = await CloudFaults.from_user(user, lab)
    instance_id = await built(user)
    async with faults.slow_boots():
        operation = await user.start(instance_id, "scale", sample_body("vm", "scale_out"))

        async def updates() -> bool | None:
            return await faults.stack_status(instance_id) == "UPDATE_IN_PROGRESS" or None

        await until(updates)
        await faults.delete_stack(instance_id)
    view = await user.rest(operation)
    assert view["state"] == "FAILED_TEMP", view
    assert "does not exist" in view["error"]["detail"] or "is being deleted" in view["error"]["detail"]
    assert (await user.act(operation, "rollback"))["state"] == "ROLLED_BACK"
    assert (await user.instance(instance_id))["metadata"][DRIFT]["state"] == "MISSING"
    await user.do(instance_id, "heal", {})
    assert len(await machines(lab, instance_id)) == 1
    await user.terminate(instance_id)
