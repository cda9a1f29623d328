"""The VNF that an operation changes: its instance, package and flavour, and the operations that it supports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kubevnfm_csar import BaseHot, Flavour, Vnfd
from kubevnfm_events import ApiVersion, PackageRef, VimConnection
from kubevnfm_events.infra import StackOrder, StackResources, UserData
from kubevnfm_events.mgmt import REGISTRY_DRIVERS
from kubevnfm_kit.errors import VnfmError
from kubevnfm_sol.base import SolType
from kubevnfm_sol.lcm import InstantiationState, OperationType
from kubevnfm_sol.resources import InstantiatedVnfInfo
from kubevnfm_sol.vim import VimConnectionInfo
from kubevnfm_store.query import Stored

from kubevnfm_lcm_api.lifecycle.clusters.drivers import cluster_phases, is_registry, scripts_of
from kubevnfm_lcm_api.lifecycle.containers.under_change import CnfUnderChange
from kubevnfm_lcm_api.lifecycle.core.drift import check_cluster_exists, check_stack_exists
from kubevnfm_lcm_api.lifecycle.core.engine import Engine
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord, StackDeployment
from kubevnfm_lcm_api.lifecycle.core.instances import Instances
from kubevnfm_lcm_api.lifecycle.core.ports import PackageCatalogue
from kubevnfm_lcm_api.lifecycle.core.vim_choice import VimEntries
from kubevnfm_lcm_api.lifecycle.machines.changing import ChangeVmDraft
from kubevnfm_lcm_api.lifecycle.machines.instantiating import named_user_data
from kubevnfm_lcm_api.lifecycle.machines.package_fit import check_user_data
from kubevnfm_lcm_api.lifecycle.machines.scale_levels import declared_counts, levels_of
from kubevnfm_lcm_api.lifecycle.scripts.asked import script_request

SCALE: Final = "scale"
SCALE_TO_LEVEL: Final = "scale_to_level"
CHANGE_FLAVOUR: Final = "change_flavour"
HEAL: Final = "heal"
OPERATE: Final = "operate"
CHANGE_EXT_CONN: Final = "change_ext_conn"
CHANGE_VNFPKG: Final = "change_vnfpkg"


class TaskUnsupported(VnfmError, code="task-unsupported", title="Operation not supported", status=404):
    """The VNF does not support the operation (SOL003 5.4.5.3.1 ff.: 404)."""

    def __init__(self, task: str, reason: str) -> None:
        super().__init__(f"{task} is not supported by this VNF: {reason}")


def supported_tasks(vnfd: Vnfd, flavour: Flavour, *, is_cnf: bool) -> tuple[str, ...]:
    """Return the operations that an instance of this flavour supports, without terminate."""
    scales = bool(flavour.aspects)
    if is_cnf:
        of_cnf = {SCALE: scales, SCALE_TO_LEVEL: scales or len(flavour.levels) > 1, HEAL: True, CHANGE_VNFPKG: True}
        return tuple(task for task, is_supported in of_cnf.items() if is_supported)
    phases = cluster_phases(flavour)
    if phases:
        # A cluster's nodes need the driver's phases for each change; those of other changes do not exist yet.
        of_cluster = {
            SCALE: scales and {"scale_start", "scale_end"} <= phases.keys(),
            SCALE_TO_LEVEL: scales and {"scale_start", "scale_end"} <= phases.keys(),
            HEAL: {"heal_start", "heal_end"} <= phases.keys(),
        }
        return tuple(task for task, is_mapped in of_cluster.items() if is_mapped and "instantiate_end" in phases)
    # A registry is one machine, and only a heal has a phase in which another machine becomes the registry.
    registry = is_registry(flavour)
    tasks = {
        SCALE: scales and not registry,
        SCALE_TO_LEVEL: (scales or len(flavour.levels) > 1) and not registry,
        CHANGE_FLAVOUR: len(vnfd.flavours) > 1 and not registry,
        HEAL: True,
        OPERATE: True,
        CHANGE_EXT_CONN: any(cp.is_external and cp.vdu_id for cp in flavour.cps.values()),
        CHANGE_VNFPKG: not registry,
    }
    return tuple(task for task, is_supported in tasks.items() if is_supported)


_REASONS: Final[Mapping[str, str]] = {
    SCALE: "its VNFD has no scaling aspect",
    SCALE_TO_LEVEL: "its VNFD has neither scaling aspects nor several instantiation levels",
    CHANGE_FLAVOUR: "its VNFD has one flavour only",
    CHANGE_EXT_CONN: "its VNFD has no external connection point",
}


_CNF_REASONS: Final[Mapping[str, str]] = {
    SCALE: "it was instantiated by an earlier version, or its VNFD has no scaling aspect",
    SCALE_TO_LEVEL: "it was instantiated by an earlier version, or its VNFD has neither scaling aspects nor several levels",
    HEAL: "it was instantiated by an earlier version",
    CHANGE_VNFPKG: "it was instantiated by an earlier version",
    OPERATE: "the containers of a CNF are not stopped and started; scale the VNF instead",
}


@dataclass(frozen=True)
class VnfUnderChange:
    """A VNF of plain machines that is INSTANTIATED and free."""

    stored: Stored
    record: InstanceRecord
    package: PackageRef
    vnfd: Vnfd
    flavour: Flavour
    info: InstantiatedVnfInfo
    stack: StackDeployment
    resources: StackResources

    @property
    def vim_key(self) -> str:
        """The entry of vimConnectionInfo for the stack's VIM."""
        return self.stack.vim_key

    @property
    def counts(self) -> dict[str, int]:
        """The number of machines of every VDU, 0 included."""
        present = Counter(server.vdu_id for server in self.resources.servers)
        return {vdu_id: present[vdu_id] for vdu_id in self.flavour.vdus}

    @property
    def declared_counts(self) -> dict[str, int]:
        """The number of machines of every VDU that its descriptor gives for the present scale levels."""
        return declared_counts(self.flavour, self.record.internals.instantiation_level_id, self.scale_levels)

    @property
    def scale_levels(self) -> dict[str, int]:
        """Scale level by aspect."""
        return levels_of(self.info)

    def vim(self, connections: Mapping[str, VimConnectionInfo]) -> VimConnection:
        """Return the access data of the VNF's VIM; entries of ``connections`` replace those of the instance."""
        connection = {**self.record.vnf.vim_connection_info, **connections}[self.vim_key]
        return VimConnection(**{name: getattr(connection, name) for name in VimConnectionInfo.model_fields})

    def change(
        self,
        original: Mapping[str, object],
        parameters: Mapping[str, Any],
        version: ApiVersion,
        files: frozenset[str],
        *,
        operation: OperationType,
        asked: SolType,
        connections: Mapping[str, VimConnectionInfo] = {},
    ) -> ChangeVmDraft:
        """Return what the drafts of all changes of a stack have in common. Raises InvalidInput, Unprocessable.

        ``asked``: the request; ``connections``: the entries of vimConnectionInfo that the request brings.
        """
        internals = self.record.internals
        instance = self.record.vnf.model_dump(by_alias=True, exclude_none=True)
        named: UserData | None = named_user_data(parameters, files)
        scripts = scripts_of(self.flavour, operation)
        return ChangeVmDraft(
            vnf_instance_id=self.record.vnf.id,
            scripts=scripts,
            script_request=script_request(asked, original, version) if scripts else {},
            package=self.package,
            vim_key=self.vim_key,
            vim=self.vim(connections),
            vim_connections={**self.record.vnf.vim_connection_info, **connections} if connections else {},
            stack_name=self.stack.stack_name,
            flavour_id=self.flavour.flavour_id,
            instantiation_level_id=internals.instantiation_level_id,
            api_version=version,
            request=dict(original),
            instance=instance,
            user_data=named or internals.user_data,
            counts=self.counts,
            connections=internals.connections,
            connections_before=internals.connections,
            external_cps=internals.external_cps,
            scale_status=self.info.scale_status or (),
            max_scale_levels=self.info.max_scale_levels or (),
            before=self.resources,
        )


class ChangeableVnfs:
    """Finds the VNFs that operations change."""

    def __init__(
        self, *, instances: Instances, engine: Engine, packages: PackageCatalogue, vim_entries: VimEntries
    ) -> None:
        self._instances, self._engine, self._packages = instances, engine, packages
        self._vim_entries = vim_entries

    async def find(self, instance_id: str, task: str) -> VnfUnderChange:
        """Return the VNF of machines that ``task``, which no CNF supports, changes. Raises as `find_any`."""
        vnf = await self.find_any(instance_id, task)
        assert isinstance(vnf, VnfUnderChange)
        return vnf

    async def find_any(self, instance_id: str, task: str) -> VnfUnderChange | CnfUnderChange:
        """Return the VNF that ``task`` changes.

        Raises: NotFound; TaskUnsupported; Conflict while NOT_INSTANTIATED or while an operation runs; Drifted if the
        stack or a workload cluster was found deleted and the task is not a heal.
        """
        stored = await self._instances.get(instance_id)
        record = InstanceRecord.from_document(stored.body)
        # 404 before 409: a task that the VNF never supports must not look like a temporary conflict.
        if record.vnf.instantiation_state is InstantiationState.INSTANTIATED:
            check_supported(record, task)
        await self._engine.check_free(record, InstantiationState.INSTANTIATED)
        if task != HEAL:
            check_stack_exists(record, task)
            check_cluster_exists(record, task)
        package = await self._packages.reference(record.vnf.vnf_pkg_id)
        vnfd = await self._packages.vnfd(package.package_id, package.checksum)
        info, stack, containers = record.vnf.instantiated_vnf_info, record.stack, record.release
        assert info is not None
        flavour = vnfd.flavour(info.flavour_id)
        if containers is not None and containers.release is not None:
            return CnfUnderChange(stored, record, package, vnfd, flavour, info, containers.vim_key, containers.release)
        assert stack is not None
        assert stack.resources is not None
        return VnfUnderChange(stored, record, package, vnfd, flavour, info, stack, stack.resources)

    async def connections(
        self, vnf: VnfUnderChange, given: Mapping[str, VimConnectionInfo], version: ApiVersion
    ) -> dict[str, VimConnectionInfo]:
        """Return the vimConnectionInfo of a request about the VNF. Raises InvalidInput, Unprocessable."""
        present = vnf.record.vnf.vim_connection_info[vnf.vim_key]
        return await self._vim_entries.changed(given, vnf.vim_key, present, version)

    async def files(self, package_id: str) -> frozenset[str]:
        """Return the paths of a package's files."""
        return await self._packages.file_names(package_id)

    async def base_hot(self, vnf: VnfUnderChange) -> BaseHot | None:
        """Return the Base HOT of a VNF's flavour; None if its package has none."""
        return await self._packages.base_hot(vnf.package.package_id, vnf.flavour.flavour_id)

    async def check(self, order: StackOrder) -> None:
        """Raise Unprocessable for user data that cannot run with the package and flavour of the change."""
        await check_user_data(self._packages, order.package, order.flavour_id, order.user_data)


def check_supported(record: InstanceRecord, task: str) -> None:
    """Raise TaskUnsupported if the VNFD, or this version of kubevnfm, does not support the operation."""
    if task in record.internals.tasks:
        return
    if record.internals.workload is not None:
        raise TaskUnsupported(
            task,
            "workload clusters support instantiate, scale, scale to level, heal, change of package and terminate only",
        )
    if record.stack is None:
        raise TaskUnsupported(
            task,
            _CNF_REASONS.get(
                task, "CNFs support instantiate, scale, scale to level, heal, change of package and terminate only"
            ),
        )
    if REGISTRY_DRIVERS.intersection(record.internals.phases.values()):
        raise TaskUnsupported(task, "it is a private registry, which is one machine of one package")
    if record.internals.phases:
        if task in (SCALE, SCALE_TO_LEVEL):
            raise TaskUnsupported(
                task, "its VNFD maps scale_start or scale_end to no driver of clusters, or has no scaling aspect"
            )
        if task == HEAL:
            raise TaskUnsupported(task, "its VNFD maps heal_start or heal_end to no driver of clusters")
        raise TaskUnsupported(task, "clusters support instantiate, scale, scale to level, heal and terminate only")
    raise TaskUnsupported(task, _REASONS.get(task, "it was instantiated by an earlier version"))
