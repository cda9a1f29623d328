"""VNF packages over HTTP: onboarding, hostile archives, states, and their instances."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from typing import Any

import pytest
from callers.user import User
from packages.own_packages import Files, own_vm, zipped
from patience import until
from servers.wirings import in_six

BASE = "/vnfpkgm/v1/vnf_packages"


@in_six
async def test_a_package_is_created_uploaded_shown_disabled_and_deleted(user: User) -> None:
    """API-110, API-111, API-114, API-116, API-118."""
    archive = zipped(own_vm("5b5d5ab5-8a4c-4a4e-9d1b-111111111111"))
    made = (await user.call("POST", BASE, {"userDefinedData": {"site": "here"}})).must(201)
    package_id = made.json["id"]
    assert (made.json["onboardingState"], made.json["operationalState"]) == ("CREATED", "DISABLED")
    assert made.headers["Location"].endswith(f"{BASE}/{package_id}")
    package = await user.upload_into(package_id, archive)
    assert (package["onboardingState"], package["operationalState"]) == ("ONBOARDED", "ENABLED")
    assert package["usageState"] == "NOT_IN_USE"
    assert package["vnfdId"] == "5b5d5ab5-8a4c-4a4e-9d1b-111111111111"
    assert package["checksum"]["hash"]
    assert package["userDefinedData"] == {"site": "here"}
    content = await user.call("GET", f"{BASE}/{package_id}/package_content")
    assert content.headers["Content-Type"] == "application/zip"

    again = await user.call(
        "PUT", f"{BASE}/{package_id}/package_content", data=archive, headers={"Content-Type": "application/zip"}
    )
    again.must(409)
    instance_id = await user.create(package["vnfdId"])
    assert (await user.call("GET", f"{BASE}/{package_id}")).json["usageState"] == "IN_USE"
    (await user.call("DELETE", f"{BASE}/{package_id}")).must(409)
    disabled = (await user.call("PATCH", f"{BASE}/{package_id}", {"operationalState": "DISABLED"})).must(200)
    assert disabled.json == {"operationalState": "DISABLED"}
    (await user.call("PATCH", f"{BASE}/{package_id}", {"operationalState": "DISABLED"})).must(409)
    (await user.lcm("POST", "/vnf_instances", {"vnfdId": package["vnfdId"]})).must(422)
    (await user.call("DELETE", f"{BASE}/{package_id}")).must(409)
    await user.delete(instance_id)
    (await user.call("DELETE", f"{BASE}/{package_id}")).must(204)
    (await user.call("GET", f"{BASE}/{package_id}")).must(404)


def _path_outside(files: Files) -> Files:
    return {**files, "../../outside.txt": b"x"}


def _absolute_path(files: Files) -> Files:
    return {**files, "/tmp/outside.txt": b"x"}


def _wrong_digest(files: Files) -> Files:
    name = next(name for name in files if name.startswith("Definitions/"))
    block = f"\nName: {name}\nAlgorithm: SHA-256\nHash: {'0' * 64}\n".encode()
    return {**files, "TOSCA-Metadata/TOSCA.meta": files["TOSCA-Metadata/TOSCA.meta"] + block}


def _no_vnfd(files: Files) -> Files:
    return {name: content for name, content in files.items() if not name.startswith("Definitions/")}


def _a_bomb(files: Files) -> Files:
    return {**files, "Files/bomb": bytes(64 << 20)}


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (_path_outside, "outside.txt"),
        (_absolute_path, "outside.txt"),
        (_wrong_digest, "Definitions/"),
        (_no_vnfd, "Definitions/"),
        (_a_bomb, "times its size"),
    ],
    ids=["path outside", "absolute path", "wrong digest", "no VNFD", "bomb"],
)
async def test_a_hostile_or_broken_package_ends_in_error_and_a_good_one_repairs_it(
    user: User, spoil: Callable[[Files], Files], says: str
) -> None:
    """API-112."""
    good = own_vm("5b5d5ab5-8a4c-4a4e-9d1b-222222222222")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in spoil(good).items():
            archive.writestr(name, content)
    package = await user.upload(packed.getvalue())
    assert package["onboardingState"] == "ERROR", package
    assert package["operationalState"] == "DISABLED"
    assert says in package["onboardingFailureDetails"]["detail"]
    repaired = await user.upload_into(package["id"], zipped(good))
    assert repaired["onboardingState"] == "ONBOARDED", repaired
    assert "onboardingFailureDetails" not in repaired
    (await user.call("PATCH", f"{BASE}/{package['id']}", {"operationalState": "DISABLED"})).must(200)
    (await user.call("DELETE", f"{BASE}/{package['id']}")).must(204)


async def test_a_second_package_with_the_same_descriptor_is_refused_with_the_first_ones_id(user: User) -> None:
    """API-112."""
    files = zipped(own_vm("5b5d5ab5-8a4c-4a4e-9d1b-333333333333"))
    first, second = await user.upload(files), await user.upload(files)
    assert second["onboardingState"] == "ERROR"
    assert first["id"] in second["onboardingFailureDetails"]["detail"]
    (await user.call("DELETE", f"{BASE}/{second['id']}")).must(204)
    (await user.call("PATCH", f"{BASE}/{first['id']}", {"operationalState": "DISABLED"})).must(200)
    (await user.call("DELETE", f"{BASE}/{first['id']}")).must(204)


async def test_content_that_is_not_a_zip_is_refused(user: User) -> None:
    """API-112, API-007."""
    package = (await user.call("POST", BASE, {})).must(201).json
    content = f"{BASE}/{package['id']}/package_content"
    refused = await user.call("PUT", content, data=b"this is no archive", headers={"Content-Type": "application/zip"})
    assert "zip archive" in refused.must(400).detail
    (await user.call("PUT", content, data=b"a,b", headers={"Content-Type": "text/csv"})).must(415)
    shown = (await user.call("GET", f"{BASE}/{package['id']}")).must(200).json
    assert shown["onboardingState"] == "CREATED"
    (await user.call("DELETE", f"{BASE}/{package['id']}")).must(204)


async def test_a_package_is_read_back_in_parts_and_found_by_its_use(user: User) -> None:
    """API-115, API-116, API-117, API-118, API-124: by its id and by the id of its VNFD."""
    archive = zipped(own_vm("5b5d5ab5-8a4c-4a4e-9d1b-444444444444"))
    package = await user.upload(archive)
    assert package["onboardingState"] == "ONBOARDED", package
    one = f"{BASE}/{package['id']}"
    for address in (one, f"/vnfpkgm/v1/onboarded_vnf_packages/{package['vnfdId']}"):
        assert (await user.call("GET", address)).must(200).json["id"] == package["id"]
        part = (await user.call("GET", f"{address}/package_content", headers={"Range": "bytes=0-1"})).must(206)
        assert (part.text, part.headers["Content-Range"]) == ("PK", f"bytes 0-1/{len(archive)}")
        beyond = {"Range": f"bytes={len(archive)}-"}
        (await user.call("GET", f"{address}/package_content", headers=beyond)).must(416)
        meta = (await user.call("GET", f"{address}/artifacts/TOSCA-Metadata/TOSCA.meta")).must(200)
        assert "Entry-Definitions" in meta.text
        (await user.call("GET", f"{address}/artifacts/..%2Fcontent.zip")).must(400)
        vnfd = await user.call("HEAD", f"{address}/vnfd", headers={"Accept": "application/zip"})
        assert vnfd.must(200).headers["Content-Type"] == "application/zip"

    async def found(usage: str) -> dict[str, Any] | None:
        asked = f"(eq,usageState,{usage});(eq,vnfdId,{package['vnfdId']})"
        return next(iter((await user.call("GET", f"{BASE}?filter={asked}")).must(200).json), None)

    assert await found("NOT_IN_USE")
    instance_id = await user.create(package["vnfdId"])
    await until(lambda: found("IN_USE"))
    (await user.lcm("DELETE", f"/vnf_instances/{instance_id}")).must(204)
    await until(lambda: found("NOT_IN_USE"))
    (await user.call("PATCH", one, {"operationalState": "DISABLED"})).must(200)
    (await user.call("DELETE", one)).must(204)


async def test_an_address_in_an_internal_network_is_refused_in_the_background(user: User) -> None:
    """API-113."""
    package_id = (await user.call("POST", BASE, {})).must(201).json["id"]
    body = {"addressInformation": "http://169.254.169.254/a.zip", "userName": "a", "password": "b"}
    (await user.call("POST", f"{BASE}/{package_id}/package_content/upload_from_uri", body)).must(202)

    async def failure() -> dict[str, Any] | None:
        shown = (await user.call("GET", f"{BASE}/{package_id}")).must(200).json
        return shown.get("onboardingFailureDetails")  # type: ignore[no-any-return]  # JSON

    assert "may not go to" in (await until(failure))["detail"]
    (await user.call("DELETE", f"{BASE}/{package_id}")).must(204)


async def test_an_instance_of_an_unknown_package_is_refused(user: User) -> None:
    """API-021."""
    answer = (await user.lcm("POST", "/vnf_instances", {"vnfdId": "unknown"})).must(422)
    assert "unknown" in answer.detail
