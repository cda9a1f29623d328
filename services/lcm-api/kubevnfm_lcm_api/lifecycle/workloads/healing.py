"""The drafts of a heal and of a repair of a workload cluster, and their result for the instance (capi.md chapter 15)."""

from __future__ import annotations

from typing import ClassVar, Self

from kubevnfm_csar.vnfd.model import Flavour
from kubevnfm_events.capi import MachineFacts, MachinesChecked
from kubevnfm_sol.resources import ResourceChanges

from kubevnfm_lcm_api.lifecycle.containers.releases import metadata_of_repair, showing
from kubevnfm_lcm_api.lifecycle.core.drift import marked
from kubevnfm_lcm_api.lifecycle.core.granted_resources import Resources, replaced
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord, Release
from kubevnfm_lcm_api.lifecycle.workloads.drafts import ChangeWorkloadDraft, vnfcs_of


class HealWorkloadDraft(ChangeWorkloadDraft):
    """HEAL of a workload cluster: Cluster API makes new Machines in place of those that are deleted."""

    plan: ClassVar[str] = "heal_workload"
    is_reversible: ClassVar[bool] = False
    """A deleted Machine cannot be restored."""

    named: tuple[MachineFacts, ...] = ()
    """The Machines that the request names; none: those that are not healthy."""
    is_forced: bool = False
    """Also Machines without which etcd has no majority."""

    chosen: tuple[MachineFacts, ...] = ()
    """The Machines to replace, in this order, as they were before the first one was deleted."""
    machines: tuple[MachineFacts, ...] | None = None
    """The Machines that were reported last; None: none yet."""

    def grant_resources(self, flavour: Flavour | None) -> Resources:
        """The Machines that the request names; without names, only Cluster API knows which ones are not healthy."""
        named = {machine.uid for machine in self.named}
        return replaced([pod for pod in self.before.pods if pod.uid in named], self.vim_key, flavour)

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


class RepairWorkloadDraft(ChangeWorkloadDraft):
    """HEAL of a workload cluster whose objects others have deleted or changed (CR-121)."""

    plan: ClassVar[str] = "repair_workload"
    is_reversible: ClassVar[bool] = False
    """Changes by others are not restored."""

    repaired: int | None = None
    """The number of objects that were applied; None until it is reported."""

    def with_repaired(self, release: Release, repaired: int | None) -> Self:
        """Return the draft with the objects that exist now; the VNFCs are Machines, which a later step reports."""
        present = release.model_copy(update={"pods": (self.release or self.before).pods})
        return self.model_copy(update={"release": present, "repaired": repaired})

    def changes(self) -> ResourceChanges:
        """As for every change, with the number of objects that were applied."""
        return super().changes().model_copy(update={"metadata": metadata_of_repair(self.repaired)})

    def completed(self, instance: InstanceRecord) -> InstanceRecord:
        """Return the instance with its present objects and Machines; every object is as it was applied."""
        return marked(
            super().completed(showing(instance, self.release, self.package, self.vim_key, self.def_files)), None
        )
