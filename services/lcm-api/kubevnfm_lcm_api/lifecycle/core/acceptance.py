"""Creates the operation for a checked request and has the engine accept it; common to all operations."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import chain
from typing import Any

from kubevnfm_csar.vnfd.model import Flavour
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.ids import new_id
from kubevnfm_kit.request_ids import present_request_id
from kubevnfm_kit.request_warnings import RequestWarning
from kubevnfm_kit.traces import callers_trace
from kubevnfm_secrets import KeyRing, hide, listed_names
from kubevnfm_sol.base import SolType
from kubevnfm_sol.lcm import OperationState, OperationType, VnfLcmOpOcc
from kubevnfm_store.query import Stored

from kubevnfm_lcm_api.lifecycle.core.dependencies import IS_WITHDRAWING, PATHS
from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.core.engine import Engine
from kubevnfm_lcm_api.lifecycle.core.grant_request import package_grant_request
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord, VnfFacts
from kubevnfm_lcm_api.lifecycle.core.kind import Asked
from kubevnfm_lcm_api.lifecycle.core.logins import check_networks
from kubevnfm_lcm_api.lifecycle.core.occurrence import OccurrenceRecord
from kubevnfm_lcm_api.lifecycle.core.request_parameters import variable_names
from kubevnfm_lcm_api.lifecycle.core.revision import Origin, Revision
from kubevnfm_lcm_api.lifecycle.core.scripted_draft import ScriptedDraft
from kubevnfm_lcm_api.lifecycle.core.sequences import SEQUENCES
from kubevnfm_lcm_api.lifecycle.core.suspension import Suspensions


@dataclass(frozen=True)
class CheckedRequest:
    """A request for an operation that has passed its checks."""

    stored: Stored
    record: InstanceRecord
    """With ``stored``: the instance as the request was checked against it."""
    operation: OperationType
    draft: Draft
    asked: Asked[SolType]
    flavour: Flavour | None = None
    """The one after the operation, for the grant request of the package's own code."""
    secret_names: Collection[str] = ()
    """Those that the package of the operation marks, if the instance may not have them yet."""
    state: OperationState = OperationState.STARTING
    """PROCESSING for an operation that needs no grant."""
    warnings: Collection[RequestWarning] = ()
    """Those about the request, beside the draft's."""
    snapshot: Stored | None = None
    """The individual VNF snapshot that the operation uses, as the request was checked against it."""


class Acceptance:
    """Turns the draft of an operation into an accepted occurrence."""

    def __init__(
        self, *, engine: Engine, ring: KeyRing, clock: Clock, has_vnf_networks: bool, suspensions: Suspensions
    ) -> None:
        """``has_vnf_networks``: whether the setting ``vnf_networks`` names any."""
        self._engine, self._ring, self._clock, self._suspensions = engine, ring, clock, suspensions
        self._has_vnf_networks = has_vnf_networks

    async def accept(self, checked: CheckedRequest) -> str:
        """Claim the instance for the operation; return the occurrence's id.

        Raises Conflict if the instance was changed or claimed meanwhile, or if the operation would take away what other
        instances use, or would use what another operation takes away; Suspended; Unprocessable as `check_networks`.
        """
        found, claims = await self._of_checked(checked)
        await self._engine.accept(checked.stored, found, claims)
        return found.occ.id

    async def foreseen(self, checked: CheckedRequest) -> OccurrenceRecord:
        """Return the operation that `accept` would begin, without its grant; nothing is stored. Raises as `accept`."""
        found, _ = await self._of_checked(checked)
        return found

    async def _of_checked(self, checked: CheckedRequest) -> tuple[OccurrenceRecord, dict[str, Any]]:
        return await self._occurrence(
            checked.record,
            checked.operation,
            checked.draft,
            checked.asked,
            checked.flavour,
            checked.secret_names,
            checked.state,
            checked.warnings,
        )

    async def accept_new(
        self,
        record: InstanceRecord,
        draft: Draft,
        asked: Asked[SolType],
        *,
        flavour: Flavour | None,
        secret_names: Collection[str],
    ) -> str:
        """Store a new instance, claimed for its instantiation; return the occurrence's id. Raises as `accept`."""
        state, operation = OperationState.STARTING, OperationType.INSTANTIATE
        found, claims = await self._occurrence(record, operation, draft, asked, flavour, secret_names, state)
        await self._engine.accept_new(record, found, claims)
        return found.occ.id

    async def planned(
        self,
        record: InstanceRecord,
        draft: Draft,
        asked: Asked[SolType],
        *,
        flavour: Flavour,
        secret_names: Collection[str],
    ) -> tuple[OccurrenceRecord, dict[str, Any]]:
        """Return the instantiation of a new instance, and the fields that its claim adds; nothing is stored. Raises as `accept`."""
        state, operation = OperationState.PROCESSING, OperationType.INSTANTIATE
        return await self._occurrence(record, operation, draft, asked, flavour, secret_names, state)

    async def _occurrence(
        self,
        record: InstanceRecord,
        operation: OperationType,
        draft: Draft,
        asked: Asked[SolType],
        flavour: Flavour | None,
        secret_names: Collection[str],
        state: OperationState,
        warnings: Collection[RequestWarning] = (),
    ) -> tuple[OccurrenceRecord, dict[str, Any]]:
        """Return the occurrence, and the further fields of the instance that are true from its claim on."""
        await self._suspensions.check(record, _may_be_regions(record, draft))
        refusal = await self._engine.refusal(draft)
        if refusal is not None:
            raise refusal
        now = rfc3339(self._clock.now())
        names = frozenset(record.internals.secret_names).union(secret_names, listed_names(asked.original))
        names |= variable_names(asked.original)
        occ = VnfLcmOpOcc(
            id=asked.origin.occurrence_id or new_id(),
            operation_state=state,
            state_entered_time=now,
            start_time=now,
            vnf_instance_id=record.vnf.id,
            operation=operation,
            is_automatic_invocation=asked.origin.automatic is not None,
            operation_params=dict(hide(asked.original, names)),
            vnf_snapshot_info_id=draft.vnf_snapshot_info_id,
        )
        if flavour is not None and isinstance(draft, ScriptedDraft) and draft.reads_grant_request:
            request = package_grant_request(occ, record.vnf.vnfd_id, draft, flavour)
            draft = draft.model_copy(update={"grant_request": request})
        occurrence = OccurrenceRecord(
            occ=occ,
            api_version=asked.version,
            plan=draft.plan,
            steps=SEQUENCES.planned(draft),
            draft=draft.document(self._ring, names),
            facts=_facts(record, draft),
            is_reversible=draft.is_reversible,
            revision=_revision(record, draft, asked.origin),
            automatic=asked.origin.automatic,
            traceparent=str(callers_trace() or ""),
            request_id=present_request_id(),
        ).with_warnings((*draft.notes, *warnings))
        # A termination is never refused: it does without the machines.
        if operation is not OperationType.TERMINATE:
            check_networks(draft, occurrence.steps, has_networks=self._has_vnf_networks)
        claims = _claims(record, draft, names)
        if occurrence.revision is not None:
            claims["internal/revision"] = occurrence.revision.number
            claims["internal/warnings"] = [note.text for note in draft.notes]
        return occurrence, claims


def _facts(record: InstanceRecord, draft: Draft) -> VnfFacts:
    facts = record.facts
    return facts.model_copy(update={"vim_ids": tuple(dict.fromkeys([*facts.vim_ids, *_vim_ids(record, draft)]))})


def _vim_ids(record: InstanceRecord, draft: Draft) -> list[str]:
    """Return the registered VIMs on which the instance has, or may get, resources."""
    used = [use.ids for use in draft.begins_use if use.kind == "cluster"]
    own = (draft.vim_id,) if draft.vim_id is not None else ()
    return list(dict.fromkeys([*record.internals.vim_ids, *chain(*used), *own]))


def _may_be_regions(record: InstanceRecord, draft: Draft) -> list[str]:
    """Return those of its VIMs that may be suspended: cloud regions are clusters of Kubernetes, so an OpenStack is none."""
    found = _vim_ids(record, draft)
    return [vim_id for vim_id in found if vim_id != draft.vim_id] if draft.is_on_openstack else found


def _revision(record: InstanceRecord, draft: Draft, origin: Origin) -> Revision | None:
    """Return the revision that an operation makes; None if it makes none, or the instance is none of multi-cloud."""
    inputs = draft.inputs
    if record.internals.multicloud is None or inputs is None:
        return None
    return Revision(
        number=record.internals.revision + 1,
        by=origin.by,
        cause=origin.cause,
        rollback_to=origin.rollback_to,
        csar_id=inputs.package.package_id,
        digest=inputs.digest,
    )


def _claims(record: InstanceRecord, draft: Draft, names: Collection[str]) -> dict[str, Any]:
    """Return the further fields of the instance that are true from the claim on; ``names``: of its secrets."""
    claims: dict[str, Any] = {PATHS[use.kind].users: list(use.ids) for use in draft.begins_use if use.kind != "cluster"}
    if len(names) > len(record.internals.secret_names):
        # From now on: a later request may give another value for a name without listing it again.
        claims["internal/secretNames"] = sorted(names)
    if draft.withdrawn is not None:
        claims[IS_WITHDRAWING] = True
    if draft.dst_vnfd_id is not None:
        # From now on the new package is in use and cannot be deleted.
        claims["internal/dstVnfdId"] = draft.dst_vnfd_id
    # In the same write as the claim: from then on vim-registry refuses to delete the VIM.
    vim_ids = _vim_ids(record, draft)
    if len(vim_ids) > len(record.internals.vim_ids):
        # In addition to the earlier VIMs: the remains of a failed instantiate are on those until they are removed.
        claims[PATHS["cluster"].users] = vim_ids
    return claims
