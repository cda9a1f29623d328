"""Steps of a change that gives a CNF other virtual links or persistent volumes (multicloud.md MC-042).

The new ones are taken before the first object is changed, and the earlier ones are left once no object needs them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kubevnfm_events import Command
from kubevnfm_events.objects import (
    HoldLinks,
    HoldVolumes,
    LinksHeld,
    LinksReleased,
    ReleaseLinks,
    ReleaseVolumes,
    VolumesHeld,
    VolumesReleased,
)

from kubevnfm_lcm_api.lifecycle.containers.replacing import ReplaceCnfDraft
from kubevnfm_lcm_api.lifecycle.core.step import Plan, Step


def take_new(plan: Plan[ReplaceCnfDraft], draft: ReplaceCnfDraft) -> None:
    """Add the steps that take what the changed objects need."""
    before = draft.order_before
    if draft.networks and draft.networks != before.networks:
        plan.then(HoldChangedLinks())
    if {*draft.volumes} - {*before.volumes}:
        plan.then(HoldChangedVolumes())


def leave_earlier(plan: Plan[ReplaceCnfDraft], draft: ReplaceCnfDraft) -> None:
    """Add the steps that leave what the changed objects need no more."""
    before = draft.order_before
    if draft.holds_more or (before.networks and draft.networks != before.networks):
        plan.then(ReleaseEarlierLinks())
    if draft.holds_more or {*before.volumes} - {*draft.volumes}:
        plan.then(ReleaseEarlierVolumes())


@dataclass(frozen=True)
class HoldChangedLinks(Step[ReplaceCnfDraft, LinksHeld]):
    """Hold the virtual links of the new networks beside those of the earlier ones.

    Again: safe; a reference counts once.
    Fails: a workload that cannot have an interface, a link that is gone, an address in use.
    """

    kind: ClassVar[str] = "hold_changed_links"
    command: ClassVar[type[Command]] = HoldLinks
    label: ClassVar[str] = "Hold the new virtual links"
    base_timeout_s: ClassVar[float] = 600.0

    def ask(self, draft: ReplaceCnfDraft) -> HoldLinks:
        return HoldLinks(**vars(draft.order), vnf_instance_id=draft.vnf_instance_id, before=draft.order_before.networks)

    def undo(self, draft: ReplaceCnfDraft) -> ReleaseLinks:
        """Keep the earlier ones alone: the objects are those before the change again."""
        return ReleaseLinks(vnf_instance_id=draft.vnf_instance_id, kept_networks=draft.order_before.networks)


@dataclass(frozen=True)
class ReleaseEarlierLinks(Step[ReplaceCnfDraft, LinksReleased]):
    """Release the virtual links that the networks before the change had and the new ones do not have.

    Again: safe; a link that is gone or released already is done.
    """

    kind: ClassVar[str] = "release_earlier_links"
    command: ClassVar[type[Command]] = ReleaseLinks
    label: ClassVar[str] = "Release the earlier virtual links"
    base_timeout_s: ClassVar[float] = 600.0

    def ask(self, draft: ReplaceCnfDraft) -> ReleaseLinks:
        return ReleaseLinks(vnf_instance_id=draft.vnf_instance_id, kept_networks=draft.networks)

    def undo(self, draft: ReplaceCnfDraft) -> HoldLinks:
        """Hold the earlier ones again, before the objects before the change are applied."""
        before = draft.order_before
        return HoldLinks(**vars(before), vnf_instance_id=draft.vnf_instance_id, before=draft.networks)


@dataclass(frozen=True)
class HoldChangedVolumes(Step[ReplaceCnfDraft, VolumesHeld]):
    """Take the new persistent volumes beside the earlier ones.

    Again: safe; a use counts once.
    Fails: a volume that another VNF has taken meanwhile, that is gone, or whose claim the objects make themselves.
    """

    kind: ClassVar[str] = "hold_changed_volumes"
    command: ClassVar[type[Command]] = HoldVolumes
    label: ClassVar[str] = "Take the new persistent volumes"
    base_timeout_s: ClassVar[float] = 600.0

    def ask(self, draft: ReplaceCnfDraft) -> HoldVolumes:
        return HoldVolumes(**vars(draft.order), vnf_instance_id=draft.vnf_instance_id)

    def undo(self, draft: ReplaceCnfDraft) -> ReleaseVolumes:
        """Keep the earlier ones alone: the objects are those before the change again. The data are kept."""
        return ReleaseVolumes(vnf_instance_id=draft.vnf_instance_id, kept_volumes=draft.order_before.volumes)


@dataclass(frozen=True)
class ReleaseEarlierVolumes(Step[ReplaceCnfDraft, VolumesReleased]):
    """Remove the claims of the persistent volumes that the change leaves out. The data are kept.

    Again: safe; a volume that is gone or left already is done.
    """

    kind: ClassVar[str] = "release_earlier_volumes"
    command: ClassVar[type[Command]] = ReleaseVolumes
    label: ClassVar[str] = "Leave the earlier persistent volumes"
    base_timeout_s: ClassVar[float] = 900.0

    def ask(self, draft: ReplaceCnfDraft) -> ReleaseVolumes:
        return ReleaseVolumes(vnf_instance_id=draft.vnf_instance_id, kept_volumes=draft.volumes)

    def undo(self, draft: ReplaceCnfDraft) -> HoldVolumes:
        """Take the earlier ones again, before the objects before the change are applied."""
        return HoldVolumes(**vars(draft.order_before), vnf_instance_id=draft.vnf_instance_id)
