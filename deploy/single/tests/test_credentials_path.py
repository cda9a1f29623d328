"""The way of a workload cluster's credentials through the services: Secret -> mgmt-executor -> receiver -> vim-registry -> VIM."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from kubevnfm_bus.inprocess import InProcessBus
from kubevnfm_bus.port import Ack, Delivery, Verdict
from kubevnfm_clients.callback import KEY_ID, PATH, TIMESTAMP, credentials_id, instance_key, signed_headers
from kubevnfm_clients.cluster_api import ClusterApi
from kubevnfm_clients.kubeconfig import kubeconfig_connection
from kubevnfm_clients.logs import HttpCredentials
from kubevnfm_clients.session import internal_session
from kubevnfm_clients.vims import HttpVimDirectory, HttpVims
from kubevnfm_credentials_receiver.wiring import credentials_receiver
from kubevnfm_events import Command, Envelope, Message, VimConnection
from kubevnfm_events.credentials import (
    CredentialsDeleted,
    CredentialsReceived,
    CredentialsRotated,
    CredentialsSent,
    CredentialsWithdrawn,
    SendCredentials,
    WithdrawCredentials,
)
from kubevnfm_events.vim import RegisterReceived, ReleaseVim, VimDeregistered, VimRegistered, VimReleased
from kubevnfm_kit.ids import derived_id, new_id
from kubevnfm_kit.tls import ClientTls
from kubevnfm_lcm_api.lifecycle.workloads.callbacks import awaited_by
from kubevnfm_mgmt_executor.settings import Settings as MgmtExecutorSettings
from kubevnfm_mgmt_executor.wiring import mgmt_executor
from kubevnfm_secrets import KeyRing, revealed
from kubevnfm_store.query import Query
from kubevnfm_store.sqlite.store import SqliteStore
from kubevnfm_vim_registry.settings import Settings as VimRegistrySettings
from kubevnfm_vim_registry.wiring import vim_registry
from kubevnfm_worker.backends import Backends
from pydantic import SecretStr
from servers.certificates import Authority
from servers.vnf_networks import networks
from worlds.given_vims import GivenVims
from worlds.receiver_twins import CREDENTIALS_TOKEN, INSTANCE, MASTER, TOKEN, AwaitingLcm, a_body, receiver_settings
from worlds.workload_credentials import CLUSTER, CapiSite

RING = KeyRing.from_text(KeyRing.new_key())
COLLECTIONS = (
    *("credentials", "callback_nonces", "vims", "tasks"),
    *("inbox_mgmt_executor", "inbox_vim_registry"),
)


class Lcm:
    """The twin of lcm-api: no instance uses a VIM, and no operation runs."""

    async def users(self, vim_id: str) -> Sequence[str]:
        return []

    async def running(self, vnf_instance_id: str) -> str | None:
        return None


class NoPackages:
    async def folder(self, package: object) -> Path:
        raise NotImplementedError

    def stream(self, package: object, path: str) -> AsyncIterator[bytes]:
        raise NotImplementedError


@dataclass
class CredentialsPath:
    """Three services on one bus; the receiver has a CA of its own and asks for a client certificate."""

    capi: CapiSite
    bus: InProcessBus
    store: SqliteStore
    session: aiohttp.ClientSession
    vims: HttpVims
    directory: HttpVimDirectory
    receiver_url: str
    lcm: AwaitingLcm
    envelopes: list[Envelope[Message]] = field(default_factory=list)

    async def keep(self, delivery: Delivery) -> Verdict:
        self.envelopes.append(delivery.envelope)
        return Ack()

    def events(self, kind: type[Message]) -> list[Message]:
        return [one.data for one in self.envelopes if isinstance(one.data, kind)]

    async def ask(self, command: Command, *, step: str, times: int = 2) -> Message:
        """Send a command ``times``, which is once more than necessary, and return its first answer."""
        self.lcm.present = awaited_by(command, "op-1", cluster_uid=None)
        for attempt in range(1, times + 1):
            envelope = Envelope(
                command, source="/t", subject=INSTANCE, operationid="op-1", stepid=step, attempt=attempt
            )
            await self.bus.publish(envelope)
        async with asyncio.timeout(300):
            while True:
                answers = [one.data for one in self.envelopes if one.stepid == step and one.causationid]
                final = [one for one in answers if type(one).routing_key() != "mgmt.task.progressed"]
                if len(final) >= times:
                    assert all(_as_sent(each) == _as_sent(final[0]) for each in final)
                    return final[0]
                await asyncio.sleep(0.01)

    async def has(self, kind: type[Message], count: int = 1) -> list[Message]:
        """Return the events of a kind, once there are so many."""
        async with asyncio.timeout(300):
            while len(self.events(kind)) < count:  # noqa: ASYNC110 - a plain list has no event to wait for
                await asyncio.sleep(0.01)
        return self.events(kind)

    async def deliver_again(self, *events: Message) -> None:
        """Deliver events of the receiver once more, in this order; return when vim-registry has handled them."""
        for event in events:
            again = next(one for one in self.envelopes if one.data is event)
            await self.bus.publish(replace(again, id=new_id()))


@pytest.fixture
async def path(tmp_path: Path) -> AsyncIterator[CredentialsPath]:
    ca = Authority(tmp_path)
    server, own = ca.issue("receiver"), ca.issue("kubevnfm")
    async with (
        CapiSite.start(RING) as capi,
        SqliteStore.open(tmp_path / "store.db") as store,
        InProcessBus(RING) as bus,
        internal_session(ClientTls(ca.file, own.certificate, own.key)) as session,
    ):
        backends = Backends(bus, store, RING)
        shared: dict[str, Any] = {"port": 0, "internal_token": SecretStr(TOKEN), "keys": SecretStr("unused")}
        mutual = receiver_settings(tls_certificate=server.certificate, tls_key=server.key, tls_client_ca=ca.file)
        lcm = AwaitingLcm()
        async with credentials_receiver(mutual, backends, awaiting=lcm) as receiver:
            url = f"https://127.0.0.1:{receiver.port}"
            executor = MgmtExecutorSettings(
                receiver_url=f"{url}{PATH}",
                receiver_ca_file=ca.file,
                receiver_certificate=own.certificate,
                receiver_key=own.key,
                callback_master_keys=SecretStr(base64.urlsafe_b64encode(MASTER).decode()),
                **shared,
            )
            async with (
                vim_registry(
                    VimRegistrySettings(credentials_token=SecretStr(CREDENTIALS_TOKEN), **shared),
                    backends,
                    users=Lcm(),
                    credentials=HttpCredentials(url, CREDENTIALS_TOKEN, session),
                    operations=Lcm(),
                    networks=networks(),
                ) as registry,
                mgmt_executor(executor, backends, packages=NoPackages(), vims=GivenVims(), networks=networks()),
            ):
                vims_url = f"http://127.0.0.1:{registry.port}"
                one = CredentialsPath(
                    capi,
                    bus,
                    store,
                    session,
                    HttpVims(vims_url, TOKEN, session),
                    HttpVimDirectory(vims_url, TOKEN, session),
                    f"{url}{PATH}",
                    lcm,
                )
                await bus.consume_events("ears", ["#"], one.keep)
                yield one


async def test_a_cluster_becomes_a_vim_and_ceases_to_be_one(
    path: CredentialsPath, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """CR-061, CR-062, CR-068, CR-073, CR-078, CR-079, CR-081, CR-105, CR-117: every command twice gives one call-back that counts, and one VIM."""
    await path.capi.make_cluster()
    await path.capi.make_secret()
    named: dict[str, Any] = {"vnf_instance_id": INSTANCE, "vim": path.capi.vim, "cluster": CLUSTER}

    sent = await path.ask(SendCredentials(vim_name="edge-vim", **named), step="send")
    assert isinstance(sent, CredentialsSent)
    register = a_registration(sent.cluster_uid)
    vim = await path.ask(register, step="register")
    assert isinstance(vim, VimRegistered)
    assert (vim.vim_id, vim.name) == (derived_id("vim", INSTANCE, sent.cluster_uid), "edge-vim")
    assert [one["id"] for one in await path.vims.list({})] == [vim.vim_id]
    assert len(await path.has(CredentialsReceived)) == 1

    # The VIM works, as the service account of kubevnfm and not as the administrator.
    connection = await path.directory.connection(VimConnection(vim_id=vim.vim_id))
    api = ClusterApi(path.session, connection, RING, timeout_s=30.0)
    review = await api.call(
        "POST",
        "/apis/authentication.k8s.io/v1/selfsubjectreviews",
        body={"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"},
    )
    if review.is_success:
        assert review.body["status"]["userInfo"]["username"] == "system:serviceaccount:kubevnfm-system:kubevnfm"
    assert (await api.get("/api/v1/namespaces/kubevnfm-system")).is_success

    connection = await rotated(path, connection, named, vim)

    # The cluster is built again: the VIM waits for the new one, while the receiver erases the earlier credentials.
    assert await path.ask(ReleaseVim(vnf_instance_id=INSTANCE, cluster_name="edge"), step="release") == VimReleased(
        vim_ids=(vim.vim_id,)
    )
    await path.ask(WithdrawCredentials(cluster_uid=sent.cluster_uid, **named), step="withdraw/earlier")
    await path.has(CredentialsDeleted)
    await path.capi.make_cluster_again()
    again = await path.ask(SendCredentials(vim_name="edge-vim", **named), step="send/again")
    assert isinstance(again, CredentialsSent)
    assert again.cluster_uid != sent.cluster_uid
    register = register.model_copy(update={"cluster_uid": again.cluster_uid})
    assert await path.ask(register, step="register/again") == vim
    sent = again

    withdrawn = await path.ask(WithdrawCredentials(cluster_uid=sent.cluster_uid, **named), step="withdraw")
    assert withdrawn == CredentialsWithdrawn(cluster_uid=sent.cluster_uid)
    assert await path.has(VimDeregistered) == [VimDeregistered(vim_ids=(vim.vim_id,))]
    # A rotation that is late restores nothing.
    late = SendCredentials(vim_name="edge-vim", is_rotation=True, **named)
    await path.capi.renew_secret()
    sent_late = await path.ask(late.model_copy(update={"mode": "admin_kubeconfig"}), step="late", times=1)
    assert isinstance(sent_late, CredentialsSent)
    await path.bus.quiet()
    assert len(path.events(CredentialsRotated)) == 1
    assert await path.vims.list({}) == []
    record = await path.store.get("credentials", credentials_id(INSTANCE, sent.cluster_uid))
    assert record is not None
    assert record.body["sealed"] == ""

    documents = [one.body for name in COLLECTIONS for one in await path.store.find(name, Query())]
    captured = capsys.readouterr()
    seen = "\n".join(
        [
            *map(repr, documents),
            *(repr(one.document(RING)) for one in path.envelopes),
            captured.out,
            captured.err,
            caplog.text,
        ]
    )
    token = str(revealed(connection.access_info, RING)["bearer_token"])
    for secret in (token, token[-40:], path.capi.management.admin_token, path.capi.kubeconfig()[-200:]):
        assert secret not in seen


async def test_events_that_come_again_in_any_order_change_nothing(path: CredentialsPath) -> None:
    """CR-072, CR-073, CR-081, CR-084: the receiver publishes each once, and its state decides what vim-registry does."""
    await path.capi.make_cluster()
    await path.capi.make_secret()
    named: dict[str, Any] = {
        "vnf_instance_id": INSTANCE,
        "vim": path.capi.vim,
        "cluster": CLUSTER,
        "vim_name": "edge-vim",
    }

    async def access() -> dict[str, Any]:
        (vim,) = await path.vims.list({})
        connection = await path.directory.connection(VimConnection(vim_id=vim["id"]))
        path.directory.forget(connection)
        return dict(revealed(connection.access_info, RING))

    sent = await path.ask(SendCredentials(**named), step="send")
    assert isinstance(sent, CredentialsSent)
    (created,) = await path.has(CredentialsReceived)
    assert await path.vims.list({}) == [], "an operation registers it"
    await path.ask(a_registration(sent.cluster_uid), step="register", times=1)
    assert set(await access()) == {"bearer_token"}
    # Once: a repeat says that the receiver has them already.
    await path.ask(SendCredentials(**named, mode="admin_kubeconfig", is_rotation=True), step="rotate", times=1)
    (rotated,) = await path.has(CredentialsRotated)
    await path.has(VimRegistered, 2)
    await path.deliver_again(created, rotated, created, created)
    assert set(await access()) == {"client_certificate", "client_key"}, "an old event does not bring old access data"
    assert len(path.events(VimRegistered)) == 2

    withdrawal = WithdrawCredentials(
        vnf_instance_id=INSTANCE, vim=path.capi.vim, cluster=CLUSTER, cluster_uid=sent.cluster_uid
    )
    await path.ask(withdrawal, step="withdraw")
    (deleted,) = await path.has(CredentialsDeleted)
    await path.has(VimDeregistered)
    for order in permutations((created, rotated, deleted)):
        await path.deliver_again(*order)
        assert await path.vims.list({}) == []
    assert len(path.events(VimRegistered)) == 2
    assert len(path.events(VimDeregistered)) == 1


def a_registration(cluster_uid: str) -> RegisterReceived:
    return RegisterReceived(
        vnf_instance_id=INSTANCE,
        cluster_name="edge",
        cluster_uid=cluster_uid,
        vim_name="edge-vim",
        management_vim_id="vim-management",
    )


async def test_a_forged_call_back_reaches_no_service(path: CredentialsPath) -> None:
    """CR-065, CR-066, CR-067: it makes neither a document nor an event."""
    await path.capi.make_cluster()
    await path.capi.make_secret()
    sent = await path.ask(SendCredentials(vnf_instance_id=INSTANCE, vim=path.capi.vim, cluster=CLUSTER), step="send")
    assert isinstance(sent, CredentialsSent)
    await path.ask(a_registration(sent.cluster_uid), step="register", times=1)
    before = [await path.store.find(name, Query()) for name in ("credentials", "vims")]
    body = json.dumps(a_body(uid="uid-of-the-forger", name="other")).encode()

    def signed(key: bytes, **changes: str) -> dict[str, str]:
        headers = signed_headers(
            key, body, vnf_instance_id=INSTANCE, timestamp=int(time.time()), nonce=new_id(), idempotency_key="k"
        )
        return {**headers, **changes}

    wrong_key, right_key = instance_key(bytes(32), INSTANCE), instance_key(MASTER, INSTANCE)
    for status, headers in (
        (401, signed(wrong_key)),
        (401, signed(right_key, **{TIMESTAMP: str(int(time.time()) - 310)})),
        (401, signed(right_key, **{KEY_ID: "vnf-another"})),
        (403, {**signed(instance_key(MASTER, "another")), KEY_ID: "vnf-another"}),
    ):
        async with path.session.post(path.receiver_url, data=body, headers=headers) as response:
            assert response.status == status
    assert [await path.store.find(name, Query()) for name in ("credentials", "vims")] == before
    assert len(path.events(CredentialsReceived)) == 1


def _as_sent(answer: Message) -> Message:
    """Return an answer without whether it was a repeat that found nothing to send (a rotation)."""
    return answer.model_copy(update={"is_unchanged": False}) if isinstance(answer, CredentialsSent) else answer


async def rotated(
    path: CredentialsPath, before: VimConnection, named: dict[str, Any], vim: VimRegistered
) -> VimConnection:
    """CR-062, CR-081: a token Secret that is made again reaches the same VIM; two commands give one event."""
    workload = kubeconfig_connection(path.capi.kubeconfig())
    admin = ClusterApi(path.session, workload, RING, timeout_s=30.0)
    assert (await admin.call("DELETE", "/api/v1/namespaces/kubevnfm-system/secrets/kubevnfm-token")).is_success
    for step, is_unchanged in (("rotate", False), ("rotate-again", True)):
        sent = await path.ask(SendCredentials(vim_name="edge-vim", is_rotation=True, **named), step=step, times=1)
        assert isinstance(sent, CredentialsSent)
        assert sent.is_unchanged == is_unchanged
    assert len(await path.has(CredentialsRotated)) == 1
    ask = VimConnection(vim_id=vim.vim_id)
    async with asyncio.timeout(300):
        while True:
            path.directory.forget(ask)
            after = await path.directory.connection(ask)
            if revealed(after.access_info, RING) != revealed(before.access_info, RING):
                break
            await asyncio.sleep(0.02)
    assert [one["id"] for one in await path.vims.list({})] == [vim.vim_id]
    assert (await ClusterApi(path.session, after, RING, timeout_s=30.0).get("/api/v1/namespaces")).is_success
    return after
