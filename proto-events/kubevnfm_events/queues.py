"""The durable queues of events: which service gets which events, by routing key.

The services consume by this list, and the permissions of their users on the broker are made from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kubevnfm_events.changes import CHANGE_TYPES
from kubevnfm_events.contract import replies


@dataclass(frozen=True)
class EventQueue:
    """A queue that all processes of one service share."""

    name: str
    """``<service>.<what for>``."""
    patterns: tuple[str, ...]
    """AMQP topic patterns: ``*`` is one word, ``#`` any number."""

    @property
    def service(self) -> str:
        """The service that consumes it."""
        return self.name.partition(".")[0]


REPLIES: Final = EventQueue("lcm-api.replies", tuple(event.routing_key() for event in replies()))
"""The events that can answer a step. The engine ignores those that belong to no operation."""
PROGRESS: Final = EventQueue("lcm-api.progress", ("mgmt.task.progressed",))
DRIFT: Final = EventQueue("lcm-api.drift", ("infra.stacks.compared", "infra.objects.compared"))
"""The differences between the resources that instances show and those that exist."""
MACHINES: Final = EventQueue("lcm-api.machines", ("infra.machines.changed",))
"""The changes of Machines that no operation has made."""
KUBECONFIGS: Final = EventQueue("lcm-api.kubeconfigs", ("infra.kubeconfigs.changed",))
"""The kubeconfig Secrets that Cluster API has written between operations."""
OUTPUTS: Final = EventQueue("lcm-api.outputs", ("infra.outputs.changed",))
"""The values that watches have read for outputs of instances."""
VNFCS: Final = EventQueue("lcm-api.vnfcs", ("infra.placement.changed", "infra.vnfcs.read"))
"""The pods and machines of VNFs that came, went or moved, and readings of those that an instance has."""
TROUBLES: Final = EventQueue("lcm-api.troubles", ("infra.trouble.changed",))
"""The troubles of pods and virtual machines of VNFs."""
FAULTS: Final = EventQueue(
    "lcm-api.faults",
    (
        "lcm.instance.deleted", "lcm.instance.drifted", "lcm.instance.troubled", "lcm.operation.changed",
        "vim.credentials.expiring", "vim.deregistered", "vim.registered", "vim.status.changed",
    ),
)  # fmt: skip
"""The events after which an alarm may have to be raised or cleared."""
CROSSINGS: Final = EventQueue("lcm-api.crossings", ("lcm.threshold.crossed",))
"""The crossings of thresholds after which an automatic operation may have to be started."""
AUTOMATION: Final = EventQueue(
    "lcm-api.automation", ("lcm.alarm.changed", "lcm.instance.deleted", "lcm.operation.changed")
)
"""The events after which a VNFC may have to be healed, or automatic actions may continue."""
SERVER_ALARMS: Final = EventQueue("lcm-api.server-alarms", ("lcm.servers.changed",))
"""The events after which servers may have to be registered at notifiers, or removed there."""
NOTIFICATIONS: Final = EventQueue(
    "lcm-api.notifications",
    (
        *("lcm.alarm.changed", "lcm.alarms.rebuilt", "lcm.package.changed"),
        *("lcm.performance.reported", "lcm.threshold.crossed"),
        *CHANGE_TYPES,
    ),
)
"""The events that subscribers are notified of."""
EVENT_LOG: Final = EventQueue("lcm-api.events", ("lcm.#", "infra.#", "mgmt.#", "vim.#", "credentials.#"))
"""The events that watchers of the event stream receive."""
PACKAGE_USAGE: Final = EventQueue("lcm-api.usage", ("lcm.instance.*", "lcm.operation.changed"))
CREDENTIALS: Final = EventQueue(
    "vim-registry.credentials", ("credentials.received", "credentials.rotated", "credentials.deleted")
)

EVENT_QUEUES: Final[Sequence[EventQueue]] = (
    REPLIES,
    PROGRESS,
    DRIFT,
    MACHINES,
    KUBECONFIGS,
    OUTPUTS,
    VNFCS,
    TROUBLES,
    FAULTS,
    CROSSINGS,
    AUTOMATION,
    SERVER_ALARMS,
    NOTIFICATIONS,
    EVENT_LOG,
    PACKAGE_USAGE,
    CREDENTIALS,
)
OPERATION_ENDS: Final = ("lcm.operation.changed",)
"""The events by which requests that wait for an operation see its end."""
SERVICE_STATES: Final = ("service.state.reported.*",)
"""The events by which a gateway knows the processes of all services. No queue outlives the gateway, so nothing grows while none runs."""
WATCHED: Final[dict[str, tuple[str, ...]]] = {
    EVENT_LOG.service: (*EVENT_LOG.patterns, *OPERATION_ENDS, *SERVICE_STATES)
}
"""Patterns of the events that processes of a service watch, each by a queue of its own that ends with its connection."""
