"""Sends the credentials of workload clusters again when they change between operations (capi.md CR-062).

Cluster API writes the kubeconfig Secret again half a year before its certificate ends, and when the CA of the cluster changes. In each
round infra-k8s is asked once for each management cluster to watch these Secrets until the next round. A cluster that
refuses the credentials that its VIM has is found in vim-registry.

A rotation is stored in the instance together with its command, so that it is begun once, survives a crash, and never runs beside an
operation: it begins only while none has claimed the instance, and an operation that is accepted meanwhile waits for its end
(`Engine.advance_operation`). mgmt-executor sends what differs from what the receiver has accepted last.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import structlog
from kubevnfm_bus.port import Ack, Again, Delivery, Verdict
from kubevnfm_clients.ports import Vims
from kubevnfm_events import CommandFailed, Envelope, Message
from kubevnfm_events.capi import ExpectedKubeconfig, KubeconfigsChanged, WatchKubeconfigs
from kubevnfm_events.credentials import CredentialsSent, SendCredentials
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.errors import OutsideUnavailable
from kubevnfm_kit.ids import derived_id
from kubevnfm_secrets import KeyRing
from kubevnfm_store.port import DocumentStore, RevisionConflict, StoreUnavailable
from kubevnfm_store.races import repeat_lost_writes
from kubevnfm_worker.outbox import Outbox

from kubevnfm_lcm_api.event_chain import SOURCE
from kubevnfm_lcm_api.lifecycle.core.idle_instances import ByVim, Questions
from kubevnfm_lcm_api.lifecycle.core.instance import COLLECTION, InstanceRecord
from kubevnfm_lcm_api.lifecycle.core.rotation import FIELD, Rotation
from kubevnfm_lcm_api.lifecycle.workloads.credential_steps import default_vim_name
from kubevnfm_lcm_api.lifecycle.workloads.idle_clusters import IdleCluster, by_management, idle_clusters, management_of

log = structlog.get_logger()

STEP: Final = "rotate_credentials"
"""``stepid`` of the command and its reply; no plan has a step of this id."""
_LIMIT_S: Final = 120.0
"""For the cluster to answer, and for the receiver."""
_END_S: Final = 10.0
"""For a worker to end after that."""
_STORE_PAUSE_S: Final = 2.0
_SAME: Final = "the cluster refuses its credentials, and has no others"


class Rotations:
    """Finds credentials that have changed, has them sent, and records the outcome."""

    def __init__(
        self,
        *,
        store: DocumentStore,
        outbox: Outbox,
        questions: Questions,
        vims: Vims,
        ring: KeyRing,
        clock: Clock,
    ) -> None:
        self._store, self._outbox, self._questions = store, outbox, questions
        self._vims, self._ring, self._clock = vims, ring, clock

    async def look(self) -> None:
        """Ask once for each management cluster; begin the rotations of refused credentials. Raises StoreUnavailable."""
        refused = await self._refused()
        asked: ByVim[ExpectedKubeconfig] = by_management()
        async for cluster in idle_clusters(self._store):
            credentials, rotation = cluster.workload.credentials, cluster.record.internals.rotation
            if credentials is None or (rotation is not None and not rotation.may_begin_again(self._clock.now())):
                continue
            if cluster.workload.capi.sender == "package":
                continue  # its script alone knows what the receiver has, and runs in operations
            version = credentials.secret_resource_version
            if cluster.workload.vim_id in refused:
                await self._begin(cluster, version, is_refused=True)
                continue
            expected = ExpectedKubeconfig(
                vnf_instance_id=cluster.stored.id,
                revision=cluster.stored.revision,
                cluster=cluster.workload.cluster,
                resource_version=version,
            )
            asked.add(cluster.management, expected)
        for vim, expected_there in asked.questions():
            await self._questions.ask(WatchKubeconfigs(vim=vim, expected=expected_there), vim.vim_id)

    async def begin_found(self, delivery: Delivery) -> Verdict:
        """Begin the rotations of the Secrets that were written."""
        changed = delivery.envelope.data
        assert isinstance(changed, KubeconfigsChanged)
        try:
            for finding in changed.findings:
                stored = await self._store.get(COLLECTION, finding.vnf_instance_id)
                # Written since the question: an operation runs, or has sent them, or this event is delivered twice.
                if stored is None or stored.revision != finding.revision:
                    continue
                record = InstanceRecord.from_document(stored.body)
                management, workload = management_of(record), record.internals.workload
                if management is not None and workload is not None:
                    await self._begin(IdleCluster(stored, record, workload, management), finding.resource_version)
        except StoreUnavailable as error:
            log.debug("rotations_not_begun", reason=str(error))
            return Again(_STORE_PAUSE_S)
        return Ack()

    async def record_reply(self, delivery: Delivery) -> Verdict:
        """Record what mgmt-executor has answered, and let operations go on."""
        reply = delivery.envelope
        try:
            await self._record(reply)
        except StoreUnavailable as error:
            log.debug("rotation_not_recorded", reason=str(error))
            return Again(_STORE_PAUSE_S)
        return Ack()

    async def _refused(self) -> frozenset[str]:
        """Return the ids of the VIMs that answer and do not accept their access data, or are otherwise in error."""
        try:
            found = await self._vims.list({"type": ["kubernetes"], "status": ["ERROR"]})
        except OutsideUnavailable as error:
            log.info("refused_credentials_not_known", reason=str(error))
            return frozenset()
        return frozenset(str(vim["id"]) for vim in found)

    async def _begin(self, cluster: IdleCluster, version: str, *, is_refused: bool = False) -> None:
        """Store the rotation with its command, unless the instance was written meanwhile."""
        stored, record, workload = cluster.stored, cluster.record, cluster.workload
        deadline, before = self._clock.now() + timedelta(seconds=_LIMIT_S), record.internals.rotation
        rotation = Rotation(
            id=derived_id("rotation", stored.id, version),
            until=rfc3339(deadline + timedelta(seconds=_END_S)),
            tries=1 if before is None else before.tries + 1,
            is_refused=is_refused,
        )
        command = rotation_command(record)
        assert command is not None, "an idle cluster has a management cluster"
        envelope = Envelope[Message](
            data=command,
            source=SOURCE,
            # Another one for each try: the id of an answered command is answered the same way again.
            id=derived_id("rotate", rotation.id, rotation.until),
            subject=stored.id,
            operationid=rotation.id,
            stepid=STEP,
            attempt=rotation.tries,
            deadline=deadline,
        )
        fields = {FIELD: rotation.model_dump(mode="json", by_alias=True, exclude_none=True)}
        try:
            await self._outbox.update(COLLECTION, stored.id, fields, if_revision=stored.revision, events=[envelope])
        except RevisionConflict:
            return
        log.info(
            "rotation_begun",
            vnf_instance_id=stored.id,
            cluster=workload.cluster.name,
            resource_version=version,
            is_refused=is_refused,
            tries=rotation.tries,
        )

    @repeat_lost_writes
    async def _record(self, reply: Envelope[Message]) -> None:
        stored = await self._store.get(COLLECTION, reply.subject)
        record = InstanceRecord.from_document(stored.body) if stored is not None else None
        rotation = record.internals.rotation if record is not None else None
        if stored is None or record is None or rotation is None:
            return
        if (rotation.id, rotation.tries) != (reply.operationid, reply.attempt) or rotation.problem is not None:
            return
        after = self._after(record, rotation, reply.data)
        await self._store.replace(COLLECTION, stored.id, after.document(self._ring), if_revision=stored.revision)
        _log_outcome(stored.id, after.internals.rotation, reply.data)

    def _after(self, record: InstanceRecord, rotation: Rotation, outcome: Message) -> InstanceRecord:
        now = rfc3339(self._clock.now())
        if isinstance(outcome, CredentialsSent):
            workload = record.internals.workload
            if workload is not None:
                record = record.with_internals(workload=workload.model_copy(update={"credentials": outcome}))
            if not (outcome.is_unchanged and rotation.is_refused):
                return record.with_internals(rotation=None)
        problem = outcome.detail if isinstance(outcome, CommandFailed) else _SAME
        return record.with_internals(rotation=rotation.model_copy(update={"problem": problem, "until": now}))


def rotation_command(record: InstanceRecord) -> SendCredentials | None:
    """Return the command of a rotation; None if the instance has no workload cluster. A rotation that runs has sent the same one."""
    workload, management = record.internals.workload, management_of(record)
    if workload is None or management is None:
        return None
    capi = workload.capi
    return SendCredentials(
        vnf_instance_id=record.vnf.id,
        vnfd_id=record.vnf.vnfd_id,
        vim=management,
        cluster=workload.cluster,
        mode=capi.credentials,
        cluster_role=capi.cluster_role,
        callback_url=capi.callback_url,
        register_vim=workload.vim_id is not None,
        vim_name=capi.vim_name or default_vim_name(workload.cluster, record.vnf.id),
        # Never: an operator may have made another VIM the default since.
        vim_default=False,
        is_rotation=True,
    )


def _log_outcome(vnf_instance_id: str, rotation: Rotation | None, outcome: Message) -> None:
    if rotation is not None:
        log.warning("rotation_failed", vnf_instance_id=vnf_instance_id, tries=rotation.tries, reason=rotation.problem)
    elif isinstance(outcome, CredentialsSent) and outcome.is_unchanged:
        log.info("credentials_unchanged", vnf_instance_id=vnf_instance_id, content_sha256=outcome.content_sha256)
    elif isinstance(outcome, CredentialsSent):
        log.info("credentials_rotated", vnf_instance_id=vnf_instance_id, content_sha256=outcome.content_sha256)
