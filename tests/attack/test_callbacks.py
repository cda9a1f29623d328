"""Hostile senders of call-backs: a package that has the key of its instance, and strangers that have none."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from kubevnfm.client import GatewayClient
from kubevnfm.settings import Settings
from kubevnfm.single import single_node
from kubevnfm_bus.inprocess import InProcessBus
from kubevnfm_clients import callback
from kubevnfm_clients.instances import HttpInstances
from kubevnfm_credentials_receiver.wiring import credentials_receiver
from kubevnfm_csar.pack import pack
from kubevnfm_events.vim import RegisterReceived
from kubevnfm_kit.ids import new_id
from kubevnfm_lab.lab import Lab
from kubevnfm_secrets import KeyRing
from kubevnfm_store.query import Query
from kubevnfm_store.sqlite.store import SqliteStore
from kubevnfm_worker.backends import Backends
from servers.ports import free_port
from worlds.lcm_world import SAMPLES, TOKEN, World, lcm_world, sample_request
from worlds.receiver_twins import INSTANCE, MASTER, AwaitingLcm, a_body, a_kubeconfig, receiver_settings
from worlds.workload_world import APPLY, AWAIT, applied, machines, sent

SEND = "mgmt.send_credentials"
MOST_FAILURES = 20
"""The limit for an address in a minute, by default."""


@dataclass
class Sender:
    """A sender with the key of one instance, as a script of its package has it."""

    session: aiohttp.ClientSession
    url: str
    instance: str = INSTANCE
    master: bytes = MASTER

    def signed(self, raw: bytes) -> dict[str, str]:
        headers = callback.signed_headers(
            callback.instance_key(self.master, self.instance),
            raw,
            vnf_instance_id=self.instance,
            timestamp=int(time.time()),
            nonce=new_id(),
            idempotency_key=new_id(),
        )
        return dict(headers)

    async def send(self, body: Any, **headers: str) -> tuple[int, Mapping[str, Any]]:
        """Return status and body of the answer."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        async with self.session.post(
            self.url + callback.PATH, data=raw, headers={**self.signed(raw), **headers}
        ) as response:
            answer: dict[str, Any] = await response.json(content_type=None)
            return response.status, answer

    async def refused_field(self, body: Any) -> str:
        """Return the field that the answer names; "" if it names none."""
        status, answer = await self.send(body)
        assert 400 <= status < 500, (status, answer)
        return str((answer.get("invalidParams") or [{}])[0].get("name", ""))


@asynccontextmanager
async def receiver(folder: Path, awaiting: Any, **settings: Any) -> AsyncIterator[tuple[Sender, SqliteStore]]:
    ring = KeyRing([bytes(32)])
    async with (
        InProcessBus(ring) as bus,
        SqliteStore.open(folder / "receiver.db") as store,
        credentials_receiver(receiver_settings(**settings), Backends(bus, store, ring), awaiting=awaiting) as service,
        aiohttp.ClientSession() as session,
    ):
        yield Sender(session, f"http://127.0.0.1:{service.port}"), store


async def stored(store: SqliteStore) -> list[Mapping[str, Any]]:
    return [one.body for one in await store.find("credentials", Query())]


# --- what a package may say -------------------------------------------------------------------------------------------


async def test_a_package_that_builds_no_cluster_makes_no_vim_and_no_default(tmp_path: Path) -> None:
    """CR-074, CR-082: all services, an instance without Cluster API, whose package signs that its kubeconfig is everybody's default VIM."""
    settings = Settings(port=0, data_dir=tmp_path / "data")
    pack(SAMPLES / "cnf", tmp_path / "cnf.zip")
    async with Lab.start() as lab, single_node(settings) as node, GatewayClient(node.url) as client:
        made, _ = await client.call("POST", "/v1.0/vims", {"vim": openstack(lab)})
        default = made["vim"]["id"]
        await client.onboard(tmp_path / "cnf.zip")
        instance = str((await client.create(sample_request("cnf", "create")))["id"])
        cluster = await lab.clusters.create(
            address="127.0.0.1",
            port=free_port(),
            version="1.31.4",
            pod_cidr="10.244.0.0/16",
            service_cidr="10.96.0.0/12",
            san=["127.0.0.1"],
        )
        master = callback.master_keys((tmp_path / "data/callback-key").read_text())[0]
        async with aiohttp.ClientSession() as session:
            sender = Sender(session, node.receiver_url, instance, master)
            for event in ("CREATED", "ROTATED", "DELETED"):
                body = a_body(event=event, instance=instance, kubeconfig=cluster.kubeconfig_admin())
                body["vim"] = {"register": True, "name": "theirs", "isDefault": True}
                status, answer = await sender.send(body)
                assert (status, answer["type"]) == (409, "callback-not-awaited")
            async with session.get(node.receiver_url + callback.PATH) as response:
                assert (await response.json())["items"] == []
        (only,) = (await client.call("GET", "/v1.0/vims"))[0]["vims"]
        assert (only["id"], only["is_default"]) == (default, True)


def openstack(lab: Lab) -> dict[str, Any]:
    """Return the VIM of the lab as everybody's default."""
    known = lab.endpoints()
    return {
        "name": "cloud",
        "type": "openstack",
        "is_default": True,
        "auth_url": lab.auth_url,
        "vim_project": {"name": known["project"], "project_domain_name": known["domain"]},
        "auth_cred": {
            "username": known["username"],
            "password": known["password"],
            "user_domain_name": known["domain"],
            "cert_verify": "False",
        },
    }


@dataclass
class Awaiting:
    """A real lcm-api whose operation awaits credentials, and a real receiver that asks it."""

    world: World
    sender: Sender
    store: SqliteStore
    operation_id: str
    truth: dict[str, Any]
    """The body that the sender was given, with a kubeconfig."""

    def body(self, **changes: Any) -> dict[str, Any]:
        """Return the truth with other values; a value for ``part__name`` is one level below."""
        body: dict[str, Any] = json.loads(json.dumps(self.truth))
        for place, value in changes.items():
            part, _, name = place.partition("__")
            if name:
                body[part][name] = value
            else:
                body[part] = value
        return body


@pytest.fixture
async def awaiting(tmp_path: Path) -> AsyncIterator[Awaiting]:
    async with lcm_world(tmp_path) as world:
        world.twins.answers |= {APPLY: applied(), AWAIT: machines([0])}
        world.twins.waiting.add(SEND)
        world.vims.add("k8s", "kubernetes")
        await world.sample("capi-workload")
        instance = await world.create("capi-workload")
        vims = {"management": {"vimId": "k8s", "vimType": "kubernetes"}}
        operation_id = await world.instantiate(instance, "capi-workload", vimConnectionInfo=vims)
        while SEND not in world.twins.asked():
            await world.twins.has_asked(len(world.twins.commands) + 1)
        lcm_api = HttpInstances(world.url, TOKEN, world.session)
        async with receiver(tmp_path, lcm_api) as (sender, store):
            sender.instance = instance
            truth = a_body(instance=instance, uid="workload")
            truth |= {"vnfLcmOpOccId": operation_id, "managementVimId": "k8s"}
            truth["vnfdId"] = (await world.lcm("GET", f"/vnf_instances/{instance}")).json["vnfdId"]
            truth["vim"] = {
                "register": True,
                "name": f"workload-{instance[:8]}",
                "type": "ETSINFV.KUBERNETES.V_1",
                "isDefault": False,
                "extra": {},
            }
            yield Awaiting(world, sender, store, operation_id, truth)


CLAIMS: Mapping[str, tuple[str, Any]] = {
    "event": ("event", "ROTATED"),
    "vnfLcmOpOccId": ("vnfLcmOpOccId", "another"),
    "vnfdId": ("vnfdId", "another"),
    "managementVimId": ("managementVimId", "another"),
    "cluster.name": ("cluster__name", "another"),
    "cluster.namespace": ("cluster__namespace", "kube-system"),
    "cluster.uid": ("cluster__uid", "another"),
    "vim.register": ("vim__register", False),
    "vim.name": ("vim__name", "default-of-all"),
    "vim.type": ("vim__type", "openstack"),
    "vim.isDefault": ("vim__isDefault", True),
    "vim.extra": ("vim__extra", {"use_helm": True}),
}


async def test_a_call_back_says_what_its_operation_says_or_is_refused_by_field(awaiting: Awaiting) -> None:
    """CR-074, CR-079, CR-082: name, default, registration, management VIM and cluster are those of the request; a lie in between changes nothing."""
    for field, (place, value) in CLAIMS.items():
        assert await awaiting.sender.refused_field(awaiting.body(**{place: value})) == field
    assert await stored(awaiting.store) == []

    status, _ = await awaiting.sender.send(awaiting.body())
    assert status == 201
    (record,) = await stored(awaiting.store)
    assert (record["vim_name"], record["vim_default"]) == (awaiting.truth["vim"]["name"], False)
    # Facts that a sender leaves out are those of the operation too.
    short = awaiting.body()
    del short["vim"], short["managementVimId"], short["vnfLcmOpOccId"], short["vnfdId"], short["cluster"]["namespace"]
    assert (await awaiting.sender.send(short))[0] == 200
    (again,) = await stored(awaiting.store)
    facts = ("register_vim", "vim_name", "vim_default", "management_vim_id", "cluster_namespace", "cluster_uid")
    assert [again.get(name) for name in facts] == [record.get(name) for name in facts]

    # The step ends: nothing is awaited any more. The operation registers what it has asked for.
    await awaiting.world.twins.release()
    await awaiting.world.reached(awaiting.operation_id, "COMPLETED")
    status, answer = await awaiting.sender.send(awaiting.body())
    assert (status, answer["type"]) == (409, "callback-not-awaited")
    (registration,) = sent(awaiting.world, RegisterReceived)
    assert (registration.vim_name, registration.vim_default) == (awaiting.truth["vim"]["name"], False)


# --- hostile texts ----------------------------------------------------------------------------------------------------


def with_kubeconfig(change: Callable[[str], str]) -> dict[str, Any]:
    return a_body(kubeconfig=change(a_kubeconfig()))


def with_cluster(**changes: str) -> dict[str, Any]:
    body = a_body()
    return body | {"cluster": body["cluster"] | changes}


SERVER, USER = "credentials.kubeconfig.clusters[].cluster.server", "credentials.kubeconfig.users[].user"
HOSTILE: Mapping[str, tuple[dict[str, Any], str]] = {
    "a port above 65535": (with_kubeconfig(lambda text: text.replace(":6443", ":99999999")), SERVER),
    "port 0": (with_kubeconfig(lambda text: text.replace(":6443", ":0")), SERVER),
    "CRLF in the server": (with_kubeconfig(lambda text: text.replace("https://10.0.0.5:6443", '"https://h\\r\\nX: y"')), SERVER),
    "a user in the server": (with_kubeconfig(lambda text: text.replace("https://", "https://me:pass@")), SERVER),
    "a path with ..": (with_kubeconfig(lambda text: text.replace(":6443", ":6443/../..")), SERVER),
    "CRLF in the token": (with_kubeconfig(lambda text: text.replace("swordfish", '"sword\\r\\nfish"')), f"{USER}.token"),
    "NUL in the token": (with_kubeconfig(lambda text: text.replace("swordfish", '"sword\\0fish"')), f"{USER}.token"),
    "a program": (with_kubeconfig(lambda text: text + "    exec: {command: sh}\n"), f"{USER}.exec"),
    "a file": (with_kubeconfig(lambda text: text + "    tokenFile: /etc/shadow\n"), f"{USER}.tokenFile"),
    "two users": (with_kubeconfig(lambda text: text + "- name: v\n  user: {token: t}\n"), "credentials.kubeconfig.users"),
    "NUL in the cluster's name": (with_cluster(name="work\0load"), "cluster.name"),
    "CRLF in the cluster's name": (with_cluster(name="work\r\nload"), "cluster.name"),
    "a long name": (with_cluster(name="w" * 254), "cluster.name"),
    "a long uid": (with_cluster(uid="u" * 129), "cluster.uid"),
    "CRLF in the VIM's name": (a_body() | {"vim": {"name": "a\r\nb"}}, "vim.name"),
    "a text as default": (a_body() | {"vim": {"isDefault": "yes"}}, "vim.isDefault"),
    "an endpoint with port 99999999": (with_cluster(endpoint="https://h:99999999"), "cluster.endpoint"),
    "a long version": (with_cluster(kubernetesVersion="v" * 200_000), "cluster.kubernetesVersion"),
}  # fmt: skip


async def test_texts_that_break_later_code_are_refused_when_they_come(tmp_path: Path) -> None:
    """CR-063, CR-074: each by its field, without its value; nothing is stored."""
    async with receiver(tmp_path, AwaitingLcm()) as (sender, store):
        for name, (body, field) in HOSTILE.items():
            status, answer = await sender.send(body)
            assert status == 422, (name, answer)
            assert answer["invalidParams"][0]["name"] == field, name
            shown = json.dumps(answer)
            assert "fish" not in shown, name
            assert len(shown) < 1000, name
        assert await stored(store) == []


# --- strangers --------------------------------------------------------------------------------------------------------


async def test_wrong_signatures_do_not_lock_out_right_ones_of_the_same_address(tmp_path: Path) -> None:
    """CR-067."""
    async with receiver(tmp_path, AwaitingLcm()) as (sender, _):
        wrong = {callback.SIGNATURE: "v1=" + "0" * 64}
        statuses = [(await sender.send(a_body(), **wrong))[0] for _ in range(2 * MOST_FAILURES)]
        assert statuses == [401] * MOST_FAILURES + [429] * MOST_FAILURES
        assert (await sender.send(a_body()))[0] == 201
        assert (await sender.send(a_body(), **wrong))[0] == 429


async def test_the_body_of_a_stranger_is_not_awaited(tmp_path: Path) -> None:
    """CR-065: the signature is in the headers. Also with headers of another request, which were read on the way."""
    async with receiver(tmp_path, AwaitingLcm()) as (sender, store):
        captured = sender.signed(json.dumps(a_body()).encode())
        host, port = sender.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        lines = [f"POST {callback.PATH} HTTP/1.1", f"Host: {host}:{port}", "Content-Length: 200000"]
        lines += [f"{name}: {value}" for name, value in (captured | {callback.SIGNATURE: "v1=" + "0" * 64}).items()]
        writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
        async with asyncio.timeout(60):
            assert b" 401 " in await reader.readline()
        writer.close()
        other = json.dumps(a_body(name="other")).encode()
        async with sender.session.post(sender.url + callback.PATH, data=other, headers=captured) as response:
            assert response.status == 401
        assert await store.find("callback_nonces", Query()) == []
