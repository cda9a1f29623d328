"""Brings what notifiers have registered to what VNF instances name: after each operation, and again until it agrees.

An operation never waits for a notifier. Registrations are stored call by call: each is stored as being asked for
before its call, with the key of the call, and gets its alarm after it. A process that is killed in between leaves it so; the next one
repeats the call with the same key. Only then is it compared with what the instance wants, so that none is forgotten.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final

import structlog
from kubevnfm_bus.port import Ack, Again, Delivery, Verdict
from kubevnfm_clients.ports import Vims
from kubevnfm_events.lcm import ServersChanged
from kubevnfm_kit.back_off import BackOff
from kubevnfm_kit.clock import Clock
from kubevnfm_kit.errors import NotFound, VnfmError
from kubevnfm_kit.ids import new_id
from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_secrets import KeyRing
from kubevnfm_store.port import AlreadyExists, DocumentStore, RevisionConflict, StoreUnavailable
from kubevnfm_store.query import AllOf, Compare, Op, Stored
from kubevnfm_store.races import repeat_lost_writes

from kubevnfm_lcm_api.due import CLAIM, DUE, due_fields
from kubevnfm_lcm_api.lifecycle.core import instance as instances
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord
from kubevnfm_lcm_api.server_alarms.notifier import (
    Notifier,
    NotifierAway,
    NotifierNotReached,
    NotifierRefuses,
    NotifierTrouble,
)
from kubevnfm_lcm_api.server_alarms.record import COLLECTION, Registration, wanted_of, with_shown

log = structlog.get_logger()

SERVER_FAULTS: Final = "/server_notification/vnf_instances/{id}/servers/{serverId}/notify"
"""The path at which notifiers report faults."""
_WISHES: Final = "internal/wishes"
"""How often a comparison was asked for: one that comes during the work has it repeated."""
_AGAIN_S: Final = 2.0
_AGAIN: Final = BackOff(first_s=2.0, longest_s=300.0)
_TURN_S: Final = 30.0
"""After so long the work is stored as due again: with its last call it stays below that of `due.WORK_S`."""
_MOST_TRIES: Final = 300
"""So often, for about a day, the removal of servers is tried that no instance wants."""


def notifier_of(body: JsonMapping) -> str:
    """Return the notifier that is called about an instance; empty before its first turn (`due.SourceOf`)."""
    return str(body["internal"].get("notifier", ""))


class TurnIsOver(Exception):
    """The rest is left to the next turn."""


class ClaimLost(Exception):
    """Another process has the document, or it does not exist any more."""


@dataclass
class Turn:
    """The work on one VNF instance."""

    id: str
    claim: str
    wishes: int
    failures: int
    """The turns in a row before this one that have left trouble."""
    servers: dict[str, Registration]
    """All that is registered, or asked for, by the keys of the calls."""
    notifier: str
    """The notifier of the last call."""
    troubles: dict[str, str] = field(default_factory=dict)
    """Why servers are not registered, or not removed."""
    away: dict[str, str] = field(default_factory=dict)
    """The notifiers that are called no more in this turn, and why."""
    ends_at: float = field(default_factory=lambda: time.monotonic() + _TURN_S)
    was_cut: bool = False
    """Whether something was left to the next turn."""

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to do."""
        return not self.troubles and not self.was_cut

    def may_call(self, one: Registration) -> bool:
        """Return whether the notifier is called now. Raises TurnIsOver."""
        if one.uri in self.away:
            self.troubles.setdefault(one.server_id, self.away[one.uri])
            return False
        if time.monotonic() > self.ends_at:
            raise TurnIsOver
        self.notifier = one.uri
        return True

    def failed(self, one: Registration, error: VnfmError) -> None:
        """Note a call that has not been successful."""
        self.troubles[one.server_id] = str(error)
        is_away = isinstance(error, NotifierAway)
        if is_away:
            self.away[one.uri] = str(error)
        if not self.failures:  # once for each outage, not for each try
            facts = {"vnf_instance_id": self.id, "server_id": one.server_id, "reason": str(error)}
            if is_away:
                log.warning("server_notifier_away", **facts)
            else:
                log.warning("server_notifier_refuses", **facts)


class ServerAlarms:
    """The registrations of all VNF instances."""

    def __init__(
        self,
        *,
        store: DocumentStore,
        vims: Vims,
        notifier: Notifier,
        ring: KeyRing,
        clock: Clock,
        root: str,
        wake: Callable[[], None],
    ) -> None:
        """``root``: the address of this API for notifiers; ``wake``: has what is due done at once."""
        self._store, self._vims, self._notifier = store, vims, notifier
        self._ring, self._clock, self._root, self._wake = ring, clock, root.rstrip("/"), wake

    # --- when -----------------------------------------------------------------------------------------------------------

    async def follow(self, delivery: Delivery) -> Verdict:
        """Have a VNF instance compared that names a notifier, or has named one, and whose operation has ended."""
        event = delivery.envelope.data
        assert isinstance(event, ServersChanged)
        try:
            await self.ask(event.vnf_instance_id)
        except StoreUnavailable:
            return Again(_AGAIN_S)
        return Ack()

    @repeat_lost_writes
    async def ask(self, instance_id: str) -> None:
        """Have a VNF instance compared; the same twice does no harm. Raises StoreUnavailable."""
        now = due_fields(self._clock, self._clock.now())
        stored = await self._store.get(COLLECTION, instance_id)
        if stored is None:
            body = {"servers": {}, "internal": {"wishes": 1, "failures": 0, "dueAt": now[DUE]}}
            try:
                await self._store.insert(COLLECTION, instance_id, body)
            except AlreadyExists as error:
                raise RevisionConflict(instance_id) from error
        else:
            internal = stored.body["internal"]
            fields: dict[str, object] = {_WISHES: internal["wishes"] + 1, "internal/failures": 0}
            if "claim" not in internal:  # otherwise its process sees the wish, or the claim ends with its lease
                fields |= now
            await self._store.update(COLLECTION, instance_id, fields, if_revision=stored.revision)
        self._wake()

    # --- the work -------------------------------------------------------------------------------------------------------

    async def bring(self, stored: Stored, claim: str) -> None:
        """Register and remove what differs (`due.Work`). Raises StoreUnavailable."""
        internal = stored.body["internal"]
        servers = {key: Registration.from_stored(each) for key, each in stored.body["servers"].items()}
        turn = Turn(stored.id, claim, internal["wishes"], internal["failures"], servers, notifier_of(stored.body))
        found = await self._instance(stored.id)
        wanted = {} if found is None else wanted_of(found[1])
        try:
            await self._compare(turn, wanted, None if found is None else found[1])
            is_done = turn.is_done or (not wanted and await self._gives_up(turn))
            if found is not None:
                is_done = await self._show(*found, turn, wanted) and is_done
            await self._end(turn, is_done=is_done)
        except ClaimLost:
            log.info("server_alarms_left", vnf_instance_id=stored.id)

    async def _compare(self, turn: Turn, wanted: Mapping[str, Registration], record: InstanceRecord | None) -> None:
        """Make the calls that are needed."""
        try:
            # First what was asked for without an answer: then each registration has its alarm, and can be removed.
            for one in [each for each in turn.servers.values() if each.alarm_id is None]:
                await self._register(turn, one, is_wanted=one.is_of(wanted.get(one.server_id)))
            for one in [each for each in turn.servers.values() if not each.is_of(wanted.get(each.server_id))]:
                await self._remove(turn, one)
            # Not what the same notifier has still to remove; another one, which may be gone for good, is not waited for.
            present = {(each.server_id, each.uri) for each in turn.servers.values()}
            missing = [each for each in wanted.values() if (each.server_id, each.uri) not in present]
            if record is not None and missing:
                await self._register_new(turn, record, missing)
        except TurnIsOver:
            turn.was_cut = True

    async def _register_new(self, turn: Turn, record: InstanceRecord, missing: Sequence[Registration]) -> None:
        try:
            tenant = await self._tenant(record)
        except StoreUnavailable:
            raise
        except VnfmError as error:
            turn.troubles |= {each.server_id: str(error) for each in missing}
            log.warning("servers_not_registered", vnf_instance_id=turn.id, reason=str(error), servers=len(missing))
            return
        for one in missing:
            if turn.may_call(one):
                asked = replace(one, tenant=tenant, key=new_id())
                await self._keep(turn, asked)
                await self._register(turn, asked, is_first=True)

    async def _register(self, turn: Turn, one: Registration, *, is_first: bool = False, is_wanted: bool = True) -> None:
        if not turn.may_call(one):
            return
        path = SERVER_FAULTS.format(id=turn.id, serverId=one.server_id)
        try:
            alarm_id = await self._notifier.register(one, f"{self._root}{path}")
        except NotifierTrouble as error:
            turn.failed(one, error)
            # Otherwise an earlier call may have been carried out, and the key is needed to repeat it.
            was_never_made = is_first and isinstance(error, NotifierRefuses | NotifierNotReached)
            if was_never_made or (not is_wanted and isinstance(error, NotifierRefuses)):
                await self._drop(turn, one)
            return
        await self._keep(turn, replace(one, alarm_id=alarm_id))
        log.info("server_registered", vnf_instance_id=turn.id, server_id=one.server_id)

    async def _remove(self, turn: Turn, one: Registration) -> None:
        if one.alarm_id is None or not turn.may_call(one):
            return
        try:
            await self._notifier.remove(one)
        except NotifierTrouble as error:
            turn.failed(one, error)
            return
        await self._drop(turn, one)
        log.info("server_removed_from_notifier", vnf_instance_id=turn.id, server_id=one.server_id)

    async def _gives_up(self, turn: Turn) -> bool:
        """Return whether the removal of what is left has been tried for long enough; it is forgotten then."""
        if turn.failures < _MOST_TRIES:
            return False
        for one in list(turn.servers.values()):
            log.error(
                "server_left_at_notifier",
                vnf_instance_id=turn.id,
                server_id=one.server_id,
                alarm_id=one.alarm_id,
                notifier=one.uri,
                reason=turn.troubles.get(one.server_id, ""),
            )
            await self._drop(turn, one)
        return True

    # --- what is stored -------------------------------------------------------------------------------------------------

    async def _keep(self, turn: Turn, one: Registration) -> None:
        turn.servers[one.key] = one
        await self._write(turn, {f"servers/{one.key}": one.stored()})

    async def _drop(self, turn: Turn, one: Registration) -> None:
        del turn.servers[one.key]
        await self._write(turn, {}, unset=[f"servers/{one.key}"])

    async def _write(
        self, turn: Turn, fields: JsonMapping, *, unset: Sequence[str] = (), wishes: int | None = None
    ) -> None:
        where = [Compare(CLAIM, Op.EQ, [turn.claim])]
        if wishes is not None:
            where.append(Compare(_WISHES, Op.EQ, [wishes]))
        try:
            await self._store.update(COLLECTION, turn.id, fields, unset=unset, where=AllOf(where))
        except RevisionConflict as error:
            raise ClaimLost from error

    async def _end(self, turn: Turn, *, is_done: bool) -> None:
        """Write when the instance is due again: never, if all agrees and nothing was asked for meanwhile."""
        if is_done:
            try:
                fields = {"internal/failures": 0, "internal/notifier": turn.notifier}
                await self._write(turn, fields, unset=[CLAIM, DUE], wishes=turn.wishes)
            except ClaimLost:
                pass  # asked for meanwhile, or lost: the next write finds out which
            else:
                if not turn.servers:
                    await self._forget(turn)
                return
        has_failed = not is_done and not (turn.was_cut and not turn.troubles)
        failures = turn.failures + 1 if has_failed else 0
        pause_s = _AGAIN.after(failures) if failures else 0.0
        due = due_fields(self._clock, self._clock.now() + timedelta(seconds=pause_s))
        await self._write(
            turn, {"internal/failures": failures, "internal/notifier": turn.notifier, **due}, unset=[CLAIM]
        )

    async def _forget(self, turn: Turn) -> None:
        """Delete the document of an instance without registrations, unless it was asked for meanwhile."""
        stored = await self._store.get(COLLECTION, turn.id)
        if stored is None or "dueAt" in stored.body["internal"] or stored.body["servers"]:
            return
        try:
            await self._store.delete(COLLECTION, turn.id, if_revision=stored.revision)
        except RevisionConflict:
            return

    # --- the instance ---------------------------------------------------------------------------------------------------

    async def _instance(self, instance_id: str) -> tuple[int, InstanceRecord] | None:
        stored = await self._store.get(instances.COLLECTION, instance_id)
        return None if stored is None else (stored.revision, InstanceRecord.from_document(stored.body))

    async def _show(
        self, revision: int, record: InstanceRecord, turn: Turn, wanted: Mapping[str, Registration]
    ) -> bool:
        """Write the alarms into the instance; return whether it shows them. The end of a running operation asks again."""
        registered = [each for each in turn.servers.values() if each.is_of(wanted.get(each.server_id))]
        after = with_shown(record, registered, turn.troubles)
        if after is record or record.internals.current_operation is not None:
            return True
        document = after.document(self._ring)
        try:
            await self._store.replace(instances.COLLECTION, turn.id, document, if_revision=revision)
        except RevisionConflict:
            return False
        return True

    async def _tenant(self, record: InstanceRecord) -> str:
        """Return the project of the instance's VIM, as its access data name it. Raises VnfmError."""
        stack = record.stack
        connection = None if stack is None else record.vnf.vim_connection_info.get(stack.vim_key)
        if connection is None:
            raise NotFound("the VIM of the VNF instance is not in its vimConnectionInfo")
        names: Sequence[object] = [connection.access_info.get(name) for name in ("project", "projectId")]
        if connection.vim_id is not None and not any(names):
            project = (await self._vims.get(connection.vim_id)).get("vim_project") or {}
            names = [project.get(name) for name in ("name", "id")]
        tenant = next((each for each in names if isinstance(each, str) and each), None)
        if tenant is None:
            raise NotFound("the access data of the VIM name no project")
        return tenant
