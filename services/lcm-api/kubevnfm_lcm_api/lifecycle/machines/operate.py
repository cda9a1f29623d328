"""Operate (SOL003 5.4.10): start or stop the machines of a VNF, or some of them."""

from __future__ import annotations

from collections.abc import Mapping

from kubevnfm_events import ApiVersion
from kubevnfm_kit.errors import Conflict
from kubevnfm_sol.lcm import OperateVnfRequest, OperationType

from kubevnfm_lcm_api.lifecycle.clusters.drivers import scripts_of
from kubevnfm_lcm_api.lifecycle.core.acceptance import Acceptance
from kubevnfm_lcm_api.lifecycle.core.drift import check_machines_exist
from kubevnfm_lcm_api.lifecycle.machines.changing import OperateVmDraft
from kubevnfm_lcm_api.lifecycle.machines.under_change import OPERATE, ChangeableVnfs
from kubevnfm_lcm_api.lifecycle.machines.vnfcs import resource_ids
from kubevnfm_lcm_api.lifecycle.requests.terminate import DEFAULT_GRACEFUL_S
from kubevnfm_lcm_api.lifecycle.scripts.asked import script_request


class Operate:
    """Accepts OperateVnfRequests."""

    def __init__(self, *, vnfs: ChangeableVnfs, acceptance: Acceptance) -> None:
        self._vnfs, self._acceptance = vnfs, acceptance

    async def accept(
        self, instance_id: str, request: OperateVnfRequest, original: Mapping[str, object], version: ApiVersion
    ) -> str:
        """Accept a start or stop; return the occurrence's id.

        Raises: NotFound, TaskUnsupported; InvalidInput for an unknown VNFC; Conflict if all machines are in that state; Drifted
        for a machine that was found deleted.
        """
        vnf = await self._vnfs.find(instance_id, OPERATE)
        named = request.vnfc_instance_id or tuple(one.id for one in vnf.info.vnfc_resource_info)
        servers = resource_ids(named, vnf.info)
        check_machines_exist(vnf.record, servers, "operate")
        state_by_vnfc = {one.vnfc_resource_info_id: one.vnfc_state for one in vnf.info.vnfc_info}
        present_states = {
            state_by_vnfc.get(one.id, "STARTED")
            for one in vnf.info.vnfc_resource_info
            if one.compute_resource.resource_id in servers
        }
        # Only if all are: after a partial failure the same request brings the others to the state.
        if present_states == {request.change_state_to}:
            raise Conflict(f"the VNF is {request.change_state_to} already")
        graceful = request.change_state_to == "STOPPED" and request.stop_type == "GRACEFUL"
        wait_s = DEFAULT_GRACEFUL_S if request.graceful_stop_timeout is None else request.graceful_stop_timeout
        scripts = scripts_of(vnf.flavour, OperationType.OPERATE)
        draft = OperateVmDraft(
            vnf_instance_id=instance_id,
            vnfd_id=vnf.record.vnf.vnfd_id,
            vim_key=vnf.vim_key,
            vim=vnf.vim({}),
            before=vnf.resources,
            servers=tuple(servers),
            state=request.change_state_to,
            graceful_wait_s=float(wait_s) if graceful else 0.0,
            package=vnf.package,
            scripts=scripts,
            script_request=script_request(request, original, version) if scripts else {},
            instance=vnf.record.vnf.model_dump(by_alias=True, exclude_none=True) if scripts else {},
        )
        return await self._acceptance.accept(
            vnf.stored,
            vnf.record,
            OperationType.OPERATE,
            draft,
            original=original,
            version=version,
            flavour=vnf.flavour,
        )
