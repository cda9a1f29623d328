"""Counts the tasks on machines."""

from __future__ import annotations

from typing import Final, Literal

from kubevnfm_kit.metrics import SLOW_S, Metrics

TaskOutcome = Literal["done", "failed"]

_MOST_TASKS: Final = 200
"""Names with series of their own: packages choose the names of their scripts."""
_OTHERS: Final = "others"


class TaskMetrics:
    """The tasks of this process."""

    def __init__(self, metrics: Metrics) -> None:
        self._tasks = metrics.counter("kubevnfm_tasks", "Tasks on machines, by their outcome.", ["task", "outcome"])
        self._seconds = metrics.histogram("kubevnfm_task_seconds", "Time of a task.", ["task"], buckets=SLOW_S)
        self._names: set[str] = set()

    def count(self, task: str, outcome: TaskOutcome, took_s: float) -> None:
        """Count a task."""
        if task not in self._names:
            if len(self._names) >= _MOST_TASKS:
                task = _OTHERS
            self._names.add(task)
        self._tasks.series(task, outcome).inc()
        self._seconds.series(task).observe(took_s)
