"""VNF packages over HTTP: states, uploads that break, what is modified, and the files for the other services."""

from __future__ import annotations

import asyncio
import hashlib
import io
import socket
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from lcm_world import TOKEN, World, lcm_world

ZIP = {"Content-Type": "application/zip"}
INTERNAL = {"Authorization": f"Bearer {TOKEN}"}


async def state_of(world: World, package_id: str) -> str:
    return str((await world.packages("GET", f"/{package_id}")).must(200).json["onboardingState"])


async def created(world: World, **body: Any) -> str:
    return str((await world.packages("POST", body=body)).must(201).json["id"])


async def test_a_package_lives_from_created_to_deleted(world: World) -> None:
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
    assert "vnfd" not in body["_links"]
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
    package = await world.sample()
    instance_id = await world.create()
    (await world.packages("PATCH", f"/{package['id']}", {"operationalState": "DISABLED"})).must(200)
    (await world.lcm("POST", "/vnf_instances", {"vnfdId": package["vnfdId"]})).problem(422)
    await world.reached(await world.instantiate(instance_id), "COMPLETED")


async def test_patch_answers_what_it_changed_and_merges_user_data(world: World) -> None:
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
        ({"operationalState": "ENABLED"}, 409),
    ],
)
async def test_a_patch_that_says_nothing_new_or_nonsense_is_refused(
    world: World, body: dict[str, Any], status: int
) -> None:
    package = await world.sample()
    (await world.packages("PATCH", f"/{package['id']}", body)).problem(status)


@pytest.mark.parametrize("content_type", ["application/json", "text/plain"])
async def test_an_upload_is_a_zip(world: World, content_type: str) -> None:
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


async def test_what_is_no_package_ends_in_error_and_a_good_one_repairs_it(world: World) -> None:
    good = world.zipped("vm")
    package_id = await created(world)
    for content in (b"", b"no zip", good[: len(good) // 2], damaged(good), of_files(a="b"), of_files(x__y="\x00")):
        package = await world.upload(content, package_id)
        assert package["onboardingState"] == "ERROR", package
        assert package["onboardingFailureDetails"]["detail"]
        assert package["operationalState"] == "DISABLED"
        assert "checksum" not in package
    package = await world.upload(good, package_id)
    assert package["onboardingState"] == "ONBOARDED"
    assert "onboardingFailureDetails" not in package


async def test_of_packages_with_one_descriptor_one_is_onboarded(world: World) -> None:
    content = world.zipped("vm")
    packages = await asyncio.gather(*(world.upload(content) for _ in range(4)))
    assert sorted(package["onboardingState"] for package in packages) == ["ERROR", "ERROR", "ERROR", "ONBOARDED"]
    for package in packages:
        if package["onboardingState"] == "ERROR":
            assert package["onboardingFailureDetails"]["status"] == 409
            assert "belongs to" in package["onboardingFailureDetails"]["detail"]


async def test_an_upload_that_is_cut_off_leaves_the_package_as_before(world: World) -> None:
    package_id = await created(world)
    host, _, port = urlsplit(world.url).netloc.partition(":")
    _, writer = await asyncio.open_connection(host, int(port))
    writer.write(
        f"PUT /vnfpkgm/v1/vnf_packages/{package_id}/package_content HTTP/1.1\r\nHost: x\r\n"
        f"Content-Type: application/zip\r\nContent-Length: 1000000\r\n\r\n".encode()
        + b"x" * 1000
    )
    await writer.drain()
    async with asyncio.timeout(10):
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
    async with lcm_world(tmp_path, package_limit_gib=1000 / 2**30) as world:
        package_id = await created(world)

        async def chunks() -> AsyncIterator[bytes]:
            for _ in range(20):
                yield b"x" * 100

        path = f"/{package_id}/package_content"
        (await world.packages("PUT", path, data=chunks(), headers=ZIP)).problem(413)
        assert await state_of(world, package_id) == "CREATED"


async def test_a_restart_takes_back_uploads_whose_senders_are_gone(tmp_path: Path) -> None:
    async with lcm_world(tmp_path) as world:
        package_id = await created(world)
        await world.store.update("vnf_packages", package_id, {"onboardingState": "UPLOADING"})
    async with lcm_world(tmp_path) as world:
        assert await state_of(world, package_id) == "CREATED"
        assert (await world.upload(world.zipped("vm"), package_id))["onboardingState"] == "ONBOARDED"


async def test_content_is_given_back_as_it_was_uploaded(world: World) -> None:
    package = await world.sample()
    path, content = f"/{package['id']}/package_content", world.zipped("vm")
    for accept in ("application/zip", "*/*"):
        answer = (await world.packages("GET", path, headers={"Accept": accept})).must(200)
        assert answer.raw == content
        assert answer.headers["Content-Type"] == "application/zip"
    (await world.packages("GET", path, headers={"Accept": "application/json"})).problem(406)
    part = (await world.packages("GET", path, headers={"Range": "bytes=2-5"})).must(206)
    assert part.raw == content[2:6]
    assert part.headers["Content-Range"] == f"bytes 2-5/{len(content)}"
    beyond = await world.packages("GET", path, headers={"Range": f"bytes={len(content)}-"})
    beyond.problem(416)
    assert beyond.headers["Content-Range"] == f"bytes */{len(content)}"
    (await world.packages("GET", path, headers={"Range": "bytes=0-1,3-4"})).problem(400)


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
    request = f"GET /internal/v1/packages/{package['id']}/files/{path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
    writer.write(f"{request}Authorization: Bearer {TOKEN}\r\n\r\n".encode())  # as it is: clients tidy paths up
    answer = await asyncio.wait_for(reader.read(), 10)
    writer.close()
    assert answer.split(b" ")[1] in {b"400", b"404"}
    assert b"application/problem+json" in answer
