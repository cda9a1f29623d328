"""VNFs of machines: plain ones, and those that are a cluster or a private registry."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, ClassVar

from kubevnfm_clients.playbooks import PlaybookPrograms
from kubevnfm_clients.ports import Vims
from kubevnfm_cluster.parameters import CLUSTER
from kubevnfm_cluster.request import read_cluster_parameters
from kubevnfm_csar.vnfd.model import Flavour, Vnfd
from kubevnfm_events import PackageRef
from kubevnfm_events.mgmt import INSTANTIATE_END
from kubevnfm_sol.lcm import (
    ChangeCurrentVnfPkgRequest,
    ChangeExtVnfConnectivityRequest,
    ChangeVnfFlavourRequest,
    HealVnfRequest,
    InstantiateVnfRequest,
    OperateVnfRequest,
    ScaleVnfRequest,
    ScaleVnfToLevelRequest,
    TerminateVnfRequest,
)
from kubevnfm_sol.snapshots import CreateVnfSnapshotRequest, RevertToVnfSnapshotRequest
from kubevnfm_sol.vim import OPENSTACK

from kubevnfm_lcm_api.lifecycle.core.drift import is_stack_missing
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord
from kubevnfm_lcm_api.lifecycle.core.instantiation import InstantiateDraft, TerminateDraft
from kubevnfm_lcm_api.lifecycle.core.kind import Asked, Levels, Replacement, UnderChange, VnfKind
from kubevnfm_lcm_api.lifecycle.core.modifying import CarriedStack
from kubevnfm_lcm_api.lifecycle.core.ports import PackageCatalogue
from kubevnfm_lcm_api.lifecycle.core.snapshot import SnapshotRecord
from kubevnfm_lcm_api.lifecycle.core.vim_choice import VimEntries
from kubevnfm_lcm_api.lifecycle.machines.carrying import carried_machines
from kubevnfm_lcm_api.lifecycle.machines.changing import ConnectVmDraft, OperateVmDraft
from kubevnfm_lcm_api.lifecycle.machines.connectivity import connected_machines
from kubevnfm_lcm_api.lifecycle.machines.drafts import InstantiateVmDraft, TerminateVmDraft
from kubevnfm_lcm_api.lifecycle.machines.drivers import check_playbook_program
from kubevnfm_lcm_api.lifecycle.machines.healing import HealVmDraft
from kubevnfm_lcm_api.lifecycle.machines.instantiating import instantiated_machines
from kubevnfm_lcm_api.lifecycle.machines.inventory import links_of
from kubevnfm_lcm_api.lifecycle.machines.operating import operated_machines
from kubevnfm_lcm_api.lifecycle.machines.requested_healing import healed_machines
from kubevnfm_lcm_api.lifecycle.machines.requested_replacement import changed_flavour, changed_package
from kubevnfm_lcm_api.lifecycle.machines.requested_scaling import scaled_machines
from kubevnfm_lcm_api.lifecycle.machines.scaling import ScaleVmDraft
from kubevnfm_lcm_api.lifecycle.machines.snapshots import (
    CreateSnapshotDraft,
    RevertToSnapshotDraft,
    reverted_machines,
    snapshotted_machines,
)
from kubevnfm_lcm_api.lifecycle.machines.tasks import supported_tasks, why_unsupported
from kubevnfm_lcm_api.lifecycle.machines.under_change import VnfUnderChange


class Machines(VnfKind):
    """VNFs that are one Heat stack."""

    vim_type: ClassVar[str] = OPENSTACK

    def __init__(
        self, *, packages: PackageCatalogue, vims: Vims, playbooks: PlaybookPrograms, is_granted_outside: bool
    ) -> None:
        self._playbooks = playbooks
        self._packages, self._vim_entries = packages, VimEntries(vims)
        self._vims, self._is_granted_outside = vims, is_granted_outside

    def is_asked_for(self, parameters: Mapping[str, Any]) -> bool:
        return True

    def includes(self, record: InstanceRecord) -> bool:
        return record.stack is not None

    def tasks(self, vnfd: Vnfd, flavour: Flavour) -> tuple[str, ...]:
        return supported_tasks(vnfd, flavour)

    def why_unsupported(self, record: InstanceRecord, task: str) -> str:
        return why_unsupported(record, task)

    async def instantiate(
        self,
        common: InstantiateDraft,
        record: InstanceRecord,
        flavour: Flavour,
        asked: Asked[InstantiateVnfRequest],
    ) -> InstantiateVmDraft:
        await check_playbook_program(self._playbooks, flavour)
        return await instantiated_machines(
            common,
            record,
            flavour,
            asked,
            packages=self._packages,
            vims=self._vims,
            is_granted_outside=self._is_granted_outside,
        )

    async def terminate(
        self, common: TerminateDraft, record: InstanceRecord, request: TerminateVnfRequest
    ) -> TerminateVmDraft:
        internals, stack = record.internals, record.stack
        assert stack is not None
        given, cluster = request.additional_params, internals.cluster
        # A driver's cluster alone: scripts may have parameters of their own under the same name.
        if INSTANTIATE_END in internals.phases and given.get(CLUSTER) is not None:
            # In a thread, because a private key may have to be opened with its passphrase.
            cluster = await asyncio.to_thread(read_cluster_parameters, given)
        return TerminateVmDraft(
            **vars(common),
            stack_name=stack.stack_name,
            resources=stack.resources,
            links=links_of(record.vnf.instantiated_vnf_info),
            is_stack_missing=is_stack_missing(record),
            phases=internals.phases,
            # The driver's terminate phases need the login data of the instantiate request.
            parameters={**internals.parameters, **given},
            cluster_parameters=cluster,
            cluster_vim_key=internals.cluster_vim_key,
            cluster_vim_id=internals.cluster_vim_id,
            own_registry=internals.own_registry,
        )

    async def scale(
        self, vnf: UnderChange, levels: Levels, asked: Asked[ScaleVnfRequest | ScaleVnfToLevelRequest]
    ) -> ScaleVmDraft:
        machines = VnfUnderChange.of_machines(vnf)
        return await scaled_machines(self._packages, machines, levels, asked)

    async def heal(self, vnf: UnderChange, asked: Asked[HealVnfRequest]) -> HealVmDraft:
        machines = VnfUnderChange.of_machines(vnf)
        return await healed_machines(self._packages, machines, asked, is_granted_outside=self._is_granted_outside)

    async def operate(self, vnf: UnderChange, asked: Asked[OperateVnfRequest]) -> OperateVmDraft:
        return operated_machines(VnfUnderChange.of_machines(vnf), asked)

    async def connect(self, vnf: UnderChange, asked: Asked[ChangeExtVnfConnectivityRequest]) -> ConnectVmDraft:
        machines = VnfUnderChange.of_machines(vnf)
        return await connected_machines(self._packages, self._vim_entries, machines, asked)

    async def carried(self, vnf: UnderChange, package: PackageRef, vnfd: Vnfd) -> CarriedStack:
        carried = await carried_machines(self._packages, VnfUnderChange.of_machines(vnf), package, vnfd)
        await check_playbook_program(self._playbooks, vnfd.flavour(vnf.flavour.flavour_id))
        return carried

    async def create_snapshot(
        self, vnf: UnderChange, asked: Asked[CreateVnfSnapshotRequest], occurrence_id: str
    ) -> CreateSnapshotDraft:
        return snapshotted_machines(VnfUnderChange.of_machines(vnf), asked, occurrence_id)

    async def revert_to_snapshot(
        self, vnf: UnderChange, asked: Asked[RevertToVnfSnapshotRequest], found: SnapshotRecord
    ) -> RevertToSnapshotDraft:
        return reverted_machines(VnfUnderChange.of_machines(vnf), asked, found)

    async def change_flavour(self, vnf: UnderChange, asked: Asked[ChangeVnfFlavourRequest]) -> Replacement:
        machines = VnfUnderChange.of_machines(vnf)
        changed = await changed_flavour(
            self._packages, self._vim_entries, machines, asked, is_granted_outside=self._is_granted_outside
        )
        await check_playbook_program(self._playbooks, changed.flavour)
        return changed

    async def change_package(self, vnf: UnderChange, asked: Asked[ChangeCurrentVnfPkgRequest]) -> Replacement:
        machines = VnfUnderChange.of_machines(vnf)
        changed = await changed_package(
            self._packages, self._vim_entries, machines, asked, is_granted_outside=self._is_granted_outside
        )
        await check_playbook_program(self._playbooks, changed.flavour)
        return changed
