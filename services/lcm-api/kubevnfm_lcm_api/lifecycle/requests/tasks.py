"""One object for each operation except instantiate and terminate; each accepts its requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from kubevnfm_clients.ports import Vims

from kubevnfm_lcm_api.lifecycle.core.acceptance import Acceptance
from kubevnfm_lcm_api.lifecycle.core.engine import Engine
from kubevnfm_lcm_api.lifecycle.core.instances import Instances
from kubevnfm_lcm_api.lifecycle.core.kind import VnfKind
from kubevnfm_lcm_api.lifecycle.core.ports import PackageCatalogue
from kubevnfm_lcm_api.lifecycle.core.vim_choice import VimEntries
from kubevnfm_lcm_api.lifecycle.requests.changeable import ChangeableVnfs
from kubevnfm_lcm_api.lifecycle.requests.connectivity import ChangeConnectivity
from kubevnfm_lcm_api.lifecycle.requests.heal import Heal
from kubevnfm_lcm_api.lifecycle.requests.modify import Modify
from kubevnfm_lcm_api.lifecycle.requests.operate import Operate
from kubevnfm_lcm_api.lifecycle.requests.replacement import Replace
from kubevnfm_lcm_api.lifecycle.requests.scale import Scale


@dataclass(frozen=True)
class Tasks:
    """The acceptors, by operation."""

    scale: Scale
    heal: Heal
    operate: Operate
    connectivity: ChangeConnectivity
    replacement: Replace
    modify: Modify

    @classmethod
    def from_services(
        cls,
        *,
        instances: Instances,
        engine: Engine,
        packages: PackageCatalogue,
        vims: Vims,
        acceptance: Acceptance,
        kinds: Sequence[VnfKind],
    ) -> Self:
        """Create them on these services."""
        vnfs = ChangeableVnfs(instances=instances, engine=engine, packages=packages, kinds=kinds)
        return cls(
            scale=Scale(vnfs=vnfs, acceptance=acceptance),
            heal=Heal(vnfs=vnfs, acceptance=acceptance),
            operate=Operate(vnfs=vnfs, acceptance=acceptance),
            connectivity=ChangeConnectivity(vnfs=vnfs, acceptance=acceptance),
            replacement=Replace(vnfs=vnfs, acceptance=acceptance),
            modify=Modify(
                instances=instances,
                engine=engine,
                packages=packages,
                vim_entries=VimEntries(vims),
                acceptance=acceptance,
                kinds=kinds,
            ),
        )
