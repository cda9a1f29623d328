"""Steps that run the scripts of a change of package which coordinate its machines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from kubevnfm_events import Command
from kubevnfm_events.mgmt import RunScript, ScriptDone
from kubevnfm_kit.errors import Unprocessable

from kubevnfm_lcm_api.lifecycle.core.step import Step
from kubevnfm_lcm_api.lifecycle.machines.addresses import connection_address
from kubevnfm_lcm_api.lifecycle.machines.changing import Age, ReplaceVmDraft
from kubevnfm_lcm_api.lifecycle.scripts.steps import SCRIPT_TIMEOUT_S, addresses, without_access

_OPERATION_ID: Final = "vnfLcmOpOccId"


@dataclass(frozen=True)
class _Coordination(Step[ReplaceVmDraft, ScriptDone]):
    """A script for one machine; it has no answer. Again: it runs again."""

    vdu_id: str
    number: int
    """Among the machines of the change, or of the part."""
    part: str = ""
    """A rolling update: the resource of the top stack that holds the machine."""

    command: ClassVar[type[Command]] = RunScript
    base_timeout_s: ClassVar[float] = SCRIPT_TIMEOUT_S


@dataclass(frozen=True)
class CoordinateNew(_Coordination):
    """Run ``lcm-operation-coordinate-new-vnf`` for one machine that the change has touched (sequences.md 6.5).

    Fails: an exit status other than 0; a connection point that the machine does not have.
    """

    kind: ClassVar[str] = "coordinate_new"
    label: ClassVar[str] = "Coordinate a changed machine of {vdu_id}"

    def ask(self, draft: ReplaceVmDraft) -> RunScript:
        return _coordination(draft, "new", self.vdu_id, self.number, self.part)

    def undo(self, draft: ReplaceVmDraft) -> None:
        """The reversal of the change has a script of its own (`CoordinateOld`)."""


@dataclass(frozen=True)
class CoordinateOld(_Coordination):
    """In a rollback, run ``lcm-operation-coordinate-old-vnf`` for one machine that is as before. Forwards it does nothing."""

    kind: ClassVar[str] = "coordinate_old"
    label: ClassVar[str] = "In a rollback, coordinate a machine of {vdu_id}"
    only_undo: ClassVar[bool] = True

    def ask(self, draft: ReplaceVmDraft) -> None:
        """Nothing is to be done forwards."""

    def undo(self, draft: ReplaceVmDraft) -> RunScript:
        return _coordination(draft, "old", self.vdu_id, self.number, self.part)


def _coordination(draft: ReplaceVmDraft, age: Age, vdu_id: str, number: int, part: str) -> RunScript:
    """Return the command for one machine. Raises Unprocessable if it has no such connection point."""
    is_rollback = age == "old"
    before, now = draft.stacks
    stack = now or before
    machines = draft.machines_of(part) if part else draft.machines_to_coordinate(age)
    place = f"additionalParams/vdu_params/{vdu_id}/{age}_vnfc_param/cp_name"
    if number >= len(machines):
        raise Unprocessable(place, f"the stack has {len(machines)} machines, and no machine {number} to coordinate")
    server = machines[number]
    params: Mapping[str, Any] = draft.coordination_params[vdu_id][f"{age}_vnfc_param"]
    instance = draft.instance_at("rolled_back" if is_rollback else "completed")
    vnfcs = instance["instantiatedVnfInfo"].get("vnfcInfo") or ()
    vnfc_ids = [one["id"] for one in vnfcs if one.get("vnfcResourceInfoId") == server.vnfc_id]
    operation_id = str(draft.grant_request.get(_OPERATION_ID, ""))
    return RunScript(
        vnf_instance_id=draft.vnf_instance_id,
        package=draft.coordination_packages.get(age, draft.package),
        file=draft.coordination[age],
        task=f"coordinate-{age}/{part or vdu_id}/{number}",
        given={
            **params,
            "ssh_ip": connection_address(server, stack, str(params["cp_name"]), field=place),
            "is_rollback": is_rollback,
            "LcmCoordRequest": {
                "vnfInstanceId": draft.vnf_instance_id,
                "vnfLcmOpOccId": operation_id,
                "lcmOperationType": "CHANGE_VNFPKG",
                # The script sets it: the VNFD does not name it.
                "coordinationActionName": "should_be_set_by_script",
                "_links": {
                    "vnfLcmOpOcc": {"href": f"/vnflcm/v2/vnf_lcm_op_occs/{operation_id}"},
                    "vnfInstance": {"href": f"/vnflcm/v2/vnf_instances/{draft.vnf_instance_id}"},
                },
            },
            "inst": without_access(instance),
            **({"vnfc_info_id": vnfc_ids[0]} if vnfc_ids else {}),
        },
        reach=addresses(stack),
        answers=False,
    )
