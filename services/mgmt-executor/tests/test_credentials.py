"""The sender of credentials: from a Secret in the management cluster to a receiver, over two clusters of the lab."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubevnfm_clients import callback
from kubevnfm_clients.cluster_api import ClusterApi
from kubevnfm_clients.kubeconfig import kubeconfig_connection
from kubevnfm_events import Event, VimConnection
from kubevnfm_events.credentials import CredentialsSent, CredentialsWithdrawn, SendCredentials, WithdrawCredentials
from kubevnfm_events.mgmt import TaskProgressed
from kubevnfm_kit.clock import SystemClock
from kubevnfm_kit.errors import VnfmError
from kubevnfm_kit.tls import ClientTls
from kubevnfm_mgmt_executor.adapters import journal
from kubevnfm_mgmt_executor.adapters.receivers import HttpReceivers
from kubevnfm_mgmt_executor.credential_handlers import CredentialHandlers
from kubevnfm_mgmt_executor.domain.capi.collecting import Collector
from kubevnfm_mgmt_executor.domain.capi.delivery import Rhythm, Sender
from kubevnfm_mgmt_executor.domain.capi.errors import (
    CallbackNotConfigured,
    CallbackRefused,
    CallbackUnreachable,
    CallbackUrlRefused,
    ClusterMissing,
    KubeconfigRefused,
    WaitedTooLong,
    WorkloadRefused,
)
from kubevnfm_mgmt_executor.domain.capi.request import receiver_url
from kubevnfm_secrets import KeyRing, revealed
from kubevnfm_store.query import Query
from kubevnfm_store.sqlite.store import SqliteStore
from kubevnfm_worker.outcome import Done, StepContext
from servers.own_receiver import INSTANCE, MASTER, Receiver
from worlds.given_vims import GivenVims
from worlds.workload_credentials import CLUSTER, SECRET, CapiSite

RING = KeyRing.from_text(KeyRing.new_key())


@dataclass
class Site:
    """The handlers, the clusters and a receiver."""

    handlers: CredentialHandlers
    capi: CapiSite
    receiver: Receiver
    store: SqliteStore
    connect: Callable[[VimConnection], ClusterApi]
    pauses: list[float]
    news: list[TaskProgressed] = field(default_factory=list)

    async def send(self, *, operation: str = "op-1", attempt: int = 1, **changes: Any) -> CredentialsSent:
        command = SendCredentials(
            vnf_instance_id=INSTANCE,
            vnfd_id="vnfd-1",
            vim=self.capi.vim,
            cluster=changes.pop("cluster", CLUSTER),
            vim_name="edge-vim",
            **changes,
        )
        outcome = await self.handlers.send_credentials(command, self.context(operation, attempt))
        assert isinstance(outcome, Done)
        assert isinstance(outcome.event, CredentialsSent)
        return outcome.event

    async def withdraw(self, *, operation: str = "op-9", **changes: Any) -> CredentialsWithdrawn:
        command = WithdrawCredentials(
            vnf_instance_id=INSTANCE, vnfd_id="vnfd-1", vim=self.capi.vim, cluster=CLUSTER, **changes
        )
        outcome = await self.handlers.withdraw_credentials(command, self.context(operation, 1))
        assert isinstance(outcome, Done)
        assert isinstance(outcome.event, CredentialsWithdrawn)
        return outcome.event

    def context(self, operation: str, attempt: int) -> StepContext:
        async def publish(event: Event) -> None:
            assert isinstance(event, TaskProgressed)
            self.news.append(event)

        return StepContext(f"{operation}/{attempt}", operation, "step", attempt, INSTANCE, None, attempt, publish)

    def messages(self) -> list[str]:
        return [one.message for one in self.news]

    def changed(self, **changes: Any) -> Site:
        from dataclasses import replace

        return replace(self, handlers=replace(self.handlers, **changes))


@pytest.fixture
async def capi() -> AsyncIterator[CapiSite]:
    async with CapiSite.start(RING) as capi:
        yield capi


@pytest.fixture
async def site(capi: CapiSite, tmp_path: Path) -> AsyncIterator[Site]:
    import aiohttp

    pauses: list[float] = []
    now = 0.0

    async def pause(seconds: float) -> None:
        nonlocal now
        now += seconds
        pauses.append(seconds)
        await asyncio.sleep(0)

    rhythm = Rhythm(pause=pause, monotonic=lambda: now, jitter=lambda: 1.0)
    async with (
        SqliteStore.open(tmp_path / "store.db") as store,
        Receiver.start() as receiver,
        HttpReceivers.connected(ClientTls()) as receivers,
        aiohttp.ClientSession() as session,
    ):
        await store.ensure_indexes(journal.TASKS, journal.INDEXES)

        def connect(vim: VimConnection) -> ClusterApi:
            return ClusterApi(session, vim, RING, timeout_s=30.0)

        handlers = CredentialHandlers(
            collector=Collector(connect, rhythm),
            sender=Sender(receivers, SystemClock(), [MASTER], rhythm),
            vims=GivenVims(),
            journal=journal.StoredJournal(store, SystemClock()),
            key_ring=RING,
            receiver_url=receiver.url,
            allowed_hosts=frozenset(),
        )
        yield Site(handlers, capi, receiver, store, connect, pauses)


@pytest.fixture
async def ready(site: Site) -> Site:
    """The same, with the objects of a cluster that answers."""
    await site.capi.make_cluster()
    await site.capi.make_secret()
    return site


async def test_a_token_of_the_workload_cluster_is_sent(ready: Site) -> None:
    """CR-059, CR-060, CR-061: the receiver gets a token, and no credentials of the administrator."""
    sent = await ready.send()

    (body,) = ready.receiver.bodies
    uid = body["cluster"]["uid"]
    assert {name: body[name] for name in ("schemaVersion", "event", "vnfInstanceId", "vnfLcmOpOccId", "vnfdId")} == {
        "schemaVersion": "1",
        "event": "CREATED",
        "vnfInstanceId": INSTANCE,
        "vnfLcmOpOccId": "op-1",
        "vnfdId": "vnfd-1",
    }
    assert body["managementVimId"] == "vim-management"
    endpoint = ready.capi.workload.endpoint
    assert body["cluster"] == {
        "name": "edge",
        "namespace": "default",
        "uid": uid,
        "endpoint": endpoint,
        "kubernetesVersion": "v1.31.4",
        "contract": "v1beta2",
        "infrastructureProvider": "openstack",
    }
    assert (body["secret"]["name"], body["secret"]["type"]) == (SECRET, "cluster.x-k8s.io/secret")
    assert body["credentials"]["authType"] == "bearer_token"
    vim = {"register": True, "name": "edge-vim", "type": "ETSINFV.KUBERNETES.V_1", "isDefault": False, "extra": {}}
    assert body["vim"] == vim
    kubeconfig = ready.receiver.kubeconfig()
    (headers, _) = ready.receiver.requests[0]
    sha256 = callback.sha256_hex(kubeconfig.encode())
    assert headers[callback.IDEMPOTENCY_KEY] == f"op-1:{uid}:{sha256[:16]}"
    assert sent == CredentialsSent(
        cluster_uid=uid,
        endpoint=endpoint,
        kubernetes_version="v1.31.4",
        contract="v1beta2",
        infrastructure_provider="openstack",
        content_sha256=sha256,
        auth_type="bearer_token",
        secret_resource_version=await ready.capi.version(),
    )
    assert "client-key-data" not in kubeconfig
    # The token works, and is that of the account which was made for it.
    connection = kubeconfig_connection(kubeconfig)
    assert (await ready.connect(connection).get("/api/v1/namespaces")).is_success
    made = await ready.connect(connection).get("/api/v1/namespaces/kubevnfm-system/serviceaccounts/kubevnfm")
    assert made.body["metadata"]["labels"] == {"app.kubernetes.io/managed-by": "kubevnfm"}


async def test_the_kubeconfig_of_the_secret_is_sent_as_it_is_if_that_is_wanted(ready: Site) -> None:
    """CR-062."""
    sent = await ready.send(mode="admin_kubeconfig")

    assert ready.receiver.kubeconfig() == ready.capi.kubeconfig()
    credentials = ready.receiver.bodies[0]["credentials"]
    assert (credentials["authType"], sent.auth_type) == ("client_certificate", "client_certificate")
    assert sent.expires_at == credentials["expiresAt"]
    namespace = await ready.connect(kubeconfig_connection(ready.capi.kubeconfig())).get(
        "/api/v1/namespaces/kubevnfm-system"
    )
    assert namespace.status == 404


async def test_a_repeat_sends_the_same_request_and_changes_nothing(ready: Site) -> None:
    """CR-078: also if a controller has written the Secret meanwhile."""
    first = await ready.send()
    await ready.capi.touch_secret()
    again = await ready.send(attempt=2)

    assert again == first.model_copy(update={"secret_resource_version": await ready.capi.version()})
    (one, body), (two, same) = ready.receiver.requests
    assert body == same
    assert one[callback.IDEMPOTENCY_KEY] == two[callback.IDEMPOTENCY_KEY]
    assert one[callback.NONCE] != two[callback.NONCE]
    assert "the receiver answered 200" in ready.messages()
    assert len(ready.receiver.by_key) == 1


# --- rotation ---------------------------------------------------------------------------------------------------------


async def test_a_rotation_sends_a_renewed_kubeconfig_once(ready: Site) -> None:
    """CR-062: what was sent last is in the journal; a Secret that was only touched is not sent."""
    first = await ready.send(mode="admin_kubeconfig")
    rotate: dict[str, Any] = {"mode": "admin_kubeconfig", "is_rotation": True}
    await ready.capi.touch_secret()
    same = await ready.send(operation="rotation-1", **rotate)
    assert same.is_unchanged
    assert (same.content_sha256, same.secret_resource_version) == (first.content_sha256, await ready.capi.version())
    assert len(ready.receiver.requests) == 1
    assert "the receiver has these credentials already" in ready.messages()

    renewed = await ready.capi.renew_secret()
    sent = await ready.send(operation="rotation-2", **rotate)
    again = await ready.send(operation="rotation-2", attempt=2, **rotate)
    assert (sent.is_unchanged, again.is_unchanged) == (False, True)
    assert sent.content_sha256 == again.content_sha256 == callback.sha256_hex(renewed.encode())
    (_, body) = ready.receiver.bodies
    assert (body["event"], body["secret"]["resourceVersion"]) == ("ROTATED", await ready.capi.version())
    assert ready.receiver.kubeconfig() == renewed


async def test_a_rotation_that_was_killed_after_sending_sends_the_same_request(ready: Site) -> None:
    """CR-062, CR-078: the journal does not know the end, so the receiver does; then it is as if sent once."""
    await ready.send(mode="admin_kubeconfig")
    await ready.capi.renew_secret()
    rotate: dict[str, Any] = {"mode": "admin_kubeconfig", "is_rotation": True, "operation": "rotation-1"}
    # The receiver stores it, and the process ends before it sees the answer.
    ready.receiver.hangs = True
    killed = asyncio.create_task(ready.send(**rotate))
    await ready.receiver.hanging.wait()
    killed.cancel()
    with pytest.raises(asyncio.CancelledError):
        await killed
    ready.receiver.hangs = False
    await ready.capi.touch_secret()
    sent = await ready.send(attempt=2, **rotate)
    assert not sent.is_unchanged
    assert "the receiver answered 200" in ready.messages()
    (_, one, two) = ready.receiver.requests
    assert one[1] == two[1]
    assert one[0][callback.IDEMPOTENCY_KEY] == two[0][callback.IDEMPOTENCY_KEY]
    assert (await ready.send(**{**rotate, "operation": "rotation-2"})).is_unchanged


async def test_of_a_service_account_a_new_token_is_sent_and_a_renewed_certificate_is_not(ready: Site) -> None:
    """CR-062: the administrator's certificate is no part of these credentials; a token Secret that was deleted is made again."""
    first = await ready.send()
    await ready.capi.renew_secret()
    assert (await ready.send(operation="rotation-1", is_rotation=True)).is_unchanged
    admin = ready.connect(kubeconfig_connection(ready.capi.kubeconfig()))
    answer = await admin.call("DELETE", "/api/v1/namespaces/kubevnfm-system/secrets/kubevnfm-token")
    assert answer.is_success
    sent = await ready.send(operation="rotation-2", is_rotation=True)
    assert (sent.is_unchanged, sent.content_sha256 == first.content_sha256) == (False, False)
    assert ready.receiver.bodies[-1]["event"] == "ROTATED"
    namespaces = await ready.connect(kubeconfig_connection(ready.receiver.kubeconfig())).get("/api/v1/namespaces")
    assert namespaces.is_success


async def test_a_rotation_gives_up_soon_because_operations_wait_for_it(ready: Site) -> None:
    """CR-062: the next round repeats it."""
    await ready.send(mode="admin_kubeconfig")
    await ready.capi.renew_secret()
    ready.receiver.answers += [(503, {"Retry-After": "5"}, {})] * 9
    with pytest.raises(CallbackUnreachable, match="503"):
        await ready.send(operation="rotation-1", mode="admin_kubeconfig", is_rotation=True)
    assert sum(ready.pauses) <= 20
    ready.receiver.answers.clear()
    ready.pauses.clear()
    ready.capi.faults.add(part="kubernetes", verb="get /readyz", status=500)
    with pytest.raises(WaitedTooLong):
        await ready.send(operation="rotation-1", mode="admin_kubeconfig", is_rotation=True)
    assert sum(ready.pauses) <= 20


async def test_no_secret_is_in_the_journal_the_progress_or_a_log(
    ready: Site, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """CR-064, also if a receiver repeats the request in its answer."""
    ready.receiver.answers.append((500, {}, {"detail": "boom"}))
    await ready.send()
    kubeconfig = ready.receiver.kubeconfig()
    echo = ready.receiver.requests[0][1].decode()
    token = str(revealed(kubeconfig_connection(kubeconfig).access_info, RING)["bearer_token"])
    ready.receiver.answers += [
        (500, {}, {"detail": f"token {token}"}),
        (500, {}, {"detail": f"{'x' * 490}{token}"}),
        (422, {}, {"detail": f"body {echo[-900:]}{token}"}),
    ]
    with pytest.raises(CallbackRefused) as refused:
        await ready.send(operation="op-2")

    documents = [one.body for one in await ready.store.find(journal.TASKS, Query())]
    assert {one["task"]: one["facts"].get("contentSha256") for one in documents} == dict.fromkeys(
        ("collect_credentials", "send_credentials"), callback.sha256_hex(kubeconfig.encode())
    )
    captured = capsys.readouterr()
    seen = "\n".join(
        [json.dumps(documents), *map(repr, ready.news), str(refused.value), captured.out, captured.err, caplog.text]
    )
    encoded = ready.receiver.bodies[0]["credentials"]["kubeconfig"]
    key = callback.instance_key(MASTER, INSTANCE)
    admin = ready.capi.kubeconfig()
    private = yaml.safe_load(admin)["users"][0]["user"]["client-key-data"]
    for secret in (token, token[:40], encoded[40:120], kubeconfig, key.hex(), private[40:100]):
        assert secret not in seen


# --- waiting ----------------------------------------------------------------------------------------------------------


async def test_a_cluster_that_does_not_answer_yet_is_waited_for(ready: Site) -> None:
    """CR-060: the progress shows what is waited for, and the last error."""
    ready.capi.faults.add(part="kubernetes", verb="get /readyz", status=500, times=3)
    await ready.send()
    waits = [message for message in ready.messages() if "answered 500" in message]
    assert len(waits) == 3
    assert ready.capi.workload.endpoint in waits[0]


async def test_a_cluster_that_stays_silent_fails_after_two_minutes_with_the_last_error(ready: Site) -> None:
    """CR-060: nothing is sent."""
    ready.capi.faults.add(part="kubernetes", verb="get /readyz", status=500)
    with pytest.raises(WaitedTooLong, match="answered 500"):
        await ready.send()
    assert 100 < sum(ready.pauses) <= 120
    assert not ready.receiver.requests


async def test_a_missing_cluster_or_secret_is_named(site: Site) -> None:
    """CR-059."""
    await site.capi.make_cluster()
    with pytest.raises(WaitedTooLong, match="edge-kubeconfig does not exist yet"):
        await site.send()
    with pytest.raises(ClusterMissing, match="default/other"):
        await site.send(cluster=CLUSTER.model_copy(update={"name": "other"}))
    assert not site.receiver.requests


async def test_a_package_of_the_older_contract_is_read_in_its_version(site: Site) -> None:
    """CR-037."""
    await site.capi.make_cluster(version="v1beta1")
    await site.capi.make_secret()
    sent = await site.send(cluster=CLUSTER.model_copy(update={"api_version": "cluster.x-k8s.io/v1beta1"}))
    assert sent.contract == site.receiver.bodies[0]["cluster"]["contract"] == "v1beta1"


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"type": "Opaque"}, "type cluster.x-k8s.io/secret expected"),
        ({"metadata": {"name": SECRET, "namespace": "default"}}, "label cluster.x-k8s.io/cluster-name: edge expected"),
        ({"data": {"other": "eA=="}}, "data.value: a kubeconfig expected"),
        ({"data": {"value": "eHg="}}, "data.value: a mapping expected"),
    ],
)
async def test_a_secret_that_cluster_api_has_not_made_is_refused(
    site: Site, changes: dict[str, Any], place: str
) -> None:
    """CR-059."""
    await site.capi.make_cluster()
    await site.capi.make_secret(**changes)
    with pytest.raises(KubeconfigRefused, match=place):
        await site.send()
    assert not site.receiver.requests


def with_user(**user: str) -> Callable[[dict[str, Any]], None]:
    def change(config: dict[str, Any]) -> None:
        config["users"][0]["user"].update(user)

    return change


def second_user(config: dict[str, Any]) -> None:
    config["users"].append({"name": "other", "user": {"token": "x"}})


def no_context(config: dict[str, Any]) -> None:
    del config["current-context"]


def other_server(config: dict[str, Any]) -> None:
    config["clusters"][0]["cluster"]["server"] = "https://10.9.9.9:6443"


def ca_file(config: dict[str, Any]) -> None:
    config["clusters"][0]["cluster"]["certificate-authority"] = "/etc/ca.crt"


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (with_user(tokenFile="/x"), "tokenFile"),
        (with_user(exec="x"), "exec"),
        (with_user(**{"client-key": "/x"}), "client-key"),
        (second_user, "exactly one user expected, 2 found"),
        (no_context, "contexts"),
        (other_server, "control plane endpoint"),
        (ca_file, "certificate-authority"),
    ],
)
async def test_a_kubeconfig_that_is_not_of_one_administrator_is_refused(
    site: Site, change: Callable[[dict[str, Any]], None], place: str
) -> None:
    """CR-059, CR-063."""
    config = yaml.safe_load(site.capi.kubeconfig())
    change(config)
    await site.capi.make_cluster()
    await site.capi.make_secret(yaml.safe_dump(config))
    with pytest.raises(KubeconfigRefused, match=place):
        await site.send()
    assert not site.receiver.requests


async def test_the_role_of_the_account_can_be_chosen_and_must_exist(ready: Site) -> None:
    """CR-061."""
    with pytest.raises(WorkloadRefused, match="no ClusterRole nothing"):
        await ready.send(cluster_role="nothing")
    await ready.send()
    await ready.send(operation="op-2", cluster_role="view")

    admin = ready.connect(kubeconfig_connection(ready.capi.kubeconfig()))
    binding = await admin.get("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/kubevnfm")
    assert binding.body["roleRef"]["name"] == "view"


async def test_a_binding_of_that_name_that_is_not_ours_stays(ready: Site) -> None:
    """CR-061: its name alone is no reason to replace it."""
    admin = ready.connect(kubeconfig_connection(ready.capi.kubeconfig()))
    bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
    theirs = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "kubevnfm"},
        "roleRef": role,
        "subjects": [],
    }
    assert (await admin.call("POST", bindings, body=theirs)).is_success
    with pytest.raises(WorkloadRefused, match="ClusterRoleBinding kubevnfm of another party"):
        await ready.send()
    assert (await admin.get(f"{bindings}/kubevnfm")).body["roleRef"] == role


# --- the receiver -----------------------------------------------------------------------------------------------------


async def test_faults_of_the_receiver_are_retried_and_shown(ready: Site) -> None:
    """The rows of capi.md chapter 10 for 408, 429, 503 and 5xx."""
    ready.receiver.answers += [
        (408, {}, {}),
        (429, {"Retry-After": "17"}, {}),
        (503, {"Retry-After": "3"}, {}),
        (500, {}, {"detail": "disk full"}),
        (409, {}, {"type": "nonce-used"}),
    ]
    await ready.send()
    assert ready.pauses == [1, 17, 3, 8, 0]
    assert len(ready.receiver.requests) == 6
    assert len({headers[callback.NONCE] for headers, _ in ready.receiver.requests}) == 6
    assert len({headers[callback.IDEMPOTENCY_KEY] for headers, _ in ready.receiver.requests}) == 1
    said = r"waits since 20\S+ for the receiver \(at most 8 tries, or 300 s .*\): try 4, after 21 s: .*disk full.*; next try in 8 s"
    assert [message for message in ready.messages() if re.search(said, message)], ready.messages()


async def test_a_receiver_that_stays_broken_is_given_up(ready: Site) -> None:
    ready.receiver.answers += [(500, {}, {"detail": "disk full"})] * 8
    with pytest.raises(CallbackUnreachable, match=r"disk full \(8 tries in \d+ s\)"):
        await ready.send()
    assert len(ready.receiver.requests) == 8


@pytest.mark.parametrize("status", [400, 403, 409, 413, 415, 422])
async def test_a_refusal_ends_the_step_with_the_receivers_reason(ready: Site, status: int) -> None:
    ready.receiver.answers.append((status, {}, {"detail": "no such tenant"}))
    with pytest.raises(CallbackRefused, match=f"{status}.*no such tenant"):
        await ready.send()
    assert len(ready.receiver.requests) == 1


async def test_a_redirect_is_not_followed(ready: Site) -> None:
    """CR-068."""
    ready.receiver.answers.append((307, {"Location": ready.receiver.url}, {}))
    with pytest.raises(CallbackRefused, match="redirects are not followed"):
        await ready.send()
    assert len(ready.receiver.requests) == 1


async def test_the_clock_is_corrected_by_the_receivers_once(ready: Site) -> None:
    """The row of capi.md chapter 10 for 401."""
    ready.receiver.skew_s = 4000.0
    await ready.send()
    stamps = [int(headers[callback.TIMESTAMP]) for headers, _ in ready.receiver.requests]
    assert len(stamps) == 2
    assert 3990 < stamps[1] - stamps[0] < 4100

    ready.receiver.answers += [(401, {}, {})] * 2
    ready.receiver.skew_s = 0.0
    with pytest.raises(CallbackRefused, match="401"):
        await ready.send(operation="op-2")


async def test_of_two_master_keys_the_second_signs(ready: Site) -> None:
    """CR-070."""
    newer = bytes(range(32, 64))
    ready.receiver.keys = (MASTER, newer)
    from dataclasses import replace

    await ready.changed(sender=replace(ready.handlers.sender, master_keys=[MASTER, newer])).send()
    assert ready.receiver.requests[0][0][callback.KEY_ID] == f"vnf-{INSTANCE}.k2"


async def test_without_receiver_or_keys_nothing_is_collected(site: Site) -> None:
    from dataclasses import replace

    with pytest.raises(CallbackNotConfigured, match="receiver_url"):
        await site.changed(receiver_url=None).send()
    with pytest.raises(CallbackNotConfigured, match="callback_master_keys"):
        await site.changed(sender=replace(site.handlers.sender, master_keys=[])).send()


CONFIGURED = "https://receiver.example/hook/${vnfInstanceId}"


def url_for(given: str | None, *, configured: str | None = CONFIGURED, hosts: tuple[str, ...] = ()) -> str:
    return receiver_url(given, configured=configured, allowed_hosts=frozenset(hosts), vnf_instance_id="i-1")


def test_urls_are_those_of_the_operator_or_on_the_list() -> None:
    """CR-068, CR-069."""
    assert url_for(None) == "https://receiver.example/hook/i-1"
    assert url_for("https://receiver.example/other?x=1") == "https://receiver.example/other?x=1"
    assert url_for("https://Own.example:8443/x", hosts=("own.example:8443",)) == "https://Own.example:8443/x"
    for url in ("http://127.0.0.1:9893/x", "http://localhost/x", "http://[::1]:1/x"):
        assert url_for(None, configured=url) == url


@pytest.mark.parametrize(
    ("url", "hosts", "reason"),
    [
        ("https://other.example/x", (), "not on the list"),
        ("https://own.example:9/x", ("own.example:8443",), "not on the list"),
        ("http://receiver.example/x", (), "https expected"),
        ("https://u:p@receiver.example/x", (), "no user name"),
        ("https://receiver.example/x#y", (), "fragment"),
        ("https://receiver.example/a b", (), "percent-encoded"),
        ("ftp://receiver.example/x", (), "https URL"),
        ("https://receiver.example:x/", (), "a URL expected"),
    ],
)
def test_other_urls_are_refused(url: str, hosts: tuple[str, ...], reason: str) -> None:
    """CR-068, CR-069."""
    with pytest.raises(CallbackUrlRefused, match=reason):
        url_for(url, hosts=hosts)


# --- DELETED ----------------------------------------------------------------------------------------------------------


async def test_deleted_carries_no_credentials(ready: Site) -> None:
    """CR-072, CR-105."""
    sent = await ready.send()
    withdrawn = await ready.withdraw(cluster_uid=sent.cluster_uid, endpoint=sent.endpoint)
    assert withdrawn == CredentialsWithdrawn(cluster_uid=sent.cluster_uid)
    body = ready.receiver.bodies[-1]
    assert (body["event"], "credentials" in body) == ("DELETED", False)
    assert ready.receiver.requests[-1][0][callback.IDEMPOTENCY_KEY] == f"op-9:{sent.cluster_uid}:deleted"


async def test_the_uid_is_read_if_it_was_never_learned_and_without_a_cluster_nothing_is_sent(site: Site) -> None:
    """CR-112."""
    assert await site.withdraw() == CredentialsWithdrawn()
    assert not site.receiver.requests
    await site.capi.make_cluster()
    withdrawn = await site.withdraw(operation="op-10")
    assert withdrawn.cluster_uid == site.receiver.bodies[0]["cluster"]["uid"]


async def test_a_broken_receiver_holds_up_a_graceful_termination_alone(site: Site) -> None:
    site.receiver.answers += [(500, {}, {})] * 16
    with pytest.raises(CallbackUnreachable):
        await site.withdraw(cluster_uid="uid-1")
    forced = await site.withdraw(cluster_uid="uid-1", operation="op-10", force=True)
    assert "answered 500" in forced.problem
    with pytest.raises(VnfmError):
        await site.changed(receiver_url="http://10.0.0.1/x").withdraw(cluster_uid="uid-1")
