"""The services that requests for operations are accepted with, and the VNFs that they are about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kubevnfm_csar.vnfd.model import Vnfd
from kubevnfm_events import PackageRef
from kubevnfm_secrets import KeyRing
from kubevnfm_sol.lcm import InstantiationState
from kubevnfm_store.query import Stored

from kubevnfm_lcm_api.lifecycle.core.acceptance import Acceptance
from kubevnfm_lcm_api.lifecycle.core.drift import check_cluster_exists, check_stack_exists
from kubevnfm_lcm_api.lifecycle.core.engine import Engine
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord
from kubevnfm_lcm_api.lifecycle.core.instances import Instances
from kubevnfm_lcm_api.lifecycle.core.kind import HEAL, TaskUnsupported, UnderChange, VnfKind
from kubevnfm_lcm_api.lifecycle.core.ports import PackageCatalogue, PackageFetches
from kubevnfm_lcm_api.lifecycle.core.protected_namespaces import ProtectedNamespaces
from kubevnfm_lcm_api.lifecycle.core.snapshots import Snapshots
from kubevnfm_lcm_api.lifecycle.core.suspension import Suspensions
from kubevnfm_lcm_api.lifecycle.core.vim_choice import VimEntries
from kubevnfm_lcm_api.lifecycle.requests.revisions import Revisions


@dataclass(frozen=True)
class RequestServices:
    """The services that every operation is accepted with."""

    instances: Instances
    engine: Engine
    packages: PackageCatalogue
    vim_entries: VimEntries
    acceptance: Acceptance
    kinds: Sequence[VnfKind]
    suspensions: Suspensions
    revisions: Revisions
    protected_namespaces: ProtectedNamespaces
    fetches: PackageFetches
    snapshots: Snapshots
    ring: KeyRing
    is_granted_outside: bool
    """Whether an NFVO grants the operations."""

    async def read(self, instance_id: str) -> tuple[Stored, InstanceRecord]:
        """Return the instance. Raises NotFound."""
        stored = await self.instances.get(instance_id)
        return stored, InstanceRecord.from_document(stored.body)

    async def package_of(self, record: InstanceRecord) -> tuple[PackageRef, Vnfd]:
        """Return the package of an instance, and its descriptor. Raises NotFound."""
        package = await self.packages.reference(record.vnf.vnf_pkg_id)
        return package, await self.packages.vnfd(package.package_id, package.checksum)

    def kind_of(self, record: InstanceRecord) -> VnfKind:
        """Return the kind of an INSTANTIATED instance."""
        return next(kind for kind in self.kinds if kind.includes(record))

    def check_supported(self, record: InstanceRecord, task: str) -> None:
        """Raise TaskUnsupported if an INSTANTIATED instance does not support the task."""
        if task not in record.internals.tasks:
            raise TaskUnsupported(task, self.kind_of(record).why_unsupported(record, task))

    async def find(self, instance_id: str, task: str) -> tuple[VnfKind, UnderChange]:
        """Return the VNF that ``task`` changes.

        Raises: NotFound; TaskUnsupported; Conflict while NOT_INSTANTIATED or while an operation runs; Drifted if the
        stack or a workload cluster was found deleted and the task is not a heal.
        """
        stored, record = await self.read(instance_id)
        # 404 before 409: a task that the VNF never supports must not look like a temporary conflict.
        if record.vnf.instantiation_state is InstantiationState.INSTANTIATED:
            self.check_supported(record, task)
        await self.engine.check_free(record, InstantiationState.INSTANTIATED)
        if task != HEAL:
            check_stack_exists(record, task)
            check_cluster_exists(record, task)
        package, vnfd = await self.package_of(record)
        info = record.vnf.instantiated_vnf_info
        assert info is not None
        return self.kind_of(record), UnderChange(stored, record, package, vnfd, vnfd.flavour(info.flavour_id), info)
