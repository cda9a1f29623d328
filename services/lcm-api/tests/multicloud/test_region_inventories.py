"""Cloud regions whose kubeconfig is read from A&AI, or by a ClusterProfile of another region (multicloud.md MC-078, MC-079)."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import encode_basic_auth, web
from kubevnfm_events import VimConnection
from kubevnfm_events.vim import VimInventoryLost
from kubevnfm_kit.http import serving
from kubevnfm_lab.kubernetes.cluster import LabCluster
from kubevnfm_lab.kubernetes.objects import Key
from kubevnfm_lab.lab import Lab
from kubevnfm_secrets import revealed
from kubevnfm_vim_registry.records import COLLECTION
from kubevnfm_vim_registry.settings import Settings
from patience import until
from servers.vnf_networks import LOOPBACK
from worlds.kubeconfigs import a_kubeconfig, encoded
from worlds.lcm_world import Answer
from worlds.region_world import REGIONS, RegionWorld, region_world
from worlds.vim_world import RING

MakeCluster = Callable[..., Awaitable[LabCluster]]
OP_EDGE = f"{REGIONS}/op/edge"
PASSWORD = "swordfish-of-aai"
PATH = "/esr-system-info-list/esr-system-info/0/ssl-cacert"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PROFILES = "/apis/multicluster.x-k8s.io/v1alpha1/namespaces/default/clusterprofiles"


@pytest.fixture
async def world(lab: Lab, settings: Settings, tmp_path: Path) -> AsyncIterator[RegionWorld]:
    """A&AI is on loopback here."""
    allowed = settings.model_copy(update={"allowed_networks": LOOPBACK})
    async with region_world(lab, allowed, tmp_path) as running:
        yield running


@dataclass
class Aai:
    """A&AI with one cloud region."""

    kubeconfig: object = ""
    status: int = 200
    requests: list[web.Request] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.Response:
        self.requests.append(request)
        entry = {"esr-system-info-id": "1", "ssl-cacert": self.kubeconfig}
        body = {"cloud-owner": "op", "esr-system-info-list": {"esr-system-info": [entry]}}
        return web.json_response(body if self.status == 200 else {"requestError": {}}, status=self.status)


@asynccontextmanager
async def aai(kubeconfig: object = "") -> AsyncIterator[tuple[Aai, dict[str, Any]]]:
    """Serve A&AI; yield it, and the inventory of a region in it."""
    twin = Aai(kubeconfig)
    app = web.Application()
    app.router.add_get("/{path:.*}", twin.answer)
    async with serving(app, host="127.0.0.1", port=0) as port:
        url = f"http://127.0.0.1:{port}"
        yield twin, {"type": "aai", "url": url, "path": PATH, "user": "AAI", "password": PASSWORD}


def by(inventory: object, **changes: Any) -> dict[str, Any]:
    return {"cloud_owner": "op", "cloud_region": "edge", "inventory": inventory, **changes}


def pointers(answer: Answer) -> list[str]:
    """Return the pointers of a 422."""
    return [error["pointer"] for error in answer.problem(422)["errors"]]


def message(answer: Answer) -> str:
    return str(answer.problem(422)["errors"][0]["message"])


async def of_account(world: RegionWorld, cluster: LabCluster) -> str:
    """Return a kubeconfig with the token of an account that may do everything."""
    rbac = "rbac.authorization.k8s.io"
    account = {"metadata": {"name": "kubevnfm", "namespace": "kube-system"}}
    cluster.plane.create("serviceaccounts", account)
    role = {"apiGroup": rbac, "kind": "ClusterRole", "name": "cluster-admin"}
    subjects = [{"kind": "ServiceAccount", "name": "kubevnfm", "namespace": "kube-system"}]
    binding = {"metadata": {"name": "kubevnfm"}, "roleRef": role, "subjects": subjects}
    cluster.plane.create(f"clusterrolebindings.{rbac}", binding)
    path = "/api/v1/namespaces/kube-system/serviceaccounts/kubevnfm/token"
    made = await post(world, cluster, path, {"spec": {"expirationSeconds": 30 * 86_400}})
    return a_kubeconfig(cluster, user={"token": made["status"]["token"]})


async def post(world: RegionWorld, cluster: LabCluster, path: str, body: object) -> dict[str, Any]:
    """Make an object over HTTP, as soon as its kind is served."""
    url, headers = f"{cluster.endpoint}{path}", {"Authorization": f"Bearer {cluster.admin_token}"}

    async def made() -> dict[str, Any] | None:
        async with world.session.post(url, json=body, headers=headers, ssl=False) as response:
            answer: dict[str, Any] = await response.json()
            assert response.status in {201, 404}, answer
            return answer if response.status == 201 else None

    return await until(made)


def withdraw(cluster: LabCluster) -> None:
    """Make the cluster reject the token of the account."""
    accounts = cluster.table.by_name("serviceaccounts")
    assert accounts is not None
    cluster.registry.delete(accounts, Key("kube-system", "kubevnfm"))


async def shown(world: RegionWorld, path: str = OP_EDGE) -> dict[str, Any]:
    found: dict[str, Any] = (await world.call("GET", path)).must(200).json
    return found


async def test_a_kubeconfig_is_read_from_aai_and_again_when_the_cluster_rejects_it(
    world: RegionWorld, cluster: LabCluster
) -> None:
    """MC-078, MC-079, MC-075."""
    first = await of_account(world, cluster)
    async with aai(encoded(first)) as (twin, inventory):
        made = (await world.call("POST", REGIONS, by(inventory, labels={"zone": "west"}))).must(201)
        region = made.json
        defaults = {"refresh": 300, "version": 14}
        assert region["inventory"] == {**inventory, **defaults, "password": "***"}
        assert (region["status"], region["kubeconfig"], region["labels"]) == ("ACTIVE", "***", {"zone": "west"})
        (asked,) = twin.requests
        assert asked.path_qs == "/aai/v14/cloud-infrastructure/cloud-regions/cloud-region/op/edge?depth=all"
        assert asked.headers["Authorization"] == encode_basic_auth("AAI", PASSWORD)
        assert (asked.headers["Accept"], asked.headers["X-FromAppId"]) == ("application/json", "kubevnfm")
        assert asked.headers["X-TransactionId"]
        stored = await world.registry.store.get(COLLECTION, region["vim_id"])
        assert stored is not None
        assert PASSWORD not in json.dumps(stored.body)
        again = (await world.call("POST", REGIONS, by(inventory, labels={"zone": "west"}))).must(200)
        assert again.headers["ETag"] == made.headers["ETag"]
        assert "reason" not in (await shown(world, f"{OP_EDGE}/health"))["inventory"]

        # Text is taken as well as base64.
        twin.kubeconfig = a_kubeconfig(cluster)
        withdraw(cluster)

        async def is_another() -> dict[str, Any] | None:
            found = await shown(world)
            return found if found["sha256"] != region["sha256"] else None

        read = await until(is_another)
        assert read["status"] == "ACTIVE"
        connection = await world.registry.directory.connection(VimConnection(vim_id=region["vim_id"]))
        assert revealed(connection.access_info, RING)["bearer_token"] == cluster.admin_token

        # The kubeconfig of a request ends it.
        rotated = await world.call("PUT", f"{OP_EDGE}/kubeconfig", {"kubeconfig": encoded(first)})
        assert pointers(rotated) == ["/kubeconfig"]
        by_hand = {"kubeconfig": encoded(cluster.kubeconfig_admin())}
        assert "inventory" not in (await world.call("PUT", f"{OP_EDGE}/kubeconfig", by_hand)).must(200).json
        back = await world.call("PUT", f"{OP_EDGE}/kubeconfig", {"inventory": inventory})
        assert back.must(200).json["inventory"]["type"] == "aai"


async def test_a_caller_whose_access_data_are_rejected_gets_those_of_the_inventory(
    world: RegionWorld, cluster: LabCluster
) -> None:
    """MC-078: infra-k8s asks again after 401, before the monitor looks."""
    async with aai(a_kubeconfig(cluster)) as (twin, inventory):
        vim = VimConnection(vim_id=(await world.call("POST", REGIONS, by(inventory))).must(201).json["vim_id"])
        await world.registry.directory.connection(vim)
        twin.kubeconfig = cluster.kubeconfig_admin()
        world.registry.directory.forget(vim)
        connection = await world.registry.directory.connection(vim)
        assert "client_certificate" in connection.access_info
        # A cluster that goes on rejecting them has the inventory read once in 10 s.
        world.registry.directory.forget(vim)
        await world.registry.directory.connection(vim)
        assert len(twin.requests) == 2


async def test_a_region_that_the_inventory_has_lost_keeps_its_last_copy(
    world: RegionWorld, cluster: LabCluster
) -> None:
    """MC-078, MC-079."""
    async with aai(await of_account(world, cluster)) as (twin, inventory):
        made = (await world.call("POST", REGIONS, by(inventory))).must(201).json
        twin.status = 404
        world.registry.directory.forget(VimConnection(vim_id=made["vim_id"]))
        await world.registry.directory.connection(VimConnection(vim_id=made["vim_id"]))
        lost = await world.registry.events.first(VimInventoryLost)
        assert (lost.vim_id, lost.region) == (made["vim_id"], "op/edge")
        assert "no cloud region op/edge" in lost.reason
        health = await shown(world, f"{OP_EDGE}/health")
        assert (health["reachable"], health["inventory"]["lost"]) == (True, True)
        now = await shown(world)
        assert (now["sha256"], now["status"]) == (made["sha256"], "ACTIVE")
        # A region that comes back is used, and the failure is not shown any more.
        twin.status, twin.kubeconfig = 200, a_kubeconfig(cluster)
        again = (await world.call("POST", REGIONS, by(inventory))).must(200).json
        assert again["sha256"] != made["sha256"]
        assert (await shown(world, f"{OP_EDGE}/health"))["inventory"].keys() == {"since", "lost"}


async def a_hub(world: RegionWorld, cluster: LabCluster) -> None:
    """Make the kind ClusterProfile, and the namespace of its consumer."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1alpha1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": "ClusterProfile", "plural": "clusterprofiles", "singular": "clusterprofile"}
    spec = {
        "group": "multicluster.x-k8s.io", "scope": "Namespaced", "names": names, "versions": [version]
    }  # fmt: skip
    crd = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": spec}
    await post(world, cluster, CRDS, {**crd, "metadata": {"name": "clusterprofiles.multicluster.x-k8s.io"}})
    labels = {"x-k8s.io/cluster-inventory-consumer": "kubevnfm"}
    cluster.plane.create("namespaces", {"metadata": {"name": "consumer", "labels": labels}})


async def a_profile(world: RegionWorld, cluster: LabCluster, name: str, *providers: dict[str, Any]) -> dict[str, Any]:
    """Make a profile; return the inventory of a region by it."""
    condition = {"type": "ControlPlaneHealthy", "status": "False", "reason": "Etcd", "message": "no leader"}
    status = {
        "accessProviders": list(providers),
        "conditions": [condition],
        "properties": [{"name": "site", "value": "rack-4"}, {"name": "zone", "value": "of the profile"}],
    }
    labels = {"tier": "edge", "zone": "of-the-profile"}
    body = {"metadata": {"name": name, "namespace": "default", "labels": labels}, "spec": {}, "status": status}
    kind = {"apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ClusterProfile"}
    await post(world, cluster, PROFILES, {**kind, **body})
    return {"type": "cluster-profile", "cloud_region_id": "op/hub", "namespace": "default", "name": name}


def a_secret(cluster: LabCluster, name: str, labels: dict[str, str] | None = None, **data: str) -> None:
    coded = {key: base64.b64encode(text.encode()).decode() for key, text in data.items()}
    metadata = {"name": name, "namespace": "consumer", "labels": labels or {}}
    cluster.plane.create("secrets", {"metadata": metadata, "data": coded, "type": "Opaque"})


def a_provider(cluster: LabCluster, provider: str, **config: str) -> dict[str, Any]:
    entry = yaml.safe_load(a_kubeconfig(cluster))["clusters"][0]["cluster"]
    extension = {"name": "client.authentication.k8s.io/exec", "extension": config}
    return {"name": provider, "cluster": {**entry, "extensions": [extension]}}


async def test_a_kubeconfig_is_read_by_a_cluster_profile_of_another_region(
    world: RegionWorld, cluster: LabCluster, make_cluster: MakeCluster
) -> None:
    """MC-078: by the label of a Secret, or by the two providers that only read one."""
    hub = await make_cluster()
    (await world.region(hub, "hub")).must(201)
    await a_hub(world, hub)
    label = {"x-k8s.io/cluster-profile": "labelled"}
    inventory = await a_profile(world, hub, "labelled")
    absent = await world.call("POST", REGIONS, by({**inventory, "name": "absent"}))
    assert (pointers(absent), "no ClusterProfile default/absent" in message(absent)) == (["/inventory/name"], True)
    a_secret(hub, "first", label, config=a_kubeconfig(cluster))
    own = {"labels": {"zone": "west"}, "kv": {"zone": "mine"}}
    made = (await world.call("POST", REGIONS, by(inventory, **own))).must(201).json
    assert made["inventory"] == {**inventory, "refresh": 300, "consumer": "kubevnfm"}
    assert made["labels"] == {"tier": "edge", "zone": "west"}
    assert made["kv"] == {"site": "rack-4", "zone": "mine"}
    changed = (await world.call("PATCH", OP_EDGE, {"labels": {"zone": None}})).must(200).json
    assert changed["labels"] == {"tier": "edge", "zone": "of-the-profile"}
    health = await shown(world, f"{OP_EDGE}/health")
    assert (health["reachable"], health["inventory"]["control_plane"]) == (True, "Etcd: no leader")
    a_secret(hub, "second", label, config=a_kubeconfig(cluster))
    twice = await world.call("POST", REGIONS, by(inventory))
    assert (pointers(twice), "one Secret" in message(twice)) == (["/inventory/consumer"], True)

    a_secret(hub, "spoke", token=cluster.admin_token)
    by_token = await a_profile(world, hub, "by-token", a_provider(cluster, "secretreader", clusterName="spoke"))
    (await world.call("PUT", f"{OP_EDGE}/kubeconfig", {"inventory": by_token})).must(200)
    a_secret(hub, "file", value=cluster.kubeconfig_admin())
    config = {"name": "file", "key": "value", "namespace": "consumer"}
    by_file = await a_profile(world, hub, "by-file", a_provider(cluster, "kubeconfig-secretreader", **config))
    by_certificate = await world.call("PUT", f"{OP_EDGE}/kubeconfig", {"inventory": by_file})
    assert by_certificate.must(200).json["auth"] == "client-certificate"
    # The author of a profile chooses the server, and must not choose whose credentials it gets.
    config["namespace"] = "kube-system"
    stolen = await a_profile(world, hub, "stolen", a_provider(cluster, "kubeconfig-secretreader", **config))
    refused = await world.call("PUT", f"{OP_EDGE}/kubeconfig", {"inventory": stolen})
    assert "a namespace of the consumer expected" in message(refused)
    by_program = await a_profile(world, hub, "by-program", a_provider(cluster, "eks-aws-auth"))
    refused = await world.call("PUT", f"{OP_EDGE}/kubeconfig", {"inventory": by_program})
    assert pointers(refused) == ["/inventory/name"]
    assert "providers that need a program are not run; the profile offers: eks-aws-auth" in message(refused)
    # Its author may not exchange the cluster either, nor hide which one it is.
    a_secret(hub, "foreign", {"x-k8s.io/cluster-profile": "foreign"}, config=a_kubeconfig(hub))
    foreign = {"inventory": await a_profile(world, hub, "foreign")}
    assert "another cluster" in message(await world.call("PUT", f"{OP_EDGE}/kubeconfig", foreign))
    namespaces = hub.table.by_name("namespaces")
    assert namespaces is not None
    hub.registry.delete(namespaces, Key("", "kube-system"))
    assert "another cluster" in message(await world.call("PUT", f"{OP_EDGE}/kubeconfig", foreign))
    outside = await a_profile(world, hub, "outside", a_provider(cluster, "secretreader", clusterName="../configmaps/x"))
    refused = await world.call("PUT", f"{OP_EDGE}/kubeconfig", {"inventory": outside})
    assert "the name of a Secret expected" in message(refused)


AAI = {"type": "aai", "url": "http://192.0.2.1", "path": PATH}
PROFILE = {"type": "cluster-profile", "cloud_region_id": "op/hub", "namespace": "default", "name": "spoke"}
BAD: list[tuple[str, dict[str, Any], str]] = [
    ("both", by(AAI, kubeconfig="eA=="), "/inventory"),
    ("neither", by(None), "/kubeconfig"),
    ("beside oidc", by(AAI, oidc={"token_url": "http://a/", "client_id": "c", "client_secret": "s"}), "/oidc"),
    ("no type", by({"url": "http://192.0.2.1"}), "/inventory/type"),
    ("unknown type", by({**AAI, "type": "vault"}), "/inventory/type"),
    ("a pointer without a slash", by({**AAI, "path": "esr"}), "/inventory/path"),
    ("a pointer with a lone tilde", by({**AAI, "path": "/a~2"}), "/inventory/path"),
    ("refresh", by({**AAI, "refresh": 59}), "/inventory/refresh"),
    ("a URL with a password", by({**AAI, "url": "http://u:p@192.0.2.1"}), "/inventory/url"),
    ("a URL with a query", by({**AAI, "url": "http://192.0.2.1?a"}), "/inventory/url"),
    ("a user with a colon", by({**AAI, "user": "a:b"}), "/inventory/user"),
    ("no certificate", by({**AAI, "url": "https://192.0.2.1", "ca": "x"}), "/inventory/client_certificate"),
    ("an address that is not allowed", by({**AAI, "url": "http://10.0.0.1"}), "/inventory/url"),
    ("unknown member", by({**AAI, "colour": "blue"}), "/inventory/colour"),
    ("no such region", by(PROFILE), "/inventory/cloud_region_id"),
    ("the region itself", by({**PROFILE, "cloud_region_id": "op/edge"}), "/inventory/cloud_region_id"),
    ("a region without its owner", by({**PROFILE, "cloud_region_id": "hub"}), "/inventory/cloud_region_id"),
    ("namespace", by({**PROFILE, "namespace": "A"}), "/inventory/namespace"),
    ("name", by({**PROFILE, "name": "a..b"}), "/inventory/name"),
    ("consumer", by({**PROFILE, "consumer": ""}), "/inventory/consumer"),
]


async def test_bad_inventories_are_refused_with_a_pointer(world: RegionWorld) -> None:
    """Chapter 11; nothing is stored."""
    for name, body, pointer in BAD:
        assert pointers(await world.call("POST", REGIONS, body)) == [pointer], name
    async with aai() as (twin, inventory):
        answers: list[tuple[int, object, str]] = [
            (200, "", "/inventory/path"),
            (200, {"a": 1}, "/inventory/path"),
            (200, "%%%", "/inventory"),
            (200, "a" * 1_500_000 + ":", "/inventory"),
            (401, "", "/inventory/user"),
            (404, "", "/inventory/url"),
            (503, "", "/inventory/url"),
            (302, "", "/inventory/url"),
        ]
        for status, kubeconfig, pointer in answers:
            twin.status, twin.kubeconfig = status, kubeconfig
            refused = await world.call("POST", REGIONS, by(inventory))
            assert pointers(refused) == [pointer], (status, refused.raw)
            assert PASSWORD.encode() not in refused.raw
    assert (await world.call("GET", REGIONS)).json == []
