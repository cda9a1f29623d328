"""An operation as its view shows it, and as events change it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from kubevnfm_cli.events import Event
from kubevnfm_cli.json_types import JsonObject, objects

ENDED: Final = frozenset({"COMPLETED", "FAILED", "ROLLED_BACK"})
RESTS: Final = ENDED | {"FAILED_TEMP"}
"""States in which an operation has ended, or waits for an operator."""
STEP_STATES: Final = {"started": "asked", "finished": "done"}
"""A step's state in the view, where it differs from the event's word."""
_OPEN: Final = frozenset({"started", "progressed"})
WAIT: Final = "wait"
"""The task with which a worker says that a command is tried again."""


class Operation:
    """An operation while it is followed."""

    def __init__(self, view: JsonObject) -> None:
        self.view = view

    @property
    def rests(self) -> bool:
        """Whether it has ended, or waits for an operator."""
        return self.state in RESTS

    @property
    def state(self) -> str:
        """The state of the operation."""
        return str(self.view.get("state"))

    @property
    def title(self) -> str:
        """``INSTANTIATE of web-1``."""
        named = self.view.get("vnfInstanceName") or self.view.get("vnfInstanceId") or "?"
        return f"{self.view.get('operation', '?')} of {named}"

    @property
    def steps(self) -> list[JsonObject]:
        """The steps in the order of the plan."""
        return objects(self.view.get("steps"))

    def tasks_of(self, step: str) -> list[JsonObject]:
        """Return the open tasks of a step, with the name of the node."""
        return [task for task in self.tasks() if task.get("step") == step and str(task.get("state")) in _OPEN]

    def tasks(self) -> Iterator[JsonObject]:
        """Yield all tasks, with the name of the node."""
        for node in objects(self.view.get("nodes")):
            for task in objects(node.get("tasks")):
                yield {"node": node.get("name", ""), **task}
        yield from objects(self.view.get("tasks"))

    def apply(self, event: Event) -> None:
        """Change it as an event says; the view stays right where the event says nothing."""
        data = event.data
        if event.kind == "lcm.operation.changed":
            self.view = {**self.view, "state": data.get("state"), "stateEnteredTime": data.get("state_entered_time")}
        elif event.kind == "lcm.step.changed":
            self.view = {**self.view, "steps": [self._step(step, event) for step in self.steps]}
        elif event.kind == "mgmt.task.progressed":
            self._put(event)

    def _step(self, step: JsonObject, event: Event) -> JsonObject:
        data = event.data
        if step.get("name") != data.get("step"):
            return step
        state = str(data.get("state"))
        times = {"startedAt": event.time} if state in ("started", "undoing") else {"endedAt": event.time}
        error = {"error": {"detail": data["detail"]}} if data.get("detail") else {}
        ended = {key: value for key, value in step.items() if key != "endedAt" or state not in ("started", "undoing")}
        return {**ended, "state": STEP_STATES.get(state, state), "attempt": data.get("attempt", 1), **times, **error}

    def _put(self, event: Event) -> None:
        data = event.data
        node, step = str(data.get("node") or ""), event.body.get("stepid")
        task: JsonObject = {
            "step": step,
            "task": data.get("task"),
            "state": data.get("state"),
            "message": data.get("message", ""),
            "updatedAt": event.time,
            **{
                shown: data[name]
                for name, shown in (
                    ("done", "done"),
                    ("total", "total"),
                    ("duration_s", "durationS"),
                    ("since", "since"),
                )
                if data.get(name) is not None
            },
        }
        if data.get("state") == "started":
            task["startedAt"] = event.time
        if not node:
            self.view = {**self.view, "tasks": _replaced(objects(self.view.get("tasks")), task)}
            return
        nodes = {str(one.get("name")): objects(one.get("tasks")) for one in objects(self.view.get("nodes"))}
        nodes[node] = _replaced(nodes.get(node, []), task)
        self.view = {**self.view, "nodes": [{"name": name, "tasks": tasks} for name, tasks in sorted(nodes.items())]}


def _replaced(tasks: list[JsonObject], new: JsonObject) -> list[JsonObject]:
    """Return the tasks with a newer one in the place of the same; the least recently changed is first."""

    def is_same(task: Mapping[str, object]) -> bool:
        return (task.get("step"), task.get("task")) == (new["step"], new["task"])

    old = next((task for task in tasks if is_same(task)), {})
    started = {"startedAt": old["startedAt"]} if "startedAt" in old else {}
    return [*(task for task in tasks if not is_same(task)), {**started, **new}]
