"""Steps that infra-k8s does to change a CNF that runs: its numbers of replicas, and its pods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol

from kubevnfm_events import Command, Event
from kubevnfm_events.infra import (
    HealObjects,
    HelmChart,
    ObjectCount,
    ObjectsHealed,
    ObjectsScaled,
    PodFacts,
    ScaleObjects,
)

from kubevnfm_lcm_api.lifecycle.containers.object_steps import AwaitedObjects
from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.core.instance import Release
from kubevnfm_lcm_api.lifecycle.core.needs import NeedsObjects, NeedsVim


class NeedsScaling(NeedsVim, Protocol):
    """An operation that changes the number of replicas of a CNF's objects."""

    @property
    def counts(self) -> tuple[ObjectCount, ...]: ...

    @property
    def counts_before(self) -> tuple[ObjectCount, ...]: ...

    def with_release(self, release: Release | None) -> Draft:
        """Return the draft with what exists now."""
        ...


@dataclass(frozen=True)
class ScaleCnfObjects(AwaitedObjects[NeedsScaling, ObjectsScaled]):
    """Set the number of replicas of the objects, and wait until they are reached (capi.md CR-033).

    Adds: the pods that run now.
    Again: safe; the counts are absolute.
    Fails: a kind that cannot be scaled, a missing object, refusals and timeouts name the object.
    """

    kind: ClassVar[str] = "scale_objects"
    command: ClassVar[type[Command]] = ScaleObjects
    label: ClassVar[str] = "Scale the containers"

    def ask(self, draft: NeedsScaling) -> ScaleObjects:
        """Ask for the wanted counts."""
        return self._command(draft, draft.counts)

    def fold(self, draft: NeedsScaling, reply: ObjectsScaled) -> Draft:
        """Keep what runs now."""
        return draft.with_release(Release.from_applied(reply))

    def fold_remains(self, draft: NeedsScaling, remains: Mapping[str, object]) -> Draft:
        """Keep what runs after the failure."""
        return self.fold(draft, ObjectsScaled.model_validate(remains))

    def undone(self, draft: NeedsScaling, reply: Event) -> Draft:
        """Keep what runs after the reversal."""
        assert isinstance(reply, ObjectsScaled)
        return self.fold(draft, reply)

    def fold_undo_remains(self, draft: NeedsScaling, remains: Mapping[str, object]) -> Draft:
        """Keep what runs after a reversal that failed."""
        return self.fold_remains(draft, remains)

    def undo(self, draft: NeedsScaling) -> ScaleObjects:
        """Ask for the counts of the scale levels before; a scale in has no rollback (CR-093)."""
        return self._command(draft, draft.counts_before)

    def _command(self, draft: NeedsScaling, counts: tuple[ObjectCount, ...]) -> ScaleObjects:
        return ScaleObjects(
            vnf_instance_id=draft.vnf_instance_id, vim=draft.vim, objects=counts, wait_timeout_s=self.wait_timeout_s
        )


class NeedsHealing(NeedsObjects, Protocol):
    """An operation that replaces pods of a CNF."""

    @property
    def chart(self) -> HelmChart | None: ...

    @property
    def pods(self) -> tuple[PodFacts, ...]: ...

    def with_release(self, release: Release | None) -> Draft:
        """Return the draft with what exists now."""
        ...


@dataclass(frozen=True)
class HealCnfPods(AwaitedObjects[NeedsHealing, ObjectsHealed]):
    """Delete pods and wait for as many new ready ones (capi.md CR-034).

    Adds: the pods that run now.
    Again: safe; the pods are known by uid, so that a new one is not deleted.
    Fails: a missing workload or manifest, refusals and timeouts name the object.
    """

    kind: ClassVar[str] = "heal_objects"
    command: ClassVar[type[Command]] = HealObjects
    label: ClassVar[str] = "Replace pods"

    def ask(self, draft: NeedsHealing) -> HealObjects:
        """Ask for the replacement."""
        return HealObjects(
            vnf_instance_id=draft.vnf_instance_id,
            package=draft.package,
            vim=draft.vim,
            def_files=draft.def_files,
            chart=draft.chart,
            namespace=draft.namespace,
            multi_namespace=draft.multi_namespace,
            vdus=draft.vdus,
            pods=draft.pods,
            variables=draft.variables,
            wait_timeout_s=self.wait_timeout_s,
        )

    def fold(self, draft: NeedsHealing, reply: ObjectsHealed) -> Draft:
        """Keep what runs now."""
        return draft.with_release(Release.from_applied(reply))

    def fold_remains(self, draft: NeedsHealing, remains: Mapping[str, object]) -> Draft:
        """Keep what runs after the failure."""
        return self.fold(draft, ObjectsHealed.model_validate(remains))

    def undo(self, draft: NeedsHealing) -> None:
        """Heal has no rollback: a deleted pod cannot be restored (api.md 4.3)."""
