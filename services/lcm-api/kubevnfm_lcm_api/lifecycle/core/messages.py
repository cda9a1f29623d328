"""The messages of an operation: its steps' commands, and the events about its steps and states.

Ids are derived from facts. A move that is computed twice, after a crash or a lost race, sends messages with the same ids,
and receivers detect the repeat.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Literal

from kubevnfm_events import Command, Envelope, Event, Message
from kubevnfm_events.contract import cancel_commands
from kubevnfm_events.lcm import AdvanceOperation, OperationChanged, Problem, RemoveRemains, StepChanged
from kubevnfm_kit.ids import derived_id
from kubevnfm_kit.request_ids import present_request_id
from kubevnfm_secrets import KeyRing, without_secrets
from kubevnfm_sol.lcm import OperationState as S

from kubevnfm_lcm_api.event_chain import SOURCE
from kubevnfm_lcm_api.lifecycle.core.event_refs import state_event
from kubevnfm_lcm_api.lifecycle.core.occurrence import OccurrenceRecord
from kubevnfm_lcm_api.lifecycle.core.plan import PlannedStep, StepState
from kubevnfm_lcm_api.lifecycle.core.sequences import Sequences
from kubevnfm_lcm_api.lifecycle.core.traces import operation_span, step_span

StepEvent = Literal["started", "finished", "failed", "undoing", "undone"]
_CANCEL_COMMANDS = cancel_commands()


def removal_of_remains(instance_id: str, operation_id: str, message_id: str) -> Envelope[Message]:
    """Return the command that removes what an operation has left. Its id: derived from what is deleted with it.

    In the outbox of the deleted document it is sent even if the process dies right after the delete.
    """
    command = RemoveRemains(vnf_instance_id=instance_id, vnf_lcm_op_occ_id=operation_id)
    request_id = present_request_id()
    return Envelope(data=command, source=SOURCE, id=message_id, subject=instance_id, requestid=request_id)


class Messages:
    """Makes the messages."""

    def __init__(self, ring: KeyRing, sequences: Sequences) -> None:
        """``ring``: seals the secrets of the documents that some commands carry."""
        self._ring, self._sequences = ring, sequences

    def command(
        self, record: OccurrenceRecord, planned: PlannedStep, command: Command, sent_at: datetime
    ) -> Envelope[Message]:
        """Return the command of a step, or of its compensation, as it is sent at its present attempt."""
        return Envelope(
            data=command,
            source=SOURCE,
            # The attempt is part of the id: a service would take a retry with the old id for a repeat and not run it.
            id=derived_id("command", record.occ.id, planned.id, str(planned.attempt)),
            time=sent_at,
            subject=record.occ.vnf_instance_id,
            operationid=record.occ.id,
            stepid=planned.id,
            attempt=planned.attempt,
            traceparent=str(step_span(record, planned)),
            requestid=record.request_id,
            deadline=sent_at + timedelta(seconds=planned.timeout_s),
        )

    def cancellations(self, record: OccurrenceRecord) -> Iterator[Envelope[Message]]:
        """Yield for each running step the command that makes its service stop it."""
        draft = self._sequences.draft(record.plan, record.draft)
        for planned in record.running:
            command = self._sequences.running_command(planned, draft)
            # The same attempt and time as when it was sent: the service finds the running command by this envelope.
            sent_at = datetime.fromisoformat(planned.started_at or record.occ.state_entered_time)
            sent = self.command(record, planned, command, sent_at)
            yield Envelope(
                data=_CANCEL_COMMANDS[command.service](command=sent.document(self._ring)),
                source=SOURCE,
                id=derived_id("cancel", sent.id),
                subject=record.occ.vnf_instance_id,
                operationid=record.occ.id,
                traceparent=sent.traceparent,
                requestid=record.request_id,
            )

    def wake_up(self, record: OccurrenceRecord, now: datetime, *id_parts: str) -> Envelope[Message]:
        """Return the command to lcm-api itself that makes a live process continue the operation."""
        return Envelope(
            data=AdvanceOperation(occurrence=record.document(self._ring)),
            source=SOURCE,
            id=derived_id(*id_parts),
            time=now,
            subject=record.occ.vnf_instance_id,
            operationid=record.occ.id,
            traceparent=str(operation_span(record)),
            requestid=record.request_id,
        )

    def step_changed(
        self, record: OccurrenceRecord, planned: PlannedStep, state: StepEvent, now: datetime
    ) -> Envelope[Message]:
        """Return the event about a step."""
        started = datetime.fromisoformat(planned.started_at) if planned.started_at else None
        ended = state in {"finished", "failed", "undone"}
        ids = [step.id for step in record.steps]
        event = StepChanged(
            vnf_lcm_op_occ_id=record.occ.id,
            step=planned.id,
            title=self._sequences.step(planned).title,
            state=state,
            attempt=planned.attempt,
            number=ids.index(planned.id) + 1,
            of=len(ids),
            done=sum(step.state is StepState.DONE for step in record.steps),
            duration_s=round((now - started).total_seconds(), 3) if started and ended else None,
            detail=planned.error.detail if planned.error is not None and state == "failed" else "",
        )
        return replace(_envelope(record, event, now), traceparent=str(step_span(record, planned)))

    def operation_changed(self, record: OccurrenceRecord, *, is_first: bool = False) -> Envelope[Message]:
        """Return the event about the operation's present state."""
        occ, facts = record.occ, record.facts
        changes = occ.resource_changes
        dump: dict[str, Any] = (
            changes.model_dump(mode="json", by_alias=True, exclude_none=True) if changes is not None else {}
        )
        moment = datetime.fromisoformat(occ.state_entered_time)
        problem = None
        # In other states `error` is that of an earlier failure: a retry keeps it until the operation ends.
        if occ.error is not None and occ.operation_state in {S.FAILED_TEMP, S.FAILED, S.ROLLED_BACK}:
            problem = Problem(
                type=occ.error.type, title=occ.error.title or "", status=occ.error.status, detail=occ.error.detail
            )
        data = OperationChanged(
            vnf_lcm_op_occ_id=occ.id,
            vnf_instance_id=occ.vnf_instance_id,
            **facts.model_dump(),
            operation=occ.operation.value,
            state=occ.operation_state.value,
            state_entered_time=moment,
            start_time=datetime.fromisoformat(occ.start_time),
            is_automatic_invocation=occ.is_automatic_invocation,
            automatic=record.automatic,
            is_first=is_first,
            follows=record.follows.id if record.follows is not None else "",
            follows_at=datetime.fromisoformat(record.follows.at) if record.follows is not None else None,
            error=problem,
            affected_vnfcs=tuple(dump.get("affectedVnfcs", ())),
            affected_virtual_links=tuple(dump.get("affectedVirtualLinks", ())),
            affected_virtual_storages=tuple(dump.get("affectedVirtualStorages", ())),
            affected_ext_link_ports=tuple(dump.get("affectedExtLinkPorts", ())),
            changed_info=without_secrets(occ.changed_info) if occ.changed_info is not None else None,
            changed_ext_connectivity=tuple(
                link.model_dump(mode="json", by_alias=True, exclude_none=True)
                for link in occ.changed_ext_connectivity or ()
            ),
            modifications_triggered_by_vnf_pkg_change=(
                without_secrets(occ.modifications_triggered_by_vnf_pkg_change)
                if occ.modifications_triggered_by_vnf_pkg_change is not None
                else None
            ),
            vnf_snapshot_info_id=occ.vnf_snapshot_info_id,
            change_metadata=dump.get("metadata"),
        )
        return replace(_envelope(record, data, moment), id=state_event(occ).id)


def _envelope(record: OccurrenceRecord, data: Event, now: datetime) -> Envelope[Message]:
    occ = record.occ
    return Envelope(
        data=data,
        source=SOURCE,
        time=now,
        subject=occ.vnf_instance_id,
        operationid=occ.id,
        traceparent=str(operation_span(record)),
        requestid=record.request_id,
    )
