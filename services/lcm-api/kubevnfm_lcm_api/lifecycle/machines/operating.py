"""Start and stop of machines."""

from __future__ import annotations

from kubevnfm_kit.errors import Conflict
from kubevnfm_sol.lcm import OperateVnfRequest, OperationType

from kubevnfm_lcm_api.lifecycle.core.drift import check_machines_exist
from kubevnfm_lcm_api.lifecycle.core.kind import Asked
from kubevnfm_lcm_api.lifecycle.core.request_parameters import DEFAULT_GRACEFUL_S
from kubevnfm_lcm_api.lifecycle.core.vnfcs import resource_ids
from kubevnfm_lcm_api.lifecycle.machines.changing import OperateVmDraft
from kubevnfm_lcm_api.lifecycle.machines.under_change import VnfUnderChange
from kubevnfm_lcm_api.lifecycle.scripts.asked import script_request
from kubevnfm_lcm_api.lifecycle.scripts.drivers import scripts_of


def operated_machines(vnf: VnfUnderChange, asked: Asked[OperateVnfRequest]) -> OperateVmDraft:
    """Return the draft. Raises InvalidInput for an unknown VNFC; Conflict if all machines are in that state; Drifted."""
    named = asked.request.vnfc_instance_id or tuple(one.id for one in vnf.info.vnfc_resource_info)
    servers = resource_ids(named, vnf.info)
    check_machines_exist(vnf.record, servers, "operate")
    state_by_vnfc = {one.vnfc_resource_info_id: one.vnfc_state for one in vnf.info.vnfc_info}
    present_states = {
        state_by_vnfc.get(one.id, "STARTED")
        for one in vnf.info.vnfc_resource_info
        if one.compute_resource.resource_id in servers
    }
    # Only if all are: after a partial failure the same request brings the others to the state.
    if present_states == {asked.request.change_state_to}:
        raise Conflict(f"the VNF is {asked.request.change_state_to} already")
    graceful = asked.request.change_state_to == "STOPPED" and asked.request.stop_type == "GRACEFUL"
    wait_s = DEFAULT_GRACEFUL_S if asked.request.graceful_stop_timeout is None else asked.request.graceful_stop_timeout
    scripts = scripts_of(vnf.flavour, OperationType.OPERATE)
    return OperateVmDraft(
        vnf_instance_id=vnf.record.vnf.id,
        vnfd_id=vnf.record.vnf.vnfd_id,
        vim_key=vnf.vim_key,
        vim=vnf.vim({}),
        before=vnf.resources,
        servers=tuple(servers),
        state=asked.request.change_state_to,
        graceful_wait_s=float(wait_s) if graceful else 0.0,
        package=vnf.package,
        scripts=scripts,
        script_request=script_request(asked) if scripts else {},
        instance=vnf.record.vnf.model_dump(by_alias=True, exclude_none=True) if scripts else {},
    )
