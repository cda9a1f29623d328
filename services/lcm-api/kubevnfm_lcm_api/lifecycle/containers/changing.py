"""The drafts of the operations that change a CNF's objects: their facts, and their result for the instance."""

from __future__ import annotations

from collections import Counter
from typing import ClassVar, Self

from kubevnfm_csar.vnfd.model import Flavour
from kubevnfm_events.objects import LeftObject, ObjectCount, PodFacts
from kubevnfm_secrets import SecretParams
from kubevnfm_sol.resources import ResourceChanges, ScaleInfo
from pydantic import Field

from kubevnfm_lcm_api.lifecycle.containers.order import ChangedObjectsDraft
from kubevnfm_lcm_api.lifecycle.containers.releases import metadata_of_left, metadata_of_repair, showing
from kubevnfm_lcm_api.lifecycle.core.drift import marked
from kubevnfm_lcm_api.lifecycle.core.granted_resources import Resources, added, removed_pods, replaced
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord, Release
from kubevnfm_lcm_api.lifecycle.core.scale_levels import reached_levels, scale_status_of


class ChangeCnfDraft(ChangedObjectsDraft):
    """The common part: the objects and pods as they were, and as they are now."""

    flavour_id: str

    def with_release(self, release: Release | None) -> Self:
        """Return the draft with what exists now."""
        return self.model_copy(update={"release": release})

    def rolled_back(self, instance: InstanceRecord) -> InstanceRecord:
        """Return the instance with the pods that run after the reversal."""
        return showing(instance, self.release, self.package, self.vim_key, self.def_files)

    def failed(self, instance: InstanceRecord, occurrence_id: str) -> InstanceRecord:
        """Return the instance with the pods that were reported last."""
        return showing(instance, self.release, self.package, self.vim_key, self.def_files)


class ScaleCnfDraft(ChangeCnfDraft):
    """SCALE, SCALE_TO_LEVEL of a CNF."""

    plan: ClassVar[str] = "scale_cnf"

    counts: tuple[ObjectCount, ...]
    """The objects that are scaled, with their wanted numbers of replicas."""
    counts_before: tuple[ObjectCount, ...]
    """The same objects with the numbers of replicas that they had by the scale levels before."""
    vdu_counts: dict[str, int] = Field(default_factory=dict)
    """The difference of VNFCs by VDU."""
    scale_status: tuple[ScaleInfo, ...] = ()
    """The wanted scale levels."""
    instantiation_level_id: str | None = None
    """The instantiation level that the VNF is scaled to; None: scaled by aspects."""
    steps_of: dict[str, tuple[dict[str, int], ...]] = Field(default_factory=dict)
    """By aspect: for each level, the VNFCs by VDU in addition to those of level 0."""

    def grant_resources(self, flavour: Flavour | None) -> Resources:
        """The pods that come or go."""
        leaving: list[PodFacts] = []
        for vdu_id, difference in self.vdu_counts.items():
            pods = [pod for pod in self.before.pods if pod.vdu_id == vdu_id]
            # Kubernetes chooses the pods when it removes them; until then, these stand for their number.
            leaving += pods[max(0, len(pods) + difference) :] if difference < 0 else []
        return Resources(add=list(added(self.vdu_counts, flavour)), remove=list(removed_pods(leaving, self.vim_key)))

    @property
    def is_reversible(self) -> bool:
        """Whether no VNFC is removed: Kubernetes creates others in their place, with other names."""
        return all(difference >= 0 for difference in self.vdu_counts.values())

    def completed(self, instance: InstanceRecord) -> InstanceRecord:
        """Return the instance at its new scale levels."""
        done = showing(
            instance,
            self.release,
            self.package,
            self.vim_key,
            self.def_files,
            scale_status=self.scale_status or None,
        )
        if self.instantiation_level_id is None:
            return done
        return done.with_internals(instantiation_level_id=self.instantiation_level_id)

    def failed(self, instance: InstanceRecord, occurrence_id: str) -> InstanceRecord:
        """Return the instance at the scale levels that the pods amount to that were reported last."""
        if self.release is None:
            return instance
        reached = reached_levels(
            self.scale_status,
            scale_status_of(instance),
            self.steps_of,
            now=Counter(pod.vdu_id for pod in self.release.pods),
            before=self.before.counts,
        )
        return showing(instance, self.release, self.package, self.vim_key, self.def_files, scale_status=reached or None)


class HealCnfDraft(ChangeCnfDraft):
    """HEAL of a CNF."""

    plan: ClassVar[str] = "heal_cnf"
    is_reversible: ClassVar[bool] = False
    """A deleted pod cannot be restored."""
    adopt: ClassVar[bool] = False
    """Objects that belong to others by now stay theirs."""
    is_forceful: ClassVar[bool] = False
    force_remove_finalizers: ClassVar[bool] = False
    gives_up_waiting: ClassVar[bool] = False

    parameters: SecretParams = Field(default_factory=dict)
    """additionalParams of the instantiate request."""
    phases: dict[str, str] = Field(default_factory=dict)
    """Management driver by phase, as far as mgmt-executor runs it."""
    pods: tuple[PodFacts, ...] = ()
    """The pods to replace; their uids distinguish the old ones from the new ones."""
    is_whole: bool = False
    """All objects are deleted and created again."""
    end_hooks_s: float = 0.0
    """The time that the hooks of that deletion may take."""
    is_gone: bool = False
    """Whether the old objects are deleted."""
    is_repair: bool = False
    """Objects that others have deleted or changed are applied again, and all else stays."""
    repaired: int | None = None
    """The number of objects that a repair has applied; None until it is reported."""
    left: tuple[LeftObject, ...] = ()
    """The objects that its deletions have left, because others need them or their artifacts keep them."""

    def grant_resources(self, flavour: Flavour | None) -> Resources:
        """The pods that are replaced; a repair brings back what was granted before."""
        pods = self.before.pods if self.is_whole else self.pods
        return replaced(pods, self.vim_key, flavour, with_storage=self.is_whole)

    def without_release(self, left: tuple[LeftObject, ...]) -> Self:
        """Return the draft once the old objects are deleted, except what is left."""
        nothing = Release(namespace=self.before.namespace)
        return self.model_copy(update={"is_gone": True, "release": nothing, "left": left})

    def without_objects(self, left: tuple[LeftObject, ...]) -> Self:
        """Return the draft once its new objects are deleted, except what is left."""
        return self.with_release(None).model_copy(update={"left": left})

    def with_repaired(self, release: Release, repaired: int | None) -> Self:
        """Return the draft with what exists now, and the number of objects that were applied; None: not known yet."""
        return self.model_copy(update={"release": release, "repaired": repaired})

    def changes(self) -> ResourceChanges:
        """As for every change; of a repair also the number of objects that were applied, and what a deletion has left."""
        there = self.release.objects if self.release is not None else ()
        again = {(each.kind, each.namespace, each.name) for each in there}
        left = [each for each in self.left if (each.kind, each.namespace, each.name) not in again]
        metadata = {**(metadata_of_repair(self.repaired) or {}), **(metadata_of_left(left) or {})}
        return super().changes().model_copy(update={"metadata": metadata or None})

    def completed(self, instance: InstanceRecord) -> InstanceRecord:
        """Return the instance with the pods that run now; every object is as it was applied."""
        shown = showing(instance, self.release, self.package, self.vim_key, self.def_files)
        return marked(shown, None) if self.is_repair or self.is_whole else shown

    def failed(self, instance: InstanceRecord, occurrence_id: str) -> InstanceRecord:
        """Return the instance with the pods that were reported last."""
        if not self.is_repair or self.release is None:
            return super().failed(instance, occurrence_id)
        # With the node ports that a load balancer has: the next repair sees that they differ.
        release = self.release.model_copy(update={"services": self.before.services})
        return showing(instance, release, self.package, self.vim_key, self.def_files)
