"""The queues that a process consumes, in its metrics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubevnfm_kit.metrics import Metrics

EVERY_S: Final = 15.0
"""How often the broker is asked at most."""


class QueueMetrics:
    """The queues, named as on a broker in one process too."""

    def __init__(self, metrics: Metrics) -> None:
        by_queue = ["queue"]
        self._messages = metrics.gauge("kubevnfm_queue_messages", "Messages that wait for a consumer.", by_queue)
        self._consumers = metrics.gauge("kubevnfm_queue_consumers", "Consumers of all processes.", by_queue)
        self._redelivered = metrics.counter(
            "kubevnfm_messages_redelivered", "Deliveries after one that was lost or whose handler raised.", by_queue
        )
        self._dead = metrics.counter("kubevnfm_messages_dead", "Messages moved to the dead-letter queue.", by_queue)

    def consumes(self, queue: str) -> None:
        """Show a queue from the beginning: a counter that begins with its first event has no increase."""
        self._redelivered.series(queue)
        self._dead.series(queue)

    def delivered(self, queue: str, deliveries: int) -> None:
        """Count a delivery if it is not the first one."""
        if deliveries > 1:
            self._redelivered.series(queue).inc()

    def died(self, queue: str) -> None:
        """Count a message that was moved to the dead-letter queue."""
        self._dead.series(queue).inc()

    def show(self, waiting: Mapping[str, int], consumers: Mapping[str, int]) -> None:
        """Show the queues as they are, and no others: none while the broker is away."""
        self._messages.show({(queue,): count for queue, count in waiting.items()})
        self._consumers.show({(queue,): count for queue, count in consumers.items()})
