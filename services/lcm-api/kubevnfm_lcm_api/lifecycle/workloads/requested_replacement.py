"""Change of a workload cluster's package (SOL003 5.4.11a; capi.md chapter 13), and its roll-out without one."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from kubevnfm_kit.errors import InvalidInput, Unprocessable
from kubevnfm_sol.lcm import ChangeCurrentVnfPkgRequest, OperationType

from kubevnfm_lcm_api.lifecycle.containers.instantiating import manifest_files
from kubevnfm_lcm_api.lifecycle.containers.replacing import ReplaceCnfDraft
from kubevnfm_lcm_api.lifecycle.containers.requested_replacement import check_capi
from kubevnfm_lcm_api.lifecycle.containers.under_change import CnfUnderChange
from kubevnfm_lcm_api.lifecycle.core.kind import Asked
from kubevnfm_lcm_api.lifecycle.core.request_parameters import CAPI, CAPI_VARIABLES, DEF_FILES
from kubevnfm_lcm_api.lifecycle.workloads.capi import ADDONS
from kubevnfm_lcm_api.lifecycle.workloads.drafts import RollOutWorkloadDraft
from kubevnfm_lcm_api.lifecycle.workloads.replacing import ReplaceWorkloadDraft

_ROLL_OUT: Final = "rollout"
_PLACE: Final = f"additionalParams/{CAPI}/{_ROLL_OUT}"


def asks_for_roll_out(parameters: Mapping[str, Any]) -> bool:
    """Return whether ``additionalParams.capi.rollout`` is true. Raises InvalidInput, Unprocessable naming the field."""
    wanted = check_capi(parameters, (_ROLL_OUT, ADDONS, CAPI_VARIABLES)).get(_ROLL_OUT, False)
    if not isinstance(wanted, bool):
        raise InvalidInput(_PLACE, "true or false expected")
    return wanted


def replaced_workload(
    vnf: CnfUnderChange, draft: ReplaceCnfDraft, given: Mapping[str, Any], files: frozenset[str]
) -> ReplaceWorkloadDraft:
    """Return the draft of a change to another package.

    ``draft``: the same for a CNF; ``given``: additionalParams; ``files``: the paths in the package. Raises: InvalidInput naming the
    file; Unprocessable.
    """
    workload = vnf.record.internals.workload
    assert workload is not None
    if draft.images_of:
        raise Unprocessable("additionalParams/vdu_params", "a workload cluster has no containers: leave it out")
    if draft.phases:
        raise Unprocessable("vnfdId", "the package has management drivers, which a workload cluster cannot have")
    addons = _addons(given.get(CAPI, {}), files)
    parameters = draft.parameters
    if addons is not None:
        parameters = {**parameters, CAPI: {**parameters.get(CAPI, {}), ADDONS: list(addons)}}
    return ReplaceWorkloadDraft(**{**vars(draft), "parameters": parameters}, workload=workload, addon_files=addons)


def _addons(capi: Mapping[str, Any], files: frozenset[str]) -> tuple[str, ...] | None:
    """Return the addons of the new package; None if the request says nothing about them. Raises InvalidInput."""
    listed = capi.get(ADDONS)
    if ADDONS not in capi or listed == []:
        return None if ADDONS not in capi else ()
    return manifest_files(listed, files, place=f"additionalParams/{CAPI}/{ADDONS}")


def rolled_out_workload(
    vnf: CnfUnderChange, asked: Asked[ChangeCurrentVnfPkgRequest], now: datetime
) -> RollOutWorkloadDraft:
    """Return the draft of a roll-out (CR-103). Raises InvalidInput, Unprocessable naming the field."""
    workload = vnf.record.internals.workload
    assert workload is not None
    present = vnf.record.vnf.vnfd_id
    if asked.request.vnfd_id != present:
        raise Unprocessable("vnfdId", f"{present} expected, which the cluster has: {_PLACE} changes its machines only")
    for name in asked.request.additional_params:
        if name != CAPI:
            why = "another package rolls out by itself" if name == DEF_FILES else f"{CAPI} alone expected"
            raise Unprocessable(f"additionalParams/{name}", f"not expected beside {_PLACE}: {why}")
    for name in (CAPI_VARIABLES, ADDONS):
        if name in asked.request.additional_params[CAPI]:
            why = f"not expected beside {_PLACE}: no manifest is applied"
            raise Unprocessable(f"additionalParams/{CAPI}/{name}", why)
    return RollOutWorkloadDraft(
        **vars(vnf.change(asked, OperationType.CHANGE_VNFPKG)),
        workload=workload,
        roll_out_after=roll_out_time(now),
    )


def roll_out_time(now: datetime) -> str:
    """Return the time as Cluster API takes it: in whole seconds, as Kubernetes counts the age of objects."""
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
