"""The step that lcm-api asks of itself: remove what a failed instantiate left."""

from __future__ import annotations

from typing import ClassVar

from kubevnfm_events import Event
from kubevnfm_events.lcm import RemainsRemoved
from kubevnfm_events.lcm import RemoveRemains as RemoveRemainsCommand

from kubevnfm_lcm_api.lifecycle.domain.drafts import InstantiateDraft
from kubevnfm_lcm_api.lifecycle.domain.steps.base import Step


class RemoveRemains(Step[InstantiateDraft, RemainsRemoved]):
    """Remove what an earlier, FAILED instantiate left, before anything new is made (api.md 4.3).

    Again: safe; the clean-up is an operation of its own, found by the failed occurrence's id.
    """

    name: ClassVar[str] = "remove_remains"
    title: ClassVar[str] = "Remove what a failed instantiate left"
    timeout_s: ClassVar[float] = 3600.0
    reply: ClassVar[type[Event]] = RemainsRemoved

    def ask(self, draft: InstantiateDraft) -> RemoveRemainsCommand:
        """Ask for the clean-up of the failed occurrence."""
        assert draft.remains_of is not None
        return RemoveRemainsCommand(vnf_instance_id=draft.vnf_instance_id, vnf_lcm_op_occ_id=draft.remains_of)

    def fold(self, draft: InstantiateDraft, reply: RemainsRemoved) -> InstantiateDraft:
        """Nothing to keep."""
        return draft

    def undo(self, draft: InstantiateDraft) -> None:
        """What was left by a failure is not wanted back."""
