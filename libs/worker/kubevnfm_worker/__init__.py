"""Runs command handlers once: inbox, lease, outbox."""

from kubevnfm_worker.outbox import Outbox
from kubevnfm_worker.outcome import CommandHandler, Done, NotYet, Outcome, StepContext, nothing_made
from kubevnfm_worker.relay import OutboxRelay, outgoing
from kubevnfm_worker.worker import CommandWorker

__all__ = [
    "CommandHandler",
    "CommandWorker",
    "Done",
    "NotYet",
    "Outbox",
    "OutboxRelay",
    "Outcome",
    "StepContext",
    "nothing_made",
    "outgoing",
]
