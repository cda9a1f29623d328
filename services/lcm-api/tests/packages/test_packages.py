"""VNF packages over HTTP: states, uploads that break, what is modified, and the files for the other services."""

from __future__ import annotations

import asyncio
import hashlib
import io
import socket
import zipfile
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from kubevnfm_kit.clock import rfc3339
from kubevnfm_kit.owners import ProcessName
from packages.package_builder import META, ONE_VNFD, v1_files, with_meta, zip_of
from worlds.lcm_world import TOKEN, Answer, World, lcm_world

ZIP = {"Content-Type": "application/zip"}
INTERNAL = {"Authorization": f"Bearer {TOKEN}"}


async def state_of(world: World, package_id: str) -> str:
    return str((await world.packages("GET", f"/{package_id}")).must(200).json["onboardingState"])


async def created(world: World, **body: Any) -> str:
    return str((await world.packages("POST", body=body)).must(201).json["id"])


async def test_a_package_lives_from_created_to_deleted(world: World) -> None:
    """API-110, API-111, API-118."""
    made = (await world.packages("POST", body={"userDefinedData": {"a": "b"}})).must(201)
    body = made.json
    path = f"/{body['id']}"
    assert made.headers["Location"] == body["_links"]["self"]["href"]
    assert (body["onboardingState"], body["operationalState"], body["usageState"]) == (
        "CREATED",
        "DISABLED",
        "NOT_IN_USE",
    )
    assert "vnfdId" not in body
    assert set(body["_links"]) == {"self", "packageContent", "vnfd"}
    (await world.packages("GET", f"{path}/package_content")).problem(409)
    (await world.packages("PATCH", path, {"operationalState": "ENABLED"})).problem(409)

    content = world.zipped("vm")
    package = await world.upload(content, body["id"])
    assert (package["onboardingState"], package["operationalState"]) == ("ONBOARDED", "ENABLED")
    assert package["checksum"] == {"algorithm": "SHA-256", "hash": hashlib.sha256(content).hexdigest()}
    assert package["userDefinedData"] == {"a": "b"}
    assert package["vnfdId"]
    (await world.packages("PUT", f"{path}/package_content", data=content, headers=ZIP)).problem(409)
    (await world.packages("DELETE", path)).problem(409)

    instance_id = await world.create()
    assert (await world.packages("GET", path)).json["usageState"] == "IN_USE"
    (await world.packages("PATCH", path, {"operationalState": "DISABLED"})).must(200)
    (await world.packages("DELETE", path)).problem(409)
    (await world.lcm("DELETE", f"/vnf_instances/{instance_id}")).must(204)
    assert (await world.packages("DELETE", path)).must(204).raw == b""
    (await world.packages("GET", path)).problem(404)
    assert not list((world.folder / "data/packages").iterdir())


async def test_a_disabled_package_makes_no_new_instances_and_lets_the_old_ones_live(world: World) -> None:
    """API-118."""
    package = await world.sample()
    instance_id = await world.create()
    (await world.packages("PATCH", f"/{package['id']}", {"operationalState": "DISABLED"})).must(200)
    (await world.lcm("POST", "/vnf_instances", {"vnfdId": package["vnfdId"]})).problem(422)
    await world.reached(await world.instantiate(instance_id), "COMPLETED")


async def test_patch_answers_what_it_changed_and_merges_user_data(world: World) -> None:
    """API-114."""
    package = await world.sample()
    path = f"/{package['id']}"

    async def patch(body: dict[str, Any]) -> Any:
        headers = {"Content-Type": "application/merge-patch+json"}
        return (await world.packages("PATCH", path, body, headers=headers)).must(200).json

    assert await patch({"operationalState": "DISABLED"}) == {"operationalState": "DISABLED"}
    data = {"a": "1", "deep": {"x": 1, "y": 2}, "password": "s3cret"}
    assert await patch({"userDefinedData": data}) == {"userDefinedData": {"a": "1", "deep": {"x": 1, "y": 2}}}
    assert await patch({"userDefinedData": {"a": None, "deep": {"x": None}}}) == {"userDefinedData": {"deep": {"y": 2}}}
    shown = (await world.packages("GET", path)).json
    assert shown["userDefinedData"] == {"deep": {"y": 2}}
    assert await patch({"userDefinedData": None}) == {"userDefinedData": {}}
    assert "userDefinedData" not in (await world.packages("GET", path)).json
    for file in world.folder.glob("store.db*"):
        assert b"s3cret" not in file.read_bytes()


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400),
        ({"operationalState": "ON"}, 400),
        ({"operationalState": 5}, 400),
        ({"operationalState": {}}, 400),
        ({"userDefinedData": "text"}, 400),
        ({"operationalState": "DISABLED", "operationalSate": "DISABLED"}, 400),
        ({"operational_state": "DISABLED"}, 400),
        ([], 400),
        ({"operationalState": "ENABLED"}, 409),
    ],
)
async def test_a_patch_that_says_nothing_new_or_nonsense_is_refused(
    world: World, body: dict[str, Any], status: int
) -> None:
    """API-026, API-114."""
    package = await world.sample()
    (await world.packages("PATCH", f"/{package['id']}", body)).problem(status)


@pytest.mark.parametrize("content_type", ["application/json", "text/plain"])
async def test_an_upload_is_a_zip(world: World, content_type: str) -> None:
    """API-007."""
    package_id = await created(world)
    headers = {"Content-Type": content_type}
    (await world.packages("PUT", f"/{package_id}/package_content", data=b"x", headers=headers)).problem(415)
    assert await state_of(world, package_id) == "CREATED"


def damaged(content: bytes) -> bytes:
    """The archive with one byte of a file's packed content changed."""
    at = content.index(b"TOSCA-Metadata/TOSCA.meta") + 40
    return content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 :]


def of_files(**files: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in files.items():
            archive.writestr(name.replace("__", "/"), text)
    return buffer.getvalue()


@pytest.mark.parametrize("content", [b"", b"P", b"no zip", b"PK\x01\x02"])
async def test_what_is_seen_at_once_to_be_no_archive_is_refused_and_leaves_the_package(
    world: World, content: bytes
) -> None:
    """API-112: 400 where it is cheap to see (api.md 7.1)."""
    package_id = await created(world)
    path = f"/{package_id}/package_content"
    assert "zip" in (await world.packages("PUT", path, data=content, headers=ZIP)).problem(400)["detail"]
    assert await state_of(world, package_id) == "CREATED"
    assert (await world.upload(world.zipped("vm"), package_id))["onboardingState"] == "ONBOARDED"


async def test_what_is_no_package_ends_in_error_and_a_good_one_repairs_it(world: World) -> None:
    """API-112."""
    good = world.zipped("vm")
    package_id = await created(world)
    for content in (b"PK\x03\x04", good[: len(good) // 2], damaged(good), of_files(a="b"), of_files(x__y="\x00")):
        package = await world.upload(content, package_id)
        assert package["onboardingState"] == "ERROR", package
        assert package["onboardingFailureDetails"]["detail"]
        assert package["operationalState"] == "DISABLED"
        assert "checksum" not in package
    package = await world.upload(good, package_id)
    assert package["onboardingState"] == "ONBOARDED"
    assert not {"onboardingFailureDetails", "onboardingfailuredetails"} & set(package)


async def test_clients_that_print_names_in_lower_case_only_see_the_reason_of_an_error(world: World) -> None:
    """API-125: in one package; lists have the names of SOL005 alone."""
    refused = await world.upload(of_files(a="b"))
    assert refused["onboardingState"] == "ERROR"
    assert refused["onboardingfailuredetails"] == refused["onboardingFailureDetails"]
    onboarded = await world.sample()
    assert onboarded["vnfminfo"] == onboarded["vnfmInfo"] != []
    for each in (await world.packages("GET", "?all_fields")).must(200).json:
        assert not {"onboardingfailuredetails", "vnfminfo"} & set(each)


async def test_of_packages_with_one_descriptor_one_is_onboarded(world: World) -> None:
    """API-112."""
    content = world.zipped("vm")
    packages = await asyncio.gather(*(world.upload(content) for _ in range(4)))
    assert sorted(package["onboardingState"] for package in packages) == ["ERROR", "ERROR", "ERROR", "ONBOARDED"]
    for package in packages:
        if package["onboardingState"] == "ERROR":
            assert package["onboardingFailureDetails"]["status"] == 409
            assert "belongs to" in package["onboardingFailureDetails"]["detail"]


@pytest.mark.parametrize(
    ("length", "begin"), [("Content-Length: 1000000", b""), ("Transfer-Encoding: chunked", b"3ec\r\n")]
)
async def test_an_upload_that_is_cut_off_leaves_the_package_as_before(world: World, length: str, begin: bytes) -> None:
    """API-111: 409 for everything else during the upload; with a length or in chunks."""
    package_id = await created(world)
    host, _, port = urlsplit(world.url).netloc.partition(":")
    _, writer = await asyncio.open_connection(host, int(port))
    writer.write(
        f"PUT /vnfpkgm/v1/vnf_packages/{package_id}/package_content HTTP/1.1\r\nHost: localhost\r\n"
        f"Content-Type: application/zip\r\n{length}\r\n\r\n".encode()
        + begin
        + b"PK\x03\x04"
        + b"x" * 1000
    )
    await writer.drain()
    async with asyncio.timeout(300):
        while await state_of(world, package_id) != "UPLOADING":
            pass
        (await world.packages("PUT", f"/{package_id}/package_content", data=b"x", headers=ZIP)).problem(409)
        (await world.packages("DELETE", f"/{package_id}")).problem(409)
        sock: socket.socket = writer.get_extra_info("socket")
        sock.shutdown(socket.SHUT_RDWR)
        writer.close()
        while await state_of(world, package_id) != "CREATED":
            pass
    assert (await world.upload(world.zipped("vm"), package_id))["onboardingState"] == "ONBOARDED"


async def test_an_upload_over_the_limit_is_too_large(tmp_path: Path) -> None:
    """Rejected by its Content-Length before a byte is read, or while it arrives."""
    async with lcm_world(tmp_path, package_limit_gib=1000 / 2**30) as world:
        package_id = await created(world)

        async def chunks() -> AsyncIterator[bytes]:
            for _ in range(20):
                yield b"PK\x03\x04" * 25

        path = f"/{package_id}/package_content"
        for content in (chunks(), b"PK\x03\x04" * 500):
            (await world.packages("PUT", path, data=content, headers=ZIP)).problem(413)
            assert await state_of(world, package_id) == "CREATED"
        assert not list((world.folder / "data/packages").glob("*/*"))


@pytest.mark.parametrize("content_type", ["application/zip", "application/octet-stream"])
async def test_an_upload_may_have_chunks_and_no_length(world: World, content_type: str) -> None:
    """API-110."""
    content = world.zipped("vm")
    package_id = await created(world)

    async def chunks() -> AsyncIterator[bytes]:
        for at in range(0, len(content), 1000):
            yield content[at : at + 1000]

    headers = {"Content-Type": content_type}
    sent = await world.packages("PUT", f"/{package_id}/package_content", data=chunks(), headers=headers)
    assert sent.must(202).raw == b""
    package = await world.onboarded(package_id)
    assert package["onboardingState"] == "ONBOARDED"
    assert package["checksum"]["hash"] == hashlib.sha256(content).hexdigest()


async def test_a_disk_error_is_reported_and_the_package_can_be_sent_again(world: World) -> None:
    """API-112: 503 while it is sent; ERROR with details when it is unpacked."""
    package_id = await created(world)
    folder = world.folder / "data/packages" / package_id
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.write_text("a file where the folder should be")
    path, content = f"/{package_id}/package_content", world.zipped("vm")
    refused = await world.packages("PUT", path, data=content, headers=ZIP)
    assert "cannot be stored" in refused.problem(503)["detail"]
    assert refused.headers["Retry-After"]
    assert await state_of(world, package_id) == "CREATED"
    folder.unlink()
    folder.mkdir()
    (folder / "files").write_text("a file where the folder should be")
    package = await world.upload(content, package_id)
    assert package["onboardingState"] == "ERROR"
    assert package["onboardingFailureDetails"]["status"] == 503
    (folder / "files").unlink()
    assert (await world.upload(content, package_id))["onboardingState"] == "ONBOARDED"


async def test_usage_states_can_be_filtered_by_and_follow_the_instances(world: World) -> None:
    """API-118, API-093."""
    package = await world.sample()
    await created(world)

    async def ids(usage: str) -> list[str]:
        params = {"filter": f"(eq,usageState,{usage})"}
        return [each["id"] for each in (await world.packages("GET", params=params)).must(200).json]

    assert package["id"] in await ids("NOT_IN_USE")
    assert len(await ids("NOT_IN_USE")) == 2
    first, second = await world.create(), await world.create()
    await world.bus.quiet()
    assert await ids("IN_USE") == [package["id"]]
    (await world.lcm("DELETE", f"/vnf_instances/{first}")).must(204)
    await world.bus.quiet()
    assert await ids("IN_USE") == [package["id"]]
    (await world.lcm("DELETE", f"/vnf_instances/{second}")).must(204)
    await world.bus.quiet()
    assert await ids("IN_USE") == []


async def test_patch_holds_to_what_the_caller_has_seen(world: World) -> None:
    """API-114; api.md 1.4: If-Match and If-Unmodified-Since on PATCH of a package."""
    package = await world.sample()
    path = f"/{package['id']}"
    seen = (await world.packages("GET", path)).must(200)
    disable = {"operationalState": "DISABLED"}
    (await world.packages("PATCH", path, disable, headers={"If-Match": '"another"'})).problem(412)
    long_ago = {"If-Unmodified-Since": "Mon, 01 Jan 2001 00:00:00 GMT"}
    (await world.packages("PATCH", path, disable, headers=long_ago)).problem(412)
    assert (await world.packages("GET", path)).json["operationalState"] == "ENABLED"
    (await world.packages("PATCH", path, disable, headers={"If-Match": seen.headers["ETag"]})).must(200)
    (await world.packages("PATCH", path, disable, headers={"If-Match": seen.headers["ETag"]})).problem(412)
    assert (await world.packages("GET", path, headers={"If-None-Match": seen.headers["ETag"]})).status == 200
    now = (await world.packages("GET", path)).headers
    assert now["Last-Modified"].endswith("GMT")
    (await world.packages("GET", path, headers={"If-None-Match": now["ETag"]})).must(304)


async def test_lists_leave_out_what_is_large_until_it_is_asked_for(world: World) -> None:
    """API-093, API-012, API-092."""
    package = await world.upload(world.zipped("vm"), await created(world, userDefinedData={"a": "b"}))
    large = {"softwareImages", "additionalArtifacts", "userDefinedData", "checksum"}
    has = large & set(package)
    assert has >= {"additionalArtifacts", "userDefinedData", "checksum"}

    async def shown(**params: str) -> set[str]:
        return set((await world.packages("GET", params=params)).must(200).json[0])

    assert await shown() & large == set()
    assert await shown(exclude_default="") & large == set()
    assert await shown(all_fields="") & large == has
    assert await shown(fields="checksum") & large == {"checksum"}
    assert await shown(exclude_fields="checksum") & large == has - {"checksum"}
    assert await shown(filter=f"(eq,vnfdId,{package['vnfdId']});(cont,vnfProvider,o,e,a)") & large == set()
    assert "internal" not in await shown(all_fields="")
    for refused in ({"x": "y"}, {"fields": "internal"}, {"filter": "(eq,internal,x)"}, {"filter": "(eq,createdAt,x)"}):
        (await world.packages("GET", params=refused)).problem(400)
    every = (await world.packages("GET", f"/{package['id']}")).json
    for entry in every["additionalArtifacts"]:
        assert entry["checksum"]["hash"], entry


ENCRYPTED = bytes.fromhex("308006092a864886f70d010703a080")
"""How CMS EnvelopedData begins."""


async def test_images_and_artifacts_say_whether_they_are_encrypted(world: World) -> None:
    """API-110; api.md 7.3: SOL005 requires isEncrypted; a checksum that is not known is absent."""
    image, script = "Files/images/ubuntu.img", "Scripts/install_k8s_cluster.sh"
    for encrypted in (image, script):
        files = {**v1_files(), image: b"image", encrypted: ENCRYPTED}
        files = with_meta({name: content for name, content in files.items() if name != META})
        package = await world.upload(zip_of(world.folder / "made.zip", files).read_bytes())
        assert package["onboardingState"] == "ONBOARDED", package
        images = {each["imagePath"]: each["isEncrypted"] for each in package["softwareImages"]}
        assert images == {image: encrypted == image}
        artifacts = {each["artifactPath"]: each["isEncrypted"] for each in package["additionalArtifacts"]}
        assert {name for name, is_encrypted in artifacts.items() if is_encrypted} == {encrypted} - {image}
        query = "?filter=(eq,softwareImages/isEncrypted,true)"
        assert len((await world.packages("GET", query)).must(200).json) == (encrypted == image)
        (await world.packages("PATCH", f"/{package['id']}", {"operationalState": "DISABLED"})).must(200)
        (await world.packages("DELETE", f"/{package['id']}")).must(204)
    for each in (await world.sample())["softwareImages"]:
        assert (each["isEncrypted"], "checksum" in each) == (False, False)


async def test_a_package_that_an_older_version_onboarded_is_shown_in_the_present_form(world: World) -> None:
    """0.1.0 stored no isEncrypted, and empty texts for a checksum that is not known."""
    package = await world.sample()
    stored = await world.store.get("vnf_packages", package["id"])
    assert stored is not None
    old: dict[str, Any] = {
        name: [dict(each) for each in stored.body[name]] for name in ("softwareImages", "additionalArtifacts")
    }
    for each in (*old["softwareImages"], *old["additionalArtifacts"]):
        del each["isEncrypted"]
        each.setdefault("checksum", {"algorithm": "", "hash": ""})
    await world.store.update("vnf_packages", package["id"], old)
    shown = (await world.packages("GET", f"/{package['id']}")).must(200).json
    for name in old:
        assert shown[name] == package[name]


BY_VNFD = "/vnfpkgm/v1/onboarded_vnf_packages"


async def test_packages_are_read_by_the_ids_of_their_vnfds(tmp_path: Path) -> None:
    """API-124: onboarded packages only; links lead to the same address, also with a VNFD id that must be quoted."""
    async with lcm_world(tmp_path) as world:

        async def get(path: str = "", **headers: str) -> Answer:
            return await world.call("GET", f"{BY_VNFD}{path}", headers=headers)

        descriptor_id = "acme/one 1%2f?#"
        vnfd = ONE_VNFD.replace("0f0e2a66-91f4-4a6f-9d79-5a3d1c9a7a11", f"'{descriptor_id}'")
        package_id = await created(world)
        assert (await get()).must(200).json == []
        problem = (await get(f"/{quote(descriptor_id, safe='')}")).problem(404)
        assert problem["detail"] == f"no VNF package with VNFD {descriptor_id} is onboarded"
        content = zip_of(tmp_path / "one.zip", {"one.yaml": vnfd, "one.mf": "metadata:\n"}).read_bytes()
        package = await world.upload(content, package_id)
        assert package["vnfdId"] == descriptor_id, package

        shown = (await get(f"/{quote(descriptor_id, safe='')}")).must(200)
        assert {**shown.json, "_links": {}} == {**package, "_links": {}}
        (await get(f"/{quote(descriptor_id, safe='')}", **{"If-None-Match": shown.headers["ETag"]})).must(304)
        me = f"{world.url}{BY_VNFD}/acme%2Fone%201%252f%3F%23"
        assert shown.json["_links"] == {
            "self": {"href": me},
            "vnfd": {"href": f"{me}/vnfd"},
            "packageContent": {"href": f"{me}/package_content"},
        }
        for link in shown.json["_links"].values():
            (await world.call("GET", link["href"].removeprefix(world.url), headers={})).must(200)
        await world.sample()
        await created(world)
        assert [each["id"] for each in (await get()).must(200).json][:1] == [package_id]
        assert len((await get()).must(200).json) == 2
        (only,) = (await get("?filter=(eq,vnfProductName,One)&all_fields")).must(200).json
        assert {**shown.json, **only} == shown.json


async def test_the_second_version_of_the_api_has_the_same_packages(world: World) -> None:
    """SOL003 and SOL005 V3.7.1 (2.4.0): every method, and links that stay in it; the client of Tacker needs only the first."""
    root, version = "/vnfpkgm/v2/vnf_packages", {"Version": "2.4.0"}

    async def call(method: str, path: str, body: Any = None, **more: Any) -> Answer:
        return await world.call(
            method, path.removeprefix(world.url), body, headers=version | more.pop("headers", {}), **more
        )

    made = (await call("POST", root, {"userDefinedData": {"a": "b"}})).must(201)
    me = made.headers["Location"]
    assert me == f"{world.url}{root}/{made.json['id']}" == made.json["_links"]["self"]["href"]
    zipped = {"data": world.zipped("vm"), "headers": {"Content-Type": "application/zip"}}
    (await call("PUT", f"{me}/package_content", **zipped)).must(202)
    assert (await world.onboarded(made.json["id"]))["onboardingState"] == "ONBOARDED"
    shown = (await call("GET", me)).must(200)
    in_first = (await world.packages("GET", f"/{made.json['id']}")).must(200).json
    # Names in lower case are for Tacker's client, and an empty path is that of V2.6.1.
    assert [image.pop("imagePath") for image in in_first["softwareImages"]] == [""]
    assert shown.json == {name: in_first[name] for name in shown.json if name != "_links"} | {
        "_links": shown.json["_links"]
    }
    assert {name.lower() for name in shown.json} >= set(in_first) - set(shown.json) > set()
    assert all(link["href"].startswith(me) for link in shown.json["_links"].values())
    by_vnfd = f"/vnfpkgm/v2/onboarded_vnf_packages/{shown.json['vnfdId']}"
    for link in ((await call("GET", by_vnfd)).must(200)).json["_links"].values():
        assert link["href"].startswith(f"{world.url}{by_vnfd}")
        (await call("GET", link["href"])).must(200)
    file = f"artifacts/{shown.json['additionalArtifacts'][0]['artifactPath']}"
    for below in ("vnfd", "artifacts", "package_content", file):
        of_id, of_vnfd = [(await call("GET", f"{at}/{below}")).must(200).raw for at in (me, by_vnfd)]
        assert of_id == of_vnfd
    assert [each["id"] for each in (await call("GET", root)).must(200).json] == [made.json["id"]]
    (await call("PATCH", me, {"operationalState": "DISABLED"})).must(200)
    (await call("DELETE", me)).must(204)
    (await world.packages("GET", f"/{made.json['id']}")).problem(404)


async def test_packages_are_only_read_at_the_address_by_vnfd(world: World) -> None:
    """API-124, API-003."""
    vnfd_id = (await world.sample())["vnfdId"]
    for path in ("", f"/{vnfd_id}", f"/{vnfd_id}/package_content", f"/{vnfd_id}/vnfd", f"/{vnfd_id}/artifacts/a"):
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            answer = await world.call(method, f"{BY_VNFD}{path}", headers={})
            answer.problem(405)
            assert answer.headers["Allow"] == "GET,HEAD"
    for path in ("/vnfd", "/manifest", "/package_content", "/artifacts", "/artifacts/a"):
        (await world.call("GET", f"{BY_VNFD}/none{path}", headers={})).problem(404)


ONES = ("", "/vnfd", "/manifest", "/package_content", "/artifacts", "/artifacts/a.yaml")


async def test_parameters_that_no_resource_knows_are_refused(world: World) -> None:
    """API-012."""
    package = await world.sample()
    for resource in ONES:
        (await world.packages("GET", f"/{package['id']}{resource}", params={"x": "y"})).problem(400)
    for resource in ("/vnfd", "/manifest", "/artifacts"):
        (await world.packages("GET", f"/{package['id']}{resource}", params={"include_signatures": "5"})).problem(400)


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("", "GET POST"),
        ("/none", "GET PATCH DELETE"),
        ("/none/vnfd", "GET"),
        ("/none/manifest", "GET"),
        ("/none/artifacts", "GET"),
        ("/none/artifacts/a/b.yaml", "GET"),
        ("/none/package_content", "GET PUT"),
        ("/none/package_content/upload_from_uri", "POST"),
    ],
)
async def test_other_methods_are_refused_before_the_package_is_looked_for(
    world: World, path: str, allowed: str
) -> None:
    """API-003."""
    methods = set(allowed.split())
    for method in {"GET", "POST", "PUT", "PATCH", "DELETE"} - methods:
        answer = await world.packages(method, path)
        answer.problem(405)
        assert set(answer.headers["Allow"].replace(" ", "").split(",")) - {"HEAD", "OPTIONS"} == methods
        assert answer.headers["Version"]


async def test_another_process_may_be_uploading_when_this_one_starts(tmp_path: Path) -> None:
    """An upload that another process renews stays, also one on the same host; one whose lease is over or owner has ended is reset."""
    soon = rfc3339(datetime.now(UTC) + timedelta(seconds=50))
    this = ProcessName.of_this()
    another, ended = replace(this, namespace="pid:[7]"), replace(this, started="1")
    leases = [
        {"id": "x", "owner": "x@as-another-release-writes-it", "until": soon},
        {"id": "x", "owner": f"x@{another}", "host": this.host, "until": soon},
        {"id": "x", "owner": f"x@{ended}", "until": soon},
        {"id": "x", "host": "another", "until": "2001-01-01T00:00:00.000Z"},
    ]
    async with lcm_world(tmp_path) as world:
        ids = [await created(world) for _ in leases]
        for package_id, lease in zip(ids, leases, strict=True):
            fields = {"onboardingState": "UPLOADING", "internal/upload": lease}
            await world.store.update("vnf_packages", package_id, fields)
    async with lcm_world(tmp_path) as world:
        states = [await state_of(world, package_id) for package_id in ids]
    assert states == ["UPLOADING", "UPLOADING", "CREATED", "CREATED"]


async def test_a_restart_takes_back_uploads_whose_senders_are_gone(tmp_path: Path) -> None:
    async with lcm_world(tmp_path) as world:
        package_id = await created(world)
        await world.store.update("vnf_packages", package_id, {"onboardingState": "UPLOADING"})
    async with lcm_world(tmp_path) as world:
        assert await state_of(world, package_id) == "CREATED"
        assert (await world.upload(world.zipped("vm"), package_id))["onboardingState"] == "ONBOARDED"


async def test_services_need_the_internal_token(world: World) -> None:
    package = await world.sample()
    base = f"/internal/v1/packages/{package['id']}"
    for path in (f"{base}/archive", f"{base}/files/TOSCA-Metadata/TOSCA.meta", "/internal/v1/vims/vim-1/users"):
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic eDp5"}):
            answer = await world.call("GET", path, headers=headers)
            answer.problem(401)
            assert answer.headers["WWW-Authenticate"].startswith("Bearer")
        (await world.call("GET", path, headers=INTERNAL)).must(200)


async def test_services_get_the_package_without_its_images_and_single_files(world: World) -> None:
    package = await world.sample()
    base = f"/internal/v1/packages/{package['id']}"
    archive = (await world.call("GET", f"{base}/archive", headers=INTERNAL)).must(200).raw
    names = zipfile.ZipFile(io.BytesIO(archive)).namelist()
    assert "TOSCA-Metadata/TOSCA.meta" in names
    text = (await world.call("GET", f"{base}/files/TOSCA-Metadata/TOSCA.meta", headers=INTERNAL)).must(200).raw
    assert b"Entry-Definitions" in text
    (await world.call("GET", f"{base}/files/none.yaml", headers=INTERNAL)).problem(404)
    (await world.call("GET", "/internal/v1/packages/none/archive", headers=INTERNAL)).problem(404)


@pytest.mark.parametrize(
    "path",
    ["..%2f..%2fstore.db", "TOSCA-Metadata%2f..%2f..%2fcontent.zip", "..%2fcontent.zip", "%2fetc%2fpasswd", "a%00b"],
)
async def test_a_path_leads_nowhere_outside_the_package(world: World, path: str) -> None:
    package = await world.sample()
    host, _, port = urlsplit(world.url).netloc.partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    request = (
        f"GET /internal/v1/packages/{package['id']}/files/{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    )
    writer.write(f"{request}Authorization: Bearer {TOKEN}\r\n\r\n".encode())  # as it is: clients tidy paths up
    answer = await asyncio.wait_for(reader.read(), 60)
    writer.close()
    assert answer.split(b" ")[1] in {b"400", b"404"}
    assert b"application/problem+json" in answer


async def test_what_the_vnf_does_not_use_is_a_warning_of_the_package(world: World, tmp_path: Path) -> None:
    """API-126: a package with faults that concern nothing which the VNF uses is usable."""
    files = {"one.yaml": ONE_VNFD, "BaseHOT/other/x.yaml": ""}
    package = await world.upload(zip_of(tmp_path / "one.zip", files).read_bytes())
    assert package["onboardingState"] == "ONBOARDED"
    assert [warning.partition(":")[0] for warning in package["warnings"]] == [
        "without a manifest (*.mf) in the root no digest is checked (SOL004 4.3.2)",
        "BaseHOT/other/",
    ]
    (await world.lcm("POST", "/vnf_instances", {"vnfdId": package["vnfdId"]})).must(201)
    assert "warnings" not in await world.sample()


@pytest.mark.parametrize(
    ("phase", "driver", "script", "reason"),
    [
        (
            "heal_end",
            "own",
            None,
            "maps heal_end to own, whose script cannot be run: the package has no file Scripts/driver.py",
        ),
        (
            "heal_end",
            "own",
            "class Own(VnflcmMgmtAbstractDriver):\n    pass\n",
            "maps heal_end to own, whose script cannot be run: its driver class Own has no method heal_end",
        ),
        (
            "heal_end",
            "own",
            "import sys\nprint 'done'\n",
            "maps heal_end to own, whose script cannot be run: Scripts/driver.py, line 2: SyntaxError: Missing",
        ),
        ("heal", "own", "", "for VNFs of machines, a script is run before and after instantiate, scale, "),
    ],
)
async def test_what_instantiate_will_refuse_is_a_warning_of_the_package(
    world: World, tmp_path: Path, phase: str, driver: str, script: str | None, reason: str
) -> None:
    """API-127: with the text that instantiate answers."""
    vnfd = ONE_VNFD + (
        f"      interfaces: {{Vnflcm: {{{phase}: {{implementation: {driver}}}}}}}\n"
        f"      artifacts: {{{driver}: {{type: tosca.artifacts.Implementation.Python, file: Scripts/driver.py}}}}\n"
    )
    files = {"one.yaml": vnfd, "one.mf": "metadata:\n", **({"Scripts/driver.py": script} if script is not None else {})}
    package = await world.upload(zip_of(tmp_path / "one.zip", files).read_bytes())
    (warning,) = package["warnings"]
    assert warning.startswith("one.yaml: flavour simple cannot be instantiated: ")
    assert reason in warning
    instance = (await world.lcm("POST", "/vnf_instances", {"vnfdId": package["vnfdId"]})).must(201).json["id"]
    refused = await world.lcm("POST", f"/vnf_instances/{instance}/instantiate", {"flavourId": "simple"})
    assert refused.problem(422)["detail"].partition(": ")[2] in warning


@pytest.mark.parametrize(
    ("phase", "is_warning"),
    [
        ("terminate_rollback_start", True),
        ("heal_rollback_end", False),
        ("scale_rollback_end", False),
        ("heal_end", False),
    ],
)
async def test_a_script_that_never_runs_is_a_warning_of_the_package(
    world: World, tmp_path: Path, phase: str, is_warning: bool
) -> None:
    vnfd = ONE_VNFD + (
        f"      interfaces: {{Vnflcm: {{{phase}: {{implementation: own}}}}}}\n"
        "      artifacts: {own: {type: tosca.artifacts.Implementation.Python, file: Scripts/driver.py}}\n"
    )
    files = {"one.yaml": vnfd, "one.mf": "metadata:\n", "Scripts/driver.py": "import sys\n"}
    package = await world.upload(zip_of(tmp_path / "one.zip", files).read_bytes())
    operation = phase.partition("_")[0]
    never = f"one.yaml: the script of {phase}, own, is never run: {operation} cannot be rolled back"
    assert package.get("warnings", []) == ([never] if is_warning else [])


@pytest.mark.parametrize(
    ("rule", "is_warning"), [("targets: [A, VL1]", True), ("targets: [A], properties: {scope: zone}", False)]
)
async def test_a_placement_rule_that_cannot_be_kept_is_refused(
    world: World, tmp_path: Path, rule: str, is_warning: bool
) -> None:
    """SEQ-163, API-127: an NFVO may choose the zones, so such a rule is no warning of the package."""
    driver = "mgmt-drivers-kubernetes"
    vnfd = ONE_VNFD + (
        f"      interfaces: {{Vnflcm: {{terminate_end: {{implementation: {driver}}}}}}}\n"
        f"      artifacts: {{{driver}: {{type: tosca.artifacts.Implementation.Python, file: Scripts/driver.py}}}}\n"
        "    A: {type: tosca.nodes.nfv.Vdu.Compute, properties: {name: A, vdu_profile: {min_number_of_instances: 2}}}\n"
        f"  policies:\n    - apart: {{type: tosca.policies.nfv.AntiAffinityRule, {rule}}}\n"
    )
    files = {"one.yaml": vnfd, "one.mf": "metadata:\n", "Scripts/driver.py": ""}
    package = await world.upload(zip_of(tmp_path / "one.zip", files).read_bytes())
    instance = (await world.lcm("POST", "/vnf_instances", {"vnfdId": package["vnfdId"]})).must(201).json["id"]
    asked = await world.lcm("POST", f"/vnf_instances/{instance}/instantiate", {"flavourId": "simple"})
    refusal = asked.problem(422)["detail"].removeprefix("flavourId: ")
    assert refusal.startswith("without a Base HOT, Nova's server groups place the machines: policy apart: ")
    assert world.twins.asked() == []
    assert [refusal in warning for warning in package.get("warnings", [])] == [True] * is_warning


async def test_a_package_that_another_gateway_has_just_disabled_makes_no_instance(world: World) -> None:
    """API-118: what a create knows of the package without a read is confirmed after its write."""
    package = await world.sample()
    remaining = await world.create()
    await world.store.update("vnf_packages", package["id"], {"operationalState": "DISABLED"})
    request = {"vnfdId": package["vnfdId"]}
    assert "DISABLED" in (await world.lcm("POST", "/vnf_instances", request)).problem(422)["detail"]
    await world.store.update("vnf_packages", package["id"], {"operationalState": "ENABLED"})
    (await world.packages("PATCH", f"/{package['id']}", {"operationalState": "DISABLED"})).must(200)
    (await world.lcm("POST", "/vnf_instances", request)).problem(422)
    assert [one["id"] for one in (await world.lcm("GET", "/vnf_instances")).must(200).json] == [remaining]


async def test_creates_that_wait_for_one_read_of_the_package_all_get_its_answer(world: World) -> None:
    """API-118."""
    package = await world.sample()
    made = await asyncio.gather(*(world.create() for _ in range(10)))
    assert len(set(made)) == 10
    await world.bus.quiet()
    assert (await world.packages("GET", f"/{package['id']}")).json["usageState"] == "IN_USE"
    stored = await world.store.get("vnf_packages", package["id"])
    assert stored is not None
    assert stored.body["usageState"] == "IN_USE"
