"""Steps that make a CNF a user of persistent volumes, and end that (multicloud.md MC-060, MC-101)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kubevnfm_events import Command
from kubevnfm_events.objects import HoldVolumes, ReleaseVolumes, VolumesHeld, VolumesReleased

from kubevnfm_lcm_api.lifecycle.containers.drafts import InstantiateCnfDraft, TerminateCnfDraft
from kubevnfm_lcm_api.lifecycle.core.step import Step


@dataclass(frozen=True)
class HoldCnfVolumes(Step[InstantiateCnfDraft, VolumesHeld]):
    """Take the persistent volumes of the CNF, before its first object exists.

    Again: safe; a use counts once.
    Fails: a volume that another VNF has taken meanwhile, that is gone, or whose claim the objects make themselves.
    """

    kind: ClassVar[str] = "hold_volumes"
    command: ClassVar[type[Command]] = HoldVolumes
    label: ClassVar[str] = "Take the persistent volumes"
    base_timeout_s: ClassVar[float] = 600.0

    def ask(self, draft: InstantiateCnfDraft) -> HoldVolumes:
        return HoldVolumes(**vars(draft.order), vnf_instance_id=draft.vnf_instance_id)

    def undo(self, draft: InstantiateCnfDraft) -> ReleaseVolumes:
        """Remove their claims: no pod of the CNF is left. The data are kept."""
        return ReleaseVolumes(vnf_instance_id=draft.vnf_instance_id)


@dataclass(frozen=True)
class ReleaseCnfVolumes(Step[TerminateCnfDraft, VolumesReleased]):
    """Remove the claims of the CNF's persistent volumes, after its last pod is gone. The data are kept.

    Again: safe; a volume that is gone or left already is done.
    """

    is_forced: bool = False
    """FORCEFUL: does not wait until the claims are gone."""

    kind: ClassVar[str] = "release_volumes"
    command: ClassVar[type[Command]] = ReleaseVolumes
    label: ClassVar[str] = "Leave the persistent volumes"
    base_timeout_s: ClassVar[float] = 900.0

    def ask(self, draft: TerminateCnfDraft) -> ReleaseVolumes:
        return ReleaseVolumes(vnf_instance_id=draft.vnf_instance_id, force=self.is_forced)

    def undo(self, draft: TerminateCnfDraft) -> None:
        """Terminate has no rollback (api.md 4.3)."""
