"""CREATE_SNAPSHOT and REVERT_TO_SNAPSHOT of machines: which machines they concern, and their drafts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self

from kubevnfm_csar.vnfd.model import Flavour
from kubevnfm_events import PackageRef
from kubevnfm_events.snapshots import MachineSnapshot, RevertMachine
from kubevnfm_events.stacks import ServerFacts, StackResources
from kubevnfm_kit.errors import Conflict, Unprocessable
from kubevnfm_kit.ids import new_id
from kubevnfm_secrets import SecretParams
from kubevnfm_sol.base import SolType
from kubevnfm_sol.lcm import OperationType
from kubevnfm_sol.resources import ResourceChanges
from kubevnfm_sol.snapshots import CreateVnfSnapshotRequest, RevertToVnfSnapshotRequest
from pydantic import BaseModel, ConfigDict, Field

from kubevnfm_lcm_api.lifecycle.core.drift import check_machines_exist
from kubevnfm_lcm_api.lifecycle.core.granted_resources import Json, Resources, existing, existing_servers
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord
from kubevnfm_lcm_api.lifecycle.core.kind import Asked
from kubevnfm_lcm_api.lifecycle.core.scripted_draft import OnVimDraft
from kubevnfm_lcm_api.lifecycle.core.snapshot import SnapshotRecord
from kubevnfm_lcm_api.lifecycle.machines import affected
from kubevnfm_lcm_api.lifecycle.machines.changing import VmState
from kubevnfm_lcm_api.lifecycle.machines.inventory import PORT
from kubevnfm_lcm_api.lifecycle.machines.under_change import VnfUnderChange
from kubevnfm_lcm_api.lifecycle.scripts.asked import script_request
from kubevnfm_lcm_api.lifecycle.scripts.drivers import scripts_of


class SnapshotDraft(OnVimDraft):
    """The common part."""

    package: PackageRef
    vnfd_id: str
    snapshot_info_id: str
    snapshot_id: str
    """VnfSnapshot id."""
    before: StackResources

    @property
    def vnf_snapshot_info_id(self) -> str | None:
        return self.snapshot_info_id

    @property
    def stacks(self) -> tuple[StackResources, StackResources]:
        return self.before, self.before

    def server_of(self, vnfc_id: str) -> ServerFacts:
        """Return the machine that is the VNFC now."""
        return next(one for one in self.before.servers if one.vnfc_id == vnfc_id)


class CreateSnapshotDraft(SnapshotDraft):
    """CREATE_SNAPSHOT."""

    plan: ClassVar[str] = "create_snapshot_vm"

    occurrence_id: str
    """Its own id: the individual VNF snapshot names the operation that has filled it."""
    made: tuple[MachineSnapshot, ...] = ()
    """The machines that are done."""
    user_defined_data: SecretParams = Field(default_factory=dict)

    @property
    def machines(self) -> tuple[MachineSnapshot, ...]:
        """The machines that are done, in the order of the stack."""
        place = {server.vnfc_id: number for number, server in enumerate(self.before.servers)}
        return tuple(sorted(self.made, key=lambda one: place.get(one.vnfc_id, len(place))))

    def with_machine(self, machine: MachineSnapshot) -> Self:
        """Return the draft with the snapshot of one more machine."""
        return self.model_copy(update={"made": (*self.without_machine(machine.vnfc_id).made, machine)})

    def without_machine(self, vnfc_id: str) -> Self:
        """Return the draft without the snapshot of a machine."""
        return self.model_copy(update={"made": tuple(one for one in self.made if one.vnfc_id != vnfc_id)})

    def grant_resources(self, flavour: Flavour | None) -> Resources:
        """The images and volume snapshots that are added."""
        of_snapshot = {"snapshotResDef": {"vnfSnapshotId": self.snapshot_id}}
        added: list[Json] = []
        for number, server in enumerate(self.before.servers):
            compute = {"id": f"{server.vdu_id}-snapshot-{number}", "type": "COMPUTE", "vduId": server.vdu_id}
            added.append({**compute, "resourceTemplateId": server.vdu_id, **of_snapshot})
        for number, volume in enumerate(self.before.volumes):
            storage = {"id": f"{volume.storage_id}-snapshot-{number}", "type": "STORAGE"}
            added.append({**storage, "resourceTemplateId": volume.storage_id, **of_snapshot})
        return Resources(add=added)


class Target(BaseModel):
    """A machine of the VNF, and the snapshot that it is reverted to."""

    model_config = ConfigDict(frozen=True)

    vnfc_id: str
    """The VNFC that is in this place now: a machine that was healed since is another one."""
    snapshot: MachineSnapshot
    state: VmState


class RevertToSnapshotDraft(SnapshotDraft):
    """REVERT_TO_SNAPSHOT."""

    plan: ClassVar[str] = "revert_to_snapshot_vm"

    targets: tuple[Target, ...]
    reverted: tuple[str, ...] = ()
    """Nova ids of the machines that are back."""

    def command(self, vnfc_id: str) -> RevertMachine:
        """Return what puts one machine back."""
        target = next(one for one in self.targets if one.vnfc_id == vnfc_id)
        server, image_id = self.server_of(vnfc_id), target.snapshot.image_id
        assert image_id is not None, "machines that boot from a volume are refused"
        return RevertMachine(
            vnf_instance_id=self.vnf_instance_id,
            vim=self.vim,
            snapshot_id=self.snapshot_id,
            vnfc_id=target.snapshot.vnfc_id,
            server_id=server.server_id,
            image_id=image_id,
            volumes=target.snapshot.volumes,
            ports=tuple(port.resource_id for port in server.ports if port.resource_type == PORT),
            state=target.state,
        )

    def with_reverted(self, server_id: str) -> Self:
        """Return the draft once a machine is back."""
        return self.model_copy(update={"reverted": tuple(dict.fromkeys((*self.reverted, server_id)))})

    def grant_resources(self, flavour: Flavour | None) -> Resources:
        """The machines and volumes that are changed."""
        changed: list[Json] = []
        for one in existing_servers(self.before.servers, "revert", self.vim_key):
            target = next(each for each in self.targets if self.server_of(each.vnfc_id).server_id == _id_of(one))
            changed.append({**one, "snapshotResDef": self._source(target, target.snapshot.image_id)})
        storages = {volume.resource_id: volume for volume in self.before.volumes}
        for target in self.targets:
            for volume in target.snapshot.volumes:
                storage = storages.get(volume.volume_id)
                name = storage.storage_id if storage is not None else volume.volume_id
                definition = existing(name, len(changed), "STORAGE", volume.volume_id, self.vim_key, what="revert")
                source = {**self._source(target, volume.snapshot_id), "storageSnapshotId": volume.volume_id}
                changed.append({**definition, "snapshotResDef": source})
        return Resources(update=changed)

    def _source(self, target: Target, resource_id: str | None) -> Json:
        return {
            "vnfSnapshotId": self.snapshot_id,
            "vnfcSnapshotId": target.snapshot.vnfc_id,
            "snapshotResource": {"vimConnectionId": self.vim_key, "resourceId": resource_id},
        }

    def changes(self) -> ResourceChanges:
        """The machines that are back, and their volumes."""
        done = set(self.reverted)
        volumes = {
            one.volume_id
            for target in self.targets
            if self.server_of(target.vnfc_id).server_id in done
            for one in target.snapshot.volumes
        }
        touched = affected.only_servers(self.before, lambda server: server.server_id in done).model_copy(
            update={"volumes": tuple(one for one in self.before.volumes if one.resource_id in volumes)}
        )
        return affected.changes_of_stack(touched, vnfd_id=self.vnfd_id, vim_key=self.vim_key, change="MODIFIED")

    def completed(self, instance: InstanceRecord) -> InstanceRecord:
        """The machines have the images of the snapshot."""
        stack = instance.stack
        if stack is None or stack.resources is None:
            return instance
        images = {self.server_of(one.vnfc_id).server_id: one.snapshot.image_id for one in self.targets}
        servers = tuple(
            server.model_copy(update={"image_id": images[server.server_id], "is_reverted": True})
            if server.server_id in self.reverted
            else server
            for server in stack.resources.servers
        )
        return instance.with_resources(stack.resources.model_copy(update={"servers": servers}))

    def failed(self, instance: InstanceRecord, occurrence_id: str) -> InstanceRecord:
        return self.completed(instance)


def _id_of(definition: Mapping[str, Any]) -> str:
    return str(definition["resource"]["resourceId"])


def _common(vnf: VnfUnderChange, asked: Asked[SolType], operation: OperationType) -> dict[str, Any]:
    scripts = scripts_of(vnf.flavour, operation)
    return {
        "vnf_instance_id": vnf.record.vnf.id,
        "vnfd_id": vnf.record.vnf.vnfd_id,
        "vim_key": vnf.vim_key,
        "vim": vnf.vim({}),
        "before": vnf.resources,
        "package": vnf.package,
        "scripts": scripts,
        "script_request": script_request(asked) if scripts else {},
        "instance": vnf.record.vnf.model_dump(by_alias=True, exclude_none=True) if scripts else {},
    }


def snapshotted_machines(
    vnf: VnfUnderChange, asked: Asked[CreateVnfSnapshotRequest], occurrence_id: str
) -> CreateSnapshotDraft:
    """Return the draft. Raises Drifted for a machine that was found deleted."""
    check_machines_exist(vnf.record, [one.server_id for one in vnf.resources.servers], "create_snapshot")
    return CreateSnapshotDraft(
        **_common(vnf, asked, OperationType.CREATE_SNAPSHOT),
        snapshot_info_id=asked.request.vnf_snapshot_info_id,
        snapshot_id=new_id(),
        occurrence_id=occurrence_id,
        user_defined_data=asked.request.user_defined_data,
    )


def reverted_machines(
    vnf: VnfUnderChange, asked: Asked[RevertToVnfSnapshotRequest], found: SnapshotRecord
) -> RevertToSnapshotDraft:
    """Return the draft.

    Raises: Conflict if the VNF has other machines, another package or another flavour than in the snapshot; Unprocessable for a
    machine that cannot be put back; Drifted for one that was found deleted.
    """
    check_machines_exist(vnf.record, [one.server_id for one in vnf.resources.servers], "revert_to_snapshot")
    snapshot, stack = found.info.vnf_snapshot, found.internals.stack
    assert snapshot is not None
    assert stack is not None
    if snapshot.vnfd_id != vnf.record.vnf.vnfd_id:
        raise Conflict(f"the snapshot is of VNFD {snapshot.vnfd_id}, and the VNF has {vnf.record.vnf.vnfd_id} now")
    info = (snapshot.vnf_instance or {}).get("instantiatedVnfInfo") or {}
    if info.get("flavourId") not in (None, vnf.flavour.flavour_id):
        raise Conflict(f"the snapshot is of flavour {info['flavourId']}, and the VNF has {vnf.flavour.flavour_id} now")
    return RevertToSnapshotDraft(
        **_common(vnf, asked, OperationType.REVERT_TO_SNAPSHOT),
        snapshot_info_id=found.info.id,
        snapshot_id=snapshot.id,
        targets=_targets(vnf, found, stack),
    )


def _targets(vnf: VnfUnderChange, found: SnapshotRecord, stack: StackResources) -> tuple[Target, ...]:
    by_vnfc = {one.vnfc_id: one for one in found.internals.machines}
    states = {one.vnfc_resource_info_id: one.vnfc_state for one in vnf.info.vnfc_info}
    owned = {one.resource_id for one in stack.volumes}
    targets = []
    for server, earlier in _pairs(vnf.resources, stack):
        name = f"machine {server.name} of VDU {server.vdu_id}"
        machine = by_vnfc.get(earlier.vnfc_id)
        if machine is None:
            raise Conflict(f"the snapshot has nothing of the {name}")
        if machine.image_id is None:
            raise Unprocessable(
                "vnfSnapshotInfoId",
                f"the {name} boots from a volume, which Nova does not detach: it cannot be reverted in place; make a volume from "
                "its snapshot",
            )
        volumes = {one.resource_id for one in vnf.resources.volumes if one.server_id == server.server_id}
        gone = [one.volume_id for one in machine.volumes if one.volume_id in owned - volumes]
        if gone:
            raise Conflict(f"the {name} does not have volume {gone[0]} any more, which the snapshot has")
        state: VmState = "STOPPED" if states.get(server.vnfc_id) == "STOPPED" else "STARTED"
        targets.append(Target(vnfc_id=server.vnfc_id, snapshot=machine, state=state))
    return tuple(targets)


def _pairs(now: StackResources, then: StackResources) -> Iterator[tuple[ServerFacts, ServerFacts]]:
    """Yield each machine with the one of the snapshot in its place. Raises Conflict if their numbers differ.

    A machine that was replaced since has another id in the same place of the stack, or in another place of its group.
    """
    if Counter(one.vdu_id for one in now.servers) != Counter(one.vdu_id for one in then.servers):
        raise Conflict(
            f"the snapshot has {_counted(then)}, and the VNF has {_counted(now)} now: scale it to the machines of the snapshot "
            "first"
        )
    left = {_place(server): server for server in then.servers}
    moved = []
    for server in now.servers:
        earlier = left.pop(_place(server), None)
        if earlier is None:
            moved.append(server)
        else:
            yield server, earlier
    for server in moved:
        place = next(each for each in left if each[0] == server.vdu_id)
        yield server, left.pop(place)


def _place(server: ServerFacts) -> tuple[str, str | None, str | None, str]:
    return server.vdu_id, server.group, server.member, server.name


def _counted(stack: StackResources) -> str:
    counts = Counter(server.vdu_id for server in stack.servers)
    return ", ".join(f"{count} of {vdu_id}" for vdu_id, count in sorted(counts.items())) or "no machine"
