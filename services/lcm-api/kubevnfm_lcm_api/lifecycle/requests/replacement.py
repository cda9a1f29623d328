"""Change of the deployment flavour (SOL003 5.4.7) and of the VNF package (5.4.11a)."""

from __future__ import annotations

from kubevnfm_sol.base import SolType
from kubevnfm_sol.lcm import ChangeCurrentVnfPkgRequest, ChangeVnfFlavourRequest, OperationType

from kubevnfm_lcm_api.lifecycle.core.acceptance import NO_CLAIMS, Acceptance
from kubevnfm_lcm_api.lifecycle.core.kind import CHANGE_FLAVOUR, CHANGE_VNFPKG, Asked, Replacement, UnderChange
from kubevnfm_lcm_api.lifecycle.requests.changeable import ChangeableVnfs


class Replace:
    """Accepts ChangeVnfFlavourRequests and ChangeCurrentVnfPkgRequests."""

    def __init__(self, *, vnfs: ChangeableVnfs, acceptance: Acceptance) -> None:
        self._vnfs, self._acceptance = vnfs, acceptance

    async def accept_flavour(self, instance_id: str, asked: Asked[ChangeVnfFlavourRequest]) -> str:
        """Accept a change of flavour; return the occurrence's id.

        Raises: NotFound, TaskUnsupported, Conflict; InvalidInput for an unknown flavour or level, or the present one.
        """
        kind, vnf = await self._vnfs.find(instance_id, CHANGE_FLAVOUR)
        found = await kind.change_flavour(vnf, asked)
        return await self._accept(vnf, OperationType.CHANGE_FLAVOUR, found, asked)

    async def accept_package(self, instance_id: str, asked: Asked[ChangeCurrentVnfPkgRequest]) -> str:
        """Accept a change of package; return the occurrence's id.

        Raises: NotFound, TaskUnsupported, Conflict; InvalidInput for wrong parameters; PackageUnusable and
        Unprocessable for a package that the VNF cannot be changed to, and for parameters that are not supported yet.
        """
        kind, vnf = await self._vnfs.find(instance_id, CHANGE_VNFPKG)
        found = await kind.change_package(vnf, asked)
        return await self._accept(vnf, OperationType.CHANGE_VNFPKG, found, asked)

    async def _accept(
        self, vnf: UnderChange, operation: OperationType, found: Replacement, asked: Asked[SolType]
    ) -> str:
        new = found.draft.dst_vnfd_id
        return await self._acceptance.accept(
            vnf.stored,
            vnf.record,
            operation,
            found.draft,
            asked,
            flavour=found.flavour,
            # Claimed with the instance: from now on the new package is in use and cannot be deleted.
            claims={"internal/dstVnfdId": new} if new is not None else NO_CLAIMS,
            secret_names=found.secret_names,
        )
