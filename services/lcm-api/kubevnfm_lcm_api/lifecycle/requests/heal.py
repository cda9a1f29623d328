"""Heal (SOL003 5.4.9, SOL002's vnfcInstanceId)."""

from __future__ import annotations

from kubevnfm_sol.lcm import HealVnfRequest, OperationType

from kubevnfm_lcm_api.lifecycle.core.acceptance import Acceptance
from kubevnfm_lcm_api.lifecycle.core.kind import HEAL, Asked
from kubevnfm_lcm_api.lifecycle.core.request_parameters import ALL, flag
from kubevnfm_lcm_api.lifecycle.requests.changeable import ChangeableVnfs


class Heal:
    """Accepts HealVnfRequests."""

    def __init__(self, *, vnfs: ChangeableVnfs, acceptance: Acceptance) -> None:
        self._vnfs, self._acceptance = vnfs, acceptance

    async def accept(self, instance_id: str, asked: Asked[HealVnfRequest]) -> str:
        """Accept a heal; return the occurrence's id (sequences.md A4, A5).

        Raises: NotFound, TaskUnsupported, Conflict, Drifted; InvalidInput for an unknown VNFC or a malformed parameter;
        Unprocessable for nodes that a cluster cannot lose, and for volumes that cannot stay.
        """
        kind, vnf = await self._vnfs.find(instance_id, HEAL)
        # Also of a kind that does not read it.
        flag(asked.request.additional_params, ALL)
        draft = await kind.heal(vnf, asked)
        return await self._acceptance.accept(
            vnf.stored,
            vnf.record,
            OperationType.HEAL,
            draft,
            asked,
            flavour=vnf.flavour,
        )
