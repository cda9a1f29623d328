"""Operate (SOL003 5.4.10): start or stop the machines of a VNF, or some of them."""

from __future__ import annotations

from kubevnfm_sol.lcm import OperateVnfRequest, OperationType

from kubevnfm_lcm_api.lifecycle.core.acceptance import Acceptance
from kubevnfm_lcm_api.lifecycle.core.kind import OPERATE, Asked
from kubevnfm_lcm_api.lifecycle.requests.changeable import ChangeableVnfs


class Operate:
    """Accepts OperateVnfRequests."""

    def __init__(self, *, vnfs: ChangeableVnfs, acceptance: Acceptance) -> None:
        self._vnfs, self._acceptance = vnfs, acceptance

    async def accept(self, instance_id: str, asked: Asked[OperateVnfRequest]) -> str:
        """Accept a start or stop; return the occurrence's id.

        Raises: NotFound, TaskUnsupported; InvalidInput for an unknown VNFC; Conflict if all machines are in that state; Drifted
        for a machine that was found deleted.
        """
        kind, vnf = await self._vnfs.find(instance_id, OPERATE)
        draft = await kind.operate(vnf, asked)
        return await self._acceptance.accept(
            vnf.stored,
            vnf.record,
            OperationType.OPERATE,
            draft,
            asked,
            flavour=vnf.flavour,
        )
