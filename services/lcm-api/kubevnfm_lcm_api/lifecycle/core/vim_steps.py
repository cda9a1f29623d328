"""The step that removes the VIM of a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kubevnfm_events import Command
from kubevnfm_events.vim import DeregisterVim, VimDeregistered

from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.core.step import Step


@dataclass(frozen=True)
class DeregisterClusterVim(Step[Draft, VimDeregistered]):
    """Remove the cluster's VIM and its access data, after the machines were deleted (sequences.md D1, SEQ-035).

    Again: safe.
    Fails: another instance uses the VIM and the termination is GRACEFUL.
    """

    is_forced: bool = False
    """FORCEFUL: also if another instance uses the VIM."""

    kind: ClassVar[str] = "deregister_vim"
    command: ClassVar[type[Command]] = DeregisterVim
    label: ClassVar[str] = "Remove the cluster's VIM"
    base_timeout_s: ClassVar[float] = 300.0

    def ask(self, draft: Draft) -> DeregisterVim:
        """Ask for the removal of every VIM whose owner is the instance."""
        return DeregisterVim(vnf_instance_id=draft.vnf_instance_id, force=self.is_forced)

    def fold(self, draft: Draft, reply: VimDeregistered) -> None:
        """Nothing to keep."""

    def undo(self, draft: Draft) -> None:
        """Terminate has no rollback (api.md 4.3)."""
