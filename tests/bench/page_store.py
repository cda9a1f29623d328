"""The documents that the bench of the page shows: made by the gateway, copied and made large by its own adapters, in mixed order."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, Literal
from uuid import UUID

from kubevnfm import keys
from kubevnfm_bus.port import Delivery
from kubevnfm_events import Envelope
from kubevnfm_events.mgmt import TaskProgressed
from kubevnfm_events.objects import DriftedObject, ObjectFacts
from kubevnfm_kit.clock import rfc3339
from kubevnfm_lcm_api.lifecycle import kinds as _known  # noqa: F401  # it makes the kinds of steps known
from kubevnfm_lcm_api.lifecycle.core import instance as instances
from kubevnfm_lcm_api.lifecycle.core import occurrence as occurrences
from kubevnfm_lcm_api.lifecycle.core.drift import Drift, marked
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord, Release
from kubevnfm_lcm_api.lifecycle.core.occurrence import OccurrenceRecord
from kubevnfm_lcm_api.lifecycle.core.plan import PlannedStep, StepState
from kubevnfm_lcm_api.lifecycle.core.progress import Progress
from kubevnfm_secrets import KeyRing
from kubevnfm_sol.lcm import InstantiationState, OperationState
from kubevnfm_sol.problem import ProblemDetails
from kubevnfm_store.port import DocumentStore
from kubevnfm_store.sqlite.store import SqliteStore

NODES: Final = 200
TASKS: Final = 16
EVENTS: Final = 40_000
OBJECTS: Final = 5000
PROBLEMS: Final = 2000
INSTANCES: Final = 10_000
OPERATIONS: Final = 3000
OPEN: Final = 20
_AT_ONCE: Final = 200
_TASKS: Final = (
    "reach",
    "copy",
    "packages",
    "runtime",
    "images",
    "prepare",
    "sysctl",
    "certificates",
    "init",
    "join",
    "label",
    "taint",
)
_KINDS: Final = ("ConfigMap", "Deployment", "Secret", "Service", "ServiceAccount", "Role", "RoleBinding", "StatefulSet")
TaskState = Literal["started", "progressed", "finished", "failed"]


@dataclass(frozen=True)
class Filled:
    """The ids of what was made."""

    timeline: str
    timeline_instance: str
    plan: str
    tree: str
    quiet_tree: str
    """A tree of as many objects, of which none has a problem."""
    open: Sequence[str]
    """Operations at the top of the list."""
    step: str
    """A running step of each of them."""
    instance: str


async def fill(data_dir: Path, *, operation: str, cnf: str) -> Filled:
    """Fill the store of a gateway that does not run. ``operation``, ``cnf``: an instantiate and an instance that it has made."""
    chance = random.Random(27)  # the same documents at each run
    ring = keys.key_ring(data_dir)
    async with SqliteStore.open(data_dir / "kubevnfm.db") as store:
        model = await _operation(store, operation)
        release = await _instance(store, cnf)
        timeline, plan = _new_id(chance), _new_id(chance)
        await _insert_operation(store, ring, _large(model, timeline, _running(model.steps)))
        await _insert_operation(store, ring, _large(model, plan, _chains(model.steps, chance)))
        await _progress(store, model, timeline, chance)
        tree, quiet = _new_id(chance), _new_id(chance)
        await _insert_instance(store, ring, _many_objects(release, tree, PROBLEMS))
        await _insert_instance(store, ring, _many_objects(release, quiet, 0))
        await _crowd(store, ring, [release, await _instance(store, model.occ.vnf_instance_id)], chance)
        opened = await _operations(store, ring, model, chance)
    step = model.steps[len(model.steps) // 2].id
    return Filled(timeline, model.occ.vnf_instance_id, plan, tree, quiet, opened, step, model.occ.vnf_instance_id)


def _new_id(chance: random.Random) -> str:
    return str(UUID(int=chance.getrandbits(128), version=4))


async def _operation(store: DocumentStore, operation_id: str) -> OccurrenceRecord:
    stored = await store.get(occurrences.COLLECTION, operation_id)
    assert stored is not None
    return OccurrenceRecord.from_document(stored.body)


async def _instance(store: DocumentStore, instance_id: str) -> InstanceRecord:
    stored = await store.get(instances.COLLECTION, instance_id)
    assert stored is not None
    return InstanceRecord.from_document(stored.body)


async def _insert_operation(store: DocumentStore, ring: KeyRing, record: OccurrenceRecord) -> None:
    await store.insert(occurrences.COLLECTION, record.occ.id, record.document(ring))


async def _insert_instance(store: DocumentStore, ring: KeyRing, record: InstanceRecord) -> None:
    await store.insert(instances.COLLECTION, record.vnf.id, record.document(ring))


def _large(model: OccurrenceRecord, operation_id: str, steps: Sequence[PlannedStep]) -> OccurrenceRecord:
    """Return an operation that runs, with these steps."""
    now = datetime.now(UTC)
    begun = {
        "start_time": rfc3339(now - timedelta(minutes=20)),
        "state_entered_time": rfc3339(now - timedelta(minutes=20)),
    }
    changed = model.with_occ(id=operation_id, operation_state=OperationState.PROCESSING, **begun)
    return changed.model_copy(update={"steps": tuple(steps)})


def _running(steps: Sequence[PlannedStep]) -> Sequence[PlannedStep]:
    """Return the steps as they are in the middle of the operation; none is overdue."""
    middle = len(steps) // 2
    far = rfc3339(datetime.now(UTC) + timedelta(days=1))
    running = {"state": StepState.ASKED, "ended_at": None, "deadline": far}
    waiting = {"state": StepState.WAITING, "started_at": None, "ended_at": None, "attempt": 0}
    return [
        step if at < middle else step.model_copy(update=running if at == middle else waiting)
        for at, step in enumerate(steps)
    ]


def _chains(steps: Sequence[PlannedStep], chance: random.Random) -> Sequence[PlannedStep]:
    """Return a chain of steps for each node, all behind one step and before another, in all states and mixed order."""
    far = rfc3339(datetime.now(UTC) + timedelta(days=1))
    made: list[PlannedStep] = []
    for number in range(TASKS):
        model = steps[number % len(steps)]
        for node in range(NODES):
            after = (f"part-{number - 1}/worker-{node}",) if number else ("part-0/worker-0",) if node else ()
            changes: dict[str, Any] = {"id": f"part-{number}/worker-{node}", "after": after, "deadline": None}
            if number > 6 or (number == 6 and node % 3 == 0):
                changes |= {"state": StepState.WAITING, "started_at": None, "ended_at": None, "attempt": 0}
            elif number == 6:
                changes |= {"state": StepState.ASKED, "ended_at": None, "deadline": far}
            if number == 5 and node in {17, 101, 180}:
                error = ProblemDetails(status=500, detail=f"worker-{node} does not answer")
                changes |= {"state": StepState.FAILED, "error": error}
            made.append(model.model_copy(update=changes))
    chance.shuffle(made)
    return made


async def _progress(store: DocumentStore, model: OccurrenceRecord, operation_id: str, chance: random.Random) -> None:
    """Store the events of all tasks of all nodes, each node's in order, the nodes mixed."""
    progress, start = Progress(store), datetime.now(UTC) - timedelta(minutes=20)
    step = model.steps[len(model.steps) // 2].id
    gate = asyncio.Semaphore(_AT_ONCE)
    per_node = EVENTS // NODES

    async def one(node: int) -> None:
        moment = start + timedelta(seconds=chance.random() * 60)
        for number in range(per_node):
            task, place = divmod(number * TASKS, per_node)
            moment += timedelta(seconds=chance.random() * 5)
            state: TaskState = "started" if place < TASKS else "finished" if place >= per_node - TASKS else "progressed"
            is_last = task == TASKS - 1 and state == "finished"
            if is_last and node % 50 == 7:
                state = "failed"
            event = TaskProgressed(
                node=f"worker-{node}",
                task=f"{_TASKS[task % len(_TASKS)]}-{task}",
                state=state,
                message=f"{place} of {per_node}: unpacking images of the node, layer {number}",
                done=place,
                total=per_node,
            )
            envelope = Envelope(
                data=event, source="/kubevnfm/mgmt-executor", subject=model.occ.vnf_instance_id, operationid=operation_id,
                stepid=step, attempt=1, time=moment,
            )  # fmt: skip
            async with gate:
                await progress.store_event(Delivery(envelope, 1))

    await asyncio.gather(*(one(node) for node in range(NODES)))


def _many_objects(model: InstanceRecord, instance_id: str, problems: int) -> InstanceRecord:
    """Return a CNF of many objects whose kinds alternate; the problems are spread over all of them."""
    held = model.release
    assert held is not None
    namespace = held.release.namespace if held.release is not None else "default"
    objects = [
        ObjectFacts(
            api_version="v1",
            kind=_KINDS[number % len(_KINDS)],
            namespace=namespace,
            name=f"part-{number}",
            uid=f"uid-{instance_id}-{number}",
        )
        for number in range(OBJECTS)
    ]
    made = model.with_release(Release(namespace=namespace, objects=tuple(objects)))
    made = made.with_vnf(id=instance_id, vnf_instance_name=f"with {problems} problems").with_internals(
        current_operation=None
    )
    if not problems:
        return marked(made, None)
    every = [objects[number * OBJECTS // problems] for number in range(problems)]
    drifted = [
        DriftedObject(kind=each.kind, namespace=namespace, name=each.name, what="changed" if at % 2 else "missing")
        for at, each in enumerate(every)
    ]
    drift = Drift(
        state="CHANGED",
        since=rfc3339(datetime.now(UTC)),
        reason=f"{problems} objects differ",
        changed=problems // 2,
        missing=problems // 2,
        objects=tuple(drifted),
    )
    return marked(made, drift)


async def _crowd(store: DocumentStore, ring: KeyRing, models: Sequence[InstanceRecord], chance: random.Random) -> None:
    """Add many instances: of both kinds, with and without resources, some with drift."""
    start = datetime(2026, 1, 1, tzinfo=UTC)
    drift = Drift(state="INCOMPLETE", since=rfc3339(start), reason="a server does not exist")
    bodies = [
        made.document(ring)
        for model in models
        for made in (
            marked(model, None),
            marked(model, drift),
            model.with_vnf(instantiation_state=InstantiationState.NOT_INSTANTIATED),
        )
    ]

    async def one(number: int) -> None:
        made = start + timedelta(minutes=number)
        body = {
            **bodies[chance.choices(range(len(bodies)), [60, 3, 10, 20, 2, 5])[0]],
            "id": _new_id(chance),
            "vnfInstanceName": f"{chance.choice(['edge', 'core', 'ims', 'upf'])}-{number}",
            "createdAt": rfc3339(made),
            "updatedAt": rfc3339(made + timedelta(minutes=5)),
        }
        await store.insert(instances.COLLECTION, body["id"], body)

    for first in range(0, INSTANCES, _AT_ONCE):
        await asyncio.gather(*(one(number) for number in range(first, first + _AT_ONCE)))


async def _operations(
    store: DocumentStore, ring: KeyRing, model: OccurrenceRecord, chance: random.Random
) -> Sequence[str]:
    """Add operations that have ended in each state, and a few that run; return those."""
    ends = {"COMPLETED": 90, "FAILED": 5, "ROLLED_BACK": 5}
    now, running = datetime.now(UTC), _running(model.steps)
    open_ids: list[str] = []

    async def one(number: int) -> None:
        begun = now - timedelta(hours=1, minutes=number * 7)
        is_open = number < OPEN
        state = "PROCESSING" if is_open else chance.choices([*ends], [*ends.values()])[0]
        made = model.with_occ(
            id=_new_id(chance),
            operation_state=OperationState(state),
            start_time=rfc3339(begun),
            state_entered_time=rfc3339(begun + timedelta(minutes=5)),
        )
        if is_open:
            made = made.model_copy(update={"steps": tuple(running)})
            open_ids.append(made.occ.id)
        await _insert_operation(store, ring, made)

    for first in range(0, OPERATIONS, _AT_ONCE):
        await asyncio.gather(*(one(number) for number in range(first, first + _AT_ONCE)))
    return open_ids
