"""Signed packages (SOL004 clause 5) over HTTP: whose signatures are trusted, what they have to cover."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.hazmat.primitives.serialization.pkcs7 import PKCS7Options
from kubevnfm_lcm_api.packages.adapters.signatures import PackageSignatures
from packages.cms import cms
from packages.package_builder import ONE_VNFD
from servers.certificates import Authority, Pair
from worlds.lcm_world import World, lcm_world

FILES = {"one.yaml": ONE_VNFD, "Scripts/run.sh": "#!/bin/sh\n", "docs/readme.md": "read me"}


def zipped(files: Mapping[str, str | bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def manifest_of(files: Mapping[str, str], more: str = "") -> str:
    blocks = [
        f"Source: {name}\nAlgorithm: SHA-256\nHash: {hashlib.sha256(text.encode()).hexdigest()}\n"
        for name, text in files.items()
    ]
    return "\n".join(["metadata:\n  vnf_product_name: One\n", *blocks]) + more


def option_1(signer: Pair, *options: PKCS7Options, **changed: str | bytes) -> dict[str, str | bytes]:
    """A package whose manifest is signed; ``changed`` files (``a__b`` for a/b) are put in afterwards."""
    manifest = manifest_of(FILES).encode()
    signed: dict[str, str | bytes] = {**FILES, "one.mf": manifest + cms(manifest, signer, *options)}
    return {**signed, **{name.replace("__", "/").replace("_dot_", "."): content for name, content in changed.items()}}


def option_2(signer: Pair, *options: PKCS7Options, form: Encoding = Encoding.PEM) -> dict[str, str | bytes]:
    """An archive of a CSAR and its signature."""
    csar = zipped({**FILES, "one.mf": manifest_of(FILES)})
    return {"one.csar": csar, "one.cms": cms(csar, signer, *options, form=form)}


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def signer(authority: Authority) -> Pair:
    return authority.issue("signer")


@pytest.fixture
def stranger(tmp_path: Path) -> Pair:
    return Authority(tmp_path, "strange-ca").issue("stranger")


@asynccontextmanager
async def trusting(folder: Path, anchors: Path | None, **changes: Any) -> AsyncIterator[World]:
    async with lcm_world(folder, package_trust_anchors=anchors, **changes) as world:
        yield world


@pytest.fixture
async def world(tmp_path: Path, authority: Authority) -> AsyncIterator[World]:
    """Signatures of the authority's signers are trusted; unsigned packages are taken."""
    async with trusting(tmp_path, authority.file) as running:
        yield running


@pytest.fixture
async def careless(tmp_path: Path) -> AsyncIterator[World]:
    """Without trust anchors, only the fit of signature and content is checked."""
    async with trusting(tmp_path, None) as running:
        yield running


async def onboarded(world: World, files: Mapping[str, str | bytes]) -> dict[str, Any]:
    package = await world.upload(zipped(files))
    assert package["onboardingState"] == "ONBOARDED", package
    return package


async def refused(world: World, files: Mapping[str, str | bytes]) -> str:
    package = await world.upload(zipped(files))
    assert package["onboardingState"] == "ERROR", package
    return str(package["onboardingFailureDetails"]["detail"])


async def test_a_signed_manifest_is_verified(world: World, signer: Pair) -> None:
    """API-110 for signed packages, option 1: the certificate within the signature."""
    package = await onboarded(world, option_1(signer))
    assert package["packageSecurityOption"] == "OPTION_1"
    assert "signingCertificate" not in package
    text = (await world.packages("GET", f"/{package['id']}/manifest", headers={"Accept": "text/plain"})).must(200).raw
    assert b"BEGIN CMS" in text


async def test_the_certificate_may_be_a_file_of_the_package(world: World, signer: Pair) -> None:
    """API-110 for signed packages, option 1: ``<manifest>.cert`` beside the manifest."""
    files = {**option_1(signer, PKCS7Options.NoCerts), "one.cert": signer.certificate.read_bytes()}
    package = await onboarded(world, files)
    assert package["signingCertificate"] == signer.certificate.read_text()
    answer = await world.packages("GET", f"/{package['id']}/manifest", params={"include_signatures": ""})
    with zipfile.ZipFile(io.BytesIO(answer.must(200).raw)) as archive:
        assert set(archive.namelist()) == {"one.mf", "one.cert"}
        assert archive.read("one.cert") == signer.certificate.read_bytes()


@pytest.mark.parametrize("form", [Encoding.PEM, Encoding.DER])
async def test_a_signed_archive_is_verified(world: World, signer: Pair, form: Encoding) -> None:
    """API-110 for signed packages, option 2; content is given back as it came (API-116)."""
    files = {**option_2(signer, PKCS7Options.NoCerts, form=form), "one.cert": signer.certificate.read_bytes()}
    content = zipped(files)
    package = await world.upload(content)
    assert (package["onboardingState"], package["packageSecurityOption"]) == ("ONBOARDED", "OPTION_2"), package
    assert package["signingCertificate"] == signer.certificate.read_text()
    assert package["checksum"]["hash"] == hashlib.sha256(content).hexdigest()
    assert (await world.packages("GET", f"/{package['id']}/package_content")).must(200).raw == content
    script = await world.packages("GET", f"/{package['id']}/artifacts/Scripts/run.sh")
    assert script.must(200).raw == b"#!/bin/sh\n"


async def test_a_signer_may_be_trusted_without_an_authority(tmp_path: Path, signer: Pair, stranger: Pair) -> None:
    """API-110 for signed packages: the signer's own certificate as anchor, which the package need not bring."""
    async with trusting(tmp_path, signer.certificate) as world:
        await onboarded(world, option_1(signer, PKCS7Options.NoCerts))
        assert "not valid" in await refused(world, option_1(stranger))


async def test_what_a_stranger_signed_is_refused(world: World, stranger: Pair) -> None:
    """API-112 for signed packages."""
    for files in (
        option_1(stranger),
        option_2(stranger),
        {**option_1(stranger, PKCS7Options.NoCerts), "one.cert": stranger.certificate.read_bytes()},
    ):
        assert "not valid" in await refused(world, files)
    assert "certificate" in await refused(world, option_1(stranger, PKCS7Options.NoCerts))


async def test_what_was_changed_after_it_was_signed_is_refused(world: World, signer: Pair) -> None:
    """API-112 for signed packages: the manifest, a file, a file added; a signature of something else."""
    good = option_1(signer)
    manifest = good["one.mf"]
    assert isinstance(manifest, bytes)
    other = manifest.replace(b"vnf_product_name: One", b"vnf_product_name: Two")
    assert "not valid" in await refused(world, {**good, "one.mf": other})
    assert "Scripts/run.sh" in await refused(world, {**good, "Scripts/run.sh": "rm -rf\n"})
    said = await refused(world, {**good, "Scripts/added.sh": "rm -rf\n"})
    assert "has no digest of Scripts/added.sh" in said
    two = option_2(signer)
    assert "not valid" in await refused(
        world, {**two, "one.csar": zipped({**FILES, "one.mf": manifest_of(FILES)}) + b" "}
    )
    attached = {**two, "one.cms": cms(b"something else", signer, PKCS7Options.Text)}
    assert "not valid" in await refused(world, attached)
    for nonsense in (b"", b"no signature", b"-----BEGIN CMS-----\nMIIG\n-----END CMS-----\n"):
        assert "not valid" in await refused(world, {**two, "one.cms": nonsense})
    assert "not a certificate" in await refused(world, {**two, "one.cert": b"none"})


async def test_files_may_be_signed_one_by_one(world: World, signer: Pair, stranger: Pair) -> None:
    """API-112 for signed packages: each signature that the manifest names is judged."""
    more = "\nSource: Scripts/own.sh\nSignature: Scripts/own.sig.cms\nCertificate: Scripts/own.cert\n"

    def files(by: Pair, content: str = "own\n") -> dict[str, str | bytes]:
        manifest = manifest_of(FILES, more).encode()
        return {
            **FILES,
            "one.mf": manifest + cms(manifest, signer),
            "Scripts/own.sh": content,
            "Scripts/own.sig.cms": cms(b"own\n", by, PKCS7Options.NoCerts),
            "Scripts/own.cert": by.certificate.read_bytes(),
        }

    await onboarded(world, files(signer))
    assert "Scripts/own.sh" in await refused(world, files(stranger))
    assert "Scripts/own.sh" in await refused(world, files(signer, "other\n"))


async def test_unsigned_packages_are_refused_where_signatures_are_required(
    tmp_path: Path, authority: Authority, signer: Pair
) -> None:
    """API-112 for signed packages."""
    async with trusting(tmp_path, authority.file, require_signed_packages=True) as world:
        assert "not signed" in await refused(world, {**FILES, "one.mf": manifest_of(FILES)})
        package = await onboarded(world, option_2(signer))
        assert package["packageSecurityOption"] == "OPTION_2"


async def test_without_trusted_certificates_a_signature_has_to_fit_what_it_signs(
    careless: World, stranger: Pair
) -> None:
    """API-112 for signed packages."""
    good = option_1(stranger)
    manifest = good["one.mf"]
    assert isinstance(manifest, bytes)
    spoilt = {**good, "one.mf": manifest.replace(b"name: One", b"name: Two")}
    assert "not valid" in await refused(careless, spoilt)
    two = option_2(stranger)
    assert "not valid" in await refused(careless, {**two, "one.csar": zipped({**FILES, "one.mf": "x"})})
    package = await onboarded(careless, good)
    assert package["packageSecurityOption"] == "OPTION_1"


async def test_without_any_certificate_a_signature_cannot_be_judged(careless: World, stranger: Pair) -> None:
    """A package with a signature that cannot be verified is accepted without trust anchors."""
    await onboarded(careless, option_1(stranger, PKCS7Options.NoCerts))


def test_required_signatures_need_trust_anchors(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="trust anchors"):
        PackageSignatures(anchors=None, is_required=True)
    (tmp_path / "none.pem").write_text("no certificate")
    with pytest.raises(ValueError, match="contains no certificates"):
        PackageSignatures(anchors=tmp_path / "none.pem", is_required=False)
