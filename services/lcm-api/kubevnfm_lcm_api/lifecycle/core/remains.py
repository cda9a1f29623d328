"""The step that lcm-api carries out itself: remove the remains of a failed instantiate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kubevnfm_events import Command
from kubevnfm_events.lcm import RemainsRemoved
from kubevnfm_events.lcm import RemoveRemains as RemoveRemainsCommand

from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.core.step import Step


@dataclass(frozen=True)
class RemoveRemains(Step[Draft, RemainsRemoved]):
    """Remove the remains of an earlier, FAILED instantiate before anything is created (api.md 4.3).

    Again: safe; the clean-up is an operation of its own, found by the failed occurrence's id.
    """

    occurrence_id: str
    """The FAILED instantiate."""

    kind: ClassVar[str] = "remove_remains"
    command: ClassVar[type[Command]] = RemoveRemainsCommand
    label: ClassVar[str] = "Remove what a failed instantiate left"
    base_timeout_s: ClassVar[float] = 3600.0
    """Twice the time to delete a stack, as a deletion that fails is repeated."""

    def ask(self, draft: Draft) -> RemoveRemainsCommand:
        """Ask for the clean-up of the failed occurrence."""
        return RemoveRemainsCommand(vnf_instance_id=draft.vnf_instance_id, vnf_lcm_op_occ_id=self.occurrence_id)

    def fold(self, draft: Draft, reply: RemainsRemoved) -> None:
        """Nothing to keep."""

    def undo(self, draft: Draft) -> None:
        """The remains of a failure are not restored."""
