"""Packages that are fetched when they are needed, from a catalogue and from a registry (multicloud.md MC-122 to MC-125)."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import random
import tarfile
import zipfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from kubevnfm_clients.charts import ChartWanted, HttpFetchedCharts
from kubevnfm_clients.multicloud.errors import ChartNotFetched, ChartUnavailable
from kubevnfm_events.objects import ApplyObjects
from kubevnfm_lcm_api.lifecycle.containers.awaiting import AwaitPackageDraft
from kubevnfm_lcm_api.lifecycle.core import occurrence
from kubevnfm_lcm_api.lifecycle.core.replanning import Replanning
from kubevnfm_store.query import Query, by
from packages.cms import cms
from packages.package_variants import variant
from patience import until, until_true
from servers.certificates import Authority
from servers.registry import CHART, LOGIN, PROVENANCE, TOKEN, ZIP, ArtifactServer, digest_of
from worlds.lcm_world import RING, Answer, lcm_world
from worlds.lcm_world import TOKEN as TOKEN_OF_SERVICES
from worlds.multicloud_world import FILES, PASSWORD, VNFS, Gateway, a_gateway
from worlds.set_clock import SetClock

ARTIFACTS = "/multicloud/v1/artifacts"
FETCHED = "csar-of-the-catalogue"
VNFD = "33333333-aaaa-bbbb-cccc-dddddddddddd"


class Ground:
    """A gateway with a catalogue and a registry."""

    def __init__(self, gateway: Gateway, server: ArtifactServer) -> None:
        self.gateway, self.server = gateway, server
        self.csar = variant(gateway.world.folder, files=FILES, vnfd_id=VNFD)

    async def bring_up(self, **changes: Any) -> Answer:
        return await self.gateway.bring_up(**{"csar_id": FETCHED, **changes})

    async def of_registry(self, digest: str, **changes: Any) -> Answer:
        place = {"oci": f"oci://{self.server.host}/acme/vnf", "digest": digest}
        return await self.bring_up(csar_id=None, artifacts=place, **changes)

    async def arriving(self, csar_id: str) -> Any:
        """Return a package of which a part has arrived."""
        while True:
            shown = await self.gateway.call("GET", f"{ARTIFACTS}/{csar_id}")
            if shown.status == 200 and shown.json.get("done_bytes"):
                return shown.json
            await asyncio.sleep(0)

    async def removed(self, csar_id: str) -> None:
        (await self.gateway.call("DELETE", f"{ARTIFACTS}/{csar_id}")).must(204)

    async def down(self, answer: Answer) -> None:
        (await self.gateway.call("DELETE", f"{VNFS}/{answer.json['vnf_id']}")).must(204)

    @property
    def downloads(self) -> int:
        return self.server.asked[f"/vnfpkgm/v2/vnf_packages/{FETCHED}/package_content"]


@asynccontextmanager
async def a_ground(folder: Path, **changes: Any) -> AsyncIterator[Ground]:
    async with ArtifactServer.listening() as server:
        logins = folder / "logins.json"
        auth = base64.b64encode(":".join(LOGIN).encode()).decode()
        logins.write_text(json.dumps({"auths": {server.host: {"auth": auth}}}), encoding="utf-8")
        settings = {
            "allowed_networks": "127.0.0.0/8",
            "artifact_catalogue_url": f"{server.url}/vnfpkgm/v2",
            "artifact_plain_registries": server.host,
            "artifact_registry_logins": logins,
            **changes,
        }
        async with a_gateway(folder, **settings) as gateway:
            ground = Ground(gateway, server)
            server.packages[FETCHED] = ground.csar
            yield ground


@pytest.fixture
async def ground(tmp_path: Path) -> AsyncIterator[Ground]:
    async with a_ground(tmp_path) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Ground]:
    """For fetches that fail."""
    async with a_ground(tmp_path_factory.mktemp("ground")) as running:
        yield running


async def test_five_bring_ups_of_a_package_that_is_not_held_fetch_it_once(ground: Ground) -> None:
    """MC-122, MC-124, MC-125, scenario 8: each is an ordinary VNF afterwards; the copy is in use, then it is dropped."""
    server = ground.server
    server.goes_on.clear()
    server.breaks_after = [1000]
    async_ = {"Prefer": "respond-async"}
    begun = await asyncio.gather(*(ground.bring_up(namespace=f"ns-{n}", headers=async_) for n in range(5)))
    first = begun[0].must(202).json
    assert [each.must(202).json["status"] for each in begun] == ["CREATING"] * 5
    assert (first["csar_id"], first["namespace"], first["resources"]) == (FETCHED, "ns-0", [])
    shown = await ground.arriving(FETCHED)
    assert (shown["status"], shown["origin"], shown["in_use"]) == ("FETCHING", "fetched", False)
    assert (shown["done_bytes"], shown["total_bytes"]) == (1000, len(ground.csar))
    operation = await ground.gateway.world.operation(first["operation"].rpartition("/")[2])
    assert operation["operationState"] == "PROCESSING"
    for text in (str(first), str(operation), *map(str, await stored_texts(ground))):
        assert PASSWORD not in text
    progress = await until(lambda: shown_bytes(ground, operation["id"]))
    assert progress == ("await_package", 1000, len(ground.csar))
    server.goes_on.set()
    for each in begun:
        operation_id = each.json["operation"].rpartition("/")[2]
        assert (await ground.gateway.world.reached(operation_id))["operationState"] == "COMPLETED"
    assert ground.downloads == 2, "the first one broke off and was resumed"
    assert server.ranges == ["bytes=1000-"]
    ready = (await ground.gateway.call("GET", f"{VNFS}/{first['vnf_id']}")).must(200).json
    assert (ready["status"], ready["revision"], ready["csar_id"]) == ("READY", 1, FETCHED)
    of_sol = (await ground.gateway.world.lcm("GET", f"/vnf_instances/{first['vnf_id']}")).must(200).json
    assert of_sol["vnfdId"] == VNFD
    sent = ground.gateway.world.twins.commands[0].data
    assert isinstance(sent, ApplyObjects)
    assert sent.package.package_id == FETCHED

    used = await ground.gateway.call("DELETE", f"{ARTIFACTS}/{FETCHED}")
    assert used.problem(409)["type"] == "in-use"
    assert set(used.json["holders"]) == {each.json["vnf_id"] for each in begun}
    for each in begun:
        await ground.down(each)
    # Another process removes it, and fetches what the catalogue has by the same id now.
    store, newer = ground.gateway.world.store, VNFD.replace("3", "5")
    for collection in ("vnf_packages", "vnfds", "package_contents"):
        await store.delete(collection, FETCHED)
    server.packages[FETCHED] = variant(ground.gateway.world.folder, files=FILES, vnfd_id=newer)
    newest = (await ground.bring_up(namespace="newer")).must(201)
    assert newest.json["status"] == "READY"
    of_sol = (await ground.gateway.world.lcm("GET", f"/vnf_instances/{newest.json['vnf_id']}")).must(200).json
    assert of_sol["vnfdId"] == newer
    await ground.down(newest)
    await ground.removed(FETCHED)
    (await ground.gateway.call("GET", f"{ARTIFACTS}/{FETCHED}")).problem(404)


async def shown_bytes(ground: Ground, operation_id: str) -> tuple[str, int, int] | None:
    """Return the progress that an operation shows of the fetch, once it has some."""
    query = Query(by(operationId=operation_id, task="fetch_package"))
    found = [each.body for each in await ground.gateway.world.store.find("operation_progress", query)]
    return next(((each["step"], each["done"], each["total"]) for each in found if each.get("done")), None)


async def stored_texts(ground: Ground) -> list[bytes]:
    return [path.read_bytes() for path in ground.gateway.world.folder.glob("store.db*") if path.is_file()]


async def test_a_failed_fetch_does_not_affect_the_next_one(ground: Ground) -> None:
    """MC-123, MC-124: the operation has failed with a pointer; its retry, and another bring-up, fetch again."""
    ground.server.attributes = {"checksum": {"algorithm": "SHA-256", "hash": "0" * 64}}
    failed = (await ground.bring_up(namespace="one")).must(201)
    assert failed.json["status"] == "FAILED"
    assert "/csar_id: " in failed.json["status_detail"]
    assert "sha256 checksum is not the expected one" in failed.json["status_detail"]
    assert ground.gateway.world.twins.commands == []
    again = (await ground.bring_up(namespace="two")).must(201)
    assert again.json["status"] == "FAILED"
    ground.server.attributes = {}
    retried = again.json["operation"].rpartition("/")[2]
    (await ground.gateway.world.lcm("POST", f"/vnf_lcm_op_occs/{retried}/retry")).must(202)
    assert (await ground.gateway.world.reached(retried, "COMPLETED"))["operationState"] == "COMPLETED"
    third = (await ground.bring_up(namespace="three")).must(201).json
    assert (third["status"], third["resources"] != []) == ("READY", True)
    assert ground.downloads == 3
    # One that is rolled back meanwhile gets no plan any more; the first one is removed with its failed operation.
    operation_id, world = failed.json["operation"].rpartition("/")[2], ground.gateway.world
    (await world.lcm("POST", f"/vnf_lcm_op_occs/{operation_id}/rollback")).must(202)
    await world.reached(operation_id, "ROLLED_BACK")
    before = await world.store.get(occurrence.COLLECTION, operation_id)
    assert before is not None
    planned = occurrence.OccurrenceRecord.from_document(before.body)
    await Replanning(world.store, RING).write_occurrence(planned, waiting_plan=AwaitPackageDraft.plan)
    assert await world.store.get(occurrence.COLLECTION, operation_id) == before
    await ground.down(failed)


async def test_what_does_not_fit_the_package_fails_the_operation_with_pointers(ground: Ground) -> None:
    """MC-122: known only once the package is there; a request that is wrong by itself is refused at once."""
    made = (await ground.bring_up(order_artifact="none.yaml")).must(201).json
    assert made["status"] == "FAILED"
    assert "/order_artifact: " in made["status_detail"]
    assert ground.gateway.world.twins.commands == []
    for changes, pointer in (
        ({"csar_id": "../etc"}, "/csar_id"),
        ({"namespace": "ours"}, "/namespace"),
        ({"values": {"vnf_id": 1}}, "/values/vnf_id"),
        ({"cloud_region_id": "op/none"}, "/cloud_region_id"),
    ):
        refused = await ground.bring_up(**changes)
        assert [each["pointer"] for each in refused.problem(422)["errors"]] == [pointer]
    dry = await ground.gateway.call(
        "POST", f"{VNFS}?dry_run=render", {"cloud_region_id": "op/edge", "csar_id": "not-held"}
    )
    assert [each["pointer"] for each in dry.problem(422)["errors"]] == ["/csar_id"]


@pytest.mark.parametrize("challenge", ["", "basic", "bearer"])
async def test_a_package_comes_from_a_registry(ground: Ground, challenge: str) -> None:
    """MC-122: the manifest is asked for by digest; the layer is resumed, also elsewhere; credentials stay with the registry."""
    server = ground.server
    server.challenge = challenge
    digest = server.push(ground.csar)
    async with ArtifactServer.listening() as other:
        other.blobs, other.breaks_after = server.blobs, [1000]
        other.goes_on.clear()
        # A host of the same name is its own; the port is another one.
        server.moved_to = other.url
        making = asyncio.create_task(ground.of_registry(digest))
        await ground.arriving(f"sha256-{digest.partition(':')[2]}")
        other.goes_on.set()
        made = (await making).must(201).json
    assert (made["status"], made["csar_id"]) == ("READY", f"sha256-{digest.partition(':')[2]}")
    assert all("Authorization" not in headers for headers in other.headers)
    assert other.asked[f"/elsewhere/{digest_of(ground.csar)}"] == 2
    assert other.ranges == ["bytes=1000-"]
    assert server.scopes == (["repository:acme/vnf:pull"] if challenge == "bearer" else [])


@pytest.mark.asyncio(loop_scope="module")
async def test_what_a_registry_serves_is_checked(shared: Ground) -> None:
    """MC-122, MC-123, and the bad input of chapter 15: nothing is applied, and the pointer names the member."""
    server = shared.server
    good = server.push(shared.csar)
    other = server.push(b"PK\x03\x04 other")
    wrong_layer = server.push(shared.csar, digest=digest_of(b"x"))
    server.blobs[digest_of(b"x")] = shared.csar
    forged = f"sha256:{'1' * 64}"
    server.manifests[forged] = server.manifests[good]
    no_manifest = b'{"layers": []}'
    server.manifests[digest_of(no_manifest)] = no_manifest
    for digest, said in (
        (forged, "another digest"),
        (wrong_layer, "sha256 checksum"),
        (server.push(shared.csar, size=3), "sends more"),
        (server.push(shared.csar, size=len(shared.csar) + 1), "bytes expected, it sent"),
        (server.push(shared.csar, size=2**31), "at most"),
        (server.push(shared.csar, size=True), "a size expected"),
        (server.push(shared.csar, "application/vnd.oci.image.layer.v1.tar"), "media type"),
        (digest_of(no_manifest), "one layer"),
        (digest_of(b"unknown"), "does not have this manifest"),
        (other, "zip archive"),
    ):
        failed = (await shared.of_registry(digest)).must(201).json
        assert failed["status"] == "FAILED", said
        assert said in failed["status_detail"]
        assert "/artifacts/oci: " in failed["status_detail"]
    server.challenge, server.realm = "bearer", "http://localhost:1/token"
    failed = (await shared.of_registry(good)).must(201).json
    assert "on a host that is not allowed" in failed["status_detail"]
    server.realm = ""
    server.challenge = ""
    server.moved_to = "http://localhost:1"
    assert "redirects to a host that is not allowed" in (await shared.of_registry(good)).json["status_detail"]
    server.moved_to = ""
    assert shared.gateway.world.twins.commands == []
    for text in map(str, await stored_texts(shared)):
        assert TOKEN not in text


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("artifacts", "pointer"),
    [
        ({}, "/artifacts"),
        ({"oci": "oci://h/x"}, "/artifacts"),
        ({"oci": "oci://h/x", "url": "https://h/x"}, "/artifacts"),
        ({"url": "https://h/x"}, "/artifacts"),
        ({"oci": "https://h/x", "digest": f"sha256:{'0' * 64}"}, "/artifacts/oci"),
        ({"oci": "oci://h/X", "digest": f"sha256:{'0' * 64}"}, "/artifacts/oci"),
        ({"oci": "oci://h/x:1.0", "digest": f"sha256:{'0' * 64}"}, "/artifacts/oci"),
        ({"oci": "oci://u:p@h/x", "digest": f"sha256:{'0' * 64}"}, "/artifacts/oci"),
        ({"oci": "oci://h/x", "digest": "sha256:0"}, "/artifacts/digest"),
        ({"url": "ftp://h/x", "sha256": "0" * 64}, "/artifacts/url"),
        ({"url": "https://u:p@h/x", "sha256": "0" * 64}, "/artifacts/url"),
        ({"inline": "UEs="}, "/artifacts/inline"),
    ],
)
async def test_a_source_that_cannot_be_meant_is_refused(
    shared: Ground, artifacts: dict[str, Any], pointer: str
) -> None:
    refused = await shared.bring_up(csar_id=None, artifacts=artifacts)
    assert [each["pointer"] for each in refused.problem(422)["errors"]] == [pointer]
    both = await shared.bring_up(artifacts={"oci": "oci://h/x", "digest": f"sha256:{'0' * 64}"})
    assert [each["pointer"] for each in both.problem(422)["errors"]] == ["/artifacts"]


@pytest.mark.parametrize("kind", ["sol", "oci"])
async def test_a_signature_is_judged_wherever_the_package_comes_from(tmp_path: Path, kind: str) -> None:
    """MC-122: with `require_signed_packages` a package without a trusted signature is not onboarded, and nothing is applied."""
    ours, others = Authority(tmp_path), Authority(tmp_path, "others")
    signer, stranger = ours.issue("vendor"), others.issue("stranger", file="stranger")
    csar = variant(tmp_path, files=FILES, vnfd_id=VNFD)
    packages = {
        "good": archived({"one.csar": csar, "one.cms": cms(csar, signer)}),
        "forged": archived({"one.csar": csar, "one.cms": cms(b"another content", signer)}),
        "strange": archived({"one.csar": csar, "one.cms": cms(csar, stranger)}),
        "unsigned": csar,
    }
    async with (
        ArtifactServer.listening() as server,
        lcm_world(
            tmp_path,
            allowed_networks="127.0.0.0/8",
            artifact_catalogue_url=f"{server.url}/vnfpkgm/v2",
            artifact_plain_registries=server.host,
            package_trust_anchors=ours.file,
            require_signed_packages=True,
        ) as world,
    ):
        world.vims.add("vim-edge", "kubernetes")
        world.regions.add("op/edge", "vim-edge")
        server.packages |= packages
        for name in ("forged", "strange", "unsigned", "good"):
            source: dict[str, Any] = {"csar_id": name}
            if kind == "oci":
                digest = server.push(packages[name])
                source = {"artifacts": {"oci": f"oci://{server.host}/acme/vnf", "digest": digest}}
            asked = {"cloud_region_id": "op/edge", "namespace": name, "values": {"password": PASSWORD}, **source}
            made = (await world.call("POST", VNFS, asked, headers={})).must(201).json
            assert (name, made["status"]) == (name, "READY" if name == "good" else "FAILED"), made
            if name != "good":
                assert "sign" in made["status_detail"]
                assert world.twins.commands == []


def archived(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


async def test_onap_sdc_is_a_catalogue_too(tmp_path: Path) -> None:
    """MC-122, MC-125: fetched ahead; what is not there is FAILED, and an id that cannot be fetched is unknown."""
    async with (
        ArtifactServer.listening() as server,
        a_gateway(
            tmp_path,
            allowed_networks="127.0.0.0/8",
            artifact_catalogue_url=server.url,
            artifact_catalogue_kind="sdc",
        ) as gateway,
    ):
        server.packages["sdc-1"] = variant(tmp_path, files=FILES, vnfd_id=VNFD)
        held = (await gateway.call("POST", f"{ARTIFACTS}/sdc-1")).must(200).json
        assert (held["status"], held["origin"], held["vnfd_id"]) == ("READY", "fetched", VNFD)
        assert [each["X-ECOMP-InstanceID"] for each in server.headers] == ["kubevnfm"]
        (await gateway.call("POST", f"{ARTIFACTS}/sdc-1")).must(200)
        assert len(server.headers) == 1
        made = (await gateway.bring_up(csar_id="sdc-1")).must(201).json
        assert made["status"] == "READY"
        missing = (await gateway.call("POST", f"{ARTIFACTS}/sdc-2")).must(200).json
        assert (missing["status"], "it answered 404" in missing["error"]) == ("FAILED", True)
        (await gateway.call("POST", f"{ARTIFACTS}/-x")).problem(404)
        listed = (await gateway.call("GET", ARTIFACTS)).must(200).json
        assert {each["csar_id"]: each["status"] for each in listed} == {
            "sdc-1": "READY", "sdc-2": "FAILED", gateway.csar_id: "READY",
        }  # fmt: skip
        (await gateway.call("DELETE", f"{ARTIFACTS}/{gateway.csar_id}")).problem(409)


async def test_the_copies_that_were_least_recently_used_make_room(tmp_path: Path) -> None:
    """MC-125: never one in use, and none that was used in the last minutes; uploaded packages stay."""
    clock = SetClock(datetime(2030, 1, 1, tzinfo=UTC))
    contents = {
        f"p{number}": variant(tmp_path, files=FILES, vnfd_id=f"4444444{number}-aaaa-bbbb-cccc-dddddddddddd")
        for number in range(4)
    }
    room = (sum(map(len, contents.values())) - 1) / 2**30
    async with a_ground(tmp_path, clock=clock, artifact_disk_gib=room, artifact_limit_gib=room) as ground:
        ground.server.packages |= contents

        async def fetch(name: str) -> Any:
            answer = (await ground.gateway.call("POST", f"{ARTIFACTS}/{name}")).must(200).json
            clock.advance(60)
            return answer

        assert (await ground.bring_up(csar_id="p0")).must(201).json["status"] == "READY"
        clock.advance(1200)
        assert (await fetch("p1"))["status"] == "READY"
        # A fetch that runs takes its room already.
        ground.server.goes_on.clear()
        (await ground.gateway.call("POST", f"{ARTIFACTS}/p2", Prefer="respond-async")).must(202)
        await ground.arriving("p2")
        assert (await fetch("p3"))["status"] == "FAILED"
        ground.server.goes_on.set()
        assert (await fetch("p2"))["status"] == "READY"
        full = await fetch("p3")
        assert full["status"] == "FAILED"
        assert "copies in use" in full["error"]
        clock.advance(1200)
        assert (await fetch("p3"))["status"] == "READY"
        listed = (await ground.gateway.call("GET", ARTIFACTS)).must(200).json
        assert {each["csar_id"] for each in listed} == {"p0", "p2", "p3", ground.gateway.csar_id}
        # The archive of one that is refused is on the disk too.
        ground.server.packages["bad"] = b"PK\x03\x04".ljust(len(contents["p1"]))
        clock.advance(1200)
        assert (await fetch("bad"))["status"] == "FAILED"
        clock.advance(1200)
        assert (await fetch("p1"))["status"] == "READY"
        listed = (await ground.gateway.call("GET", ARTIFACTS)).must(200).json
        assert {each["csar_id"] for each in listed} == {"p0", "bad", "p1", ground.gateway.csar_id}


@asynccontextmanager
async def a_renderer(ground: Ground, **changes: Any) -> AsyncIterator[HttpFetchedCharts]:
    """Yield what infra-k8s has charts by."""
    world = ground.gateway.world
    yield HttpFetchedCharts(world.url, TOKEN_OF_SERVICES, world.session, cache_dir=world.folder / "cache", **changes)


def a_chart(*names: str, noise: bytes = b"") -> bytes:
    """Return the archive of a chart with these files beside its own."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as tar:
        for name in ("web/Chart.yaml", "web/noise", *names):
            content = b"{apiVersion: v2, name: web, version: 1.0.0}" if name == "web/Chart.yaml" else noise
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return raw.getvalue()


def wanted(ground: Ground, digest: str, package_id: str = "") -> ChartWanted:
    place = f"oci://{ground.server.host}/acme/web"
    return ChartWanted(oci=place, digest=digest, package_id=package_id or ground.gateway.csar_id)


async def test_a_chart_is_fetched_once_for_all_that_render_it(ground: Ground) -> None:
    """MC-048, MC-122 to MC-124: resumed, with the registry's credentials; what breaks off for good is another try's."""
    server, chart = ground.server, a_chart()
    server.challenge = "bearer"
    digest = server.push(chart, CHART, beside={"mediaType": PROVENANCE, "digest": digest_of(b"p"), "size": 1})
    server.goes_on.clear()
    server.breaks_after = [50]
    async with a_renderer(ground, wait_s=200) as charts, a_renderer(ground, wait_s=0) as impatient:
        waiting = [asyncio.create_task(charts.archive(wanted(ground, digest, f"p{n}"))) for n in range(5)]

        async def has_arrived() -> bool:
            with pytest.raises(ChartUnavailable, match="is being fetched: ") as waits:
                await impatient.archive(wanted(ground, digest))
            return "50 of" in str(waits.value)

        await until_true(has_arrived)
        server.goes_on.set()
        places = await asyncio.gather(*waiting)
        assert {place.read_bytes() for place in places} == {chart}
        assert (server.asked[f"/v2/acme/web/blobs/{digest_of(chart)}"], server.ranges) == (2, ["bytes=50-"])
        # One that others have changed in the cache is read again; the registry is not needed any more.
        places[0].write_bytes(b"x")
        server.status, server.manifests = 500, {}
        assert (await charts.archive(wanted(ground, digest))).read_bytes() == chart
        assert server.asked[f"/v2/acme/web/blobs/{digest_of(chart)}"] == 2
    for text in map(str, await stored_texts(ground)):
        assert TOKEN not in text


async def test_a_chart_that_is_not_the_one_is_refused(ground: Ground) -> None:
    """MC-048, MC-123, MC-126: final if a repeat would end alike; a registry that does not answer may be back later."""
    server, chart = ground.server, a_chart()
    good = server.push(chart, CHART)
    forged = f"sha256:{'1' * 64}"
    server.manifests[forged] = server.manifests[good]
    two = {"beside": {"mediaType": CHART, "digest": digest_of(b"p"), "size": 1}}
    async with a_renderer(ground, wait_s=200) as charts:
        for digest, said in (
            (forged, "another digest"),
            (server.push(b"no archive", CHART), "not a tar.gz archive"),
            (server.push(a_chart("../x"), CHART), "x"),
            (server.push(chart, CHART, size=11 * 2**20), "at most 10485760 are fetched"),
            (server.push(a_chart(), ZIP, n=1), "a layer of the media type application/vnd.cncf.helm.chart"),
            (server.push(chart, CHART, **two), "one layer"),
            (digest_of(b"unknown"), "does not have this manifest"),
        ):
            with pytest.raises(ChartNotFetched, match=said):
                await charts.archive(wanted(ground, digest))
        private = ChartWanted(oci="oci://10.9.8.7/acme/web", digest=good, package_id="p")
        with pytest.raises(ChartNotFetched, match=r"10\.9\.8\.7"):
            await charts.archive(private)
        # That failure is not one of the same chart at another place, also while the fetch runs.
        _, found = await asyncio.gather(
            charts.archive(private), charts.archive(wanted(ground, good)), return_exceptions=True
        )
        assert isinstance(found, Path)
        later = server.push(a_chart("web/values.yaml"), CHART)
        server.status = 503
        with pytest.raises(ChartUnavailable, match="503"):
            await charts.archive(wanted(ground, later))
        server.status = 0
        async with asyncio.timeout(60):
            while True:
                try:
                    await charts.archive(wanted(ground, later))
                    break
                except ChartUnavailable:
                    await asyncio.sleep(0.1)
    internal = f"{ground.gateway.world.url}/internal/v1/charts/{good.rpartition(':')[2]}"
    async with ground.gateway.world.session.get(internal) as answer:
        assert answer.status == 401


def an_index(**entries: Any) -> bytes:
    return json.dumps({"apiVersion": "v1", "entries": entries}).encode()


def an_entry(version: str, chart: bytes, url: str = "web.tgz", **changes: Any) -> dict[str, Any]:
    return {"name": "web", "version": version, "urls": [url], "digest": digest_of(chart)[7:], **changes}


async def in_repository(ground: Ground, *, url: str = "", releases: str = "r", **changes: Any) -> Answer:
    """Ask for a CNF whose releases have a chart of the repository; return the answer."""
    world = ground.gateway.world
    vnfd_id = (await world.packages("GET", f"/{ground.gateway.csar_id}")).must(200).json["vnfdId"]
    created = (await world.lcm("POST", "/vnf_instances", {"vnfdId": vnfd_id})).must(201)
    entry = {"exthelmchart": "true", "helmchartname": "web", "helmrepositoryname": "x"}
    entry = {**entry, "exthelmrepo_url": url or f"{ground.server.url}/charts", **changes}
    entries = [{**entry, "helmreleasename": each} for each in releases]
    body = {
        "flavourId": "simple",
        "additionalParams": {"use_helm": "true", "using_helm_install_param": entries},
        "vimConnectionInfo": {"a": {"vimType": "kubernetes", "vimId": "k8s"}},
    }
    world.vims.add("k8s", "kubernetes")
    return await world.lcm("POST", f"/vnf_instances/{created.json['id']}/instantiate", body)


async def test_the_chart_of_a_repository_is_the_newest_one_for_good(ground: Ground) -> None:
    """CR-005a, MC-048, MC-123: the version of the request's moment; its archive is fetched as that of a registry is, by its digest."""
    server, world = ground.server, ground.gateway.world
    charts = {version: a_chart(noise=version.encode()) for version in ("1.9.0", "v1.10.0", "2.0.0-rc.1")}
    listed = [an_entry(version, chart, f"web-{version}.tgz") for version, chart in charts.items()]
    server.files = {"index.yaml": an_index(web=listed), "web-v1.10.0.tgz": charts["v1.10.0"]}
    operation_id = (await in_repository(ground, releases="rs")).must(202).headers["Location"].rpartition("/")[2]
    assert (await world.reached(operation_id))["operationState"] == "COMPLETED"
    sent = world.twins.commands[-1].data
    assert isinstance(sent, ApplyObjects)
    chart, other = sent.charts
    assert (other.release_name, other.path, other.digest) == ("s", chart.path, chart.digest)
    assert server.asked["/charts/index.yaml"] == 1  # for both
    assert (chart.path, chart.digest) == (f"{server.url}/charts/web-v1.10.0.tgz", digest_of(charts["v1.10.0"]))
    server.files["index.yaml"] = an_index(web=[an_entry("3.0.0", b"other")])
    shown = (await world.lcm("GET", f"/vnf_instances/{sent.vnf_instance_id}")).must(200).raw
    healed = await world.reached(await world.ask(sent.vnf_instance_id, "heal", {}))
    assert healed["operationState"] == "COMPLETED", shown
    again = world.twins.commands[-1].data
    assert isinstance(again, ApplyObjects)
    assert again.charts == (chart, other)
    async with a_renderer(ground, wait_s=200) as renderer:
        place = await renderer.archive(ChartWanted(oci=chart.path, digest=chart.digest, package_id="p"))
        assert place.read_bytes() == charts["v1.10.0"]
        server.files["web-v1.10.0.tgz"] = charts["1.9.0"]
        forged = ChartWanted(oci=chart.path, digest=digest_of(b"another"), package_id="p")
        with pytest.raises(ChartNotFetched, match="its sha256 checksum is not the expected one"):
            await renderer.archive(forged)


async def test_a_repository_that_cannot_be_used_is_named_at_the_request(ground: Ground) -> None:
    """CR-005a, MC-123."""
    server, chart = ground.server, a_chart()
    for index, changes, said in (
        (None, {}, "it answered 404, 200 expected"),
        (b"a: [", {}, "invalid YAML"),
        (b"\xff", {}, "UTF-8 text expected"),
        (b"[]", {}, "an index of charts expected"),
        (an_index(other=[]), {}, "the repository has no chart web"),
        (an_index(web=[an_entry("1.0.0-a", chart)]), {}, "no version that is no pre-release of chart web"),
        (an_index(web=[an_entry("1.0.0", chart)]), {"helmchartversion": "1.0.1"}, "no version 1.0.1 of chart web"),
        (an_index(web=[an_entry("1.0.0", chart, digest=None)]), {}, "web 1.0.0 has no SHA-256 digest"),
        (an_index(web=[an_entry("1.0.0", chart, urls=[])]), {}, "web 1.0.0 has no address"),
        (an_index(web=[an_entry("1.0.0", chart, "https://elsewhere.example/w.tgz")]), {}, "is on elsewhere.example, which is not allowed (setting artifact_hosts)"),
        (an_index(web=[an_entry("1.0.0", chart, "file:///etc/passwd")]), {}, "one that is not followed"),
        (an_index(web=[an_entry("1.0.0", chart, "w.tgz?sig=x")]), {}, "the address of web has a query, which may be a secret"),
        (b"", {"url": "http://10.9.8.7/charts"}, "its address is in a network that calls may not go to"),
    ):  # fmt: skip
        server.files = {} if index is None else {"index.yaml": index}
        detail = (await in_repository(ground, **changes)).problem(422)["detail"]
        assert "additionalParams/using_helm_install_param[0]/exthelmrepo_url: http" in detail
        assert said in detail
    server.status = 503
    problem = (await in_repository(ground)).problem(503)
    assert "/charts/index.yaml: it answered 503" in problem["detail"]
    assert ground.gateway.world.twins.commands == []


async def test_a_chart_that_a_killed_process_has_left_is_removed(tmp_path: Path) -> None:
    """MC-125: its document was removed first; what is held, or being fetched, stays."""
    shelf, chart = tmp_path / "data" / "charts", a_chart()

    async def until_left_is_gone() -> None:
        left = shelf / ("1" * 64)
        left.mkdir(parents=True)
        (left / "chart.tgz").write_bytes(chart)
        async with lcm_world(tmp_path):
            await until_true(lambda: is_gone(left))

    async def is_gone(path: Path) -> bool:
        return not path.exists()

    await until_left_is_gone()
    async with a_ground(tmp_path) as ground, a_renderer(ground, wait_s=200) as charts:
        digest = ground.server.push(chart, CHART)
        await charts.archive(wanted(ground, digest))
    await until_left_is_gone()
    assert (shelf / digest.rpartition(":")[2] / "chart.tgz").read_bytes() == chart


async def test_a_chart_stays_while_instances_of_its_package_exist(tmp_path: Path) -> None:
    """MC-048, MC-125: packages and charts share the disk; the least recently used one goes that is not in use."""
    clock = SetClock(datetime(2030, 1, 1, tzinfo=UTC))
    packed = [a_chart(noise=random.Random(seed).randbytes(2000)) for seed in range(3)]
    room = (sum(map(len, packed[:2])) + 10) / 2**30
    async with a_ground(tmp_path, clock=clock, artifact_disk_gib=room, artifact_limit_gib=room) as ground:
        digests = [ground.server.push(each, CHART) for each in packed]
        (await ground.bring_up(csar_id=ground.gateway.csar_id)).must(201)
        async with a_renderer(ground, wait_s=200) as charts:
            await charts.archive(wanted(ground, digests[0]))
            clock.advance(60)
            await charts.archive(wanted(ground, digests[1], "unused"))
            with pytest.raises(ChartNotFetched, match="copies in use"):
                await charts.archive(wanted(ground, digests[2], "unused"))
            clock.advance(1200)
            await charts.archive(wanted(ground, digests[2], "unused"))
            ground.server.manifests = {}
            await charts.archive(wanted(ground, digests[0]))
            with pytest.raises(ChartNotFetched, match="does not have this manifest"):
                await charts.archive(wanted(ground, digests[1], "unused"))
