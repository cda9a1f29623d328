"""A rolling update of a stack in the lab, for each form of template: one part after the other, and back."""

from __future__ import annotations

import io
import zipfile
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from kubevnfm_events import PackageRef
from kubevnfm_events.stacks import (
    ChangeTemplate,
    ResourcesChanged,
    ResourcesCreated,
    RestoreResources,
    ScaleResources,
    StackResources,
    UserData,
)
from kubevnfm_infra_openstack.adapters.clouds import OpenStackClouds
from kubevnfm_infra_openstack.adapters.package_flavours import CachedFlavours
from kubevnfm_infra_openstack.adapters.user_data_process import UserDataProcess
from kubevnfm_infra_openstack.change_handlers import StackChangeHandlers
from kubevnfm_infra_openstack.domain.changes import StackChanges
from kubevnfm_infra_openstack.domain.errors import StackUpdateFailed
from kubevnfm_infra_openstack.domain.grace import GracePeriods
from kubevnfm_infra_openstack.domain.ordering import StackOrders
from kubevnfm_infra_openstack.domain.snapshots import StackSnapshots
from kubevnfm_infra_openstack.domain.stack import StackDefinition
from kubevnfm_infra_openstack.handlers import InfraOpenstackHandlers
from kubevnfm_kit.clock import SystemClock
from kubevnfm_lab.lab import Lab, LabSettings
from kubevnfm_lab.openstack.settings import CloudSettings
from kubevnfm_sandbox.runs import Limits
from kubevnfm_secrets import KeyRing
from kubevnfm_store.sqlite.store import SqliteStore
from kubevnfm_worker.outcome import Done
from packages.user_data_packages import FORMS, VDUS, instantiate_body, user_data_package
from worlds.given_vims import GivenVims
from worlds.stack_world import a_change, a_context, a_create, openstack_vim

RING = KeyRing.from_text(KeyRing.new_key())
LEVELS = {"VDU1": 3, "VDU2": 1}
PER_MACHINE = ("shipped-standard", "tosca")
"""Forms with a resource of the top template for each machine; the others have a group for each VDU."""


@dataclass
class Packages:
    """Unpacked packages by id."""

    root: Path
    refs: dict[str, PackageRef] = field(default_factory=dict)

    def add(self, form: str, **fields: Any) -> PackageRef:
        name = f"{form}-{fields.get('version', '1.0')}"
        with zipfile.ZipFile(io.BytesIO(user_data_package(name, FORMS[form], **fields))) as packed:
            packed.extractall(self.root / name)
        return PackageRef(package_id=name, vnfd_id=name, checksum=name)

    async def folder(self, package: PackageRef) -> Path:
        return self.root / package.package_id

    async def stream(self, package: PackageRef, path: str) -> AsyncIterator[bytes]:
        yield (self.root / package.package_id / path).read_bytes()


Machines = dict[str, tuple[str, str | None, str | None]]
"""Server, flavor and image by the name of the machine."""


def machines(resources: StackResources) -> Machines:
    return {
        "/".join(filter(None, (one.group, one.member, one.name))): (one.server_id, one.flavor, one.image_id)
        for one in resources.servers
    }


def changed(before: Machines, after: Machines) -> set[str]:
    """Return the parts whose machines differ."""
    assert before.keys() == after.keys()
    return {name.split("/")[0] for name, facts in after.items() if facts != before[name]}


class Site:
    """A VNF with three machines of VDU1 and one of VDU2, and a package to change it to."""

    def __init__(self, lab: Lab, clouds: OpenStackClouds, store: SqliteStore, root: Path, form: str) -> None:
        self.lab, self.form, self.packages = lab, FORMS[form], Packages(root)
        self.first = self.packages.add(form)
        self.second = self.packages.add(form, version="2.0", flavor="m1.micro")
        self.vim = openstack_vim(lab.auth_url)
        flavours = CachedFlavours(self.packages)
        orders = StackOrders(flavours, UserDataProcess(Limits(trust_packages=True)), RING)
        self.creating = InfraOpenstackHandlers(
            clouds=clouds,
            vims=GivenVims(),
            packages=flavours,
            orders=orders,
            grace=GracePeriods(store, SystemClock()),
        )
        self.handlers = StackChangeHandlers(
            clouds=clouds,
            vims=GivenVims(),
            changes=StackChanges(orders),
            snapshots=StackSnapshots(store, RING),
            grace=GracePeriods(store, SystemClock()),
        )
        self.user_data = (
            UserData(path=f"UserData/{self.form.file}", class_name=self.form.class_name) if self.form.file else None
        )
        self.request = instantiate_body(self.form)
        self.attempts = 0

    async def create(self) -> StackResources:
        """Create the stack with all machines."""
        vdus = [vdu for vdu, amount in LEVELS.items() for _ in range(amount)]
        command = a_create(
            self.vim,
            package=self.first,
            request=self.request,
            user_data=self.user_data,
            instance={"vnfdId": self.first.vnfd_id},
            grant_request={
                "addResources": [
                    {"id": f"r{number}", "type": "COMPUTE", "resourceTemplateId": vdu}
                    for number, vdu in enumerate(vdus)
                ]
            },
        )
        outcome = await self.creating.create_resources(command, a_context())
        assert isinstance(outcome, Done)
        assert isinstance(outcome.event, ResourcesCreated)
        return outcome.event.resources

    def fields(self, package: PackageRef) -> dict[str, Any]:
        links = {"extVirtualLinks": self.request["extVirtualLinks"]}
        return {"package": package, "connections": links, "counts": LEVELS}

    async def change(self, step: str, before: StackResources, *unchanged: str, operation: str = "op-2") -> Machines:
        """Change the machines to the second package, all but those of ``unchanged``."""
        vnfcs = [
            {
                "vduId": one.vdu_id,
                "computeResource": {"resourceId": one.server_id},
                "metadata": {"vdu_idx": int(one.group.rpartition("-")[2])} if one.group and "-" in one.group else {},
            }
            for one in before.servers
        ]
        info = {"flavourId": "simple", "vnfcResourceInfo": vnfcs, "metadata": {"nfv": before.nfv}}
        command = a_change(
            ChangeTemplate,
            self.vim,
            **self.fields(self.second),
            request={**self.request, "vnfdId": self.second.vnfd_id},
            instantiate_request=self.request,
            user_data=self.user_data,
            instance={"vnfdId": self.first.vnfd_id, "instantiatedVnfInfo": info},
            grant_request={
                "operation": "CHANGE_VNFPKG",
                "dstVnfdId": self.second.vnfd_id,
                "removeResources": [
                    {"id": one.server_id, "type": "COMPUTE", "resource": {"resourceId": one.server_id}}
                    for one in before.servers
                ],
            },
            unchanged=unchanged,
        )
        self.attempts += 1
        context = a_context(operation_id=operation, step_id=f"change/{step}", attempt=self.attempts)
        return await self._done(await self.handlers.change_template(command, context))

    async def restore(self, step: str, staying: set[str], *restored: str, operation: str = "op-2") -> Machines:
        """Restore the parts; without any the whole stack."""
        command = a_change(
            RestoreResources, self.vim, **self.fields(self.first), staying=tuple(staying), restored=restored
        )
        self.attempts += 1
        context = a_context(operation_id=operation, step_id=f"change/{step}", attempt=self.attempts)
        return await self._done(await self.handlers.restore_resources(command, context))

    async def scale(self, counts: dict[str, int]) -> StackResources:
        command = a_change(ScaleResources, self.vim, **{**self.fields(self.first), "counts": counts})
        outcome = await self.handlers.scale_resources(command, a_context(operation_id="op-1s", step_id="scale"))
        assert isinstance(outcome, Done)
        assert isinstance(outcome.event, ResourcesChanged)
        return outcome.event.resources

    @staticmethod
    async def _done(outcome: object) -> Machines:
        assert isinstance(outcome, Done)
        assert isinstance(outcome.event, ResourcesChanged)
        return machines(outcome.event.resources)

    def touched(self) -> int:
        """Return how often Nova was asked to change, make or delete a machine since the ledger was cleared."""
        verbs = {"server_update", "server_create", "server_delete"}
        calls = self.lab.ledger.calls()
        return sum(int(call["count"]) for call in calls if call["part"] == "nova" and call["verb"] in verbs)

    async def definition(self) -> StackDefinition:
        """Return what Heat has of the stack."""
        stacks = self.handlers.clouds.cloud(self.vim).stacks
        stack = await stacks.find("vnf-inst-1", tag="inst-1")
        assert stack is not None
        return await stacks.definition(stack)


@pytest.fixture(params=["shipped-standard", "tosca", "none"])
async def site(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Site]:
    async with (
        Lab.start(LabSettings(cloud=CloudSettings(create_retries=0))) as lab,
        OpenStackClouds(RING, threads=16, call_timeout_s=60) as clouds,
        SqliteStore.open(tmp_path / "store.db") as store,
    ):
        yield Site(lab, clouds, store, tmp_path, request.param)


def servers_of(found: Machines, *but: str) -> set[str]:
    return {server for name, (server, *_) in found.items() if name.split("/")[0] not in but}


async def test_one_part_changes_at_a_time_and_the_end_is_that_of_one_update(
    site: Site, request: pytest.FixtureRequest
) -> None:
    created = await site.create()
    start, begun_as = machines(created), await site.definition()
    parts = list(dict.fromkeys(one.group or one.name for one in created.servers))
    assert len(created.servers) == 4
    assert len(parts) == (4 if site.form in [FORMS[name] for name in PER_MACHINE] else len(VDUS))

    at_once = await site.change("all", created, operation="op-at-once")
    expected = await site.definition()
    assert changed(start, at_once) == set(parts)
    back = await site.restore("all", servers_of(start), operation="op-at-once")
    assert await site.definition() == begun_as

    seen = [back]
    for number, part in enumerate(parts):
        site.lab.ledger.clear()
        seen.append(await site.change(part, created, *parts[number + 1 :]))
        assert changed(*seen[-2:]) == {part}
        assert site.touched() == len([name for name in start if name.split("/")[0] == part])
    assert await site.definition() == expected
    assert {name: facts[1:] for name, facts in seen[-1].items()} == {n: facts[1:] for n, facts in at_once.items()}

    for number, part in reversed(list(enumerate(parts))):
        staying = servers_of(start) | servers_of(seen[-1], part)
        seen.append(await site.restore(part, staying, *(parts[number:] if number else ())))
        assert changed(*seen[-2:]) == {part}
    assert await site.definition() == begun_as
    assert {name: facts[1:] for name, facts in seen[-1].items()} == {name: facts[1:] for name, facts in start.items()}


@pytest.mark.parametrize("site", PER_MACHINE, indirect=True)
async def test_a_machine_that_fails_is_changed_by_a_retry_and_no_other_twice(site: Site) -> None:
    created = await site.create()
    parts = [one.group or one.name for one in created.servers]
    first = await site.change(parts[0], created, *parts[1:])
    site.lab.ledger.clear()
    site.attempts -= 1  # the same command again, as after a crash
    assert await site.change(parts[0], created, *parts[1:]) == first
    assert site.touched() == 0
    site.lab.faults.add(part="nova", verb="server_update", node="*", times=1, message="no host")
    with pytest.raises(StackUpdateFailed, match="no host"):
        await site.change(parts[1], created, *parts[2:])
    second = await site.change(parts[1], created, *parts[2:])
    assert changed(first, second) == {parts[1]}
    back = await site.restore(parts[1], servers_of(first), *parts[1:])
    assert changed(second, back) == {parts[1]}
    last = await site.restore(parts[0], servers_of(first))
    assert changed(back, last) == {parts[0]}
