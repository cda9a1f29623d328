"""Heal (SOL003 5.4.9, SOL002's vnfcInstanceId), operate (5.4.10) and change of the external connectivity (5.4.11)."""

from __future__ import annotations

from kubevnfm_sol.base import SolType
from kubevnfm_sol.lcm import ChangeExtVnfConnectivityRequest, HealVnfRequest, OperateVnfRequest, OperationType

from kubevnfm_lcm_api.lifecycle.core.acceptance import Acceptance
from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.core.kind import CHANGE_EXT_CONN, HEAL, OPERATE, Asked, UnderChange
from kubevnfm_lcm_api.lifecycle.core.request_parameters import ALL, flag
from kubevnfm_lcm_api.lifecycle.requests.changeable import ChangeableVnfs


class Changes:
    """Accepts the requests of which a kind of VNF alone knows what they mean."""

    def __init__(self, *, vnfs: ChangeableVnfs, acceptance: Acceptance) -> None:
        self._vnfs, self._acceptance = vnfs, acceptance

    async def accept_heal(self, instance_id: str, asked: Asked[HealVnfRequest]) -> str:
        """Accept a heal; return the occurrence's id (sequences.md A4, A5).

        Raises: NotFound, TaskUnsupported, Conflict, Drifted; InvalidInput for an unknown VNFC or a malformed parameter;
        Unprocessable for nodes that a cluster cannot lose, and for volumes that cannot stay.
        """
        kind, vnf = await self._vnfs.find(instance_id, HEAL)
        # Also of a kind that does not read it.
        flag(asked.request.additional_params, ALL)
        return await self._accept(vnf, OperationType.HEAL, await kind.heal(vnf, asked), asked)

    async def accept_operate(self, instance_id: str, asked: Asked[OperateVnfRequest]) -> str:
        """Accept a start or stop of the machines of a VNF, or of some of them; return the occurrence's id.

        Raises: NotFound, TaskUnsupported; InvalidInput for an unknown VNFC; Conflict if all machines are in that state; Drifted
        for a machine that was found deleted.
        """
        kind, vnf = await self._vnfs.find(instance_id, OPERATE)
        return await self._accept(vnf, OperationType.OPERATE, await kind.operate(vnf, asked), asked)

    async def accept_links(self, instance_id: str, asked: Asked[ChangeExtVnfConnectivityRequest]) -> str:
        """Accept a change of links; return the occurrence's id.

        Raises: NotFound, TaskUnsupported, Conflict; InvalidInput for a connection point that the VNFD does not have.
        """
        kind, vnf = await self._vnfs.find(instance_id, CHANGE_EXT_CONN)
        return await self._accept(vnf, OperationType.CHANGE_EXT_CONN, await kind.connect(vnf, asked), asked)

    async def _accept(self, vnf: UnderChange, operation: OperationType, draft: Draft, asked: Asked[SolType]) -> str:
        return await self._acceptance.accept(vnf.stored, vnf.record, operation, draft, asked, flavour=vnf.flavour)
