"""Change of the external connectivity (SOL003 5.4.11)."""

from __future__ import annotations

from kubevnfm_sol.lcm import ChangeExtVnfConnectivityRequest, OperationType

from kubevnfm_lcm_api.lifecycle.core.acceptance import Acceptance
from kubevnfm_lcm_api.lifecycle.core.kind import CHANGE_EXT_CONN, Asked
from kubevnfm_lcm_api.lifecycle.requests.changeable import ChangeableVnfs


class ChangeConnectivity:
    """Accepts ChangeExtVnfConnectivityRequests."""

    def __init__(self, *, vnfs: ChangeableVnfs, acceptance: Acceptance) -> None:
        self._vnfs, self._acceptance = vnfs, acceptance

    async def accept(self, instance_id: str, asked: Asked[ChangeExtVnfConnectivityRequest]) -> str:
        """Accept a change of links; return the occurrence's id.

        Raises: NotFound, TaskUnsupported, Conflict; InvalidInput for a connection point that the VNFD does not have.
        """
        kind, vnf = await self._vnfs.find(instance_id, CHANGE_EXT_CONN)
        draft = await kind.connect(vnf, asked)
        return await self._acceptance.accept(
            vnf.stored,
            vnf.record,
            OperationType.CHANGE_EXT_CONN,
            draft,
            asked,
            flavour=vnf.flavour,
        )
