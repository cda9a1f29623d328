"""CNFs: objects of Kubernetes that manifests or a Helm chart describe."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from kubevnfm_clients.charts import ChartPrograms, ChartRepositories
from kubevnfm_clients.multicloud.links import VirtualLinks
from kubevnfm_clients.multicloud.volumes import PersistentVolumes
from kubevnfm_clients.ports import Vims
from kubevnfm_cluster.request import LOAD_BALANCER
from kubevnfm_csar.artifact_order import ORDER, ArtifactOrder
from kubevnfm_csar.vnfd.model import Flavour, Vnfd
from kubevnfm_events import PackageRef
from kubevnfm_events.objects import ChartOrder
from kubevnfm_kit.errors import NotFound, Unprocessable
from kubevnfm_kit.merge_patch import merge_patch
from kubevnfm_secrets import KeyRing
from kubevnfm_sol.lcm import (
    ChangeCurrentVnfPkgRequest,
    HealVnfRequest,
    InstantiateVnfRequest,
    ScaleVnfRequest,
    ScaleVnfToLevelRequest,
    TerminateVnfRequest,
    VnfInfoModificationRequest,
)
from kubevnfm_sol.vim import KUBERNETES

from kubevnfm_lcm_api.lifecycle.containers.changing import ScaleCnfDraft
from kubevnfm_lcm_api.lifecycle.containers.charts import check_chart_program
from kubevnfm_lcm_api.lifecycle.containers.drafts import InstantiateCnfDraft, TerminateCnfDraft
from kubevnfm_lcm_api.lifecycle.containers.finalizers import removes_finalizers
from kubevnfm_lcm_api.lifecycle.containers.healing import healed_cnf
from kubevnfm_lcm_api.lifecycle.containers.helm_releases import pinned_charts
from kubevnfm_lcm_api.lifecycle.containers.instantiating import check_load_balancer, cnf_draft
from kubevnfm_lcm_api.lifecycle.containers.modifying import ModifyCnfDraft
from kubevnfm_lcm_api.lifecycle.containers.networks import (
    AskedNetworks,
    changed_networks,
    check_networks,
    requested_networks,
)
from kubevnfm_lcm_api.lifecycle.containers.objects_digest import digest_of_objects
from kubevnfm_lcm_api.lifecycle.containers.ordering import (
    check_artifacts,
    check_has_chart,
    end_hooks_s,
    order_artifact_in,
    order_in,
    ordered_wait_s,
    requested_order,
)
from kubevnfm_lcm_api.lifecycle.containers.outputs import wanted_outputs
from kubevnfm_lcm_api.lifecycle.containers.providers import ProviderChecks
from kubevnfm_lcm_api.lifecycle.containers.replacing import ReplaceCnfDraft
from kubevnfm_lcm_api.lifecycle.containers.requested_modification import modified_cnf
from kubevnfm_lcm_api.lifecycle.containers.requested_replacement import check_capi, replaced_cnf
from kubevnfm_lcm_api.lifecycle.containers.scaling import scaled_cnf
from kubevnfm_lcm_api.lifecycle.containers.under_change import CnfUnderChange
from kubevnfm_lcm_api.lifecycle.containers.variables import check_filled_in
from kubevnfm_lcm_api.lifecycle.containers.volumes import requested_volumes
from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.core.faults import Faults
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord
from kubevnfm_lcm_api.lifecycle.core.instantiation import InstantiateDraft, TerminateDraft
from kubevnfm_lcm_api.lifecycle.core.kind import (
    CHANGE_VNFPKG,
    HEAL,
    OPERATE,
    SCALE,
    SCALE_TO_LEVEL,
    Asked,
    Levels,
    Replacement,
    UnderChange,
    VnfKind,
)
from kubevnfm_lcm_api.lifecycle.core.modifying import ModifyScriptedDraft
from kubevnfm_lcm_api.lifecycle.core.package_identity import identity
from kubevnfm_lcm_api.lifecycle.core.ports import PackageCatalogue
from kubevnfm_lcm_api.lifecycle.core.protected_namespaces import ProtectedNamespaces
from kubevnfm_lcm_api.lifecycle.core.request_parameters import (
    CAPI_VARIABLES,
    CHART,
    DEF_FILES,
    ORDER_ARTIFACT,
    RELEASES,
    VALUES,
)
from kubevnfm_lcm_api.lifecycle.core.vim_types import check_objects

_REASONS: Final[Mapping[str, str]] = {
    SCALE: "it was instantiated by an earlier version, or its VNFD has no scaling aspect",
    SCALE_TO_LEVEL: "it was instantiated by an earlier version, or its VNFD has neither scaling aspects nor several levels",
    HEAL: "it was instantiated by an earlier version",
    CHANGE_VNFPKG: "it was instantiated by an earlier version",
    OPERATE: "the containers of a CNF are not stopped and started; scale the VNF instead",
}


class Containers(VnfKind):
    """VNFs that are objects in a cluster."""

    vim_type: ClassVar[str] = KUBERNETES

    def __init__(
        self,
        *,
        packages: PackageCatalogue,
        vims: Vims,
        links: VirtualLinks,
        volumes: PersistentVolumes,
        charts: ChartPrograms,
        repositories: ChartRepositories,
        namespaces: ProtectedNamespaces,
        ring: KeyRing,
    ) -> None:
        self._namespaces, self._repositories = namespaces, repositories
        self._links, self._volumes, self._charts, self._ring = links, volumes, charts, ring
        self._packages, self._providers = packages, ProviderChecks(packages, vims)

    def sign(self, parameters: Mapping[str, Any]) -> str | None:
        """Manifests, a chart or an order are the only sign of a CNF in a request; its VNFD looks like any other."""
        return next((name for name in (DEF_FILES, CHART, RELEASES, ORDER_ARTIFACT) if name in parameters), None)

    def is_asked_for(self, parameters: Mapping[str, Any]) -> bool:
        """Return True: every request for a cluster."""
        return True

    def includes(self, record: InstanceRecord) -> bool:
        """Return whether the instance has no stack."""
        return record.stack is None

    def tasks(self, vnfd: Vnfd, flavour: Flavour) -> tuple[str, ...]:
        scales = bool(flavour.aspects)
        tasks = {SCALE: scales, SCALE_TO_LEVEL: scales or len(flavour.levels) > 1, HEAL: True, CHANGE_VNFPKG: True}
        return tuple(task for task, is_supported in tasks.items() if is_supported)

    def why_unsupported(self, record: InstanceRecord, task: str) -> str:
        others = "CNFs support instantiate, scale, scale to level, heal, change of package and terminate only"
        return _REASONS.get(task, others)

    async def instantiate(
        self,
        common: InstantiateDraft,
        record: InstanceRecord,
        flavour: Flavour,
        asked: Asked[InstantiateVnfRequest],
    ) -> InstantiateCnfDraft:
        files = await self._packages.file_names(record.vnf.vnf_pkg_id)
        parameters = asked.request.additional_params
        pinned = await pinned_charts(self._repositories, parameters)
        artifacts = await requested_order(self._packages, common.package.package_id, files, parameters)
        check_has_chart(artifacts, parameters)
        draft = await cnf_draft(common, record, flavour, asked, files, artifacts, pinned)
        await check_chart_program(self._charts, draft.order, artifacts)
        faults = Faults()
        networks = await requested_networks(
            self._links, asked, flavour, faults,
            vim_id=draft.vim_id, vim_key=draft.vim_key, vnf_id=draft.vnf_instance_id, namespace=draft.namespace,
        )  # fmt: skip
        volumes = await requested_volumes(self._volumes, asked.volumes or (), faults, vim_id=draft.vim_id)
        managed = tuple(
            link.model_dump(mode="json", by_alias=True, exclude_none=True)
            for link in asked.request.ext_managed_virtual_links
        )
        held = {"networks": networks.attached, "managed_links": managed, "volumes": volumes}
        draft = draft.model_copy(update=held)
        if artifacts is None:
            await faults.collected(check_networks(self._packages, draft.order, networks, None))
            faults.check()
        else:
            given = parameters.get(VALUES, {}) if asked.given_values is None else asked.given_values
            found = await self._checked(faults, artifacts, draft.order, parameters, networks, given=given)
            draft = draft.model_copy(update=found)
        await self._check_objects(draft, draft.def_files)
        return draft

    async def _checked(
        self,
        faults: Faults,
        artifacts: ArtifactOrder,
        order: ChartOrder,
        parameters: Mapping[str, Any],
        networks: AskedNetworks | None,
        *,
        given: Mapping[str, Any],
        claims_at: str | None = None,
    ) -> dict[str, Any]:
        """Return what a draft has of the objects of its order. Raises Unprocessable, ConflictingInput with all faults (MC-006).

        ``networks``: those of the request, None if it names none; ``given``, ``claims_at`` as of `check_artifacts`.
        """
        assert order.namespace is not None
        await faults.collected(self._namespaces.check_foreign(order.vim, artifacts.foreign_namespaces))
        objects = await check_artifacts(
            self._packages, self._ring, artifacts, order, faults, given=given, claims_at=claims_at
        )
        outputs = None
        if objects is not None:
            outputs = await faults.collected(
                wanted_outputs(artifacts, parameters, objects.bodies, namespace=order.namespace)
            )
            # The workloads of charts are known to infra-k8s alone, which checks before it applies anything.
            if networks is not None and not artifacts.charts:
                await faults.collected(check_networks(self._packages, order, networks, objects.written))
        faults.check()
        assert objects is not None
        assert outputs is not None
        digest = asyncio.to_thread(digest_of_objects, objects.compared, order, self._ring, artifacts.chart_contents)
        return {"outputs": outputs, "digest": await digest, "unused_values": objects.unused_values}

    async def _check_objects(self, draft: InstantiateCnfDraft, manifests: Sequence[str]) -> None:
        """Check manifests of the package against the values of their placeholders, and against the cluster."""
        await check_filled_in(self._packages, draft.package.package_id, manifests, draft.variables)
        await self._providers.check_kinds(draft.vim_id, draft.package, draft.def_files, draft.variables)

    async def terminate(
        self, common: TerminateDraft, record: InstanceRecord, request: TerminateVnfRequest
    ) -> TerminateCnfDraft:
        """Raises also InvalidInput for another load balancer than at the instantiation, if it is malformed."""
        internals, deployment = record.internals, record.release
        assert deployment is not None
        is_forced = removes_finalizers(request.additional_params)
        if internals.phases and LOAD_BALANCER in request.additional_params:
            files = await self._packages.file_names(record.vnf.vnf_pkg_id)
            await check_load_balancer(request.additional_params, files)
        return TerminateCnfDraft(
            **vars(common),
            force_remove_finalizers=is_forced,
            release=deployment.release,
            holds_links=bool(internals.networks) or internals.holds_more,
            holds_volumes=bool(internals.volumes) or internals.holds_more,
            is_management=deployment.release is not None and deployment.release.is_management,
            end_hooks_s=await self._end_hooks_s(record),
            phases=internals.phases,
            parameters={**internals.parameters, **request.additional_params} if internals.phases else {},
        )

    async def scale(
        self, vnf: UnderChange, levels: Levels, asked: Asked[ScaleVnfRequest | ScaleVnfToLevelRequest]
    ) -> ScaleCnfDraft:
        return scaled_cnf(CnfUnderChange.of_containers(vnf), levels, asked)

    async def heal(self, vnf: UnderChange, asked: Asked[HealVnfRequest]) -> Draft:
        draft = healed_cnf(CnfUnderChange.of_containers(vnf), asked)
        if draft.order_artifact is None:
            return draft
        artifacts = await self._order(draft.package.package_id, draft.order_artifact)
        wait_s = ordered_wait_s(artifacts) if draft.wait_timeout_s is None else draft.wait_timeout_s
        return draft.model_copy(update={"wait_timeout_s": wait_s, "end_hooks_s": end_hooks_s(artifacts)})

    async def _order(self, package_id: str, order_artifact: str) -> ArtifactOrder:
        files = await self._packages.file_names(package_id)
        return await order_in(self._packages, package_id, order_artifact, files)

    async def _end_hooks_s(self, record: InstanceRecord) -> float:
        """Return the time for the hooks of a termination, which no fault of the package stops."""
        name = order_artifact_in(record.internals.parameters)
        if name is None:
            return 0.0
        try:
            return end_hooks_s(await self._order(record.vnf.vnf_pkg_id, name))
        except (Unprocessable, NotFound):
            return 0.0

    async def change_package(self, vnf: UnderChange, asked: Asked[ChangeCurrentVnfPkgRequest]) -> Replacement:
        check_capi(asked.request.additional_params, (CAPI_VARIABLES,))
        return await self._replaced(CnfUnderChange.of_containers(vnf), asked)

    async def _replaced(self, vnf: CnfUnderChange, asked: Asked[ChangeCurrentVnfPkgRequest]) -> Replacement:
        package = await self._packages.usable(asked.request.vnfd_id)
        vnfd = await self._packages.vnfd(package.package_id, package.checksum)
        flavour = vnfd.flavours.get(vnf.flavour.flavour_id, vnf.flavour)
        files = await self._packages.file_names(package.package_id)
        if flavour is not vnf.flavour and DEF_FILES not in asked.request.additional_params:
            hot = await self._packages.base_hot(package.package_id, flavour.flavour_id)
            check_objects("vnfdId", flavour, hot, files)
        artifacts = await self._new_order(vnf, asked.request, package, files)
        draft = replaced_cnf(
            vnf,
            asked,
            package=package,
            vnfd=vnfd,
            files=files,
            artifacts=artifacts,
            identity=identity(vnfd, package),
            tasks=self.tasks(vnfd, flavour),
        )
        await check_chart_program(self._charts, draft.order, artifacts)
        draft = draft.model_copy(update={"is_rollback": asked.origin.cause == "rollback"})
        faults = Faults()
        draft, networks = await self._with_holds(draft, asked, faults)
        outputs = draft.outputs_before if draft.images_of else ()
        if artifacts is None:
            faults.check()
        else:
            claims_at = "vnfdId" if asked.volumes is None else None
            given = {} if asked.is_whole else asked.request.additional_params.get(VALUES, {})
            if asked.is_merge_patch:
                given = merge_patch({}, given)
            found = await self._checked(
                faults, artifacts, draft.order, draft.parameters, networks, given=given, claims_at=claims_at
            )
            outputs = found["outputs"]
            draft = draft.model_copy(update=found)
            if draft.wait_timeout_s is None:
                draft = draft.model_copy(update={"wait_timeout_s": ordered_wait_s(artifacts)})
        draft = draft.model_copy(update={"outputs": outputs})
        draft, manifests = self._finished(vnf, draft, asked.request, files)
        await check_filled_in(self._packages, package.package_id, manifests, draft.variables)
        if not draft.images_of:
            await self._providers.check_contracts(vnf.release.providers, package, draft.new_files, draft.variables)
            await self._providers.check_kinds(draft.vim_id, package, draft.new_files, draft.variables)
        return Replacement(draft, flavour, vnfd.secret_names)

    async def _with_holds(
        self, draft: ReplaceCnfDraft, asked: Asked[ChangeCurrentVnfPkgRequest], faults: Faults
    ) -> tuple[ReplaceCnfDraft, AskedNetworks | None]:
        """Return the draft with the networks and volumes that a request names in place of those before; None: it names no networks."""
        changes: dict[str, Any] = {"networks_before": draft.networks, "volumes_before": draft.volumes}
        networks = None
        if asked.networks is not None:
            networks = await changed_networks(
                self._links, asked.networks, faults,
                vim_id=draft.vim_id, vnf_id=draft.vnf_instance_id, namespace=draft.before.namespace,
            )  # fmt: skip
            changes["networks"] = networks.attached
        if asked.volumes is not None:
            changes["volumes"] = await requested_volumes(
                self._volumes, asked.volumes, faults, vim_id=draft.vim_id, used=draft.volumes
            )
        return draft.model_copy(update=changes), networks

    async def _new_order(
        self, vnf: CnfUnderChange, request: ChangeCurrentVnfPkgRequest, package: PackageRef, files: frozenset[str]
    ) -> ArtifactOrder | None:
        """Return the order of a new package: the one that the request names, or that of a CNF which has one.

        None for a request that lists manifests, or that changes images alone. Raises Unprocessable.
        """
        given = request.additional_params
        if ORDER_ARTIFACT in given and vnf.record.internals.workload is not None:
            raise Unprocessable(ORDER, "not expected for a workload cluster: leave it out")
        if ORDER_ARTIFACT not in given and (vnf.order_artifact is None or given.get("vdu_params")):
            return None
        named = given if ORDER_ARTIFACT in given else {**given, ORDER_ARTIFACT: vnf.order_artifact}
        return await requested_order(self._packages, package.package_id, files, given if DEF_FILES in given else named)

    def _finished(
        self, vnf: CnfUnderChange, draft: ReplaceCnfDraft, request: ChangeCurrentVnfPkgRequest, files: frozenset[str]
    ) -> tuple[ReplaceCnfDraft, tuple[str, ...]]:
        """Return the draft with what the kind adds, and the manifests that the new package must have values for."""
        return draft, draft.new_files

    async def modify(
        self, vnf: UnderChange, common: ModifyScriptedDraft, request: VnfInfoModificationRequest
    ) -> ModifyCnfDraft | None:
        return await modified_cnf(self._packages, CnfUnderChange.of_containers(vnf), common, request)
