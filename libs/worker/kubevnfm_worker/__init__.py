"""Runs command handlers once: inbox, lease, outbox."""

from kubevnfm_worker.outbox import Outbox
from kubevnfm_worker.outcome import CommandHandler, Done, NotYet, Outcome, StepContext
from kubevnfm_worker.relay import OutboxRelay, outgoing

__all__ = ["CommandHandler", "Done", "NotYet", "Outbox", "OutboxRelay", "Outcome", "StepContext", "outgoing"]
