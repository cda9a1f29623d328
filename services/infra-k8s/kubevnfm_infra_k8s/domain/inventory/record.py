"""The stored record of an object, and the event about a change of it. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from kubevnfm_clients.multicloud.inventory import InventoryResource
from kubevnfm_clients.multicloud.object_health import health_of, is_ill, state_of
from kubevnfm_events.inventory import NetworkAddresses, Placement, PlacementChanged, TroubleChanged
from kubevnfm_kit.ids import derived_id
from kubevnfm_kit.json_types import JsonObject
from kubevnfm_store.query import Stored
from pydantic import BaseModel, ConfigDict

from kubevnfm_infra_k8s.domain.inventory.seen_object import SeenObject, is_placed

Identity = tuple[str, str, str, str]
"""API group, kind, namespace and name."""


@dataclass(frozen=True)
class Place:
    """The place of an object in its instance, as the release says."""

    vdu_id: str | None = None
    priority: int | None = None


@dataclass(frozen=True)
class InstanceFacts:
    """The objects that the releases of an instance have in one region."""

    places: Mapping[Identity, Place]

    def place_of(self, seen: SeenObject) -> Place | None:
        """Return what is known of an object, or of its owner; None if the instance has neither."""
        found = self.places.get((seen.group, seen.kind, seen.namespace, seen.name))
        if found is None and (owner := seen.owner) is not None:
            found = self.places.get((owner.group, owner.kind, seen.namespace, owner.name))
            # The order has a place for what it applies, not for what controllers make of it.
            found = Place(found.vdu_id) if found is not None else None
        return found


_SEEN: Final = (
    *("uid", "vnf_instance_id", "api_version", "node", "phase", "networks", "ready", "trouble", "created_at"),
)
"""The attributes of a record that an object decides, in addition to its name."""


class ObjectExport(BaseModel):
    """The state of the export of an object to A&AI."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    due: str | None = None
    """When it is next exported; None: A&AI has it as it is."""
    since: str | None = None
    """When the first change was stored that A&AI does not have."""
    vim_id: str | None = None
    """The VIM, if it is due."""
    known: bool = False
    """Whether A&AI has had it."""
    asked_at: str | None = None
    """When its creation was asked for, if the answer is not known: the request may still arrive."""
    left_vnf_id: str = ""
    """The VNF that had it before, which may have nothing else."""
    tries: int | None = None
    """How often A&AI has refused it."""
    error: str | None = None


class ObjectRecord(BaseModel):
    """An object that exists in a region."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str
    vim_id: str
    vnf_instance_id: str
    api_version: str
    kind: str
    namespace: str = ""
    name: str
    uid: str
    vdu_id: str | None = None
    priority: int | None = None
    node: str = ""
    phase: str = ""
    networks: tuple[NetworkAddresses, ...] = ()
    ready: bool | None = None
    trouble: str = ""
    ill: bool = False
    """Whether it has a problem, or has one if it stays as it is; an index leads to those."""
    created_at: str = ""
    """As the API server says."""
    changed_at: str = ""
    """When its change was seen."""
    export: ObjectExport = ObjectExport()
    revision: int = 0
    """0: not stored yet."""

    @classmethod
    def from_seen(cls, vim_id: str, seen: SeenObject, place: Place, *, now: str) -> ObjectRecord:
        """Return the record of an object as it was seen."""
        return cls(
            id=record_id(vim_id, seen.group, seen.kind, seen.namespace, seen.name),
            vim_id=vim_id,
            vnf_instance_id=seen.vnf_instance_id,
            api_version=seen.api_version,
            kind=seen.kind,
            namespace=seen.namespace,
            name=seen.name,
            uid=seen.uid,
            vdu_id=place.vdu_id,
            priority=place.priority,
            node=seen.node,
            phase=seen.phase,
            networks=seen.networks,
            ready=seen.ready,
            trouble=seen.trouble,
            ill=_is_ill(seen),
            created_at=seen.created_at,
            changed_at=now,
        )

    @classmethod
    def from_stored(cls, stored: Stored) -> ObjectRecord:
        """Return it as it is stored."""
        return cls.model_validate({**stored.body, "revision": stored.revision})

    def document(self) -> JsonObject:
        """Return what is stored."""
        body = self.model_dump(mode="json", exclude={"revision", "export", *(() if self.ill else ("ill",))})
        if self.export != ObjectExport():
            body["export"] = self.export.model_dump(exclude_none=True)
        # An index needs them in one array.
        ips = dict.fromkeys(address for network in self.networks for address in network.addresses)
        return {**body, "ips": list(ips), "scope": scope_of(self.vim_id, self.api_version, self.kind)}

    @property
    def place(self) -> Place:
        return Place(self.vdu_id, self.priority)

    @property
    def watched_as(self) -> tuple[str, tuple[str, str]]:
        """The region and the kind whose watch sees it."""
        return self.vim_id, (self.api_version, self.kind)

    def is_as(self, other: ObjectRecord) -> bool:
        """Return whether nothing but the times and the state of the export differs."""
        times: dict[str, object] = {"changed_at": "", "revision": 0, "export": ObjectExport()}
        return self.model_copy(update=times) == other.model_copy(update=times)

    def is_exported_as(self, other: ObjectRecord) -> bool:
        """Return whether A&AI would have the same of both: it has no place for the state of a pod."""
        stateless: dict[str, object] = {"ready": None, "trouble": "", "ill": False}
        return self.model_copy(update=stateless).is_as(other.model_copy(update=stateless))

    def shows(self, seen: SeenObject) -> bool:
        """Return whether the record says what was seen."""
        # An earlier version has stored none as ill.
        return all(getattr(self, name) == getattr(seen, name) for name in _SEEN) and self.ill == _is_ill(seen)

    def shown(self, watch: str, watch_detail: str) -> InventoryResource:
        """Return it as users see it."""
        return InventoryResource(
            **self.model_dump(exclude={"revision", "vnf_instance_id", "export", "ill"}),
            vnf_id=self.vnf_instance_id,
            watch=watch,
            watch_detail=watch_detail,
        )


def record_id(vim_id: str, group: str, kind: str, namespace: str, name: str) -> str:
    """Return the id of an object's record: one for each name, so that what replaces an object replaces its record."""
    return derived_id("inventory", vim_id, group, kind, namespace, name)


def scope_of(vim_id: str, api_version: str, kind: str) -> str:
    """Return what all objects of one watch have in common, for the index."""
    return f"{vim_id} {api_version} {kind}"


def changes_of(old: ObjectRecord | None, new: ObjectRecord | None) -> Sequence[PlacementChanged]:
    """Return the events about a change. An object that another instance has by now has vanished from the first."""
    if old is not None and new is not None and old.vnf_instance_id != new.vnf_instance_id:
        return [*changes_of(old, None), *changes_of(None, new)]
    change = _change_of(old, new)
    return [] if change is None else [change]


def _change_of(old: ObjectRecord | None, new: ObjectRecord | None) -> PlacementChanged | None:
    now = new or old
    if now is None or not is_placed(now.api_version, now.kind):
        return None
    before, after = _placement(old), _placement(new)
    if before == after:
        return None
    return PlacementChanged(
        change="created" if before is None else "vanished" if after is None else "changed",
        vnf_instance_id=now.vnf_instance_id,
        vim_id=now.vim_id,
        vdu_id=now.vdu_id,
        api_version=now.api_version,
        kind=now.kind,
        namespace=now.namespace,
        name=now.name,
        old=before,
        new=after,
    )


def troubles_of(old: ObjectRecord | None, new: ObjectRecord | None) -> Sequence[TroubleChanged]:
    """Return the events about a change of what is wrong with a pod or virtual machine."""
    if old is not None and new is not None and old.vnf_instance_id != new.vnf_instance_id:
        return [*troubles_of(old, None), *troubles_of(None, new)]
    now = new or old
    # Most are well before and after.
    if now is None or not ((old is not None and old.ill) or (new is not None and new.ill)):
        return []
    before, after = (_problem(each, now.changed_at) for each in (old, new))
    # When one is gone, nothing says how long it had been on its way, which is a problem too.
    if before == after and new is not None:
        return []
    about = {name: getattr(now, name) for name in ("vnf_instance_id", "vim_id", "kind", "namespace", "name")}
    return [TroubleChanged(**about, text=after)]


def _problem(record: ObjectRecord | None, now: str) -> str:
    if record is None or not record.ill:
        return ""
    health, text = state_of(record) if record.changed_at == now else health_of(record, datetime.fromisoformat(now))
    return text if health == "problem" else ""


def _is_ill(seen: SeenObject) -> bool:
    return is_placed(seen.api_version, seen.kind) and is_ill(seen)


def _placement(record: ObjectRecord | None) -> Placement | None:
    if record is None:
        return None
    return Placement(uid=record.uid, node=record.node, phase=record.phase, networks=record.networks)
