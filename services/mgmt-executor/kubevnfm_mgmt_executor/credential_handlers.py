"""The inbox for credentials of workload clusters: the driver ``capi-credentials`` (capi.md chapters 9 and 10)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final

from kubevnfm_clients.ports import VimDirectory
from kubevnfm_events.credentials import (
    CredentialsSent,
    CredentialsWithdrawn,
    SendCredentials,
    WithdrawCredentials,
)
from kubevnfm_kit.errors import VnfmError
from kubevnfm_secrets import KeyRing
from kubevnfm_worker.outcome import Done, Outcome, StepContext

from kubevnfm_mgmt_executor.domain.capi import request
from kubevnfm_mgmt_executor.domain.capi.answers import LONGEST_S
from kubevnfm_mgmt_executor.domain.capi.clusters import Credentials
from kubevnfm_mgmt_executor.domain.capi.collecting import ROTATION_S, Collector
from kubevnfm_mgmt_executor.domain.capi.delivery import Progress, Sender
from kubevnfm_mgmt_executor.domain.capi.journaled import collected, hash_of, node_of, performed
from kubevnfm_mgmt_executor.domain.capi.quoting import Quotation
from kubevnfm_mgmt_executor.domain.capi.request import Collected
from kubevnfm_mgmt_executor.domain.ports import Claim, Earlier, Journal
from kubevnfm_mgmt_executor.domain.recorder import NodeId, Recorder, TaskResult

_SEND: Final = "send_credentials"
_WITHDRAW: Final = "withdraw_credentials"


@dataclass(frozen=True)
class CredentialHandlers:
    """Sends credentials to a receiver, and has it erase them.

    Credentials are only in the memory of a call (CR-064): the journal has their SHA-256.
    """

    collector: Collector
    sender: Sender
    vims: VimDirectory
    journal: Journal
    key_ring: KeyRing
    receiver_url: str | None
    allowed_hosts: Collection[str]

    async def send_credentials(self, command: SendCredentials, context: StepContext) -> Outcome:
        """Collect the credentials and send them; a repeat sends the same request, which changes nothing (CR-078)."""
        url = self._url(command.callback_url, command.vnf_instance_id)
        self.sender.check()
        recorder, node = self._recorder(command, context), node_of(command.cluster)
        recorder.total = 2

        # A rotation that fails is repeated in the next round, and operations of the instance wait for it.
        longest_s = ROTATION_S if command.is_rotation else LONGEST_S
        collector = replace(self.collector, limit_s=min(self.collector.limit_s, longest_s))

        async def collect(progress: Progress) -> Collected:
            return await collector.collect(command, await self.vims.connection(command.vim), progress)

        found = await collected(recorder, command.cluster, context.operation_id, collect)
        credentials = found.credentials
        if command.is_rotation and await self._is_accepted(recorder, node, credentials):
            await recorder.remark(_SEND, "the receiver has these credentials already")
            return Done(_sent(found, is_unchanged=True))
        sent = request.created(command, found, url=url, operation_id=context.operation_id)

        async def send(_: Earlier | None, progress: Progress) -> tuple[None, TaskResult]:
            quoted = Quotation(credentials.secrets(self.key_ring))
            accepted = await self.sender.deliver(sent, quoted=quoted, progress=progress, longest_s=longest_s)
            return None, TaskResult(
                changed=accepted.status != 200,
                facts={"status": accepted.status, "contentSha256": hash_of(credentials)},
                remark=f"the receiver answered {accepted.status}",
            )

        await performed(recorder, node, _SEND, send)
        return Done(_sent(found))

    async def withdraw_credentials(self, command: WithdrawCredentials, context: StepContext) -> Outcome:
        """Send DELETED (CR-072, CR-105); nothing if the uid of the cluster cannot be known any more."""
        recorder, node = self._recorder(command, context), node_of(command.cluster)
        recorder.total = 1
        uid = command.cluster_uid

        async def withdraw(_: Earlier | None, progress: Progress) -> tuple[None, TaskResult]:
            nonlocal uid
            url = self._url(command.callback_url, command.vnf_instance_id)
            uid = uid or await self._uid(command)
            if uid is None:
                return None, TaskResult(changed=False, remark="there is no such cluster")
            sent = request.deleted(command, url=url, operation_id=context.operation_id, uid=uid)
            accepted = await self.sender.deliver(sent, quoted=Quotation(()), progress=progress)
            return None, TaskResult(remark=f"the receiver answered {accepted.status}")

        problem = ""
        try:
            await performed(recorder, node, _WITHDRAW, withdraw)
        except VnfmError as error:
            if not command.force:
                raise
            problem = f"{error.title}: {error}"
        return Done(CredentialsWithdrawn(cluster_uid=uid, problem=problem))

    async def _is_accepted(self, recorder: Recorder, node: NodeId, credentials: Credentials) -> bool:
        """Return whether the receiver has accepted these credentials last (CR-062)."""
        last = await recorder.last(node, _SEND)
        # A try that did not end may have replaced what was accepted before it.
        return last is not None and last.state == "done" and last.facts.get("contentSha256") == hash_of(credentials)

    def _url(self, given: str | None, vnf_instance_id: str) -> str:
        return request.receiver_url(
            given,
            configured=self.receiver_url,
            allowed_hosts=self.allowed_hosts,
            vnf_instance_id=vnf_instance_id,
        )

    async def _uid(self, command: WithdrawCredentials) -> str | None:
        obj = await self.collector.find_cluster(await self.vims.connection(command.vim), command.cluster)
        return None if obj is None else str((obj.get("metadata") or {}).get("uid") or "") or None

    def _recorder(self, command: SendCredentials | WithdrawCredentials, context: StepContext) -> Recorder:
        claim = Claim(context.operation_id, context.message_id, context.fencing)
        return Recorder(self.journal, claim, vnf_instance_id=command.vnf_instance_id, publish=context.publish)


def _sent(found: Collected, *, is_unchanged: bool = False) -> CredentialsSent:
    return CredentialsSent(
        cluster_uid=found.facts.uid,
        endpoint=found.facts.endpoint,
        kubernetes_version=found.kubernetes_version,
        contract=found.facts.contract,
        infrastructure_provider=found.facts.infrastructure_provider,
        content_sha256=hash_of(found.credentials),
        auth_type=found.credentials.auth_type,
        expires_at=found.credentials.expires_at,
        secret_resource_version=found.read_version,
        is_unchanged=is_unchanged,
    )
