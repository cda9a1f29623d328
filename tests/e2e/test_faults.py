"""Faults of a cloud during each operation of a VNF of machines: full, without the image, stopped, its tokens expired; kill -9.

They run on the lab and on a real cloud (``make test-openstack``). `cloud_faults` says how each fault is made.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final, Literal

import pytest
from callers.user import GRACEFUL, User, sample_body
from clouds.cloud_faults import CloudFaults
from clouds.lab_process import LabControl
from clouds.machine_vnfs import built, machines, package_of, servers_of
from packages.vm_packages import MISSING_IMAGE, OTHER_IMAGE, missing_image, other_image
from patience import until
from servers.installations import Installation

Outage = Literal["heat", "keystone", "tokens", "kill"]
_KILLED: Final = ("infra-openstack", "kubevnfm")
"""The processes that talk to the cloud, in either wiring."""
WALK: Final[Sequence[tuple[str, Mapping[str, Any]]]] = (
    ("instantiate", sample_body("vm", "instantiate")),
    ("scale", sample_body("vm", "scale_out")),
    ("heal", {}),
    ("operate", sample_body("vm", "stop")),
    ("operate", sample_body("vm", "start")),
    ("change_ext_conn", sample_body("vm", "change_ext_conn")),
    ("change_vnfpkg", {"vnfdId": OTHER_IMAGE}),
    ("heal", {"additionalParams": {"all": True}}),
    ("terminate", GRACEFUL),
)
"""A whole life."""
IN_TURN: Final[Sequence[Outage]] = (
    *("heat", "kill", "keystone", "tokens", "keystone"),
    *("tokens", "heat", "keystone", "heat"),
)
"""One fault for each operation of the walk."""


class Site:
    """One VNF, its cloud and its installation."""

    def __init__(self, user: User, lab: LabControl, faults: CloudFaults, installation: Installation) -> None:
        self.user, self.lab, self.faults, self.installation = user, lab, faults, installation

    async def kill(self) -> None:
        """End the process that talks to the cloud, and start it again."""
        for process in set(self.installation.processes).intersection(_KILLED):
            await asyncio.to_thread(self.installation.kill, process)
            await asyncio.to_thread(self.installation.start_one, process)

    @asynccontextmanager
    async def outage(self, outage: Outage) -> AsyncIterator[None]:
        """Have the fault begin before the block. It ends with the block, or was only for a moment."""
        async with AsyncExitStack() as stack:
            if outage in {"heat", "keystone"}:
                await stack.enter_async_context(self.faults.stopped("heat" if outage == "heat" else "keystone"))
            # With Keystone stopped, only a session that has lost its token notices.
            if outage in {"tokens", "keystone"}:
                await self.faults.expire_tokens()
            yield

    async def walk(self, outages: Sequence[Outage], folder: Path, *, kills: bool = False) -> None:
        """Lead a VNF through its life, with a fault in each operation.

        ``kills``: the process is killed in each outage too.
        """
        await package_of(self.user, OTHER_IMAGE, other_image(folder))
        instance_id = await self.user.create(await self.user.sample("vm"))
        for (task, body), outage in zip(WALK, outages, strict=True):
            async with self.outage(outage):
                operation = await self.user.start(instance_id, task, body)
                # Nova alone starts and stops machines.
                if outage == "keystone" or (outage == "heat" and task != "operate"):
                    await self._waits(operation, may_end=outage == "keystone")
                if outage == "kill" or kills:
                    await self.kill()
            view = await self.user.rest(operation)
            assert view["state"] == "COMPLETED", (task, outage, view.get("error"))
        await self.user.delete(instance_id)

    async def _waits(self, operation: str, *, may_end: bool) -> None:
        """Return once the progress of the operation shows that it waits for the cloud.

        ``may_end``: or once it has ended, because a real cloud's services remember for a while that a token was valid.
        """

        async def waits() -> bool | None:
            view = (await self.user.call("GET", f"/kubevnfm/v1/operations/{operation}")).must(200).json
            is_over = view["state"] not in {"STARTING", "PROCESSING"}
            assert may_end or not is_over, view
            if not is_over and any(task["task"] == "wait" and task["state"] != "finished" for task in view["tasks"]):
                cause = view["cause"]
                assert cause["code"] in {"vim-away", "vim-faulty", "vim-token-expired"}, cause
                vim = (await self.user.call("GET", f"/v1.0/vims/{cause['object']['vimId']}")).must(200).json
                about = (cause["isWait"], cause["object"]["kind"], cause["object"]["name"])
                assert about == (True, "Vim", vim["vim"]["name"])
                assert [each["task"] for each in view["next"]] == ["wait", "cancel"]
                return True
            return is_over or None

        await until(waits)


@pytest.fixture
async def site(user: User, lab: LabControl, installation: Installation) -> Site:
    return Site(user, lab, await CloudFaults.from_user(user, lab), installation)


async def test_a_fault_in_each_operation_delays_it_and_does_no_harm(site: Site, tmp_path: Path) -> None:
    """API-048, API-061: another fault for each operation; where no service can be stopped, always a kill."""
    await site.walk(IN_TURN if site.faults.can_stop_services else ["kill"] * len(WALK), tmp_path)


@pytest.mark.deep
@pytest.mark.parametrize("outage", ["heat", "keystone", "tokens", "kill"])
async def test_each_fault_and_a_kill_in_each_operation_delays_it_and_does_no_harm(
    site: Site, tmp_path: Path, outage: Outage
) -> None:
    """API-048, API-061: every pair of a fault and an operation."""
    if outage != "kill" and not site.faults.can_stop_services:
        pytest.skip("KUBEVNFM_E2E_SERVICES is not set: no command stops the cloud's services")
    await site.walk([outage] * len(WALK), tmp_path, kills=outage != "tokens")


async def test_a_stack_deleted_during_instantiate_is_created_again(site: Site) -> None:
    """API-048."""
    user = site.user
    instance_id = await user.create(await user.sample("vm"))
    async with site.faults.slow_boots():
        operation = await user.start(instance_id, "instantiate", sample_body("vm", "instantiate"))

        async def creates() -> bool | None:
            return await site.faults.stack_status(instance_id) == "CREATE_IN_PROGRESS" or None

        await until(creates)
        await site.faults.delete_stack(instance_id, waits=False)
    view = await user.rest(operation)
    assert view["state"] == "COMPLETED", view
    shown = await user.instance(instance_id)
    assert servers_of(shown) == set(await machines(site.lab, instance_id))
    assert len(servers_of(shown)) == 1
    await user.terminate(instance_id)


async def test_an_image_that_the_cloud_lacks_is_named_and_rolled_back(site: Site, tmp_path: Path) -> None:
    """API-048, API-049: at instantiate, and at a change of package. API-188: a kill meanwhile loses and doubles no alarm."""
    user = site.user
    vnfd_id = await package_of(user, MISSING_IMAGE, missing_image(tmp_path))
    instance_id = await user.create(vnfd_id)
    operation = await user.start(instance_id, "instantiate", sample_body("vm", "instantiate"))
    await site.kill()
    view = await user.rest(operation)
    assert view["state"] == "FAILED_TEMP", view
    assert "no-such-image" in view["error"]["detail"]
    assert view["cause"]["text"] == "The image no-such-image does not exist in the OpenStack project."
    alarm = await user.alarm(instance_id, is_open=True)
    assert (alarm["faultType"], alarm["probableCause"]) == ("operation-failed", view["cause"]["code"])
    _, reason, remedy = alarm["faultDetails"]
    assert (reason, remedy[-1]) == (view["cause"]["text"], ".")
    assert (await user.act(operation, "rollback"))["state"] == "ROLLED_BACK"
    assert (await user.alarm(instance_id, is_open=False))["id"] == alarm["id"]
    await user.delete(instance_id)

    instance_id = await built(user)
    before = servers_of(await user.instance(instance_id))
    operation = await user.start(instance_id, "change_vnfpkg", {"vnfdId": vnfd_id})
    view = await user.rest(operation)
    assert view["state"] == "FAILED_TEMP", view
    assert "no-such-image" in view["error"]["detail"]
    assert (await user.act(operation, "rollback"))["state"] == "ROLLED_BACK"
    shown = await user.instance(instance_id)
    assert servers_of(shown) == before == set(await machines(site.lab, instance_id))
    await user.terminate(instance_id)


async def test_a_full_project_is_named_and_nothing_is_created(site: Site) -> None:
    """API-048: at instantiate and at scale; a retry completes once there is room."""
    user = site.user
    instance_id = await user.create(await user.sample("vm"))
    for task, body in WALK[:2]:
        before = set(await machines(site.lab, instance_id))
        async with site.faults.full():
            operation = await user.start(instance_id, task, body)
            view = await user.rest(operation)
            assert view["state"] == "FAILED_TEMP", view
            assert "quota of ports exceeded: 1 wanted, 0 free" in view["error"]["detail"]
            assert view["cause"]["code"] == "quota-exceeded"
            assert set(await machines(site.lab, instance_id)) == before
        assert (await user.act(operation, "retry"))["state"] == "COMPLETED"
        assert len(await machines(site.lab, instance_id)) == len(before) + 1
    await user.terminate(instance_id)
