"""Workload clusters: CNFs whose objects have Cluster API build a cluster of machines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubevnfm_clients.charts import ChartPrograms, ChartRepositories
from kubevnfm_clients.multicloud.links import VirtualLinks
from kubevnfm_clients.multicloud.volumes import PersistentVolumes
from kubevnfm_clients.ports import Vims
from kubevnfm_csar.vnfd.model import Flavour, Vnfd
from kubevnfm_kit.clock import Clock
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_secrets import KeyRing
from kubevnfm_sol.lcm import (
    ChangeCurrentVnfPkgRequest,
    HealVnfRequest,
    InstantiateVnfRequest,
    ScaleVnfRequest,
    ScaleVnfToLevelRequest,
    TerminateVnfRequest,
)

from kubevnfm_lcm_api.lifecycle.containers.finalizers import removes_finalizers
from kubevnfm_lcm_api.lifecycle.containers.instantiating import cnf_draft, manifest_files
from kubevnfm_lcm_api.lifecycle.containers.kind import Containers
from kubevnfm_lcm_api.lifecycle.containers.replacing import ReplaceCnfDraft
from kubevnfm_lcm_api.lifecycle.containers.under_change import CnfUnderChange
from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord
from kubevnfm_lcm_api.lifecycle.core.instantiation import InstantiateDraft, TerminateDraft
from kubevnfm_lcm_api.lifecycle.core.kind import (
    CHANGE_VNFPKG,
    HEAL,
    SCALE,
    SCALE_TO_LEVEL,
    Asked,
    Levels,
    Replacement,
    UnderChange,
)
from kubevnfm_lcm_api.lifecycle.core.ports import PackageCatalogue
from kubevnfm_lcm_api.lifecycle.core.protected_namespaces import ProtectedNamespaces
from kubevnfm_lcm_api.lifecycle.core.request_parameters import CAPI, CAPI_VARIABLES
from kubevnfm_lcm_api.lifecycle.core.vim_choice import VimEntries
from kubevnfm_lcm_api.lifecycle.workloads.capi import OPENSTACK_VIM, capi_parameters, with_sender
from kubevnfm_lcm_api.lifecycle.workloads.drafts import (
    InstantiateWorkloadDraft,
    ScaleWorkloadDraft,
    TerminateWorkloadDraft,
)
from kubevnfm_lcm_api.lifecycle.workloads.requested_healing import healed_workload
from kubevnfm_lcm_api.lifecycle.workloads.requested_replacement import (
    asks_for_roll_out,
    replaced_workload,
    rolled_out_workload,
)
from kubevnfm_lcm_api.lifecycle.workloads.requested_scaling import scaled_workload

_TASKS: Final = (SCALE, SCALE_TO_LEVEL, HEAL, CHANGE_VNFPKG)
"""The tasks of CNFs that a workload cluster has too; the others count pods, and its VNFCs are Machines."""


class Workloads(Containers):
    """VNFs that are a cluster which Cluster API builds."""

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
        clock: Clock,
    ) -> None:
        super().__init__(
            packages=packages,
            vims=vims,
            links=links,
            volumes=volumes,
            charts=charts,
            repositories=repositories,
            namespaces=namespaces,
            ring=ring,
        )
        self._vim_entries, self._clock = VimEntries(vims), clock

    def is_asked_for(self, parameters: Mapping[str, Any]) -> bool:
        """Return whether the request describes a cluster; variables alone are for the manifests of any CNF."""
        given = parameters.get(CAPI)
        return given is not None and not (isinstance(given, Mapping) and set(given) == {CAPI_VARIABLES})

    def includes(self, record: InstanceRecord) -> bool:
        """Return whether the instance has a cluster."""
        return record.internals.workload is not None

    def tasks(self, vnfd: Vnfd, flavour: Flavour) -> tuple[str, ...]:
        return tuple(task for task in super().tasks(vnfd, flavour) if task in _TASKS)

    def why_unsupported(self, record: InstanceRecord, task: str) -> str:
        return (
            "workload clusters support instantiate, scale, scale to level, heal, change of package and terminate only"
        )

    async def instantiate(
        self,
        common: InstantiateDraft,
        record: InstanceRecord,
        flavour: Flavour,
        asked: Asked[InstantiateVnfRequest],
    ) -> InstantiateWorkloadDraft:
        files = await self._packages.file_names(record.vnf.vnf_pkg_id)
        objects, given = await cnf_draft(common, record, flavour, asked, files), asked.request.additional_params[CAPI]
        capi = capi_parameters(given, lambda listed, place: manifest_files(listed, files, place=place))
        if objects.phases or objects.order.charts:
            why = "a workload cluster comes from manifests, without a Helm chart and management drivers: leave it out"
            raise Unprocessable(f"additionalParams/{CAPI}", why)
        draft = InstantiateWorkloadDraft(**vars(objects), capi=with_sender(capi, given, objects.scripts))
        if draft.openstack_vim_id is not None:
            await self._vim_entries.check_openstack(draft.openstack_vim_id, f"additionalParams/{CAPI}/{OPENSTACK_VIM}")
        await self._check_objects(draft, (*draft.def_files, *draft.capi.addon_def_files))
        return draft

    async def terminate(
        self, common: TerminateDraft, record: InstanceRecord, request: TerminateVnfRequest
    ) -> TerminateWorkloadDraft:
        deployment, workload = record.release, record.internals.workload
        assert deployment is not None
        assert workload is not None
        return TerminateWorkloadDraft(
            **vars(common),
            force_remove_finalizers=removes_finalizers(request.additional_params),
            release=deployment.release,
            workload=workload,
            credentials_sent=workload.credentials,
        )

    async def scale(
        self, vnf: UnderChange, levels: Levels, asked: Asked[ScaleVnfRequest | ScaleVnfToLevelRequest]
    ) -> ScaleWorkloadDraft:
        return scaled_workload(CnfUnderChange.of_containers(vnf), levels, asked)

    async def heal(self, vnf: UnderChange, asked: Asked[HealVnfRequest]) -> Draft:
        workload = vnf.record.internals.workload
        assert workload is not None
        files = await self._packages.file_names(vnf.package.package_id)
        cluster = CnfUnderChange.of_containers(vnf)
        return healed_workload(cluster, workload, asked, self._clock.now(), files)

    async def change_package(self, vnf: UnderChange, asked: Asked[ChangeCurrentVnfPkgRequest]) -> Replacement:
        cluster = CnfUnderChange.of_containers(vnf)
        if asks_for_roll_out(asked.request.additional_params):
            return Replacement(rolled_out_workload(cluster, asked, self._clock.now()), vnf.flavour)
        return await self._replaced(cluster, asked)

    def _finished(
        self, vnf: CnfUnderChange, draft: ReplaceCnfDraft, request: ChangeCurrentVnfPkgRequest, files: frozenset[str]
    ) -> tuple[ReplaceCnfDraft, tuple[str, ...]]:
        cluster = replaced_workload(vnf, draft, request.additional_params, files)
        return cluster, (*cluster.new_files, *(cluster.addon_files or ()))
