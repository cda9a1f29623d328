"""The objects of a cluster, their versions and the history of changes: etcd and the watch cache in one.

All methods run on the event loop without an await inside, so a read and the write after it are atomic. Subscribers are
called at once, in order, with each change.
"""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from kubevnfm_lab.kubernetes.objects import Key, Obj, key_of, owner_references

HISTORY: Final = 1000
"""Changes kept per resource for watches that start in the past; older revisions get a 410."""


@dataclass(frozen=True)
class Change:
    """One change to one object."""

    kind: str
    """ADDED, MODIFIED or DELETED."""
    resource: str
    """``deployments.apps``."""
    revision: int
    obj: Obj
    """The object after the change; after DELETED its last state, with the revision of its deletion."""
    old: Obj | None = None

    @property
    def key(self) -> Key:
        return key_of(self.obj)

    @cached_property
    def line(self) -> bytes:
        """The change as one line of a watch; encoded once for all watchers."""
        return watch_line(self.kind, self.obj)


def watch_line(kind: str, obj: Obj) -> bytes:
    """Return one event of a watch stream."""
    return json.dumps({"type": kind, "object": obj}, separators=(",", ":")).encode() + b"\n"


@dataclass
class _Shelf:
    """All objects of one resource."""

    objects: dict[Key, Obj] = field(default_factory=dict)
    history: deque[Change] = field(default_factory=lambda: deque(maxlen=HISTORY))
    forgotten: int = 0
    """Revision of the newest change that is no longer in the history."""


class Store:
    """Objects by resource (``deployments.apps``) and key, one revision counter for all."""

    def __init__(self) -> None:
        self.revision = 1
        self._shelves: defaultdict[str, _Shelf] = defaultdict(_Shelf)
        # Owners are looked up at every deletion, so they have an index.
        self._dependents: defaultdict[str, set[tuple[str, Key]]] = defaultdict(set)
        self._subscribers: list[Callable[[Change], None]] = []

    def subscribe(self, subscriber: Callable[[Change], None]) -> Callable[[], None]:
        """Call ``subscriber`` with every later change; return a function that unsubscribes."""
        self._subscribers.append(subscriber)
        return lambda: self._subscribers.remove(subscriber)

    def get(self, resource: str, key: Key) -> Obj | None:
        """Return the object, or None."""
        return self._shelves[resource].objects.get(key)

    def list(self, resource: str, namespace: str = "") -> Sequence[Obj]:
        """Return the objects of a resource in the order of their keys; an empty namespace means all."""
        objects = self._shelves[resource].objects
        wanted = [key for key in objects if not namespace or key.namespace == namespace]
        return [objects[key] for key in sorted(wanted)]

    def resources_with_objects(self) -> Iterable[str]:
        """Return the names of the resources that hold any object."""
        return [name for name, shelf in self._shelves.items() if shelf.objects]

    def put(self, resource: str, obj: Obj) -> Obj:
        """Store the object under a new revision, which is written into its metadata; return it."""
        self.revision += 1
        obj["metadata"]["resourceVersion"] = str(self.revision)
        key = key_of(obj)
        shelf = self._shelves[resource]
        old = shelf.objects.get(key)
        shelf.objects[key] = obj
        self._index(resource, key, old, obj)
        self._publish(shelf, Change("MODIFIED" if old is not None else "ADDED", resource, self.revision, obj, old))
        return obj

    def remove(self, resource: str, key: Key) -> Obj | None:
        """Remove the object; return its last state."""
        shelf = self._shelves[resource]
        old = shelf.objects.pop(key, None)
        if old is None:
            return None
        self.revision += 1
        # Watchers get the last state with the version of the deletion, from which they can resume.
        last = {**old, "metadata": {**old["metadata"], "resourceVersion": str(self.revision)}}
        self._index(resource, key, old, None)
        self._publish(shelf, Change("DELETED", resource, self.revision, last, old))
        return last

    def dependents(self, uid: str) -> Sequence[tuple[str, Obj]]:
        """Return (resource, object) of every object that names ``uid`` as an owner."""
        found = ((resource, self.get(resource, key)) for resource, key in sorted(self._dependents.get(uid, ())))
        return [(resource, obj) for resource, obj in found if obj is not None]

    def changes_since(self, resource: str, revision: int) -> Sequence[Change] | None:
        """Return the changes after ``revision``, or None if the history does not reach back that far."""
        shelf = self._shelves[resource]
        if revision < shelf.forgotten:
            return None
        return [change for change in shelf.history if change.revision > revision]

    def _index(self, resource: str, key: Key, old: Obj | None, new: Obj | None) -> None:
        before = {owner["uid"] for owner in owner_references(old)} if old is not None else set()
        after = {owner["uid"] for owner in owner_references(new)} if new is not None else set()
        for uid in before - after:
            self._dependents[uid].discard((resource, key))
            if not self._dependents[uid]:
                del self._dependents[uid]
        for uid in after - before:
            self._dependents[uid].add((resource, key))

    def _publish(self, shelf: _Shelf, change: Change) -> None:
        if len(shelf.history) == HISTORY:
            shelf.forgotten = shelf.history[0].revision
        shelf.history.append(change)
        for subscriber in tuple(self._subscribers):
            subscriber(change)
