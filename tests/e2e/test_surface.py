"""Common behaviour of all resources: versions, methods, headers, errors (api.md chapter 1)."""

from __future__ import annotations

import pytest
from callers.user import User

LCM = "/vnflcm/v2/vnf_instances"


@pytest.mark.parametrize(
    "path",
    [
        f"{prefix}/api_versions"
        for prefix in ("/vnflcm", "/vnflcm/v1", "/vnflcm/v2", "/vnfpkgm", "/vnfpkgm/v1", "/vnfpkgm/v2")
    ],
)
@pytest.mark.parametrize("version", [None, "2.0.0", "1.3.0"])
async def test_the_versions_are_public(user: User, path: str, version: str | None) -> None:
    """API-001, API-017."""
    answer = (await user.call("GET", path, headers={"Version": version} if version else None)).must(200)
    assert answer.headers["Version"] in {"1.0.0", "1.3.0", "2.3.0", "2.4.0"}
    assert answer.headers["Accept-Ranges"] == "none"
    shown = answer.json
    assert shown["uriPrefix"] == path.removesuffix("/api_versions")
    assert shown["apiVersions"]


@pytest.mark.parametrize(
    ("version", "status"),
    [(None, 400), ("abc", 400), ("9.9.9", 406), ("1.3.0", 406), ("2.0.0", 200), ("2.3.0", 200), ("2.0.0-impl:x", 200)],
)
async def test_v2_wants_a_version_that_it_speaks(user: User, version: str | None, status: int) -> None:
    """API-004, API-005, API-011."""
    answer = (await user.call("GET", LCM, headers={"Version": version} if version else None)).must(status)
    assert answer.headers["Version"]
    if status >= 400:
        assert answer.headers["Content-Type"].startswith("application/problem+json")
        assert answer.json["status"] == status
        assert answer.detail


async def test_v1_and_packages_want_none(user: User) -> None:
    """API-005."""
    for path in ("/vnflcm/v1/vnf_instances", "/vnflcm/v1/vnf_lcm_op_occs", "/vnfpkgm/v1/vnf_packages"):
        assert (await user.call("GET", path)).must(200).headers["Version"]
    (await user.call("GET", "/v1.0/vims")).must(200)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", "/vnflcm/v2/vnf_instances"),
        ("DELETE", "/vnflcm/v2/vnf_instances"),
        ("POST", "/vnflcm/v2/vnf_instances/none"),
        ("GET", "/vnflcm/v2/vnf_instances/none/instantiate"),
        ("DELETE", "/vnflcm/v1/vnf_lcm_op_occs/none"),
        ("PATCH", "/vnflcm/v1/subscriptions/none"),
        ("POST", "/vnflcm/v1/api_versions"),
        ("DELETE", "/vnfpkgm/v1/vnf_packages/none/package_content"),
    ],
)
async def test_an_undefined_method_is_refused_with_the_allowed_ones(user: User, method: str, path: str) -> None:
    """API-003, also for ids that do not exist."""
    answer = (await user.call(method, path, headers={"Version": "2.0.0"})).must(405)
    assert answer.headers["Allow"]
    assert answer.json["status"] == 405


@pytest.mark.parametrize("path", ["/vnfpm/v1/pm_jobs", "/nothing", "/vnflcm/v1/vnf_snapshots"])
async def test_unknown_paths_are_not_found(user: User, path: str) -> None:
    """API-003."""
    answer = (await user.call("GET", path, headers={"Version": "2.0.0"})).must(404)
    assert answer.json["status"] == 404


async def test_bodies_are_judged_by_type_form_and_content(user: User) -> None:
    """API-007, API-009, API-010."""
    headers = {"Version": "2.0.0"}
    (await user.call("GET", LCM, headers={**headers, "Accept": "text/html"})).must(406)
    csv = {**headers, "Content-Type": "text/csv"}
    (await user.call("POST", LCM, data=b"{}", headers=csv)).must(415)
    json = {**headers, "Content-Type": "application/json"}
    (await user.call("POST", LCM, data=b"{", headers=json)).must(400)
    (await user.call("POST", LCM, data=b"", headers=json)).must(400)
    (await user.call("GET", LCM, headers=json)).must(200)
    wrong = (await user.call("POST", LCM, {"vnfdId": 7}, headers=headers)).must(400)
    assert wrong.json["invalidParams"][0]["name"] == "vnfdId"
    (await user.call("GET", f"{LCM}?attribute_not_exist=x", headers=headers)).must(400)
    (await user.call("GET", f"{LCM}/none?x=y", headers=headers)).must(400)


async def test_an_instance_has_an_etag(user: User) -> None:
    """API-014."""
    instance_id = await user.create(await user.sample("vm"))
    shown = (await user.lcm("GET", f"/vnf_instances/{instance_id}")).must(200)
    same = await user.lcm("GET", f"/vnf_instances/{instance_id}", headers={"If-None-Match": shown.headers["ETag"]})
    same.must(304)
    await user.delete(instance_id)


async def test_a_uri_of_8192_characters_is_served_and_a_huge_body_is_not(user: User) -> None:
    """API-016."""
    long = f"{LCM}?filter=(eq,vnfInstanceName,{'x' * 8000})"
    assert (await user.call("GET", long.ljust(8100, "x"), headers={"Version": "2.0.0"})).status in {200, 400}
    huge = b'{"vnfdId": "' + b"x" * (20 << 20) + b'"}'
    answer = await user.call("POST", LCM, data=huge, headers={"Version": "2.0.0", "Content-Type": "application/json"})
    answer.must(413)
    assert answer.json["status"] == 413
