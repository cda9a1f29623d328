"""Finds resources that others have deleted or changed: has the infrastructure services compare them with what exists.

infra-openstack compares what the instances show; infra-k8s knows the objects of CNFs and workload clusters itself. Each round asks once for each VIM, not once for each instance. An answer comes only if there is news. Nothing is
remembered between the rounds, so a lost question or answer is made good by the next one. Instances with a running
operation are left out, and an answer counts only if the instance was not written meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import structlog
from kubevnfm_bus.port import Ack, Again, Delivery, Verdict
from kubevnfm_clients.multicloud.suspension import Suspension
from kubevnfm_clients.ports import Vims
from kubevnfm_events import VimConnection
from kubevnfm_events.objects import CompareObjects, ExpectedObjects, ObjectsCompared, ObjectsFinding
from kubevnfm_events.stacks import CompareStacks, ExpectedStack, StackDrift, StackFinding, StacksCompared
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.errors import OutsideUnavailable
from kubevnfm_kit.outages import unless_said
from kubevnfm_secrets import KeyRing
from kubevnfm_sol.vim import VimConnectionInfo
from kubevnfm_store.port import DocumentStore, RevisionConflict, StoreUnavailable
from kubevnfm_store.query import Compare, Exists, Filter, Op, Stored
from kubevnfm_worker.outbox import Outbox

from kubevnfm_lcm_api.lifecycle.core.drift import Drift, drift_events, drift_of, found
from kubevnfm_lcm_api.lifecycle.core.idle_instances import ByVim, Questions, idle_instances
from kubevnfm_lcm_api.lifecycle.core.instance import COLLECTION, ON_UNREGISTERED_VIM, InstanceRecord
from kubevnfm_lcm_api.lifecycle.core.released import upgraded_internals
from kubevnfm_lcm_api.lifecycle.core.suspension import KEY, RegionSuspensions

log = structlog.get_logger()

_PAGE: Final = 500
_MOST_STACKS: Final = 1000
"""Stacks in one command: about 300 kB with three servers each. Each command costs the VIM three list calls."""
_MOST_CNFS: Final = 500
"""Instances of objects in one command: at most 1.5 MB, if the objects of each one have drifted."""
_STORE_PAUSE_S: Final = 2.0
_NOT_READ: Final = (
    "instantiatedVnfInfo",
    "extensions",
    "vnfConfigurableProperties",
    *(f"internal/{name}" for name in ("parameters", "request", "connections", "release", "deployments/release")),
)


class DriftWatch:
    """Asks, and records the answers. `rounds` calls it."""

    def __init__(
        self,
        *,
        store: DocumentStore,
        outbox: Outbox,
        questions: Questions,
        vims: Vims,
        suspensions: RegionSuspensions,
        ring: KeyRing,
        clock: Clock,
    ) -> None:
        self._store, self._outbox, self._questions = store, outbox, questions
        self._vims, self._suspensions, self._ring, self._clock = vims, suspensions, ring, clock

    async def look(self) -> None:
        """Ask once for each VIM that answers. Raises StoreUnavailable, OutsideUnavailable."""
        suspended = await self._suspensions.all()
        for vim in await self._vims.list({"status": ["ACTIVE"]}):
            if str(vim["id"]) in suspended:
                continue
            await self._ask(Compare("internal/vimIds", Op.EQ, [str(vim["id"])]), str(vim["id"]))
        # Requests may bring the access data of a VIM that is not registered.
        await self._ask(Exists(ON_UNREGISTERED_VIM), None)

    async def record_findings(self, delivery: Delivery) -> Verdict:
        """Mark the instances, or clear their marks."""
        compared = delivery.envelope.data
        assert isinstance(compared, StacksCompared | ObjectsCompared)
        try:
            suspended = await self._suspensions.all()
            for finding in compared.findings:
                await self._record(finding, suspended)
        except (StoreUnavailable, OutsideUnavailable) as error:
            unless_said(error).warning("drift_not_recorded", reason=str(error))
            return Again(_STORE_PAUSE_S)
        return Ack()

    async def _record(self, finding: StackFinding | ObjectsFinding, suspended: Mapping[str, Suspension]) -> None:
        stored = await self._store.get(COLLECTION, finding.vnf_instance_id)
        # Written since the question: the finding may be about machines that an operation has replaced.
        if stored is None or stored.revision != finding.revision:
            return
        before, now = InstanceRecord.from_document(stored.body), rfc3339(self._clock.now())
        # Suspended since the question; a suspended instance is of another revision, or was not asked about.
        if not suspended.keys().isdisjoint(before.internals.vim_ids):
            return
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
        stacks, objects = ByVim[ExpectedStack](_MOST_STACKS), ByVim[ExpectedObjects](_MOST_CNFS)
        # The large attributes are left out.
        async for stored in idle_instances(self._store, which, page_size=_PAGE, exclude=_NOT_READ):
            if KEY in (stored.body.get("metadata") or {}):
                continue
            connection, expected = _expected(stored)
            if connection is None or (vim_id is not None and connection.vim_id != vim_id):
                continue
            if isinstance(expected, ExpectedStack):
                stacks.add(connection, expected)
            elif expected is not None:
                objects.add(connection, expected)
        for vim, some_stacks in stacks.questions():
            await self._questions.ask(CompareStacks(vim=vim, expected=some_stacks), vim_id)
        for vim, some_objects in objects.questions():
            await self._questions.ask(CompareObjects(vim=vim, expected=some_objects), vim_id)


def _expected(stored: Stored) -> tuple[VimConnection | None, ExpectedStack | ExpectedObjects | None]:
    """Return what the instance has on its VIM, and the VIM; None if it has nothing that can be compared."""
    # Plain dicts: a round reads every instance, and the types would take most of its time.
    deployments: Sequence[Mapping[str, Any]] = upgraded_internals(stored.body["internal"]).get("deployments") or ()
    one = next((each for each in deployments if each["kind"] == "release" or each.get("resources")), None)
    connection = stored.body.get("vimConnectionInfo", {}).get(one["vimKey"]) if one is not None else None
    if one is None or connection is None:
        return None, None
    info = VimConnectionInfo.model_validate(connection)
    vim = VimConnection(**vars(info))
    drift = drift_of(stored.body.get("metadata") or {})
    if one["kind"] == "release":
        known = drift.of_objects if drift is not None else None
        return vim, ExpectedObjects(vnf_instance_id=stored.id, revision=stored.revision, known=known)
    return vim, _expected_stack(stored, one, drift)


def _expected_stack(stored: Stored, one: Mapping[str, Any], drift: Drift | None) -> ExpectedStack:
    servers: Sequence[Mapping[str, Any]] = one["resources"].get("servers") or ()
    known = None
    if drift is not None:
        missing = tuple(each["server_id"] for each in servers if each["vnfc_id"] in drift.vnfc_ids)
        known = StackDrift(state=drift.state, servers=missing)
    return ExpectedStack(
        vnf_instance_id=stored.id,
        revision=stored.revision,
        stack_id=one["resources"]["stack_id"],
        stack_name=one["stackName"],
        servers=tuple(each["server_id"] for each in servers),
        known=known,
    )
