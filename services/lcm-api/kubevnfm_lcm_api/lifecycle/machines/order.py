"""The common part of the operations on a VNF's stack: their order, and what SOL003 shows of the stack."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from kubevnfm_events.stacks import StackOrder, StackResources
from kubevnfm_sol.resources import ChangeType, InstantiatedVnfInfo, ResourceChanges, ScaleInfo
from pydantic import Field

from kubevnfm_lcm_api.lifecycle.core.scripted_draft import OnVimDraft
from kubevnfm_lcm_api.lifecycle.machines import affected, inventory
from kubevnfm_lcm_api.lifecycle.machines.cluster_drafts import ClusterDraft


class StackDraft(StackOrder, ClusterDraft, OnVimDraft):
    """An operation that makes or changes a stack; the attributes of its order are stored beside its own."""

    order_type: ClassVar[type[StackOrder]] = StackOrder

    external_cps: dict[str, str] = Field(default_factory=dict)
    scale_status: tuple[ScaleInfo, ...] = ()
    """The wanted scale levels."""
    max_scale_levels: tuple[ScaleInfo, ...] = ()
    resources: StackResources | None = None
    """The stack's resources now; None until they are reported."""

    @property
    def order(self) -> StackOrder:
        """The stack that is wanted."""
        kind = self.order_type
        return kind.model_construct(**{name: getattr(self, name) for name in kind.model_fields})

    @property
    def reads_grant_request(self) -> bool:
        """Always: user data get it."""
        return True

    def facts(self, resources: StackResources, connections: Mapping[str, Any]) -> InstantiatedVnfInfo:
        """Return what a stack holds; ``connections``: external and managed links."""
        return inventory.info_of_stack(
            resources,
            vnfd_id=self.package.vnfd_id,
            vim_key=self.vim_key,
            flavour_id=self.flavour_id,
            scale_status=self.scale_status,
            max_scale_levels=self.max_scale_levels,
            external_cps=self.external_cps,
            ext_virtual_links=connections.get("extVirtualLinks") or (),
            ext_managed_links=connections.get("extManagedVirtualLinks") or (),
            node_names=self.node_names,
            known_configs=self._known_configs,
        )

    @property
    def _known_configs(self) -> Mapping[inventory.CpPlace, str]:
        """The entry of cpConfig that each external connection point had before the operation."""
        return inventory.known_configs(self.instance.get("instantiatedVnfInfo") or {})

    def with_resources(self, resources: StackResources | None) -> Self:
        """Return the draft with what the stack holds now; None: it holds nothing."""
        return self.model_copy(update={"resources": resources})

    def changes_of(self, resources: StackResources, change: ChangeType) -> ResourceChanges:
        """Return everything that a stack holds as affected."""
        vnfd_id, vim_key = self.package.vnfd_id, self.vim_key
        return affected.changes_of_stack(resources, vnfd_id=vnfd_id, vim_key=vim_key, change=change)
