"""The draft of a heal of a workload cluster, and its result for the instance (capi.md chapter 15)."""

from __future__ import annotations

from typing import ClassVar, Self

from kubevnfm_events.capi import MachineFacts, MachinesChecked

from kubevnfm_lcm_api.lifecycle.domain.instance import InstanceRecord
from kubevnfm_lcm_api.lifecycle.domain.workload_drafts import ChangeWorkloadDraft, vnfcs_of


class HealWorkloadDraft(ChangeWorkloadDraft):
    """HEAL of a workload cluster: Cluster API makes new Machines in place of those that are deleted."""

    plan: ClassVar[str] = "heal_workload"

    named: tuple[MachineFacts, ...] = ()
    """The Machines that the request names; none: those that are not healthy."""
    is_forced: bool = False
    """Also Machines without which etcd has no majority."""

    chosen: tuple[MachineFacts, ...] = ()
    """The Machines to replace, in this order, as they were before the first one was deleted."""
    machines: tuple[MachineFacts, ...] | None = None
    """The Machines that were reported last; None: none yet."""

    @property
    def is_reversible(self) -> bool:
        """Never: a deleted Machine cannot be restored."""
        return False

    @property
    def present_machines(self) -> tuple[MachineFacts, ...] | None:
        """The Machines that were reported last; None: none yet."""
        return self.machines

    def with_checked(self, checked: MachinesChecked) -> Self:
        """Return the draft with the Machines that exist, and those to replace."""
        return self.with_machines(checked.machines).model_copy(update={"chosen": checked.chosen})

    def with_machines(self, machines: tuple[MachineFacts, ...]) -> Self:
        """Return the draft with the Machines, which are the VNFCs."""
        release = self.before.model_copy(update={"pods": vnfcs_of(machines)})
        return self.model_copy(update={"machines": machines, "release": release})

    def completed(self, instance: InstanceRecord) -> InstanceRecord:
        """Return the instance with its present Machines."""
        return self.rolled_back(instance)
