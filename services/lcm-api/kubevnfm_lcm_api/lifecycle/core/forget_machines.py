"""The step that removes the records about machines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kubevnfm_events import Command
from kubevnfm_events.mgmt import ForgetInstance, InstanceForgotten

from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.core.step import Step


@dataclass(frozen=True)
class ForgetMachines(Step[Draft, InstanceForgotten]):
    """Purge the journal, host keys and logs of deleted machines: ``terminate_end`` of the sequence (sequences.md D1).

    Again: safe.
    """

    kind: ClassVar[str] = "forget_machines"
    command: ClassVar[type[Command]] = ForgetInstance
    label: ClassVar[str] = "Forget the machines' keys and journal"
    base_timeout_s: ClassVar[float] = 300.0

    def ask(self, draft: Draft) -> ForgetInstance:
        """Ask for the purge."""
        return ForgetInstance(vnf_instance_id=draft.vnf_instance_id)

    def fold(self, draft: Draft, reply: InstanceForgotten) -> None:
        """Nothing to keep."""

    def undo(self, draft: Draft) -> None:
        """Terminate has no rollback (api.md 4.3)."""
