"""The objects that accept the requests of all operations except instantiate and terminate."""

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
from kubevnfm_lcm_api.lifecycle.requests.changes import Changes
from kubevnfm_lcm_api.lifecycle.requests.modify import Modify
from kubevnfm_lcm_api.lifecycle.requests.replacement import Replace
from kubevnfm_lcm_api.lifecycle.requests.scale import Scale


@dataclass(frozen=True)
class Tasks:
    """The acceptors of requests."""

    scale: Scale
    changes: Changes
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
            changes=Changes(vnfs=vnfs, acceptance=acceptance),
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
