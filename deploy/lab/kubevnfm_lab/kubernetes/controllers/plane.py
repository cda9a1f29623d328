"""The parts that all controllers share: the work queue, timers, events, and writes in the control plane's name."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, Final, Protocol, TypeAlias

from kubevnfm_lab.kubernetes.errors import ApiError
from kubevnfm_lab.kubernetes.objects import Key, Obj, controller_of, key_of, now
from kubevnfm_lab.kubernetes.registry import Deletion, Registry
from kubevnfm_lab.kubernetes.resources import Resource
from kubevnfm_lab.kubernetes.store import Change

Keys: TypeAlias = Callable[[Change], Iterable[Key]]
"""Returns the keys of a controller's own objects that a change is about."""

_TURN: Final = 50
"""Reconciliations before the event loop gets a turn; keeps requests quick under load."""


class Controller(Protocol):
    """Reconciles one kind of object with its spec."""

    def watched(self) -> Mapping[str, Keys]:
        """Return the resources to watch, each with the keys that a change is about."""
        ...

    def reconcile(self, key: Key) -> None:
        """Do what is missing for one object, which may no longer exist."""
        ...


def itself(change: Change) -> Iterable[Key]:
    """Return the changed object's own key."""
    return (change.key,)


def its_controller(kind: str) -> Keys:
    """Return a function that gives the key of the ``kind`` that controls the changed object."""

    def keys(change: Change) -> Iterable[Key]:
        # The old object counts too: a pod that changed its owner concerns both.
        owners = (controller_of(obj) for obj in (change.obj, change.old) if obj is not None)
        return {Key(change.key.namespace, o["name"]) for o in owners if o is not None and o["kind"] == kind}

    return keys


class ControlPlane:
    """Runs controllers: each change becomes keys, and a key is reconciled once however many changes it had."""

    def __init__(self, registry: Registry, *, delay_s: float) -> None:
        self.registry, self.store, self.delay_s = registry, registry.store, delay_s
        self._interests: dict[str, list[tuple[Controller, Keys]]] = {}
        # A dict rather than a set: keys are handled in the order in which they came.
        self._queue: dict[tuple[Controller, Key], None] = {}
        self._timers: set[asyncio.TimerHandle] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._turn: asyncio.Handle | None = None
        self._unsubscribe = self.store.subscribe(self._take)
        self._closed = False

    def add(self, controller: Controller) -> None:
        """Register a controller."""
        for resource, keys in controller.watched().items():
            self._interests.setdefault(resource, []).append((controller, keys))

    async def close(self) -> None:
        """Stop everything that is in progress."""
        self._closed = True
        self._unsubscribe()
        self._queue.clear()
        if self._turn is not None:
            self._turn.cancel()
        for timer in self._timers:
            timer.cancel()
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def enqueue(self, controller: Controller, key: Key) -> None:
        """Queue the object for the controller."""
        if self._closed:
            return
        self._queue[controller, key] = None
        # Reconciling inside the request that caused the change would delay its answer.
        if self._turn is None:
            self._turn = asyncio.get_running_loop().call_soon(self._take_turn)

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        """Call back after a delay, unless the control plane is closed by then."""
        if self._closed:
            return

        def expire() -> None:
            self._timers.discard(timer)
            call()

        timer = asyncio.get_running_loop().call_later(seconds, expire)
        self._timers.add(timer)

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a coroutine, at most until the control plane closes."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _take(self, change: Change) -> None:
        for controller, keys in self._interests.get(change.resource, ()):
            for key in keys(change):
                # Several changes of an object before its turn lead to one reconciliation.
                self.enqueue(controller, key)

    def _take_turn(self) -> None:
        self._turn = None
        try:
            for _ in range(min(_TURN, len(self._queue))):
                controller, key = next(iter(self._queue))
                del self._queue[controller, key]
                controller.reconcile(key)
        finally:
            # A controller that fails on one object (the loop reports it) blocks nothing else.
            if self._queue and self._turn is None:
                self._turn = asyncio.get_running_loop().call_soon(self._take_turn)

    def resource(self, name: str) -> Resource:
        """Return the preferred version of a built-in resource."""
        found = self.registry.table.by_name(name)
        assert found is not None, name
        return found

    def create(self, name: str, obj: Obj) -> Obj:
        """Create an object of the resource; raise ApiError as for any client."""
        resource = self.resource(name)
        return self.registry.create(resource, {"apiVersion": resource.api_version, "kind": resource.kind, **obj})

    def delete(self, name: str, obj: Obj, *, grace_s: int | None = None) -> None:
        """Delete exactly this object, in the background; does nothing if it no longer exists."""
        try:
            self.registry.delete(
                self.resource(name),
                key_of(obj),
                Deletion(policy="Background", grace_s=grace_s, uid=obj["metadata"]["uid"]),
            )
        except ApiError as error:
            # 404 and 409: deleted meanwhile, or replaced by another object of the same name.
            if error.code not in {404, 409}:
                raise

    def record(self, obj: Obj, kind: str, reason: str, message: str, *, component: str) -> None:
        """Write an Event about the object, or increase the count of an equal one; ``kind`` is Normal or Warning."""
        metadata = obj["metadata"]
        # One Event per object, reason and message; a repetition only increases its count.
        digest = hashlib.sha256(f"{metadata['uid']}{reason}{message}".encode()).hexdigest()[:16]
        namespace = metadata.get("namespace") or "default"
        key = Key(namespace, f"{metadata['name']}.{digest}")
        moment = now()

        def again(event: Obj) -> None:
            event["count"] += 1
            event["lastTimestamp"] = moment

        if self.registry.change("events", key, again) is not None:
            return
        about = {"kind": obj["kind"], "apiVersion": obj["apiVersion"], "name": metadata["name"], "uid": metadata["uid"]}
        if metadata.get("namespace"):
            about["namespace"] = namespace
        event = {
            "metadata": {"name": key.name, "namespace": namespace},
            "involvedObject": {**about, "resourceVersion": metadata["resourceVersion"]},
            "type": kind,
            "reason": reason,
            "message": message,
            "source": {"component": component},
            "reportingComponent": component,
            "reportingInstance": "",
            "firstTimestamp": moment,
            "lastTimestamp": moment,
            "count": 1,
        }
        try:
            self.create("events", event)
        except ApiError as error:
            if error.code not in {403, 404}:  # the namespace is being deleted, and its events with it
                raise
