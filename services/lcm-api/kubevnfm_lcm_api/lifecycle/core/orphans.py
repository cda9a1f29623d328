"""The step that marks the VNF instances which lose what this one provides; lcm-api carries it out itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kubevnfm_events import Command
from kubevnfm_events.lcm import MarkOrphans as MarkOrphansCommand
from kubevnfm_events.lcm import OrphansMarked

from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.core.step import Step


@dataclass(frozen=True)
class MarkOrphans(Step[Draft, OrphansMarked]):
    """Mark the instances that use what the operation deletes, and publish an event about each (sequences.md D0).

    Again: safe; a marked instance is left as it is.
    """

    operation: str
    """TERMINATE ..., for the mark's reason."""

    kind: ClassVar[str] = "mark_orphans"
    command: ClassVar[type[Command]] = MarkOrphansCommand
    label: ClassVar[str] = "Mark the VNFs that use this one"
    base_timeout_s: ClassVar[float] = 600.0

    def ask(self, draft: Draft) -> MarkOrphansCommand:
        """Ask for the marks."""
        assert draft.withdrawn is not None
        provided = draft.withdrawn.provided
        return MarkOrphansCommand(
            vnf_instance_id=draft.vnf_instance_id,
            provided=provided.kind,
            resource_id=provided.ids[0],
            other_ids=provided.ids[1:],
            operation=self.operation,
        )

    def fold(self, draft: Draft, reply: OrphansMarked) -> None:
        """Nothing to keep."""

    def undo(self, draft: Draft) -> None:
        """The operations that take something away have no rollback (api.md 4.3)."""
