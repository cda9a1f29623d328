"""Steps that infra-k8s does to change the objects of a CNF: their number of replicas."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol

from kubevnfm_events import Command, Event
from kubevnfm_events.infra import ObjectCount, ObjectsScaled, ScaleObjects

from kubevnfm_lcm_api.lifecycle.domain.draft import Draft
from kubevnfm_lcm_api.lifecycle.domain.instance import Release
from kubevnfm_lcm_api.lifecycle.domain.needs import NeedsVim
from kubevnfm_lcm_api.lifecycle.domain.steps.objects import AwaitedObjects


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
