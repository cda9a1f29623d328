"""Downloads of VNF packages over HTTP: content in ranges, VNFD, manifest and artifacts in each form.

Each is tested at both addresses of a package: by its id and by the id of its VNFD (API-124).
"""

from __future__ import annotations

import asyncio
import io
import zipfile
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from cryptography.hazmat.primitives.serialization.pkcs7 import PKCS7Options
from kubevnfm_lcm_api.http.file_answers import SANDBOX
from packages.cms import cms
from packages.package_builder import META, ONE_VNFD, v1_files, zip_of
from servers.certificates import Authority
from worlds.lcm_world import Answer, World, lcm_world

ZIP = {"Content-Type": "application/zip"}
NAMES_IN_ALL = {"Scripts/install_k8s_cluster.sh", "Scripts/kubernetes_mgmt.py", "Files/kubernetes/nfs-pv1.yaml"}
TEXT = "text/plain"
ARCHIVE = "application/zip"

MANIFEST = """\
metadata:
  vnf_product_name: One

Source: one.yaml
Source: Scripts/run.sh
Content-Type: text/x-shellscript
Source: Scripts/odd.bin
Content-Type: no type at all
Signature: Scripts/odd.bin.sig.cms
Certificate: Scripts/odd.cert

non_mano_artifact_sets:
  acme.docs:
    Source: docs/readme.md
  acme.licences:
    Source: docs/licence.txt
"""
ODD = bytes(range(256)) * 300


def _signed_odd() -> dict[str, str | bytes]:
    with TemporaryDirectory() as folder:
        signer = Authority(Path(folder)).issue("signer")
        return {
            "Scripts/odd.bin.sig.cms": cms(ODD, signer, PKCS7Options.NoCerts),
            "Scripts/odd.cert": signer.certificate.read_bytes(),
        }


ONE: Mapping[str, str | bytes] = {
    "one.yaml": ONE_VNFD,
    "one.mf": MANIFEST,
    "one.cert": "certificate of the manifest",
    "Scripts/run.sh": "#!/bin/sh\n",
    "Scripts/odd.bin": ODD,
    **_signed_odd(),
    "docs/readme.md": "read me",
    "docs/readme.md.gz": "not the same file",
    "docs/licence.txt": "licence",
    "docs/name with space, ü.txt": "odd name",
}


@dataclass(frozen=True)
class Onboarded:
    """A package, and where it is read."""

    world: World
    package: dict[str, Any]
    content: bytes
    address: str = "vnf_packages/{id}"

    @property
    def path(self) -> str:
        """Where the package is."""
        return f"/vnfpkgm/v1/{self.address.format(**self.package)}"

    async def get(self, resource: str, accept: str | None = None, **headers: str) -> Answer:
        """GET below the package."""
        sent = {**headers, **({"Accept": accept} if accept is not None else {})}
        return await self.world.call("GET", f"{self.path}{resource}", headers=sent)

    async def archive(self, resource: str, accept: str | None = None) -> dict[str, bytes]:
        """GET an archive; return its files."""
        answer = (await self.get(resource, accept)).must(200)
        assert answer.headers["Content-Type"] == ARCHIVE
        with zipfile.ZipFile(io.BytesIO(answer.raw)) as archive:
            return {name: archive.read(name) for name in archive.namelist()}


async def onboarded(world: World, files: Mapping[str, str | bytes], address: str = "vnf_packages/{id}") -> Onboarded:
    content = zip_of(world.folder / "made.zip", files).read_bytes()
    package = await world.upload(content)
    assert package["onboardingState"] == "ONBOARDED", package
    return Onboarded(world, package, content, address)


@pytest.fixture(params=["vnf_packages/{id}", "onboarded_vnf_packages/{vnfdId}"], ids=["by-id", "by-vnfd"])
def address(request: pytest.FixtureRequest) -> str:
    """The two addresses of a package."""
    return str(request.param)


@pytest.fixture
async def many(world: World, address: str) -> Onboarded:
    """A package whose VNFD has several files, without a manifest, with an image."""
    return await onboarded(world, {**v1_files(), "Files/images/ubuntu.img": b"image" * 1000}, address)


@pytest.fixture
async def one(world: World, address: str) -> Onboarded:
    """A package whose VNFD is one file, with a manifest."""
    return await onboarded(world, ONE, address)


async def test_content_is_given_back_as_it_was_uploaded(many: Onboarded) -> None:
    """API-116."""
    for accept in (ARCHIVE, "*/*", "application/*", None):
        answer = (await many.get("/package_content", accept)).must(200)
        assert answer.raw == many.content
        assert answer.headers["Content-Type"] == ARCHIVE
        assert answer.headers["Content-Length"] == str(len(many.content))
        assert answer.headers["Accept-Ranges"] == "bytes"
        assert answer.headers["Version"] == "1.0.0"
    for accept in ("application/json", "text/html", "application/zip;q=0"):
        (await many.get("/package_content", accept)).problem(406)
    head = await many.world.call("HEAD", f"{many.path}/package_content", headers={})
    assert (head.must(200).raw, head.headers["Content-Length"]) == (b"", str(len(many.content)))


@pytest.mark.parametrize("resource", ["/package_content", "/artifacts/Scripts/odd.bin", "/artifacts"])
async def test_one_range_is_served(one: Onboarded, resource: str) -> None:
    """API-116, API-124: 206 with Content-Range, 416 beyond the end, 400 for two ranges; If-Range."""
    whole = (await one.get(resource)).must(200)
    size = len(whole.raw)
    for asked, start, end in (
        ("bytes=2-5", 2, 5),
        ("bytes=10-", 10, size - 1),
        ("bytes=-7", size - 7, size - 1),
        (f"bytes=5-{size + 50}", 5, size - 1),
        (f"bytes=-{size + 5}", 0, size - 1),
        (f"bytes=0-{10**60}", 0, size - 1),
        ("bytes=0-0", 0, 0),
    ):
        part = (await one.get(resource, Range=asked)).must(206)
        assert part.raw == whole.raw[start : end + 1], asked
        assert part.headers["Content-Range"] == f"bytes {start}-{end}/{size}"
        assert part.headers["Content-Type"] == whole.headers["Content-Type"]
        assert part.headers["Content-Length"] == str(end - start + 1)
    for beyond in (f"bytes={size}-", f"bytes={size + 10}-{size + 20}", "bytes=-0"):
        refused = await one.get(resource, Range=beyond)
        refused.problem(416)
        assert refused.headers["Content-Range"] == f"bytes */{size}"
    for nonsense in ("0-1,3-4", "5-2", "a-b", "-", "", "9" * 5000 + "-", "0-" + "9" * 5000, "-" + "9" * 5000, "²-"):
        (await one.get(resource, Range=f"bytes={nonsense}")).problem(400)
    assert (await one.get(resource, Range="lines=1-2")).must(200).raw == whole.raw
    tag = whole.headers["ETag"]
    assert (await one.get(resource, **{"Range": "bytes=0-1", "If-Range": tag})).must(206).raw == whole.raw[:2]
    assert (await one.get(resource, **{"Range": "bytes=0-1", "If-Range": '"old"'})).must(200).raw == whole.raw
    (await one.get(resource, **{"If-None-Match": tag})).must(304)


async def test_a_page_in_a_package_is_stored_by_a_browser_and_not_shown(world: World) -> None:
    """A script in it would act in the gateway's origin, with the permissions of the person that opens it."""
    name = 'docs/ä page";.html'
    manifest = MANIFEST.replace(
        "Source: Scripts/run.sh", f"Source: {name}\nContent-Type: text/html\nSource: Scripts/run.sh"
    )
    package = await onboarded(world, {**ONE, name: "<script>", "one.mf": manifest})
    stored = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": SANDBOX}
    for resource in (*RESOURCES, f"/artifacts/{quote(name)}", "/vnfd?include_signatures"):
        answer = (await package.get(resource)).must(200)
        disposition = answer.headers["Content-Disposition"]
        assert disposition.startswith('attachment; filename="'), resource
        assert {key: answer.headers.get(key) for key in stored} == stored, resource
    page = (await package.get(f"/artifacts/{quote(name)}", Range="bytes=0-3")).must(206)
    assert page.headers["Content-Type"] == "text/html"
    assert page.headers["Content-Disposition"] == (
        "attachment; filename=\"__page__.html\"; filename*=UTF-8''%C3%A4%20page%22%3B.html"
    )
    for path in ("/docs", "/", "/vnfpkgm/v1/vnf_packages"):
        assert (await world.call("GET", path, headers={})).headers["X-Content-Type-Options"] == "nosniff"


async def test_a_vnfd_of_several_files_comes_as_archive_only(many: Onboarded) -> None:
    """API-115."""
    for accept in (ARCHIVE, "*/*", f"{TEXT},{ARCHIVE}", None):
        files = await many.archive("/vnfd", accept)
        assert set(files) == {
            META, "Definitions/top.yaml", "Definitions/types.yaml", "Definitions/flavour_simple.yaml",
            "Definitions/flavour_complex.yaml",
        }  # fmt: skip
        assert files["Definitions/top.yaml"].decode() == v1_files()["Definitions/top.yaml"]
    assert "4 files" in (await many.get("/vnfd", TEXT)).problem(406)["detail"]
    for accept in ("application/json", "image/png"):
        (await many.get("/vnfd", accept)).problem(406)


async def test_a_vnfd_of_one_file_comes_as_text_or_as_archive(one: Onboarded) -> None:
    """API-115: Content-Type exactly text/plain or application/zip."""
    for accept in (TEXT, f"{TEXT},{ARCHIVE}", f"{ARCHIVE}, {TEXT}", "*/*", "text/*", None):
        answer = (await one.get("/vnfd", accept)).must(200)
        assert answer.headers["Content-Type"] == TEXT
        assert answer.raw.decode() == ONE_VNFD
    for accept in (ARCHIVE, "application/*", f"{TEXT};q=0, {ARCHIVE}"):
        assert await one.archive("/vnfd", accept) == {"one.yaml": ONE_VNFD.encode()}
    assert await one.archive("/vnfd?include_signatures") == {"one.yaml": ONE_VNFD.encode()}
    (await one.get("/vnfd?include_signatures", TEXT)).problem(406)
    (await one.get("/vnfd", "text/html")).problem(406)


async def test_the_manifest_comes_as_text_and_with_its_certificate_as_archive(one: Onboarded) -> None:
    """API-115 for the manifest (SOL005 9.4.4b)."""
    for accept in (TEXT, None, "*/*"):
        answer = (await one.get("/manifest", accept)).must(200)
        assert (answer.headers["Content-Type"], answer.raw.decode()) == (TEXT, MANIFEST)
    assert await one.archive("/manifest", ARCHIVE) == {"one.mf": MANIFEST.encode()}
    with_certificate = {"one.mf": MANIFEST.encode(), "one.cert": b"certificate of the manifest"}
    assert await one.archive("/manifest?include_signatures") == with_certificate
    (await one.get("/manifest?include_signatures", TEXT)).problem(406)


async def test_a_package_without_a_manifest_says_so(many: Onboarded) -> None:
    """API-115 for the manifest."""
    assert "no manifest" in (await many.get("/manifest")).problem(404)["detail"]


async def test_artifacts_come_by_their_path_whatever_accept_says(one: Onboarded, many: Onboarded) -> None:
    """API-117."""
    script = (await one.get("/artifacts/Scripts/run.sh", "application/json")).must(200)
    assert (script.raw, script.headers["Content-Type"]) == (b"#!/bin/sh\n", "text/x-shellscript")
    odd = (await one.get("/artifacts/Scripts/odd.bin", "application/json")).must(200)
    assert (odd.raw, odd.headers["Content-Type"]) == (ONE["Scripts/odd.bin"], "application/octet-stream")
    readme = (await one.get("/artifacts/docs/readme.md", **{"Accept-Encoding": "gzip"})).must(200)
    assert readme.raw == b"read me"
    assert "Content-Encoding" not in readme.headers
    named = await one.get("/artifacts/docs/name%20with%20space%2C%20%C3%BC.txt")
    assert named.must(200).raw == b"odd name"
    image = (await many.get("/artifacts/Files/images/ubuntu.img", "application/json")).must(200)
    assert image.raw == b"image" * 1000
    assert (await one.get("/artifacts/./Scripts/run.sh")).must(200).raw == b"#!/bin/sh\n"
    for missing in ("Scripts/none.sh", "Scripts", "content.zip"):
        assert missing in (await one.get(f"/artifacts/{missing}")).problem(404)["detail"]
    signed = await one.archive("/artifacts/Scripts/odd.bin?include_signatures")
    assert signed == {name: _bytes(ONE[name]) for name in signed}
    assert set(signed) == {"Scripts/odd.bin", "Scripts/odd.bin.sig.cms", "Scripts/odd.cert"}
    (await one.get("/artifacts/Scripts/odd.bin?include_signatures", TEXT)).problem(406)


@pytest.mark.parametrize(
    "path",
    [
        "..",
        "../one.yaml",
        "Scripts/../../content.zip",
        "..%2f..%2fstore.db",
        "%2e%2e/x",
        "%2fetc%2fpasswd",
        "a%5cb",
        "a%00b",
    ],
)
async def test_a_path_outside_the_package_is_refused(one: Onboarded, path: str) -> None:
    """API-117: `..` gives 400."""
    host, _, port = urlsplit(one.world.url).netloc.partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    # As it is: a client would normalize the path.
    request = f"GET {one.path}/artifacts/{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    writer.write(request.encode())
    answer = await asyncio.wait_for(reader.read(), 60)
    writer.close()
    assert answer.split(b" ")[1] == b"400"
    assert b"application/problem+json" in answer


async def test_all_artifacts_come_as_an_archive(one: Onboarded, many: Onboarded) -> None:
    """API-117, API-124, for all of them: selections by SOL005 9.4.5a.3.2."""
    scripts = {"Scripts/run.sh", "Scripts/odd.bin", "docs/readme.md.gz", "docs/name with space, ü.txt"}
    docs = {"docs/readme.md", "docs/licence.txt"}
    keys = {"Scripts/odd.bin.sig.cms", "Scripts/odd.cert"}
    for query, expected in (
        ("", scripts | docs),
        ("?include_signatures", scripts | docs | keys),
        ("?exclude_all_mano_artifacts", docs),
        ("?exclude_all_non_mano_artifacts", scripts),
        ("?select_non_mano_artifact_sets=acme.docs", scripts | {"docs/readme.md"}),
        ("?exclude_all_mano_artifacts&select_non_mano_artifact_sets=acme.docs,none", {"docs/readme.md"}),
        ("?include_external_artifacts", scripts | docs),
        ("?exclude_all_mano_artifacts=true&exclude_all_non_mano_artifacts=true", set()),
    ):
        files = await one.archive(f"/artifacts{query}")
        assert set(files) == expected, query
        assert all(content == _bytes(ONE[name]) for name, content in files.items())
    assert (await one.get("/artifacts")).raw == (await one.get("/artifacts")).raw
    (await one.get("/artifacts", "application/json")).problem(406)
    names = set(await many.archive("/artifacts"))
    assert names >= NAMES_IN_ALL
    assert "Files/images/ubuntu.img" not in names
    assert not any(name.startswith("Definitions/") for name in names)
    shown = {entry["artifactPath"]: entry for entry in one.package["additionalArtifacts"]}
    assert set(shown) == scripts | docs
    assert shown["docs/readme.md"]["nonManoArtifactSetId"] == "acme.docs"


def _bytes(content: str | bytes) -> bytes:
    return content.encode() if isinstance(content, str) else content


RESOURCES = ("/package_content", "/vnfd", "/manifest", "/artifacts", "/artifacts/Scripts/run.sh")


async def test_nothing_is_read_before_it_is_onboarded(world: World) -> None:
    """API-115: 409 before ONBOARDED; 404 for a package that is not there."""
    package_id = str((await world.packages("POST", body={})).must(201).json["id"])
    for resource in RESOURCES:
        assert "CREATED" in (await world.packages("GET", f"/{package_id}{resource}")).problem(409)["detail"]
        (await world.packages("GET", f"/none{resource}")).problem(404)
    refused = await world.upload(zip_of(world.folder / "bad.zip", {"a": "b"}).read_bytes(), package_id)
    assert refused["onboardingState"] == "ERROR"
    for resource in RESOURCES:
        assert "ERROR" in (await world.packages("GET", f"/{package_id}{resource}")).problem(409)["detail"]


async def test_a_package_that_is_repaired_shows_nothing_of_what_it_was(world: World) -> None:
    """API-112."""
    bad = {**ONE, "one.mf": f"{MANIFEST}\nSource: docs/readme.md\nAlgorithm: SHA-256\nHash: 00\n"}
    package = await world.upload(zip_of(world.folder / "bad.zip", bad).read_bytes())
    assert "docs/readme.md" in package["onboardingFailureDetails"]["detail"]
    good = zip_of(world.folder / "good.zip", ONE).read_bytes()
    repaired = await world.upload(good, package["id"])
    assert (repaired["onboardingState"], repaired["vnfmInfo"]) == ("ONBOARDED", ["kubevnfm"])
    assert (await Onboarded(world, repaired, good).get("/artifacts/docs/readme.md")).must(200).raw == b"read me"


@pytest.fixture
async def reopened(tmp_path: Path) -> AsyncIterator[Onboarded]:
    async with lcm_world(tmp_path) as world:
        made = await onboarded(world, ONE)
    async with lcm_world(tmp_path) as world:
        yield Onboarded(world, made.package, made.content)


async def test_everything_is_there_after_a_restart(reopened: Onboarded) -> None:
    """API-116, API-117."""
    assert (await reopened.get("/package_content")).must(200).raw == reopened.content
    assert (await reopened.get("/vnfd", TEXT)).must(200).raw.decode() == ONE_VNFD
    assert "docs/readme.md" in await reopened.archive("/artifacts")
