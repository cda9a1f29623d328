"""Snapshots of machines over OpenStack's protocols in the lab: taken, repeated, refused, removed, and gone back to."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from kubevnfm_events.snapshots import (
    MachineReverted,
    MachineSnapshot,
    RemoveSnapshot,
    RevertMachine,
    SnapshotRemoved,
    SnapshotTaken,
    TakeSnapshot,
)
from kubevnfm_infra_openstack.adapters.clouds import OpenStackClouds
from kubevnfm_infra_openstack.domain.errors import QuotaExceeded, RevertFailed, SnapshotFailed
from kubevnfm_infra_openstack.domain.stack import SETTLED, StackContents, StackOrder
from kubevnfm_infra_openstack.snapshot_handlers import SnapshotHandlers
from kubevnfm_kit.clock import SystemClock
from kubevnfm_lab.lab import Lab, LabSettings
from kubevnfm_lab.openstack.compute.records import Server
from kubevnfm_lab.openstack.settings import CloudSettings
from kubevnfm_secrets import KeyRing
from kubevnfm_worker.outcome import Done, NotYet
from worlds.given_vims import GivenVims
from worlds.stack_world import a_context, openstack_vim

RING = KeyRing.from_text(KeyRing.new_key())
TEMPLATE = {
    "heat_template_version": "2018-08-31",
    "resources": {
        "port": {"type": "OS::Neutron::Port", "properties": {"network": "net0"}},
        "data": {"type": "OS::Cinder::Volume", "properties": {"size": 3}},
        "one": {
            "type": "OS::Nova::Server",
            "properties": {
                "image": "ubuntu",
                "flavor": "m1.tiny",
                "networks": [{"port": {"get_resource": "port"}}],
                "metadata": {"of": "the template"},
                "block_device_mapping_v2": [{"volume_id": {"get_resource": "data"}, "boot_index": -1}],
            },
        },
    },
}


class Site:
    """One machine with a port and a volume, in the lab."""

    def __init__(self, lab: Lab, clouds: OpenStackClouds) -> None:
        self.lab, self.vim = lab, openstack_vim(lab.auth_url)
        self.cloud = clouds.cloud(self.vim)
        self.handlers = SnapshotHandlers(clouds=clouds, vims=GivenVims(), clock=SystemClock())
        self.server_id = self.volume_id = ""

    async def make(self) -> None:
        order = StackOrder(name="vnf", template=TEMPLATE, parameters={}, files={}, tags=("inst-1",), timeout_s=60)
        stack = await self.cloud.stacks.create(order)
        settled = await self.cloud.stacks.settle(stack, until=SETTLED, within_s=20)
        assert settled is not None
        contents: StackContents = await self.cloud.stacks.contents(settled)
        ids = {one.name: one.physical_id for one in contents.resources}
        self.server_id, self.volume_id, self.port_id = ids["one"], ids["data"], ids["port"]

    @property
    def server(self) -> Server:
        return self.lab.cloud.nova.servers[self.server_id]

    def _of(self, **more: Any) -> dict[str, Any]:
        return {"vnf_instance_id": "inst-1", "vim": self.vim, "snapshot_id": "snap-1", "vnfc_id": "vnfc-1", **more}

    async def taken(self, *, attempt: int = 1, **changes: Any) -> MachineSnapshot:
        command = TakeSnapshot(**self._of(server_id=self.server_id, **changes))
        context = a_context(attempt=attempt, operation_id=f"op-{command.snapshot_id}")
        outcome = await self.handlers.take_snapshot(command, context)
        assert isinstance(outcome, Done)
        assert isinstance(outcome.event, SnapshotTaken)
        return outcome.event.machine

    async def remove(self, made: MachineSnapshot | None) -> None:
        outcome = await self.handlers.remove_snapshot(RemoveSnapshot(**self._of(made=made)), a_context())
        assert outcome == Done(SnapshotRemoved(snapshot_id="snap-1", vnfc_id="vnfc-1"))

    async def revert(self, made: MachineSnapshot, *, attempt: int = 1, **changes: Any) -> None:
        given = {"server_id": self.server_id, "image_id": made.image_id, "volumes": made.volumes}
        command = RevertMachine(**self._of(**{**given, "ports": (self.port_id,), **changes}))
        for _ in range(5):
            outcome = await self.handlers.revert_machine(command, a_context(attempt=attempt))
            if not isinstance(outcome, NotYet):
                break
        assert outcome == Done(MachineReverted(server_id=self.server_id, image_id=command.image_id))

    def images(self) -> list[str]:
        return [one.image_id for one in self.lab.cloud.glance.images.values() if not one.builtin]

    def snapshots(self) -> list[str]:
        return list(self.lab.cloud.cinder.snapshots.by_id)


@pytest.fixture
def quotas() -> dict[str, int]:
    return {}


@pytest.fixture
async def site(quotas: dict[str, int]) -> AsyncIterator[Site]:
    settings = LabSettings(cloud=CloudSettings(quotas=quotas, create_retries=0))
    async with Lab.start(settings) as lab, OpenStackClouds(RING, threads=8, call_timeout_s=60) as clouds:
        made = Site(lab, clouds)
        await made.make()
        yield made


async def test_a_snapshot_is_taken_once_gone_back_to_in_place_and_removed_by_id(site: Site) -> None:
    """API-171, API-172, API-173."""
    before = site.server.image_id
    made = await site.taken()
    again = await site.taken()
    assert again == made.model_copy(update={"finished_at": again.finished_at})
    assert (site.images(), site.snapshots()) == ([made.image_id], [made.volumes[0].snapshot_id])
    assert [(one.volume_id, one.device, one.is_root) for one in made.volumes] == [(site.volume_id, "/dev/vdb", False)]

    await site.revert(made)
    server, volume = site.server, site.lab.cloud.cinder.volumes[site.volume_id]
    assert (server.status, server.image_id, server.port_ids) == ("ACTIVE", made.image_id, [site.port_id])
    assert server.image_id != before
    assert server.metadata["of"] == "the template"
    assert ([one.volume_id for one in server.volumes], volume.status) == ([site.volume_id], "in-use")
    assert volume.reverted_to == [made.volumes[0].snapshot_id]
    # Delivered again: nothing is done twice. Tried again: everything is.
    await site.revert(made)
    assert len(volume.reverted_to) == 1
    await site.revert(made, attempt=2, state="STOPPED")
    assert (len(volume.reverted_to), site.server.status) == (2, "SHUTOFF")

    # Nova gives the images of a machine the properties of the image that it was made of: a person's own one stays.
    assert await site.cloud.snapshots.make_image(site.server_id, "by hand", {"of": "a person"})
    (by_hand,) = set(site.images()) - {made.image_id}
    assert site.lab.cloud.glance.images[by_hand].properties["kubevnfm_snapshot"] == "snap-1"
    other = await site.taken(snapshot_id="snap-2")
    with pytest.raises(RevertFailed, match=f"has a newer snapshot, {other.volumes[0].snapshot_id}"):
        await site.revert(made, attempt=3)
    await site.remove(made)
    assert (site.images(), site.snapshots()) == ([by_hand, other.image_id], [other.volumes[0].snapshot_id])


async def test_a_machine_that_is_paused_is_not_gone_back_on(site: Site) -> None:
    """API-172."""
    made = await site.taken()
    await site.lab.cloud.nova.pause(site.server)
    with pytest.raises(RevertFailed, match="state ACTIVE, ERROR, SHUTOFF expected, found PAUSED") as refused:
        await site.revert(made)
    assert refused.value.made_nothing


async def test_what_an_earlier_try_left_is_taken_away_and_made_again(site: Site) -> None:
    """API-171."""
    cinder = site.lab.cloud.cinder.snapshots
    cinder.failures = 1
    with pytest.raises(SnapshotFailed, match=f"volume {site.volume_id}: its snapshot .* is error"):
        await site.taken()
    broken = site.snapshots()
    made = await site.taken(attempt=2)
    assert site.snapshots() == [made.volumes[0].snapshot_id] != broken
    # Nothing is recorded: the marks lead to what exists.
    await site.remove(None)
    assert (site.images(), site.snapshots()) == ([], [])


async def test_an_image_that_nova_gives_up_fails_the_step_and_a_retry_makes_it(site: Site) -> None:
    """API-171."""
    site.lab.faults.add(part="nova", verb="server_image", times=1, message="no space")
    with pytest.raises(SnapshotFailed, match="Nova has made no image of it"):
        await site.taken()
    assert (await site.taken(attempt=2)).image_id in site.images()


@pytest.mark.parametrize("quotas", [{"snapshots": 0}, {"gigabytes": 5}])
async def test_a_quota_is_named_before_anything_is_made(site: Site) -> None:
    """API-171."""
    with pytest.raises(QuotaExceeded) as refused:
        await site.taken()
    assert refused.value.made_nothing
    assert (site.images(), site.snapshots()) == ([], [])
