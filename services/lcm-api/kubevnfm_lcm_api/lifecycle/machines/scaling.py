"""The draft of scale and scale to level: its facts, and its result for the instance."""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

from kubevnfm_events.stacks import StackResources
from kubevnfm_kit.request_warnings import RequestWarning
from kubevnfm_sol.resources import ScaleInfo
from pydantic import Field

from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord
from kubevnfm_lcm_api.lifecycle.core.scale_levels import reached_levels, scale_status_of
from kubevnfm_lcm_api.lifecycle.machines.changing import ChangeVmDraft
from kubevnfm_lcm_api.lifecycle.machines.inventory import machines_by_vdu


class ScaleVmDraft(ChangeVmDraft):
    """SCALE, SCALE_TO_LEVEL."""

    plan: ClassVar[str] = "scale_vm"

    leaving: tuple[str, ...] = ()
    """Nova ids of the servers that are removed."""
    steps_of: dict[str, tuple[dict[str, int], ...]] = Field(default_factory=dict)
    """By aspect: for each level, the instances by VDU in addition to those of level 0."""

    @property
    def notes(self) -> tuple[RequestWarning, ...]:
        """The groups that get machines of their earlier form."""
        present = Counter(one.vdu_id for one in self.before.servers)
        growing = {one for one, count in self.counts.items() if count > present[one]}
        return self.kept_forms(
            {one.group for one in self.before.servers if one.group and one.member and one.vdu_id in growing}
        )

    @property
    def servers_leaving(self) -> tuple[str, ...]:
        return self.leaving

    @property
    def deleted_volumes(self) -> tuple[str, ...]:
        return tuple(one.resource_id for one in self.before.volumes if one.server_id in self.leaving)

    @property
    def is_reversible(self) -> bool:
        """Whether no machine is removed: a removed machine cannot be restored."""
        return not self.leaving

    def reached_scale_status(self, instance: InstanceRecord, resources: StackResources) -> tuple[ScaleInfo, ...]:
        return reached_levels(
            self.scale_status,
            scale_status_of(instance),
            self.steps_of,
            now=machines_by_vdu(resources),
            before=machines_by_vdu(self.before),
        )
