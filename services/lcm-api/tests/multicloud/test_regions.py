"""``/multicloud/v1/cloud-regions`` over HTTP: registered, listed, shown, rotated and removed (multicloud.md chapter 11)."""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml
from kubevnfm_clients.multicloud.links import VirtualLink
from kubevnfm_clients.multicloud.regions import HttpCloudRegions
from kubevnfm_clients.multicloud.volumes import PersistentVolume
from kubevnfm_events.vim import VimDeregistered, VimRegistered
from kubevnfm_lab.kubernetes.cluster import LabCluster
from kubevnfm_lab.kubernetes.objects import Key
from kubevnfm_lab.lab import Lab
from kubevnfm_vim_registry.records import COLLECTION
from kubevnfm_vim_registry.settings import Settings
from patience import until_true
from worlds.kubeconfigs import a_kubeconfig, encoded
from worlds.lcm_world import Answer
from worlds.region_world import REGIONS, RegionWorld, region_world
from worlds.vim_world import RING, TOKEN

MakeCluster = Callable[..., Awaitable[LabCluster]]
OP_EDGE = f"{REGIONS}/op/edge"


def pointers(answer: Answer) -> list[str]:
    """Return the pointers of a 422."""
    return [error["pointer"] for error in answer.problem(422)["errors"]]


def message(answer: Answer) -> str:
    return str(answer.problem(422)["errors"][0]["message"])


def form(metadata: dict[str, Any], file: bytes) -> aiohttp.FormData:
    data = aiohttp.FormData()
    data.add_field("metadata", json.dumps(metadata), content_type="application/json")
    data.add_field("file", file, filename="kubeconfig", content_type="application/octet-stream")
    return data


async def test_a_region_is_registered_shown_and_removed(world: RegionWorld, cluster: LabCluster) -> None:
    """MC-071, MC-073, MC-075."""
    connectivity = {
        "connectivity-records": [{"connectivity-record-name": "sdn", "user-name": "u", "password": "pass-of-sdn"}]
    }
    body: dict[str, Any] = {
        "labels": {"zone": "west"},
        "kv": {"site": {"rack": 4}},
        "default_namespace_labels": {"pod-security.kubernetes.io/enforce": "baseline"},
        "protected_namespaces": ["monitoring"],
        "other-connectivity-list": connectivity,
    }
    made = (await world.region(cluster, **body)).must(201)
    region = made.json
    assert made.headers["Location"] == f"{world.url}{OP_EDGE}"
    assert (region["id"], region["status"], region["auth"]) == ("op/edge", "ACTIVE", "token")
    assert (region["endpoint"], region["server_version"]) == (cluster.endpoint, "v1.31.4")
    assert (region["context"], region["kubeconfig"]) == ("there", "***")
    assert re.fullmatch(r"[0-9a-f]{64}", region["sha256"])
    assert region["not_after"] is not None  # of the CA
    assert region["other-connectivity-list"]["connectivity-records"][0]["password"] == "***"
    for name in ("labels", "kv", "default_namespace_labels", "protected_namespaces"):
        assert region[name] == body[name]
    assert (await world.call("GET", OP_EDGE)).must(200).json == region
    assert (await world.call("GET", REGIONS)).must(200).json == [region]

    shown = await world.registry.vims.get(region["vim_id"])
    assert (shown["name"], shown["type"], shown["auth_url"]) == ("op/edge", "kubernetes", cluster.endpoint)
    assert await world.registry.events.first(VimRegistered)
    for secret in (cluster.admin_token, "pass-of-sdn"):
        for event in world.registry.events.envelopes:
            assert secret not in json.dumps(event.document(RING))
        assert secret not in json.dumps(region)
        assert secret.encode() not in (await world.call("GET", REGIONS)).raw

    (await world.call("DELETE", OP_EDGE)).must(204)
    (await world.call("GET", OP_EDGE)).problem(404)
    assert (await world.registry.events.first(VimDeregistered)).vim_ids == (region["vim_id"],)


async def test_private_keys_are_not_shown_whatever_their_names_are(world: RegionWorld, cluster: LabCluster) -> None:
    """MC-075: the certificate to present may come with its key."""
    key = "-----BEGIN PRIVATE KEY-----\nc3dvcmRmaXNo\n-----END PRIVATE KEY-----\n"
    record = {"connectivity-record-name": "sdn", "cert-to-present": f"-----BEGIN CERTIFICATE-----\n{key}"}
    body: dict[str, Any] = {"kv": {"mine": [key]}, "other-connectivity-list": {"connectivity-records": [record]}}
    made = await world.region(cluster, **body)
    assert b"c3dvcmRmaXNo" not in made.raw
    assert made.must(201).json["kv"] == {"mine": ["***"]}
    (shown,) = made.json["other-connectivity-list"]["connectivity-records"]
    assert shown == {"connectivity-record-name": "sdn", "cert-to-present": "***"}
    stored = await world.registry.store.get(COLLECTION, made.json["vim_id"])
    assert stored is not None
    assert "c3dvcmRmaXNo" not in json.dumps(stored.body)


async def test_other_access_data_of_its_vim_are_those_of_the_region(world: RegionWorld, cluster: LabCluster) -> None:
    """MC-071: one store, both views."""
    made = (await world.region(cluster)).must(201).json
    user = yaml.safe_load(cluster.kubeconfig_admin())["users"][0]["user"]
    names = {"client_certificate": "client-certificate-data", "client_key": "client-key-data"}
    given = {name: base64.b64decode(user[part]).decode() for name, part in names.items()}
    await world.registry.vims.update(made["vim_id"], {"auth_cred": {"bearer_token": None, **given}})
    changed = (await world.call("GET", OP_EDGE)).must(200).json
    assert (changed["auth"], changed["sha256"]) == ("client-certificate", "")
    assert changed["not_after"] < made["not_after"]


async def test_a_form_registers_the_same_as_json(world: RegionWorld, cluster: LabCluster) -> None:
    file = a_kubeconfig(cluster).encode()
    metadata = {"cloud_owner": "op", "cloud_region": "edge", "labels": {"a": "b"}}
    made = (await world.call("POST", REGIONS, data=form(metadata, file))).must(201).json
    again = (await world.region(cluster, labels={"a": "b"})).must(200).json
    assert again == made


async def test_a_second_registration_with_the_same_endpoint_is_200_and_with_another_409(
    world: RegionWorld, cluster: LabCluster, make_cluster: MakeCluster
) -> None:
    """MC-073; it may bring other access data and labels."""
    first = (await world.region(cluster)).must(201)
    again = (await world.region(cluster)).must(200)
    assert again.json == first.json
    assert again.headers["ETag"] == first.headers["ETag"]

    by_certificate = encoded(cluster.kubeconfig_admin())
    changed = (await world.region(cluster, kubeconfig=by_certificate, labels={"zone": "west"})).must(200).json
    assert (changed["auth"], changed["labels"]) == ("client-certificate", {"zone": "west"})
    assert changed["vim_id"] == first.json["vim_id"]
    assert changed["sha256"] != first.json["sha256"]

    other = await world.region(await make_cluster())
    assert cluster.endpoint in other.problem(409)["detail"]


async def test_two_registrations_at_once_make_one_region(world: RegionWorld, cluster: LabCluster) -> None:
    answers = await asyncio.gather(*(world.region(cluster) for _ in range(4)))
    assert sorted(answer.status for answer in answers) == [200, 200, 200, 201]
    assert len({answer.json["vim_id"] for answer in answers}) == 1


async def test_the_key_is_owner_and_region(world: RegionWorld, cluster: LabCluster) -> None:
    """MC-072, MC-007."""
    for owner, name in (("a", "one"), ("b", "one"), ("a", "two")):
        (await world.region(cluster, name, cloud_owner=owner)).must(201)

    async def ids(query: str = "") -> list[str]:
        return [one["id"] for one in (await world.call("GET", f"{REGIONS}{query}")).must(200).json]

    assert await ids() == ["a/one", "a/two", "b/one"]
    assert await ids("?cloud_region_id=one") == ["a/one", "b/one"]
    assert await ids("?cloud_region_id=b/one") == ["b/one"]
    assert await ids("?cloud_owner=a") == ["a/one", "a/two"]
    assert await ids("?cloud_region_id=one&cloud_region=two") == []
    assert await ids("?cloud_region=one&cloud_region_id=two") == []
    assert await ids("?status=UNREACHABLE") == []
    # The export of the inventory finds the region of a VIM so.
    client = HttpCloudRegions(world.registry.url, TOKEN, world.session, RING)
    shown = {one["vim_id"]: one["id"] for one in (await world.call("GET", REGIONS)).must(200).json}
    for vim_id, region in shown.items():
        assert [each.id for each in (await client.find({"vim_id": vim_id}, limit=1)).items] == [region]
    assert (await client.find({"vim_id": "unknown"}, limit=1)).items == []
    # The search asks for what begins so.
    for name, value, found in (
        ("id_prefix", "a/", ["a/one", "a/two"]),
        ("id_prefix", "a/one", ["a/one"]),
        ("name_prefix", "on", ["a/one", "b/one"]),
        ("name_prefix", "two", ["a/two"]),
        ("name_prefix", "a", []),
    ):
        assert sorted(each.id for each in (await client.find({name: value}, limit=9)).items) == found, value
        assert len((await client.find({name: value}, limit=1)).items) == min(len(found), 1), value

    first = (await world.call("GET", f"{REGIONS}?limit=2")).must(200)
    assert [one["id"] for one in first.json] == ["a/one", "a/two"]
    link = re.fullmatch(r'<(.+)>; rel="next"', first.headers["Link"])
    assert link is not None
    following = link[1].removeprefix(world.url)
    last = (await world.call("GET", following)).must(200)
    assert [one["id"] for one in last.json] == ["b/one"]
    assert "Link" not in last.headers
    for query in ("limit=0", "limit=1001", "limit=x", "nextpage_opaque_marker=x", "colour=blue", "status=active"):
        (await world.call("GET", f"{REGIONS}?{query}")).problem(400)
    (await world.call("GET", f"{following}&cloud_owner=b")).problem(400)


async def test_another_kubeconfig_is_verified_before_it_is_used(
    world: RegionWorld, cluster: LabCluster, make_cluster: MakeCluster
) -> None:
    """MC-076, MC-009."""
    made = (await world.region(cluster)).must(201)
    path = f"{OP_EDGE}/kubeconfig"
    wrong = await world.call("PUT", path, {"kubeconfig": encoded(a_kubeconfig(cluster, user={"token": "wrong"}))})
    assert pointers(wrong) == ["/kubeconfig"]
    elsewhere = await world.call("PUT", path, {"kubeconfig": encoded(a_kubeconfig(await make_cluster()))})
    assert "another cluster" in message(elsewhere)
    assert (await world.call("GET", OP_EDGE)).json == made.json

    by_certificate = {"kubeconfig": encoded(cluster.kubeconfig_admin())}
    stale = {"If-Match": '"0"'}
    (await world.call("PUT", path, by_certificate, stale)).problem(412)
    changed = (await world.call("PUT", path, by_certificate, {"If-Match": made.headers["ETag"]})).must(200)
    assert changed.json["auth"] == "client-certificate"
    assert changed.json["sha256"] != made.json["sha256"]
    (await world.call("DELETE", OP_EDGE, headers={"If-Match": made.headers["ETag"]})).problem(412)
    back = (await world.call("PUT", path, data=form({}, a_kubeconfig(cluster).encode()))).must(200).json
    assert (back["auth"], back["sha256"]) == ("token", made.json["sha256"])


async def test_a_change_while_a_kubeconfig_is_verified_wins(world: RegionWorld, cluster: LabCluster, lab: Lab) -> None:
    """MC-009, MC-076: a request for what its caller has read is 412, and its access data are not used; any other is done after it."""
    made = await world.region(cluster)
    lab.faults.add(part="kubernetes", effect="hang")
    lab.ledger.clear()
    other = {"kubeconfig": encoded(cluster.kubeconfig_admin())}
    path, seen = f"{OP_EDGE}/kubeconfig", {"If-Match": made.must(201).headers["ETag"]}
    refused, repeated = (asyncio.create_task(world.call("PUT", path, other, each)) for each in (seen, None))

    async def is_held() -> bool:
        return len(lab.ledger.calls()) >= 2

    await until_true(is_held)
    (await world.call("PATCH", OP_EDGE, {"labels": {"zone": "west"}})).must(200)
    lab.faults.clear()
    (await refused).problem(412)
    shown = (await repeated).must(200).json
    assert (shown["labels"], shown["auth"]) == ({"zone": "west"}, "client-certificate")
    assert (await world.call("GET", OP_EDGE)).json == shown


async def test_writes_that_name_no_state_do_not_notice_others(world: RegionWorld, cluster: LabCluster) -> None:
    """MC-009: changes and registrations at once are all made; a removal removes what it has become."""
    (await world.region(cluster)).must(201)
    patches = [world.call("PATCH", OP_EDGE, {"labels": {f"l{number}": "x"}}) for number in range(5)]
    for answer in await asyncio.gather(world.region(cluster, kv={"site": 4}), *patches):
        answer.must(200)
    assert (await world.call("PATCH", OP_EDGE, {"labels": {"l9": "x"}})).json["kv"] == {"site": 4}
    world.registry.users.meanwhile = partial(world.call, "PATCH", OP_EDGE, {"labels": None})
    (await world.call("DELETE", OP_EDGE)).must(204)
    world.registry.users.meanwhile = None
    (await world.call("GET", OP_EDGE)).must(404)


async def test_labels_and_kv_are_changed_by_a_merge_patch(world: RegionWorld, cluster: LabCluster) -> None:
    """MC-009, chapter 3: nothing else of a region changes."""
    body: dict[str, Any] = {
        "labels": {"zone": "west", "tier": "a"},
        "kv": {"site": {"rack": 4, "row": 1}, "password": "swordfish"},
    }
    made = (await world.region(cluster, **body)).must(201)
    patch = {"labels": {"tier": None, "kind": "edge"}, "kv": {"site": {"row": None, "hall": "b"}}}
    stale = {"If-Match": '"0"'}
    (await world.call("PATCH", OP_EDGE, patch, stale)).problem(412)
    changed = (await world.call("PATCH", OP_EDGE, patch, {"If-Match": made.headers["ETag"]})).must(200)
    assert changed.json["labels"] == {"zone": "west", "kind": "edge"}
    assert changed.json["kv"] == {"site": {"rack": 4, "hall": "b"}, "password": "***"}
    after = {name: value for name, value in changed.json.items() if name not in {"labels", "kv", "updated_at"}}
    assert after.items() <= made.json.items()
    again = (await world.call("PATCH", OP_EDGE, patch)).must(200)
    assert again.headers["ETag"] == changed.headers["ETag"] != made.headers["ETag"]
    stored = await world.registry.store.get(COLLECTION, made.json["vim_id"])
    assert stored is not None
    assert "swordfish" not in json.dumps(stored.body)
    emptied = (await world.call("PATCH", OP_EDGE, {"labels": None, "kv": None})).must(200).json
    assert (emptied["labels"], emptied["kv"]) == ({}, {})


BAD_PATCHES: list[tuple[object, list[str]]] = [
    ({"protected_namespaces": []}, ["/protected_namespaces"]),
    ({"cloud_region": "other"}, ["/cloud_region"]),
    ({"labels": {"zone": "w" * 64}}, ["/labels/zone"]),
    ({"labels": {f"l{n}": "" for n in range(65)}}, ["/labels"]),
    ({"kv": {"a": "x" * 70_000}}, ["/kv"]),
    ({"kv": {"b": {"password": "***"}}}, ["/kv"]),
    ({"kv": {"b": {"password": ["***"]}}}, ["/kv"]),
    ({"kv": []}, ["/kv"]),
]


async def test_bad_patches_are_refused_with_a_pointer(world: RegionWorld, cluster: LabCluster) -> None:
    """Chapter 11."""
    made = (await world.region(cluster, kv={"a": {"x": "y" * 60_000}})).must(201).json
    for patch, expected in BAD_PATCHES:
        assert pointers(await world.call("PATCH", OP_EDGE, patch)) == expected, patch
    # Each patch is small enough, and what they make together is not.
    assert pointers(await world.call("PATCH", OP_EDGE, {"kv": {"b": "x" * 10_000}})) == ["/kv"]
    (await world.call("PATCH", OP_EDGE, headers={"Content-Type": "text/plain"}, data=b"{}")).problem(415)
    (await world.call("PATCH", OP_EDGE)).problem(400)
    (await world.call("PATCH", f"{REGIONS}/op/none", {})).problem(404)
    assert (await world.call("GET", OP_EDGE)).must(200).json == made


async def test_a_region_that_instances_use_is_not_removed(world: RegionWorld, cluster: LabCluster) -> None:
    """MC-077."""
    vim_id = (await world.region(cluster)).must(201).json["vim_id"]
    world.registry.users.by_vim[vim_id] = ["vnf-1", "vnf-2"]
    refused = (await world.call("DELETE", OP_EDGE)).problem(409)
    assert refused["type"] == "in-use"
    assert "vnf-1, vnf-2" in refused["detail"]
    assert (refused["holders"], refused["holder_count"]) == (["vnf-1", "vnf-2"], 2)
    world.registry.users.by_vim.clear()
    (await world.call("DELETE", OP_EDGE)).must(204)


async def test_a_region_that_changes_while_it_is_removed_stays(world: RegionWorld, cluster: LabCluster) -> None:
    """MC-009: the removal was asked for what the caller had read."""
    made = (await world.region(cluster)).must(201)
    by_certificate = {"kubeconfig": encoded(cluster.kubeconfig_admin())}
    world.registry.users.meanwhile = partial(world.call, "PUT", f"{OP_EDGE}/kubeconfig", by_certificate)
    refused = (await world.call("DELETE", OP_EDGE, headers={"If-Match": made.headers["ETag"]})).problem(412)
    assert refused["type"] == "precondition-failed"
    world.registry.users.meanwhile = None
    assert (await world.call("GET", OP_EDGE)).must(200).json["auth"] == "client-certificate"
    (await world.call("DELETE", OP_EDGE)).must(204)


PROGRAMS: list[tuple[str, dict[str, Any]]] = [
    ("exec", {"exec": {"command": "aws"}}),
    ("auth-provider", {"auth-provider": {"name": "gcp"}}),
    ("tokenFile", {"tokenFile": "/token"}),
    ("client-certificate", {"client-certificate": "/crt", "client-key": "/key"}),
    ("username", {"username": "u", "password": "swordfish"}),
    ("as", {"as": "root"}),
]


@pytest.mark.parametrize(("name", "user"), PROGRAMS, ids=[name for name, _ in PROGRAMS])
async def test_what_works_on_the_authors_machine_only_is_refused(
    world: RegionWorld, cluster: LabCluster, name: str, user: dict[str, Any]
) -> None:
    """MC-074: also beside a token. MC-082: programs have a way out."""
    for given in (user, {**user, "token": cluster.admin_token}):
        refused = await world.region(cluster, kubeconfig=encoded(a_kubeconfig(cluster, user=given)))
        assert pointers(refused) == ["/kubeconfig"]
        assert f"users[].user.{name}" in message(refused)
        assert ("token_request" in message(refused)) == (name in {"exec", "auth-provider"})
        assert b"swordfish" not in refused.raw
    assert (await world.call("GET", REGIONS)).json == []


@pytest.mark.parametrize("name", ["certificate-authority", "insecure-skip-tls-verify", "proxy-url", "tls-server-name"])
async def test_a_cluster_whose_certificate_is_not_verified_is_refused(
    world: RegionWorld, cluster: LabCluster, name: str
) -> None:
    """MC-074."""
    value = True if name == "insecure-skip-tls-verify" else "http://127.0.0.1:3128"
    entry = {"server": cluster.endpoint, name: value}
    refused = await world.region(cluster, kubeconfig=encoded(a_kubeconfig(cluster, entry=entry)))
    assert pointers(refused) == ["/kubeconfig"]
    assert f"clusters[].cluster.{name}" in message(refused)


async def test_a_context_that_cannot_be_shown_is_refused(world: RegionWorld, cluster: LabCluster) -> None:
    """The kubeconfig decides its name, which is stored with the region."""
    config = yaml.safe_load(a_kubeconfig(cluster))
    for name in ("n" * 254, ["n"]):
        config["current-context"] = config["contexts"][0]["name"] = name
        refused = await world.region(cluster, kubeconfig=encoded(yaml.safe_dump(config)))
        assert pointers(refused) == ["/kubeconfig"]
        assert "current-context: a text of at most 253 characters" in message(refused)


async def test_an_operator_may_allow_certificates_that_are_not_verified(
    lab: Lab, settings: Settings, tmp_path: Path, cluster: LabCluster
) -> None:
    """MC-074."""
    allowed = settings.model_copy(update={"region_insecure": True})
    entry = {"server": cluster.endpoint, "insecure-skip-tls-verify": True}
    async with region_world(lab, allowed, tmp_path) as world:
        (await world.region(cluster, kubeconfig=encoded(a_kubeconfig(cluster, entry=entry)))).must(201)


BAD: list[tuple[str, dict[str, Any], str]] = [
    ("no base64", {"kubeconfig": "%%%"}, "/kubeconfig"),
    ("not UTF-8", {"kubeconfig": "gICA"}, "/kubeconfig"),
    ("not YAML", {"kubeconfig": encoded("a: [")}, "/kubeconfig"),
    ("no clusters", {"kubeconfig": encoded("apiVersion: v1\nkind: Config\n")}, "/kubeconfig"),
    ("a list", {"kubeconfig": encoded("[]")}, "/kubeconfig"),
    ("no kubeconfig", {"kubeconfig": None}, "/kubeconfig"),
    ("an object", {"kubeconfig": {"token": "x"}}, "/kubeconfig"),
    ("unknown context", {"context": "elsewhere"}, "/context"),
    ("empty owner", {"cloud_owner": ""}, "/cloud_owner"),
    ("owner with a slash", {"cloud_owner": "a/b"}, "/cloud_owner"),
    ("owner with a bar", {"cloud_owner": "a|b"}, "/cloud_owner"),
    ("owner with a line break", {"cloud_owner": "a\n"}, "/cloud_owner"),
    ("long region", {"cloud_region": "a" * 65}, "/cloud_region"),
    ("region of dots", {"cloud_region": ".."}, "/cloud_region"),
    ("unknown member", {"colour": "blue"}, "/colour"),
    ("label value", {"labels": {"zone": "w" * 64}}, "/labels/zone"),
    ("label value of a name with a slash", {"labels": {"a.example/zone": "w" * 64}}, "/labels/a.example~1zone"),
    ("label name", {"labels": {"a~/zone": "w"}}, "/labels/a~0~1zone"),
    ("namespace", {"protected_namespaces": ["ok", "Not_Ok"]}, "/protected_namespaces/1"),
    ("links_namespace", {"links_namespace": "a.b"}, "/links_namespace"),
    ("sriov_namespace", {"sriov_namespace": "-"}, "/sriov_namespace"),
    ("large kv", {"kv": {"a": "x" * 70_000}}, "/kv"),
    ("large secret in kv", {"kv": {"password": "x" * 70_000}}, "/kv"),
    ("large list", {"other-connectivity-list": {"password": "x" * 70_000}}, "/other-connectivity-list"),
]


@pytest.mark.parametrize(("_", "changes", "pointer"), BAD, ids=[name for name, _, _ in BAD])
async def test_bad_input_is_refused_with_a_pointer(
    world: RegionWorld, cluster: LabCluster, _: str, changes: dict[str, Any], pointer: str
) -> None:
    """MC-006, chapter 11."""
    assert pointers(await world.region(cluster, **changes)) == [pointer]
    assert (await world.call("GET", REGIONS)).json == []


async def test_all_wrong_attributes_are_in_one_answer(world: RegionWorld, cluster: LabCluster) -> None:
    """MC-006."""
    refused = await world.region(cluster, cloud_owner="a/b", sriov_namespace="-", sriov_namespaec="blue")
    assert sorted(pointers(refused)) == ["/cloud_owner", "/sriov_namespace", "/sriov_namespaec"]
    assert "did you mean sriov_namespace?" in str(refused.json)


async def test_a_large_file_is_413(world: RegionWorld, cluster: LabCluster) -> None:
    large = b"#" * (2**20 + 1)
    metadata = {"cloud_owner": "op", "cloud_region": "edge"}
    (await world.call("POST", REGIONS, data=form(metadata, large))).problem(413)
    (await world.region(cluster, kubeconfig=encoded(large.decode()))).problem(413)
    padded = a_kubeconfig(cluster) + "#" * (2**20 - len(a_kubeconfig(cluster)))
    (await world.region(cluster, kubeconfig=encoded(padded))).must(201)


async def test_forms_have_two_parts(world: RegionWorld, cluster: LabCluster) -> None:
    metadata = {"cloud_owner": "op", "cloud_region": "edge"}
    lone = aiohttp.FormData()
    lone.add_field("metadata", json.dumps(metadata), content_type="application/json")
    assert pointers(await world.call("POST", REGIONS, data=lone)) == ["/file"]
    third = form(metadata, b"x")
    third.add_field("other", b"x", filename="y")
    assert pointers(await world.call("POST", REGIONS, data=third)) == ["/other"]
    twice = {**metadata, "kubeconfig": "eA=="}
    assert pointers(await world.call("POST", REGIONS, data=form(twice, b"x"))) == ["/kubeconfig"]
    broken = {"Content-Type": "multipart/form-data; boundary=b"}
    for data in (b'--b\r\nContent-Disposition: form-data; name="metadata"\r\n\r\n{', b"nothing", b"--b--"):
        assert (await world.call("POST", REGIONS, headers=broken, data=data)).status in {400, 422}
    long_header = b"--b\r\nX: " + b"x" * 20_000 + b"\r\n\r\nx\r\n--b--\r\n"
    (await world.call("POST", REGIONS, headers=broken, data=long_header)).problem(400)
    without = {"Content-Type": "multipart/form-data"}
    (await world.call("POST", REGIONS, headers=without, data=b"x")).problem(400)
    (await world.call("POST", REGIONS, headers={"Content-Type": "text/plain"}, data=b"x")).problem(415)
    (await world.call("POST", REGIONS, headers={"Content-Type": "application/json"}, data=b"{")).problem(400)
    (await world.call("POST", REGIONS)).problem(400)


async def test_a_cluster_that_cannot_be_used_is_refused_with_the_reason(
    world: RegionWorld, cluster: LabCluster, make_cluster: MakeCluster
) -> None:
    """MC-073."""
    other = await make_cluster()
    foreign = encoded(a_kubeconfig(other, entry={"server": cluster.endpoint, **_ca(other)}))
    refused = await world.region(cluster, kubeconfig=foreign)
    assert pointers(refused) == ["/kubeconfig"]
    assert "certificate" in message(refused)
    wrong = await world.region(cluster, kubeconfig=encoded(a_kubeconfig(cluster, user={"token": "swordfish"})))
    assert "rejects the token" in message(wrong)
    assert b"swordfish" not in wrong.raw
    unused = {"server": "https://127.0.0.1:1", **_ca(cluster)}
    away = await world.region(cluster, kubeconfig=encoded(a_kubeconfig(cluster, entry=unused)))
    assert "does not answer" in message(away)
    assert (await world.call("GET", REGIONS)).json == []


def _ca(cluster: LabCluster) -> dict[str, str]:
    return {"certificate-authority-data": encoded(cluster.ca_pem)}


async def a_token(world: RegionWorld, cluster: LabCluster, *rules: dict[str, Any]) -> str:
    """Return the token of a new service account to which these rules apply in the whole cluster."""
    account = {"kind": "ServiceAccount", "name": "limited", "namespace": "default"}
    cluster.plane.create("serviceaccounts", {"metadata": {"name": "limited", "namespace": "default"}})
    group = "rbac.authorization.k8s.io"
    role = {"apiGroup": group, "kind": "ClusterRole", "name": "limited"}
    cluster.plane.create(f"clusterroles.{group}", {"metadata": {"name": "limited"}, "rules": list(rules)})
    cluster.plane.create(
        f"clusterrolebindings.{group}", {"metadata": {"name": "limited"}, "roleRef": role, "subjects": [account]}
    )
    path = f"{cluster.endpoint}/api/v1/namespaces/default/serviceaccounts/limited/token"
    headers = {"Authorization": f"Bearer {cluster.admin_token}"}
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    async with world.session.post(path, json=request, headers=headers, ssl=False) as response:
        return str((await response.json())["status"]["token"])


async def test_missing_permissions_are_named(world: RegionWorld, cluster: LabCluster) -> None:
    """MC-073: those that every VNF needs refuse the registration, others are shown."""
    objects = ["namespaces", "pods", "services", "configmaps", "secrets", "deployments"]
    verbs = ["get", "list", "watch", "create", "patch", "delete"]
    rule = {"apiGroups": ["", "apps"], "resources": objects, "verbs": verbs[:-1]}
    token = await a_token(world, cluster, rule)
    limited = {"kubeconfig": encoded(a_kubeconfig(cluster, user={"token": token}))}
    refused = await world.region(cluster, **limited)
    assert pointers(refused) == ["/kubeconfig"]
    wanted = ", ".join(f"delete {name}" for name in [*objects[:-1], "deployments.apps"])
    assert message(refused) == f"its user lacks permissions: {wanted}"

    key = Key("", "limited")
    rule = {**rule, "verbs": verbs}
    cluster.registry.change("clusterroles.rbac.authorization.k8s.io", key, lambda role: role.update(rules=[rule]))
    region = (await world.region(cluster, **limited)).must(201).json
    assert {
        "list nodes",
        "watch nodes",
        "list persistentvolumes",
        "create persistentvolumes",
        "patch persistentvolumeclaims",
    } <= set(region["missing_permissions"])
    assert not any("kubevirt" in each for each in region["missing_permissions"])
    assert (await world.registry.vims.get(region["vim_id"]))["status"] == "ACTIVE"
    problem = (await world.call("GET", f"{OP_EDGE}/features")).problem(422)
    assert "nodes is forbidden" in problem["detail"]


async def test_a_region_with_links_or_volumes_is_not_removed(world: RegionWorld, cluster: LabCluster) -> None:
    """MC-077."""
    region = (await world.region(cluster)).must(201).json
    world.links.by_vim[region["vim_id"]] = VirtualLink(
        id="5d3c0b8e", cloud_region_id="op/edge", name="net", type="nad", metadata={}, spec={}, use_count=1,
        references=("so",), status="READY", created_at="2026-01-01T00:00:00Z", updated_at="2026-01-01T00:00:00Z",
    )  # fmt: skip
    used = (await world.call("DELETE", OP_EDGE)).problem(409)
    assert (used["type"], used["holders"]) == ("in-use", ["5d3c0b8e"])
    world.volumes.by_vim[region["vim_id"]] = PersistentVolume(
        id="77aa01c2", cloud_region_id="op/edge", name="data", phase="Reserved", size="1Gi", access_modes=(),
        volume_mode="Filesystem", reclaim="Retain", created_at="2026-01-01T00:00:00Z", updated_at="2026-01-01T00:00:00Z",
    )  # fmt: skip
    assert (await world.call("DELETE", OP_EDGE)).problem(409)["holders"] == ["5d3c0b8e", "77aa01c2"]
    world.links.by_vim.clear()
    assert (await world.call("DELETE", OP_EDGE)).problem(409)["holders"] == ["77aa01c2"]
    async with world.session.delete(f"{world.url}/v1.0/vims/{region['vim_id']}") as as_a_vim:
        assert as_a_vim.status == 409
        assert "persistent volume data (77aa01c2)" in await as_a_vim.text()
    assert (await world.call("GET", OP_EDGE)).must(200).json["vim_id"] == region["vim_id"]
    world.volumes.by_vim.clear()
    (await world.call("DELETE", OP_EDGE)).must(204)


async def test_a_region_is_removed_with_links_in_it_by_force(world: RegionWorld, cluster: LabCluster) -> None:
    """MC-077: of a region that never answers again, no link could be removed. A VNF is taken down by ``orphan`` before."""
    region = (await world.region(cluster)).must(201).json
    world.links.by_vim[region["vim_id"]] = VirtualLink(
        id="5d3c0b8e", cloud_region_id="op/edge", name="net", type="nad", metadata={}, spec={}, use_count=1,
        references=("so",), status="READY", created_at="2026-01-01T00:00:00Z", updated_at="2026-01-01T00:00:00Z",
    )  # fmt: skip
    (await world.call("DELETE", f"{OP_EDGE}?force=yes")).problem(400)
    (await world.call("DELETE", f"{OP_EDGE}?force=false")).problem(409)
    world.registry.users.by_vim[region["vim_id"]] = ["vnf-1"]
    assert (await world.call("DELETE", f"{OP_EDGE}?force=true")).problem(409)["holders"] == ["vnf-1"]
    world.registry.users.by_vim.clear()
    (await world.call("DELETE", f"{OP_EDGE}?force=true")).must(204)
    (await world.call("GET", OP_EDGE)).problem(404)
