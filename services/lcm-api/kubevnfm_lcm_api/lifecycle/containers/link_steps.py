"""Steps that hold virtual links for a CNF, and release them (multicloud.md MC-086)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kubevnfm_events import Command
from kubevnfm_events.objects import HoldLinks, LinksHeld, LinksReleased, ReleaseLinks

from kubevnfm_lcm_api.lifecycle.containers.drafts import InstantiateCnfDraft, TerminateCnfDraft
from kubevnfm_lcm_api.lifecycle.core.step import Step


@dataclass(frozen=True)
class HoldCnfLinks(Step[InstantiateCnfDraft, LinksHeld]):
    """Hold the virtual links of the CNF's networks, before its first object exists.

    Again: safe; a reference counts once.
    Fails: a workload that cannot have an interface, a link that is gone, an address in use.
    """

    kind: ClassVar[str] = "hold_links"
    command: ClassVar[type[Command]] = HoldLinks
    label: ClassVar[str] = "Hold the virtual links"
    base_timeout_s: ClassVar[float] = 600.0

    def ask(self, draft: InstantiateCnfDraft) -> HoldLinks:
        return HoldLinks(**vars(draft.order), vnf_instance_id=draft.vnf_instance_id)

    def undo(self, draft: InstantiateCnfDraft) -> ReleaseLinks:
        """Release them: no object of the CNF is left."""
        return ReleaseLinks(vnf_instance_id=draft.vnf_instance_id)


@dataclass(frozen=True)
class ReleaseCnfLinks(Step[TerminateCnfDraft, LinksReleased]):
    """Release the virtual links of the CNF, after its last object is gone.

    Again: safe; a link that is gone or released already is done.
    """

    kind: ClassVar[str] = "release_links"
    command: ClassVar[type[Command]] = ReleaseLinks
    label: ClassVar[str] = "Release the virtual links"
    base_timeout_s: ClassVar[float] = 600.0

    def ask(self, draft: TerminateCnfDraft) -> ReleaseLinks:
        return ReleaseLinks(vnf_instance_id=draft.vnf_instance_id)

    def undo(self, draft: TerminateCnfDraft) -> None:
        """Terminate has no rollback (api.md 4.3)."""
