"""Finds the VNFs that operations change, and their kinds."""

from __future__ import annotations

from collections.abc import Sequence

from kubevnfm_sol.lcm import InstantiationState

from kubevnfm_lcm_api.lifecycle.core.drift import check_cluster_exists, check_stack_exists
from kubevnfm_lcm_api.lifecycle.core.engine import Engine
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord
from kubevnfm_lcm_api.lifecycle.core.instances import Instances
from kubevnfm_lcm_api.lifecycle.core.kind import HEAL, TaskUnsupported, UnderChange, VnfKind
from kubevnfm_lcm_api.lifecycle.core.ports import PackageCatalogue


class ChangeableVnfs:
    """Finds the VNFs that operations change."""

    def __init__(
        self, *, instances: Instances, engine: Engine, packages: PackageCatalogue, kinds: Sequence[VnfKind]
    ) -> None:
        self._instances, self._engine, self._packages, self._kinds = instances, engine, packages, kinds

    async def find(self, instance_id: str, task: str) -> tuple[VnfKind, UnderChange]:
        """Return the VNF that ``task`` changes.

        Raises: NotFound; TaskUnsupported; Conflict while NOT_INSTANTIATED or while an operation runs; Drifted if the
        stack or a workload cluster was found deleted and the task is not a heal.
        """
        stored = await self._instances.get(instance_id)
        record = InstanceRecord.from_document(stored.body)
        # 404 before 409: a task that the VNF never supports must not look like a temporary conflict.
        if record.vnf.instantiation_state is InstantiationState.INSTANTIATED:
            self._check_supported(record, task)
        await self._engine.check_free(record, InstantiationState.INSTANTIATED)
        if task != HEAL:
            check_stack_exists(record, task)
            check_cluster_exists(record, task)
        package = await self._packages.reference(record.vnf.vnf_pkg_id)
        vnfd = await self._packages.vnfd(package.package_id, package.checksum)
        info = record.vnf.instantiated_vnf_info
        assert info is not None
        flavour = vnfd.flavour(info.flavour_id)
        return self.kind(record), UnderChange(stored, record, package, vnfd, flavour, info)

    def kind(self, record: InstanceRecord) -> VnfKind:
        """Return the kind of an INSTANTIATED instance."""
        return next(kind for kind in self._kinds if kind.includes(record))

    def _check_supported(self, record: InstanceRecord, task: str) -> None:
        """Raise TaskUnsupported if the VNFD, or this version of kubevnfm, does not support the operation."""
        if task not in record.internals.tasks:
            raise TaskUnsupported(task, self.kind(record).why_unsupported(record, task))
