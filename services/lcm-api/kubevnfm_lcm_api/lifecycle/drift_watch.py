"""Finds resources that were deleted by hand: has infra-openstack compare what the instances show with what exists.

Each round asks once for each VIM, not once for each instance. An answer comes only if there is news. Nothing is
remembered between the rounds, so a lost question or answer is made good by the next one. Instances with a running
operation are left out, and an answer counts only if the instance was not written meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

import structlog
from kubevnfm_bus.port import Ack, Again, Delivery, MessageBus, Verdict
from kubevnfm_clients.ports import Vims
from kubevnfm_events import Envelope, VimConnection
from kubevnfm_events.infra import CompareStacks, ExpectedStack, StackDrift, StackFinding, StacksCompared
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.ids import new_id
from kubevnfm_secrets import KeyRing
from kubevnfm_sol.lcm import InstantiationState
from kubevnfm_sol.vim import VimConnectionInfo
from kubevnfm_store.port import DocumentStore, RevisionConflict, StoreUnavailable
from kubevnfm_store.query import AllOf, Compare, Exists, Filter, Op, Query, Stored
from kubevnfm_worker import Outbox

from kubevnfm_lcm_api.event_chain import SOURCE
from kubevnfm_lcm_api.lifecycle.domain.drift import drift_events, drift_of, found
from kubevnfm_lcm_api.lifecycle.domain.instance import COLLECTION, ON_UNREGISTERED_VIM, InstanceRecord
from kubevnfm_lcm_api.lifecycle.domain.released import upgraded_internals

log = structlog.get_logger()

_PAGE: Final = 500
_MOST_IN_COMMAND: Final = 1000
"""Stacks in one command: about 300 kB with three servers each. Each command costs the VIM three list calls."""
_STORE_PAUSE_S: Final = 2.0
_IDLE_ON_A_STACK: Final = (
    Compare("instantiationState", Op.EQ, [InstantiationState.INSTANTIATED]),
    Exists("internal/currentOperation", exists=False),
)
_NOT_READ: Final = (
    "instantiatedVnfInfo",
    "extensions",
    "vnfConfigurableProperties",
    *(f"internal/{name}" for name in ("parameters", "request", "connections", "release")),
)


class DriftWatch:
    """Asks, and records the answers. `rounds` calls it."""

    def __init__(
        self,
        *,
        store: DocumentStore,
        outbox: Outbox,
        bus: MessageBus,
        vims: Vims,
        ring: KeyRing,
        clock: Clock,
        every_s: float,
    ) -> None:
        """``every_s``: from the start of a round to the start of the next."""
        self._store, self._outbox, self._bus, self._vims = store, outbox, bus, vims
        self._ring, self._clock, self._every_s = ring, clock, every_s

    async def look(self) -> None:
        """Ask once for each VIM that answers. Raises StoreUnavailable, OutsideUnavailable."""
        for vim in await self._vims.list({"type": ["openstack"], "status": ["ACTIVE"]}):
            await self._ask(Compare("internal/vimIds", Op.EQ, [str(vim["id"])]), str(vim["id"]))
        # Requests may bring the access data of a VIM that is not registered.
        await self._ask(Exists(ON_UNREGISTERED_VIM), None)

    async def record_findings(self, delivery: Delivery) -> Verdict:
        """Mark the instances, or clear their marks."""
        compared = delivery.envelope.data
        assert isinstance(compared, StacksCompared)
        try:
            for finding in compared.findings:
                await self._record(finding)
        except StoreUnavailable as error:
            log.warning("drift_not_recorded", reason=str(error))
            return Again(_STORE_PAUSE_S)
        return Ack()

    async def _record(self, finding: StackFinding) -> None:
        stored = await self._store.get(COLLECTION, finding.vnf_instance_id)
        # Written since the question: the finding may be about machines that an operation has replaced.
        if stored is None or stored.revision != finding.revision:
            return
        before, now = InstanceRecord.from_document(stored.body), rfc3339(self._clock.now())
        after = found(before, finding.drift, finding.reason, now).model_copy(update={"updated_at": now})
        try:
            await self._outbox.replace(
                COLLECTION,
                stored.id,
                after.document(self._ring),
                if_revision=stored.revision,
                events=drift_events(before, after),
            )
        except RevisionConflict:
            return
        state = finding.drift.state if finding.drift is not None else "NONE"
        log.warning("instance_drifted", vnf_instance_id=stored.id, state=state, reason=finding.reason)

    async def _ask(self, which: Filter, vim_id: str | None) -> None:
        expected: dict[str, list[ExpectedStack]] = {}
        connections: dict[str, VimConnection] = {}
        async for stored in self._idle(which):
            connection, stack = _expected(stored)
            if connection is None or stack is None or (vim_id is not None and connection.vim_id != vim_id):
                continue
            place = _place(connection)
            connections.setdefault(place, connection)
            expected.setdefault(place, []).append(stack)
        for place, stacks in expected.items():
            for start in range(0, len(stacks), _MOST_IN_COMMAND):
                chunk = tuple(stacks[start : start + _MOST_IN_COMMAND])
                command = CompareStacks(vim=connections[place], expected=chunk)
                deadline = self._clock.now() + timedelta(seconds=self._every_s)
                await self._bus.publish(
                    Envelope(data=command, source=SOURCE, id=new_id(), subject=vim_id or "", deadline=deadline)
                )

    async def _idle(self, which: Filter) -> AsyncIterator[Stored]:
        """Yield the instances without an operation, the large attributes left out."""
        after: tuple[None, str] | None = None
        wanted = AllOf([which, *_IDLE_ON_A_STACK])
        while True:
            page = await self._store.find(COLLECTION, Query(wanted, after=after, limit=_PAGE, exclude=_NOT_READ))
            for stored in page:
                yield stored
            if len(page) < _PAGE:
                return
            after = (None, page[-1].id)


def _expected(stored: Stored) -> tuple[VimConnection | None, ExpectedStack | None]:
    """Return the stack that the instance shows, and its VIM; None for a CNF."""
    # Plain dicts: a round reads every instance, and the types would take most of its time.
    deployments: Sequence[Mapping[str, Any]] = upgraded_internals(stored.body["internal"]).get("deployments") or ()
    one = next((each for each in deployments if each["kind"] == "stack" and each.get("resources")), None)
    connection = stored.body.get("vimConnectionInfo", {}).get(one["vimKey"]) if one is not None else None
    if one is None or connection is None:
        return None, None
    servers: Sequence[Mapping[str, Any]] = one["resources"].get("servers") or ()
    drift = drift_of(stored.body.get("metadata") or {})
    known = None
    if drift is not None:
        missing = tuple(each["server_id"] for each in servers if each["vnfc_id"] in drift.vnfc_ids)
        known = StackDrift(state=drift.state, servers=missing)
    stack = ExpectedStack(
        vnf_instance_id=stored.id,
        revision=stored.revision,
        stack_id=one["resources"]["stack_id"],
        stack_name=one["stackName"],
        servers=tuple(each["server_id"] for each in servers),
        known=known,
    )
    info = VimConnectionInfo.model_validate(connection)
    return VimConnection(**{name: getattr(info, name) for name in VimConnectionInfo.model_fields}), stack


def _place(connection: VimConnection) -> str:
    """Return a key for the tenant that the access data lead to; it contains no secret."""
    given = {**connection.extra, **connection.access_info}
    clear = {name: value for name, value in given.items() if isinstance(value, str)}
    return json.dumps([connection.vim_id, connection.interface_info, clear], sort_keys=True)
