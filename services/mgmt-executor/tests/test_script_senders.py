"""Scripts of packages that send a workload cluster's credentials: what they get, what they reach, and what is kept of them."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from textwrap import dedent
from typing import Any

import aiohttp
import pytest
from contracts.sandbox_kernel import KERNELS, Kernel, has_printed, until
from kubevnfm_clients import callback
from kubevnfm_clients.cluster_api import ClusterApi
from kubevnfm_clients.vnf_networks import addresses_of
from kubevnfm_events import VimConnection
from kubevnfm_events.credentials import CredentialsSent, SendCredentials, WithdrawCredentials
from kubevnfm_events.mgmt import CredentialsSender, RunScript, ScriptDone
from kubevnfm_kit.clock import SystemClock
from kubevnfm_kit.errors import NotFound
from kubevnfm_kit.tls import ClientTls
from kubevnfm_mgmt_executor.adapters.cluster_addresses import serves_at
from kubevnfm_mgmt_executor.adapters.granted import GrantedAddresses
from kubevnfm_mgmt_executor.adapters.receivers import HttpReceivers
from kubevnfm_mgmt_executor.domain.capi.collecting import Collector
from kubevnfm_mgmt_executor.domain.capi.delivery import Sender
from kubevnfm_mgmt_executor.domain.capi.errors import CallbackNotConfigured, ReaderRefused, WaitedTooLong
from kubevnfm_mgmt_executor.domain.scripts import ScriptFailed
from kubevnfm_mgmt_executor.script_senders import ScriptSenders, TrustedCas, as_reader
from kubevnfm_mgmt_executor.wiring import INDEXES
from kubevnfm_secrets import KeyRing, Secret, hide
from kubevnfm_store.query import Query
from kubevnfm_store.sqlite.store import SqliteStore
from packages.package_variants import SAMPLES
from servers.certificates import Authority
from servers.own_receiver import INSTANCE, MASTER, Receiver
from servers.vnf_networks import networks
from worlds.given_vims import GivenVims
from worlds.package_scripts import PACKAGE, PackageScripts
from worlds.workload_credentials import CLUSTER, SECRET, CapiSite

RING = KeyRing.from_text(KeyRing.new_key())
SAMPLE = "Scripts/send_credentials.py"
ACCOUNTS = (
    "/api/v1/namespaces/default/serviceaccounts",
    "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles",
    "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings",
)
PREAMBLE = """
import base64, json, os, pickle, socket, ssl, sys, urllib.error, urllib.request
given = pickle.load(sys.stdin.buffer)
callback = json.load(open(os.environ["KUBEVNFM_CALLBACK_FILE"]))
vim = given["vnf_instance"]["vimConnectionInfo"]["management"]
def say(*words):
    print(*words, file=sys.stderr, flush=True)
def get(path):
    request = urllib.request.Request(vim["interfaceInfo"]["endpoint"] + path)
    request.add_header("Authorization", "Bearer " + vim["accessInfo"]["bearer_token"])
    context = ssl.create_default_context(cadata=vim["interfaceInfo"]["ssl_ca_cert"])
    try:
        return json.load(urllib.request.urlopen(request, context=context, timeout=30))
    except urllib.error.HTTPError as error:
        return error.code
def reach(host, port):
    try:
        socket.create_connection((host, port), timeout=10).close()
        return "reached"
    except OSError as error:
        return type(error).__name__
"""


@dataclass
class World:
    """Two clusters, a receiver, and the handler of scripts."""

    capi: CapiSite
    receiver: Receiver
    store: SqliteStore
    folder: Path
    kernel: Kernel
    senders: ScriptSenders
    scripts: PackageScripts = field(init=False)

    def __post_init__(self) -> None:
        self.scripts = PackageScripts(
            self.folder, self.store, RING, self.kernel.limits(timeout_s=60), senders=self.senders
        )
        (self.scripts.package / "Scripts").mkdir()
        sample = (SAMPLES / "capi-workload-sender" / SAMPLE).read_text(encoding="utf-8")
        (self.scripts.package / SAMPLE).write_text(sample, encoding="utf-8")

    def now_with(self, **changes: Any) -> None:
        """Change how scripts are prepared."""
        self.senders = replace(self.senders, **changes)
        vars(self.scripts.handlers)["_senders"] = self.senders

    async def created(self, code: str | None = None, *, vim: VimConnection | None = None, **changes: Any) -> ScriptDone:
        """Run the sample, or the code, at ``instantiate_end``."""
        sends = SendCredentials(
            vnf_instance_id=INSTANCE,
            vnfd_id="vnfd-1",
            vim=vim or self.capi.vim,
            cluster=CLUSTER,
            vim_name="edge-vim",
            callback_url=changes.pop("callback_url", None),
        )
        return await self._run("instantiate_end", code, CredentialsSender(vim_key="management", sends=sends), **changes)

    async def deleted(
        self,
        code: str | None = None,
        *,
        force: bool = False,
        uid: str | None = "uid-1",
        vim: VimConnection | None = None,
        **changes: Any,
    ) -> None:
        """Run the sample, or the code, at ``terminate_start``."""
        withdraws = WithdrawCredentials(
            vnf_instance_id=INSTANCE, vnfd_id="vnfd-1", vim=vim or self.capi.vim, cluster=CLUSTER, cluster_uid=uid,
            endpoint="https://192.0.2.10:6443", force=force,
        )  # fmt: skip
        sender = CredentialsSender(vim_key="management", withdraws=withdraws)
        done = await self._run("terminate_start", code, sender, **changes)
        assert done.sent is None

    async def _run(
        self,
        phase: str,
        code: str | None,
        sender: CredentialsSender,
        *,
        operation: str = "op-1",
        attempt: int = 1,
        driver_class: str = "",
    ) -> ScriptDone:
        if code is not None:
            text = code if driver_class else PREAMBLE + dedent(code)
            (self.scripts.package / "Scripts/own.py").write_text(text, encoding="utf-8")
        given = {
            "operation": phase,
            "request": {},
            "vnf_instance": {
                "id": INSTANCE,
                "vimConnectionInfo": {
                    "management": {"vimId": "vim-management", "vimType": "ETSINFV.KUBERNETES.V_1"},
                    "other": {"vimId": "vim-2", "vimType": "ETSINFV.OPENSTACK_KEYSTONE.V_3"},
                },
            },
            "user_script_err_handling_data": {},
        }
        command = RunScript(
            vnf_instance_id=INSTANCE,
            package=PACKAGE,
            file=SAMPLE if code is None else "Scripts/own.py",
            driver_class=driver_class,
            task=phase,
            given=hide(given),
            folders={"tmp_csar_dir": PACKAGE},
            sender=sender,
        )
        return await self.scripts.ask(command, operation=operation, attempt=attempt)

    async def said(self) -> list[str]:
        """Return the lines that the last script wrote to stderr."""
        return (await self.scripts.log()).splitlines()

    async def accounts(self) -> list[str]:
        """Return what is left in the management cluster of the accounts of scripts."""
        listed = [(await self.capi.api.get(path)).body["items"] for path in ACCOUNTS]
        return [one["metadata"]["name"] for items in listed for one in items if "reader" in one["metadata"]["name"]]


@pytest.fixture(params=KERNELS[:1])
def kernel(request: pytest.FixtureRequest) -> Kernel:
    return Kernel(request.param)


@pytest.fixture
async def world(tmp_path: Path, kernel: Kernel) -> AsyncIterator[World]:
    async with (
        CapiSite.start(RING) as capi,
        SqliteStore.open(tmp_path / "store.db") as store,
        Receiver.start() as receiver,
        HttpReceivers.connected(ClientTls()) as receivers,
        aiohttp.ClientSession() as session,
    ):
        for collection, indexes in INDEXES.items():
            await store.ensure_indexes(collection, indexes)

        def connect(vim: VimConnection) -> ClusterApi:
            return ClusterApi(session, vim, RING, timeout_s=30.0)

        async def proves(vim: VimConnection, address: str) -> bool:
            return await serves_at(vim, address, RING)

        async def no_cas() -> TrustedCas:
            return TrustedCas("", "")

        senders = ScriptSenders(
            collector=Collector(connect),
            sender=Sender(receivers, SystemClock(), [MASTER]),
            vims=GivenVims(),
            key_ring=RING,
            receiver_url=receiver.url,
            allowed_hosts=frozenset(),
            access="token",
            addresses_of=addresses_of,
            serves_at=proves,
            trusted_cas=no_cas,
            grants=GrantedAddresses(networks(), ssh_port=22),
        )
        await capi.make_cluster()
        await capi.make_secret()
        yield World(capi, receiver, store, tmp_path, kernel, senders)


@pytest.mark.parametrize("kernel", KERNELS, indirect=True)
async def test_the_sample_sends_the_kubeconfig_of_the_secret(world: World) -> None:
    """CR-009, CR-077, CR-123: with the key of its instance, and nothing of its account is left in the management cluster."""
    done = await world.created()
    ((headers, _),) = world.receiver.requests
    (body,) = world.receiver.bodies
    uid = body["cluster"]["uid"]
    assert world.receiver.kubeconfig() == world.capi.kubeconfig()
    sha256 = callback.sha256_hex(world.capi.kubeconfig().encode())
    assert headers[callback.IDEMPOTENCY_KEY] == f"op-1:{uid}:{sha256[:16]}"
    assert headers[callback.KEY_ID] == f"vnf-{INSTANCE}"
    del body["credentials"]["kubeconfig"], body["secret"]["resourceVersion"], body["credentials"]["expiresAt"]
    assert body == {
        "schemaVersion": "1",
        "event": "CREATED",
        "vnfInstanceId": INSTANCE,
        "vnfLcmOpOccId": "op-1",
        "vnfdId": "vnfd-1",
        "managementVimId": "vim-management",
        "cluster": {
            "name": "edge",
            "namespace": "default",
            "uid": uid,
            "endpoint": world.capi.workload.endpoint,
            "kubernetesVersion": "v1.31.4",
            "contract": "v1beta2",
            "infrastructureProvider": "openstack",
        },
        "secret": {"name": SECRET, "type": "cluster.x-k8s.io/secret"},
        "credentials": {"format": "kubeconfig", "authType": "client_certificate"},
        "vim": {
            "register": True, "name": "edge-vim", "type": "ETSINFV.KUBERNETES.V_1", "isDefault": False, "extra": {},
        },
    }  # fmt: skip
    assert done.sent == CredentialsSent(
        cluster_uid=uid,
        endpoint=world.capi.workload.endpoint,
        kubernetes_version="v1.31.4",
        contract="v1beta2",
        infrastructure_provider="openstack",
    )
    assert (done.answer.edits, done.answer.data) == ((), {})
    assert await world.said() == ["the receiver answered 201"]
    assert await world.accounts() == []


async def test_a_script_that_is_run_again_sends_the_same_request(world: World) -> None:
    """CR-078: although Cluster API has written a label of the Secret meanwhile; another operation has another key."""
    await world.created()
    await world.capi.touch_secret()
    await world.created(attempt=2)
    (one, first), (two, second) = world.receiver.requests
    assert first == second
    assert one[callback.IDEMPOTENCY_KEY] == two[callback.IDEMPOTENCY_KEY]
    assert one[callback.NONCE] != two[callback.NONCE]
    assert (await world.said())[-1] == "the receiver answered 200"
    await world.created(operation="op-2")
    assert world.receiver.requests[2][0][callback.IDEMPOTENCY_KEY].startswith("op-2:")


async def test_a_script_that_was_killed_after_it_had_sent_is_repeated_without_a_second_effect(world: World) -> None:
    """CR-077, CR-078: its worker is cancelled, the account goes with it, and the next worker makes another."""
    hangs = (
        (world.scripts.package / SAMPLE)
        .read_text(encoding="utf-8")
        .replace('print(f"the receiver answered {status}", file=sys.stderr)', "print(status); time.sleep(3600)")
    )
    (world.scripts.package / SAMPLE).write_text(hangs, encoding="utf-8")
    task = asyncio.create_task(world.created())
    await until(has_printed)
    assert len(await world.accounts()) == 3
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await world.accounts() == []
    (world.scripts.package / SAMPLE).write_text(hangs.replace("; time.sleep(3600)", ""), encoding="utf-8")
    await world.created(attempt=2)
    (_, first), (_, second) = world.receiver.requests
    assert first == second
    assert len(world.receiver.by_key) == 1


LOOKS = """
own = get("/api/v1/namespaces/default/secrets/edge-kubeconfig")
say("own", base64.b64decode(own["data"]["value"])[:10])
say("cluster", get("/apis/cluster.x-k8s.io/v1beta2/namespaces/default/clusters/edge")["metadata"]["name"])
for path in ("/secrets", "/secrets/another", "/configmaps", "/serviceaccounts"):
    say(path, get("/api/v1/namespaces/default" + path))
say("namespaces", get("/api/v1/namespaces"))
endpoint = callback["body"]["cluster"]["endpoint"].rpartition(":")[2]
say("workload", reach("127.0.0.1", int(endpoint)))
say("own services", reach("127.0.0.1", {port}))
say("metadata", reach("169.254.169.254", 80))
say("names", reach("kubernetes.default", 443))
say("key", callback["key"] in "".join(os.environ.values()), callback["key"] in "".join(sys.argv))
say("others", given["vnf_instance"]["vimConnectionInfo"]["other"].get("accessInfo"))
"""


async def test_a_script_reads_its_secret_alone_and_reaches_three_servers(world: World) -> None:
    """CR-009, CR-077: the token of the VIM, which may do anything, is not handed out."""

    async def never(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(never, "127.0.0.1", 0) as server:
        await world.created(LOOKS.format(port=server.sockets[0].getsockname()[1]))
    assert await world.said() == [
        "own b'apiVersion'",
        "cluster edge",
        "/secrets 403",
        "/secrets/another 403",
        "/configmaps 403",
        "/serviceaccounts 403",
        "namespaces 403",
        "workload reached",
        "own services PermissionError",
        "metadata PermissionError",
        "names gaierror",
        "key False False",
        "others None",
    ]


async def test_what_an_interrupted_run_has_left_is_replaced_with_its_token(world: World) -> None:
    """A killed process cannot remove its account: the Cluster owns it, and the next run replaces it."""
    name = f"kubevnfm-reader-{INSTANCE}"
    old = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "default"}}
    assert (await world.capi.api.call("POST", ACCOUNTS[0], body=old)).is_success
    earlier = await world.capi.api.call(
        "POST", f"{ACCOUNTS[0]}/{name}/token", body={"spec": {"expirationSeconds": 600}}
    )
    code = f"""
    made = {{"accounts": {ACCOUNTS[0]!r}, "roles": {ACCOUNTS[1]!r}, "bindings": {ACCOUNTS[2]!r}}}
    say(get("/api/v1/namespaces/default/secrets/edge-kubeconfig")["metadata"]["name"])
    vim["accessInfo"]["bearer_token"] = {earlier.body["status"]["token"]!r}
    say(get("/api/v1/namespaces/default/secrets/edge-kubeconfig"))
    """
    await world.created(code)
    assert await world.said() == [SECRET, "401"]
    assert await world.accounts() == []


async def test_the_account_belongs_to_the_cluster(world: World) -> None:
    """If this service is killed, Kubernetes deletes the account with the Cluster at the latest."""
    task = asyncio.create_task(world.created("print('runs', flush=True)\nimport time\ntime.sleep(3600)"))
    await until(has_printed)
    path = f"{ACCOUNTS[0]}/kubevnfm-reader-{INSTANCE}"
    owners = (await world.capi.api.get(path)).body["metadata"]["ownerReferences"]
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [(owner["kind"], owner["name"]) for owner in owners] == [("Cluster", "edge")]


async def restricted(world: World) -> VimConnection:
    """Return the management cluster with an account that may only read."""
    api, name = world.capi.api, {"name": "restricted", "namespace": "default"}
    rule = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list"]}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "restricted"}
    bodies: list[dict[str, Any]] = [
        {"kind": "ServiceAccount"},
        {"kind": "Role", "rules": [rule]},
        {"kind": "RoleBinding", "roleRef": role, "subjects": [{"kind": "ServiceAccount", **name}]},
    ]
    for path, body in zip(ACCOUNTS, bodies, strict=True):
        version = "v1" if body["kind"] == "ServiceAccount" else "rbac.authorization.k8s.io/v1"
        answer = await api.call("POST", path, body={"apiVersion": version, "metadata": name, **body})
        assert answer.is_success, answer.message
    token = await api.call("POST", f"{ACCOUNTS[0]}/restricted/token", body={"spec": {"expirationSeconds": 600}})
    access = {"bearer_token": Secret(token.body["status"]["token"])}
    return world.capi.vim.model_copy(update={"access_info": access})


async def test_a_management_cluster_that_refuses_the_account_is_named_with_the_way_out(world: World) -> None:
    vim = await restricted(world)
    with pytest.raises(ReaderRefused, match=r"ServiceAccount: .* set sender_access to vim") as caught:
        await world.created(vim=vim)
    assert caught.value.status == 422
    world.now_with(access="vim")
    await world.created(vim=vim)
    assert world.receiver.kubeconfig() == world.capi.kubeconfig()
    assert await world.accounts() == []


async def test_a_script_of_an_operator_who_allows_it_gets_the_access_data_of_the_vim(world: World) -> None:
    world.now_with(access="vim")
    await world.created("say(len(get('/api/v1/namespaces')['items']) > 3, vim['accessInfo'].keys())")
    assert await world.said() == ["True dict_keys(['bearer_token'])"]


PRINTS_ALL = """
own = get("/api/v1/namespaces/default/secrets/edge-kubeconfig")["data"]["value"]
kubeconfig = base64.b64decode(own).decode()
say(kubeconfig)
say(own)
say(vim["accessInfo"]["bearer_token"], callback["key"], base64.b64encode(bytes.fromhex(callback["key"])).decode())
print(json.dumps(callback))
for number in range(400):
    say("line", number, "ä" * 20)
say("the last line")
sys.exit(3)
"""


async def test_a_script_that_fails_is_named_with_3_kib_of_its_stderr_and_shows_no_secret(
    world: World, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """CR-009, CR-077: what it says of the kubeconfig, of its token and of the key is masked everywhere."""
    with pytest.raises(ScriptFailed) as caught:
        await world.created(PRINTS_ALL)
    text = str(caught.value)
    head, _, quoted = text.partition("exit status 3; its last output:")
    assert head == "instantiate_end failed: Scripts/own.py ended with "
    assert len(quoted.encode()) in range(3072 - 60, 3073)
    assert quoted.endswith("the last line")
    documents = [one.body for name in INDEXES for one in await world.store.find(name, Query())]
    captured = capsys.readouterr()
    seen = "\n".join(
        [json.dumps(documents), *map(repr, world.scripts.news), text, captured.out, captured.err, caplog.text]
    )
    log = await world.scripts.log()
    assert "current-context" in log, "it is shown, and masked in part"
    config = world.capi.kubeconfig()
    key = callback.instance_key(MASTER, INSTANCE)
    (key_data,) = [line.split()[-1] for line in config.splitlines() if "client-key-data" in line]
    for secret in (key_data, key_data[100:160], key.hex(), world.capi.management.admin_token):
        assert secret not in log
        assert secret not in seen
    assert not [line for line in log.splitlines() if line.count(".") == 2 and len(line) > 300], "no token of an account"


IMPOSTOR = "127.0.0.2"


@pytest.mark.parametrize("is_verified", [True, False])
async def test_an_address_that_does_not_prove_to_be_the_cluster_is_not_reached(
    world: World, tmp_path: Path, is_verified: bool
) -> None:
    """The package says where its cluster is: a name could lead to any server that kubevnfm reaches (SSRF, DNS rebinding)."""
    await world.capi.api.call("DELETE", "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/clusters/edge")
    await world.capi.api.call("DELETE", f"/api/v1/namespaces/default/secrets/{SECRET}")
    await world.capi.make_cluster(host="localhost")
    config = world.capi.kubeconfig().replace("https://127.0.0.1:", "https://localhost:")
    if not is_verified:
        config = "\n".join(
            "    insecure-skip-tls-verify: true" if "certificate-authority-data" in line else line
            for line in config.splitlines()
        )
    await world.capi.make_secret(config)

    async def both(host: str) -> tuple[str, ...]:
        return (IMPOSTOR, "169.254.1.1", "127.0.0.1") if host == "localhost" else await addresses_of(host)

    async def answers_all(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    world.now_with(addresses_of=both)
    pair = Authority(tmp_path).issue("impostor", dns="localhost")
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(pair.certificate, pair.key)
    port = world.capi.workload.port
    async with await asyncio.start_server(answers_all, IMPOSTOR, port, ssl=tls):
        await world.created(f"say(reach({IMPOSTOR!r}, {port}), reach('127.0.0.1', {port}), reach('localhost', {port}))")
    expected = "PermissionError reached reached" if is_verified else "PermissionError PermissionError gaierror"
    assert await world.said() == [expected]
    refusals = [one.message for one in world.scripts.news if "cannot connect" in one.message]
    assert refusals == (
        [f"the script cannot connect to localhost: 169.254.1.1 is never granted: it is {LINK_LOCAL}"]
        if is_verified
        else ["the script cannot connect to localhost: its kubeconfig does not verify the certificate"]
    )


async def test_a_receiver_with_a_name_and_a_ca_of_its_own_is_reached_over_tls(world: World, tmp_path: Path) -> None:
    """CR-068, CR-069, CR-077: the name is resolved outside of the script, the CA is in the file, and no other one is trusted."""
    authority = Authority(tmp_path)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    pair = authority.issue("receiver", dns="receiver.example")
    tls.load_cert_chain(pair.certificate, pair.key)
    other = Authority(tmp_path, name="other")

    async def look_up(host: str) -> tuple[str, ...]:
        return ("127.0.0.1",) if host == "receiver.example" else await addresses_of(host)

    def trusting(ca: Authority) -> Callable[[], Any]:
        async def trusted() -> TrustedCas:
            return TrustedCas("", ca.file.read_text(encoding="utf-8"))

        return trusted

    async with Receiver.start(name="receiver.example", tls=tls) as receiver:
        world.now_with(
            addresses_of=look_up, allowed_hosts=frozenset({"receiver.example"}), trusted_cas=trusting(authority)
        )
        await world.created(callback_url=receiver.url)
        assert [body["event"] for body in receiver.bodies] == ["CREATED"]
        code = f"""
        import http.client
        connection = http.client.HTTPSConnection("receiver.example", {receiver.url.split(":")[2].partition("/")[0]})
        connection.request("GET", "/")
        say(connection.getresponse().status)
        """
        await world.created(code, callback_url=receiver.url, operation="op-2")
        assert (await world.scripts.log("op-2")).strip() == "405", (
            "a script that trusts the machine's CAs reaches it too"
        )
        world.now_with(trusted_cas=trusting(other))
        (world.scripts.package / SAMPLE).write_text(
            (world.scripts.package / SAMPLE).read_text(encoding="utf-8").replace("TRIES = 8", "TRIES = 1"),
            encoding="utf-8",
        )
        with pytest.raises(ScriptFailed, match="CERTIFICATE_VERIFY_FAILED"):
            await world.created(callback_url=receiver.url, operation="op-3")
        assert len(receiver.requests) == 1


async def test_a_name_that_nothing_resolves_is_waited_for_and_named(world: World) -> None:
    async def look_up(host: str) -> tuple[str, ...]:
        if host == "receiver.example":
            raise OSError("no such name")
        return await addresses_of(host)

    world.now_with(
        addresses_of=look_up,
        allowed_hosts=frozenset({"receiver.example"}),
        collector=replace(world.senders.collector, limit_s=0.0),
    )
    with pytest.raises(WaitedTooLong, match=r"the name receiver\.example cannot be resolved"):
        await world.created(callback_url="https://receiver.example/hook")
    assert await world.accounts() == []


async def test_without_keys_no_script_is_prepared(world: World) -> None:
    world.now_with(sender=replace(world.senders.sender, master_keys=[]))
    with pytest.raises(CallbackNotConfigured):
        await world.created()
    assert await world.said() == []


async def test_of_two_master_keys_the_second_signs_for_the_script_too(world: World) -> None:
    """CR-070."""
    newer = bytes(range(1, 33))
    world.receiver.keys = (MASTER, newer)
    world.now_with(sender=replace(world.senders.sender, master_keys=[MASTER, newer]))
    await world.created()
    assert world.receiver.requests[0][0][callback.KEY_ID] == f"vnf-{INSTANCE}.k2"


@pytest.mark.parametrize(
    ("answers", "requests", "outcome"),
    [
        ([(202, {}, {})], 1, "the receiver answered 202"),
        ([(503, {"Retry-After": "0"}, {}), (429, {"Retry-After": "1"}, {})], 3, "the receiver answered 200"),
        ([(409, {}, {"type": "nonce-used"})], 2, "the receiver answered 200"),
        ([(500, {}, {"detail": "broken"})], 2, "the receiver answered 200"),
        ([(401, {}, {}), (401, {}, {"detail": "not signed"})], 2, "the receiver answered 401: not signed"),
        ([(409, {}, {"type": "idempotency-key-reused", "detail": "used"})], 1, "the receiver answered 409: used"),
        ([(422, {}, {"detail": "wrong"})], 1, "the receiver answered 422: wrong"),
        ([(302, {"Location": "http://127.0.0.1:1/"}, {})], 1, "the receiver answered 302: no reason given"),
    ],
)
async def test_the_sample_follows_the_table_of_answers(
    world: World, answers: list[tuple[int, dict[str, str], Any]], requests: int, outcome: str
) -> None:
    """CR-066, CR-068: chapter 10; each try has a nonce of its own and the same idempotency key."""
    world.receiver.answers = answers
    is_final = outcome.partition(":")[0][-3] in "34"
    if is_final:
        with pytest.raises(ScriptFailed, match=outcome):
            await world.created()
    else:
        await world.created()
        assert (await world.said())[-1] == outcome
    sent = [headers for headers, _ in world.receiver.requests]
    assert len(sent) == requests
    assert len({one[callback.NONCE] for one in sent}) == requests
    assert len({one[callback.IDEMPOTENCY_KEY] for one in sent}) == 1


async def test_the_sample_corrects_its_clock_by_that_of_the_receiver(world: World) -> None:
    world.receiver.skew_s = 4000
    await world.created()
    assert len(world.receiver.requests) == 2


async def test_deleted_carries_no_credentials_and_waits_for_no_cluster(world: World) -> None:
    """CR-072, CR-105: also if the workload cluster does not answer any more."""
    await world.created()
    uid = world.receiver.bodies[0]["cluster"]["uid"]
    await world.capi.workload.suspend()
    await world.deleted(operation="op-9", uid=uid)
    headers, _ = world.receiver.requests[1]
    body = world.receiver.bodies[1]
    assert headers[callback.IDEMPOTENCY_KEY] == f"op-9:{uid}:deleted"
    assert (body["event"], "credentials" in body) == ("DELETED", False)
    assert await world.accounts() == []


async def test_at_deleted_a_script_can_still_reach_the_clusters(world: World) -> None:
    code = """
    say(get("/api/v1/namespaces/default/secrets/edge-kubeconfig")["metadata"]["name"])
    say(reach("127.0.0.1", %d))
    """
    await world.deleted(code % world.capi.workload.port)
    assert await world.said() == [SECRET, "reached"]


async def test_a_cluster_that_is_gone_needs_no_access(world: World) -> None:
    """CR-112: its uid is that of the earlier call-back."""
    await world.capi.api.call("DELETE", "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/clusters/edge")
    code = (
        f"say(vim['accessInfo'], callback['body']['cluster']['uid'], reach('127.0.0.1', {world.capi.management.port}))"
    )
    await world.deleted(code)
    assert await world.said() == ["{} uid-1 PermissionError"]


async def test_a_management_cluster_that_is_silent_holds_up_a_graceful_termination_alone(world: World) -> None:
    await world.capi.management.suspend()
    with pytest.raises(Exception, match="does not answer"):
        await world.deleted()
    assert world.receiver.requests == []
    await world.deleted(force=True)
    assert [body["event"] for body in world.receiver.bodies] == ["DELETED"]


async def test_a_forceful_termination_needs_neither_the_vim_nor_its_rights(world: World) -> None:
    """The VIM may be deregistered, and its account may have lost its rights."""

    class NoVims(GivenVims):
        async def connection(self, vim: VimConnection) -> VimConnection:
            raise NotFound("no VIM has the id")

    world.now_with(vims=NoVims())
    with pytest.raises(NotFound):
        await world.deleted()
    await world.deleted(force=True)
    limited = await restricted(world)
    world.now_with(vims=GivenVims())
    with pytest.raises(ReaderRefused):
        await world.deleted(vim=limited)
    await world.deleted("say(vim['accessInfo'])", vim=limited, force=True)
    assert (await world.said())[-1] == "{}"
    assert [body["event"] for body in world.receiver.bodies] == ["DELETED"]


LINK_LOCAL = "link-local, as metadata services of clouds are"
DRIVER = """
import json, os
from tacker.vnfm.mgmt_drivers.vnflcm_abstract_driver import VnflcmMgmtAbstractDriver

class Own(VnflcmMgmtAbstractDriver):
    def instantiate_end(self, context, vnf_instance, request, grant, grant_request=None, **kwargs):
        first = vnf_instance.vim_connection_info[0]
        callback = json.load(open(os.environ["KUBEVNFM_CALLBACK_FILE"]))
        print(first.vim_id, list(first.access_info), callback["body"]["event"])
"""


async def test_a_driver_class_of_tackers_v1_gets_the_same(world: World) -> None:
    """CR-009."""
    await world.created(DRIVER, driver_class="Own")
    assert "vim-management ['bearer_token'] CREATED" in await world.scripts.log()


def test_a_script_reads_a_management_cluster_behind_a_proxy_by_the_same_way() -> None:
    """MC-074: a cloud region may be a management cluster."""
    given = {
        "bearer_token": Secret("of-the-region"),
        "proxy_url": Secret("http://u:p@proxy:3128"),
        "service_account": {},
    }
    vim = VimConnection(vim_id="edge", interface_info={"endpoint": "https://api:6443"}, access_info=given)
    found = as_reader(vim, "of-the-reader")
    assert found.access_info == {"bearer_token": Secret("of-the-reader"), "proxy_url": given["proxy_url"]}
    assert found.interface_info == vim.interface_info
