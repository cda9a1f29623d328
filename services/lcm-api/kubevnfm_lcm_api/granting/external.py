"""Grants by an external NFVO (api.md 3.10): requests a grant, polls it, and applies it to the operation's draft.

Nothing waits in memory: the AdvanceOperation that started the operation is redelivered until the operation is granted,
refused or timed out. The state of the request is stored with the occurrence before and after each call. So any process
can continue, and only one call is made at a time.

SOL003 has no way to look up a grant by its operation. If a process dies between sending the request and storing the
answer, the request is sent once more with the same body, after the longest time that a call may take. The NFVO
recognises the repeat by ``vnfLcmOpOccId``. Once the NFVO has named a grant, only that grant is polled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final, Protocol

import structlog
from kubevnfm_csar.errors import UnknownFlavour
from kubevnfm_csar.vnfd.model import Flavour, Vnfd
from kubevnfm_kit.back_off import BackOff
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.errors import NotFound, VnfmError
from kubevnfm_secrets import KeyRing, without_secrets
from kubevnfm_sol.lcm import OperationState
from kubevnfm_sol.problem import ProblemDetails

from kubevnfm_lcm_api.granting.unused import unused_in
from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.core.event_refs import state_event
from kubevnfm_lcm_api.lifecycle.core.grant_request import grant_request
from kubevnfm_lcm_api.lifecycle.core.granting import (
    Answer,
    Granted,
    Granting,
    Nfvo,
    Refused,
    Unanswered,
    Undecided,
    read_grant,
)
from kubevnfm_lcm_api.lifecycle.core.occurrence import OccurrenceRecord
from kubevnfm_lcm_api.lifecycle.core.ports import Change
from kubevnfm_lcm_api.lifecycle.core.saga import Move, Saga
from kubevnfm_lcm_api.lifecycle.core.scripted_draft import ScriptedDraft
from kubevnfm_lcm_api.lifecycle.core.sequences import SEQUENCES

log = structlog.get_logger()

_CALLS_AT_ONCE: Final = 16
"""The limit of concurrent calls: an NFVO that hangs must not occupy all command handlers of the process."""
_BUSY_S: Final = 0.5
"""The pause before another attempt if all calls are in use."""
_NOTIFICATION_WAIT_S: Final = 5.0
"""How long the grant request waits until the START notification is delivered (API-075). A subscriber that is down must
not delay the operation further."""
_NOTIFICATION_POLL_S: Final = 0.1
_LONGEST_PAUSE_S: Final = 60.0
"""Where the pauses between calls without a decision stop growing."""
_LONGEST_RETRY_AFTER_S: Final = 600.0
"""The longest Retry-After that is honoured: a wrong value must not use up the whole timeout."""
_RESERVE_S: Final = 1.0
"""Added to the longest time of a call before another process may repeat it."""


class Descriptors(Protocol):
    """The descriptors of the onboarded packages."""

    async def vnfd(self, package_id: str, checksum: str) -> Vnfd:
        """Return a package's descriptor. Raises NotFound."""
        ...


class Announcements(Protocol):
    """The state of the notifications."""

    async def are_delivered(self, event_id: str, occurrence_id: str) -> bool:
        """Return whether the event was announced and no notification about the operation is pending."""
        ...


class ExternalGrants:
    """Gets grants from an NFVO (`lifecycle.core.ports.Grants`)."""

    def __init__(
        self,
        *,
        nfvo: Nfvo,
        descriptors: Descriptors,
        announcements: Announcements,
        ring: KeyRing,
        clock: Clock,
        root: str,
        poll_s: float,
        timeout_s: float,
        call_timeout_s: float,
    ) -> None:
        """``root``: the public URL of this VNFM, the beginning of the links in a GrantRequest."""
        self._nfvo, self._descriptors, self._announcements = nfvo, descriptors, announcements
        self._ring, self._clock, self._root = ring, clock, root
        self._poll_s, self._timeout_s = poll_s, timeout_s
        self._turn_s = 3 * call_timeout_s + _RESERVE_S  # with OAuth 2.0: a call, a new token, the call again
        self._saga = Saga(ring)
        self._calls = asyncio.Semaphore(_CALLS_AT_ONCE)

    async def pursue(self, record: OccurrenceRecord, change: Change) -> float | None:
        """Bring the grant of a STARTING operation as far as is possible now.

        Returns: the seconds after which to call again; None if the operation is no longer STARTING.
        """
        if record.occ.operation_state is not OperationState.STARTING:
            return None
        # Come back later instead of waiting here: a waiting handler would occupy a place of the consumer.
        if self._calls.locked():
            return _BUSY_S
        request: Mapping[str, object] = {}
        if record.granting is None and not record.occ.is_cancel_pending:
            if not await self._is_start_notified(record):
                return _NOTIFICATION_POLL_S
            try:
                request = await self._request(record)
            except VnfmError as error:
                problem = ProblemDetails.from_error(error, instance=record.occ.id)
                await change(record.occ.id, lambda present, now: self._refused(present, problem, now))
                return None
        async with self._calls:
            return await self._call(record.occ.id, request, change)

    async def _call(self, occurrence_id: str, request: Mapping[str, object], change: Change) -> float | None:
        """Make one call, if it is this process's turn; return the seconds until the next."""
        is_ours = False

        def take_turn(record: OccurrenceRecord, now: datetime) -> Move | None:
            nonlocal is_ours
            move, is_ours = self._turn(record, request, now)
            return move

        # The turn is stored before the call: two processes with the same AdvanceOperation must not both ask.
        record = await change(occurrence_id, take_turn)
        if is_ours and record is not None and record.granting is not None:
            granting = record.granting
            if granting.grant_id is not None:
                answer = await self._nfvo.poll(granting.grant_id)
            else:
                answer = await self._nfvo.request_grant(granting.request)
            record = await change(occurrence_id, lambda present, now: self._answered(present, answer, now))
        if record is None or record.occ.operation_state is not OperationState.STARTING or record.granting is None:
            return None
        left_s = datetime.fromisoformat(record.granting.rests_until) - self._clock.now()
        return max(0.0, left_s.total_seconds())

    # --- moves --------------------------------------------------------------------------------------------------------

    def _turn(self, record: OccurrenceRecord, request: Mapping[str, object], now: datetime) -> tuple[Move | None, bool]:
        """Reserve the next call unless another process has; or end an operation that was cancelled or timed out.

        Returns: the move, and whether the caller may call the NFVO.
        """
        occ, before = record.occ, record.granting
        if occ.operation_state is not OperationState.STARTING:
            return None, False
        # GRACEFUL waits for the NFVO's decision once it was asked, so that no grant stays reserved there.
        if occ.is_cancel_pending and (occ.cancel_mode == "FORCEFUL" or before is None):
            return self._saga.withdraw(record, now), False
        if before is None:
            before = Granting(request=dict(request), asked_at=rfc3339(now), rests_until=rfc3339(now))
        if datetime.fromisoformat(before.rests_until) > now:
            return None, False
        if now - datetime.fromisoformat(before.asked_at) >= timedelta(seconds=self._timeout_s):
            return self._saga.refuse(record, self._too_late(record, before), now), False
        # The process that made the call died, or stored no answer in time: the NFVO may see the request twice.
        if before.is_out and before.grant_id is None:
            log.warning("grant_asked_again", operation_id=occ.id)
        ours = before.model_copy(update={"rests_until": rfc3339(now + timedelta(seconds=self._turn_s)), "is_out": True})
        return Move(record.model_copy(update={"granting": ours})), True

    def _answered(self, record: OccurrenceRecord, answer: Answer, now: datetime) -> Move | None:
        """Store the NFVO's answer, and grant or refuse the operation if it is a decision. The first decision counts."""
        granting = record.granting
        if record.occ.operation_state is not OperationState.STARTING or granting is None:
            return None
        match answer:
            case Granted():
                return self._granted(record, granting, answer, now)
            case Refused(problem=problem):
                return self._refused(record, problem, now)
            case Undecided(grant_id=grant_id, again_in_s=retry_after_s):
                pause_s = self._poll_s if retry_after_s is None else min(retry_after_s, _LONGEST_RETRY_AFTER_S)
                known = {"grant_id": granting.grant_id or grant_id, "faults": 0, "last_fault": ""}
            case Unanswered(reason=reason, again_in_s=retry_after_s):
                faults = granting.faults + 1
                pause_s = max(
                    BackOff(self._poll_s, _LONGEST_PAUSE_S).after(faults),
                    min(retry_after_s or 0.0, _LONGEST_RETRY_AFTER_S),
                )
                known = {"faults": faults, "last_fault": reason}
                log.warning("nfvo_gave_no_answer", operation_id=record.occ.id, reason=reason, tries=faults)
        # Not later than the timeout: the next call of `pursue` then ends the operation in time.
        ends = datetime.fromisoformat(granting.asked_at) + timedelta(seconds=self._timeout_s)
        rests_until = min(now + timedelta(seconds=pause_s), max(ends, now))
        stored = granting.model_copy(update={**known, "is_out": False, "rests_until": rfc3339(rests_until)})
        return Move(record.model_copy(update={"granting": stored}))

    def _granted(self, record: OccurrenceRecord, granting: Granting, answer: Granted, now: datetime) -> Move:
        try:
            grant = read_grant(answer.grant, record.occ.id, record.occ.vnf_instance_id)
            draft = SEQUENCES.draft(record.plan, record.draft).granted(grant, granting.request)
        # SOL003: a grant that the VNFM cannot follow ends the operation before any resource is touched.
        except VnfmError as error:
            return self._saga.refuse(record, ProblemDetails.from_error(error, instance=record.occ.id), now)
        given = granting.model_copy(
            update={
                "grant_id": grant.id,
                "is_out": False,
                "link": self._nfvo.link(grant.id),
                "grant": grant.model_dump(by_alias=True, exclude_none=True),
            }
        )
        record = record.with_warnings(unused_in(answer.grant, draft))
        record = record.model_copy(update={"granting": given, "draft": draft.document(self._ring)})
        return self._saga.grant(record, grant.id, now)

    def _refused(self, record: OccurrenceRecord, problem: ProblemDetails, now: datetime) -> Move | None:
        if record.occ.operation_state is not OperationState.STARTING:
            return None
        log.info("operation_not_granted", operation_id=record.occ.id, status=problem.status)
        return self._saga.refuse(record, problem, now)

    def _too_late(self, record: OccurrenceRecord, granting: Granting) -> ProblemDetails:
        last = f"; last failure: {granting.last_fault}" if granting.last_fault else ""
        return ProblemDetails(
            type="grant-timeout",
            title="Operation not granted in time",
            status=504,
            detail=f"the NFVO has not decided within {self._timeout_s:g} s{last}",
            instance=record.occ.id,
        )

    # --- before the request -------------------------------------------------------------------------------------------

    async def _is_start_notified(self, record: OccurrenceRecord) -> bool:
        """Whether the START notification was delivered, or has had its time (API-075)."""
        entered = datetime.fromisoformat(record.occ.state_entered_time)
        if self._clock.now() - entered >= timedelta(seconds=_NOTIFICATION_WAIT_S):
            return True
        return await self._announcements.are_delivered(state_event(record.occ).id, record.occ.id)

    async def _request(self, record: OccurrenceRecord) -> Mapping[str, object]:
        """Return the GrantRequest. Raises NotFound if the package of the operation no longer exists."""
        draft = SEQUENCES.draft(record.plan, record.draft)
        flavour: Flavour | None = None
        flavour_id: str | None = getattr(draft, "flavour_id", None)
        # Drafts without one add nothing of a flavour; a terminate must work even if its package is gone.
        if flavour_id is not None and isinstance(draft, ScriptedDraft) and draft.package is not None:
            vnfd = await self._descriptors.vnfd(draft.package.package_id, draft.package.checksum)
            try:
                flavour = vnfd.flavour(flavour_id)
            except UnknownFlavour as error:
                raise NotFound(str(error)) from error
        return nfvo_grant_request(record, draft, flavour, root=self._root)


def nfvo_grant_request(record: OccurrenceRecord, draft: Draft, flavour: Flavour | None, *, root: str) -> dict[str, Any]:
    """Return the request without secrets, with links to this VNFM.

    ``flavour``: None if the operation is not made from a flavour; ``root``: the public URL of this VNFM.
    """
    occ, base = record.occ, f"{root}/vnflcm/{record.api_version}"
    # An NFVO needs no passwords of machines to decide, and other systems log requests.
    parameters = without_secrets(occ.operation_params.get("additionalParams") or {})
    return {
        **grant_request(occ, record.facts.vnfd_id, draft, flavour, draft.grant_resources(flavour), parameters),
        "_links": {
            "vnfLcmOpOcc": {"href": f"{base}/vnf_lcm_op_occs/{occ.id}"},
            "vnfInstance": {"href": f"{base}/vnf_instances/{occ.vnf_instance_id}"},
        },
    }
