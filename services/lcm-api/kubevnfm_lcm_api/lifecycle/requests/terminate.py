"""Terminate (SOL003 5.4.8): checks the request against the instance before 202 is sent."""

from __future__ import annotations

from collections.abc import Sequence

from kubevnfm_csar.vnfd.model import Flavour
from kubevnfm_events import PackageRef, VimConnection
from kubevnfm_kit.errors import NotFound
from kubevnfm_sol.lcm import InstantiationState, OperationType, TerminateVnfRequest
from kubevnfm_sol.vim import VimConnectionInfo

from kubevnfm_lcm_api.lifecycle.core.acceptance import Acceptance
from kubevnfm_lcm_api.lifecycle.core.engine import Engine
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord
from kubevnfm_lcm_api.lifecycle.core.instances import Instances
from kubevnfm_lcm_api.lifecycle.core.instantiation import TerminateDraft
from kubevnfm_lcm_api.lifecycle.core.kind import Asked, VnfKind
from kubevnfm_lcm_api.lifecycle.core.ports import PackageCatalogue
from kubevnfm_lcm_api.lifecycle.core.request_parameters import DEFAULT_GRACEFUL_S
from kubevnfm_lcm_api.lifecycle.scripts.asked import script_request
from kubevnfm_lcm_api.lifecycle.scripts.drivers import has_scripts, scripts_of


class Terminate:
    """Accepts TerminateVnfRequests."""

    def __init__(
        self,
        *,
        instances: Instances,
        engine: Engine,
        packages: PackageCatalogue,
        acceptance: Acceptance,
        kinds: Sequence[VnfKind],
    ) -> None:
        self._instances, self._engine, self._packages = instances, engine, packages
        self._acceptance, self._kinds = acceptance, kinds

    async def accept(self, instance_id: str, asked: Asked[TerminateVnfRequest]) -> str:
        """Accept a terminate; return the occurrence's id.

        Raises: NotFound; Conflict while NOT_INSTANTIATED or while an operation runs; ProvidedInUse if GRACEFUL while
        another instance uses its cluster or registry.
        """
        stored = await self._instances.get(instance_id)
        record = InstanceRecord.from_document(stored.body)
        await self._engine.check_free(record, InstantiationState.INSTANTIATED)
        request = asked.request
        is_forceful = request.termination_type == "FORCEFUL"
        package = await self._package(record)
        draft = await self._draft(record, package, request, is_forceful=is_forceful)
        flavour = await self._flavour(record, package)
        if flavour is not None and has_scripts(flavour):
            draft = draft.model_copy(
                update={
                    "has_scripts": True,
                    "scripts": scripts_of(flavour, OperationType.TERMINATE),
                    "script_request": script_request(asked),
                    "instance": record.vnf.model_dump(by_alias=True, exclude_none=True),
                }
            )
        return await self._acceptance.accept(stored, record, OperationType.TERMINATE, draft, asked, flavour=flavour)

    async def _draft(
        self, record: InstanceRecord, package: PackageRef, request: TerminateVnfRequest, *, is_forceful: bool
    ) -> TerminateDraft:
        internals = record.internals
        (deployment,) = internals.deployments  # operations so far make instances of one deployment
        connection = record.vnf.vim_connection_info[deployment.vim_key]
        timeout = request.graceful_termination_timeout
        wait_s = DEFAULT_GRACEFUL_S if timeout is None else timeout
        common = TerminateDraft(
            vnf_instance_id=record.vnf.id,
            vnfd_id=record.vnf.vnfd_id,
            package=package,
            vim_key=deployment.vim_key,
            vim=VimConnection(**{name: getattr(connection, name) for name in VimConnectionInfo.model_fields}),
            is_forceful=is_forceful,
            graceful_wait_s=0.0 if is_forceful else float(wait_s),
        )
        kind = next(kind for kind in self._kinds if kind.includes(record))
        return await kind.terminate(common, record, request)

    async def _flavour(self, record: InstanceRecord, package: PackageRef) -> Flavour | None:
        """Return the flavour of the instance; None if its package no longer exists, and no script of it then."""
        info = record.vnf.instantiated_vnf_info
        assert info is not None
        try:
            vnfd = await self._packages.vnfd(package.package_id, package.checksum)
        except NotFound:
            return None
        return vnfd.flavour(info.flavour_id)

    async def _package(self, record: InstanceRecord) -> PackageRef:
        """Return the package. A VNF can be terminated even if its package no longer exists."""
        try:
            return await self._packages.reference(record.vnf.vnf_pkg_id)
        except NotFound:
            return PackageRef(package_id=record.vnf.vnf_pkg_id, vnfd_id=record.vnf.vnfd_id)
