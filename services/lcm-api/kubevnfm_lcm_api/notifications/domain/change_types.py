"""The types of changes that subscriptions deliver (multicloud.md MC-052): what each is about, and how several become one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kubevnfm_events import Event
from kubevnfm_events.changes import CHANGE_TYPES, ChangeType
from kubevnfm_events.inventory import PlacementChanged
from kubevnfm_events.lcm import InstanceCreated, InstanceDeleted, InstanceDrifted, InstanceOrphaned, OperationChanged
from kubevnfm_events.links import VirtualLinkChanged
from kubevnfm_events.outputs import OutputsChanged
from kubevnfm_events.vim import (
    VimBecameReachable,
    VimCredentialsExpiring,
    VimFeaturesChanged,
    VimInventoryLost,
    VimWentUnreachable,
)
from kubevnfm_events.volumes import PersistentVolumeChanged
from kubevnfm_kit.json_types import JsonMapping

_VNF, _VIM = "vnf_instance_id", "vim_id"


@dataclass(frozen=True)
class About:
    """A type of change: the things that it is about, and their key."""

    event: type[Event]
    subject: str
    """The member of the event that is the subject of its CloudEvent."""
    further: Sequence[str] = ()
    """Those that also distinguish the things."""
    first: Sequence[str] = ()
    """Those that one for several changes has as the first change had them; all others are of the last one."""

    has_users: bool = False
    """Whether the event names the VNFs that use the thing."""

    @property
    def is_of_vnf(self) -> bool:
        """Whether the thing is a VNF, or a part of one."""
        return self.subject == _VNF

    @property
    def source(self) -> str:
        """The service that publishes it."""
        return f"/kubevnfm/{self.event.by}"

    def thing(self, change: JsonMapping) -> tuple[str, ...]:
        """Return the key of the thing that has changed."""
        return tuple(change.get(name, "") for name in (self.subject, *self.further))

    def joined(self, first: JsonMapping, last: JsonMapping) -> JsonMapping:
        """Return one change for two of a thing, and for all between them."""
        return {**last, **{name: first[name] for name in self.first}}

    def is_news(self, change: JsonMapping) -> bool:
        """Return whether a joined change has changed anything."""
        return True


class AboutPlacement(About):
    """A pod or machine: another one of the same name is another thing."""

    def thing(self, change: JsonMapping) -> tuple[str, ...]:
        uid = (change.get("new") or change.get("old") or {}).get("uid", "")
        return (change[_VIM], uid, change["kind"], change["name"])

    def joined(self, first: JsonMapping, last: JsonMapping) -> JsonMapping:
        """Return one with the first state as ``old``, and the last one as ``new``."""
        states = {"old": first.get("old"), "new": last.get("new")}
        change = "created" if states["old"] is None else "vanished" if states["new"] is None else "changed"
        about = {name: value for name, value in last.items() if name not in states}
        return {**about, "change": change, **{name: value for name, value in states.items() if value is not None}}

    def is_news(self, change: JsonMapping) -> bool:
        return bool({"old", "new"} & set(change))


class AboutOutputs(About):
    """The outputs of a VNF: those that any of the changes has named are changed."""

    def joined(self, first: JsonMapping, last: JsonMapping) -> JsonMapping:
        return {**last, "changed": sorted({*first["changed"], *last["changed"]})}


ABOUT: Final[Mapping[ChangeType, About]] = {
    "infra.link.changed": About(VirtualLinkChanged, "link_id", first=("old_status",), has_users=True),
    "infra.placement.changed": AboutPlacement(PlacementChanged, _VNF),
    "infra.volume.changed": About(PersistentVolumeChanged, "volume_id", first=("old_phase",), has_users=True),
    "lcm.instance.created": About(InstanceCreated, _VNF),
    "lcm.instance.deleted": About(InstanceDeleted, _VNF),
    "lcm.instance.drifted": About(InstanceDrifted, _VNF),
    "lcm.instance.orphaned": About(InstanceOrphaned, _VNF, further=("provider_id", "provided")),
    "lcm.operation.changed": About(OperationChanged, _VNF, further=("vnf_lcm_op_occ_id",)),
    "lcm.outputs.changed": AboutOutputs(OutputsChanged, _VNF),
    "vim.credentials.expiring": About(VimCredentialsExpiring, _VIM, further=("part",)),
    "vim.features.changed": About(VimFeaturesChanged, _VIM),
    "vim.inventory.lost": About(VimInventoryLost, _VIM),
    "vim.reachable": About(VimBecameReachable, _VIM),
    "vim.unreachable": About(VimWentUnreachable, _VIM),
}
OF_VNFS: Final[Sequence[ChangeType]] = [each for each in CHANGE_TYPES if ABOUT[each].is_of_vnf or ABOUT[each].has_users]
"""The types that a filter by VNF finds."""
