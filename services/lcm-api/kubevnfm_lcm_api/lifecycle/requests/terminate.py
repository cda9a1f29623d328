"""Terminate (SOL003 5.4.8): checks the request against the instance before 202 is sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubevnfm_cluster import LOAD_BALANCER
from kubevnfm_csar import Flavour
from kubevnfm_events import ApiVersion, PackageRef, VimConnection
from kubevnfm_kit.errors import NotFound
from kubevnfm_sol.lcm import InstantiationState, OperationType, TerminateVnfRequest
from kubevnfm_sol.vim import VimConnectionInfo

from kubevnfm_lcm_api.lifecycle.clusters.drivers import has_scripts, scripts_of
from kubevnfm_lcm_api.lifecycle.containers.drafts import TerminateCnfDraft
from kubevnfm_lcm_api.lifecycle.containers.instantiating import check_load_balancer
from kubevnfm_lcm_api.lifecycle.core.acceptance import Acceptance
from kubevnfm_lcm_api.lifecycle.core.drift import is_stack_missing
from kubevnfm_lcm_api.lifecycle.core.engine import Engine
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord, ReleaseDeployment
from kubevnfm_lcm_api.lifecycle.core.instances import Instances
from kubevnfm_lcm_api.lifecycle.core.instantiation import TerminateDraft
from kubevnfm_lcm_api.lifecycle.core.ports import PackageCatalogue
from kubevnfm_lcm_api.lifecycle.machines.drafts import TerminateVmDraft
from kubevnfm_lcm_api.lifecycle.scripts.asked import script_request
from kubevnfm_lcm_api.lifecycle.workloads.drafts import TerminateWorkloadDraft
from kubevnfm_lcm_api.lifecycle.workloads.finalizers import removes_finalizers

DEFAULT_GRACEFUL_S: Final = 10
"""The wait of a GRACEFUL request without a timeout; Tacker v2 has the same default."""


class Terminate:
    """Accepts TerminateVnfRequests."""

    def __init__(
        self, *, instances: Instances, engine: Engine, packages: PackageCatalogue, acceptance: Acceptance
    ) -> None:
        self._instances, self._engine, self._packages = instances, engine, packages
        self._acceptance = acceptance

    async def accept(
        self, instance_id: str, request: TerminateVnfRequest, original: Mapping[str, object], version: ApiVersion
    ) -> str:
        """Accept a terminate; return the occurrence's id.

        Raises: NotFound; Conflict while NOT_INSTANTIATED or while an operation runs; ProvidedInUse if GRACEFUL while
        another instance uses its cluster or registry.
        """
        stored = await self._instances.get(instance_id)
        record = InstanceRecord.from_document(stored.body)
        await self._engine.check_free(record, InstantiationState.INSTANTIATED)
        is_forceful = request.termination_type == "FORCEFUL"
        package = await self._package(record)
        draft = await self._draft(record, package, request, is_forceful=is_forceful)
        flavour = await self._flavour(record, package)
        if flavour is not None and has_scripts(flavour):
            draft = draft.model_copy(
                update={
                    "has_scripts": True,
                    "scripts": scripts_of(flavour, OperationType.TERMINATE),
                    "script_request": script_request(request, original, version),
                    "instance": record.vnf.model_dump(by_alias=True, exclude_none=True),
                }
            )
        return await self._acceptance.accept(
            stored, record, OperationType.TERMINATE, draft, original=original, version=version, flavour=flavour
        )

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
        if isinstance(deployment, ReleaseDeployment):
            return await self._cnf_draft(common, record, deployment, request)
        return TerminateVmDraft(
            **vars(common),
            stack_name=deployment.stack_name,
            resources=deployment.resources,
            is_stack_missing=is_stack_missing(record),
            phases=internals.phases,
            # The driver's terminate phases need the login data of the instantiate request.
            parameters={**internals.parameters, **request.additional_params},
            cluster_vim_key=internals.cluster_vim_key,
            cluster_vim_id=internals.cluster_vim_id,
            own_registry=internals.own_registry,
        )

    async def _cnf_draft(
        self,
        common: TerminateDraft,
        record: InstanceRecord,
        deployment: ReleaseDeployment,
        request: TerminateVnfRequest,
    ) -> TerminateCnfDraft:
        """Return the draft.

        Raises: InvalidInput for another load balancer than at the instantiation, if it is malformed; Unprocessable for
        a parameter of Cluster API that a termination does not have.
        """
        internals = record.internals
        force = removes_finalizers(request.additional_params)
        if internals.workload is not None:
            return TerminateWorkloadDraft(
                **vars(common),
                force_remove_finalizers=force,
                release=deployment.release,
                workload=internals.workload,
                credentials_sent=internals.workload.credentials,
            )
        is_management = deployment.release is not None and deployment.release.is_management
        if not internals.phases:
            return TerminateCnfDraft(
                **vars(common),
                force_remove_finalizers=force,
                release=deployment.release,
                is_management=is_management,
            )
        if LOAD_BALANCER in request.additional_params:
            files = await self._packages.file_names(record.vnf.vnf_pkg_id)
            await check_load_balancer(request.additional_params, files)
        return TerminateCnfDraft(
            **vars(common),
            force_remove_finalizers=force,
            release=deployment.release,
            is_management=is_management,
            phases=internals.phases,
            parameters={**internals.parameters, **request.additional_params},
        )

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
