"""Signed packages, and the files that a signature covers."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from kubevnfm_csar.archive import open_csar
from kubevnfm_csar.errors import PackageRefused
from kubevnfm_csar.limits import Limits
from kubevnfm_csar.manifest import split_signature
from kubevnfm_csar.package import describe
from kubevnfm_csar.signed import signed_archive, uncovered
from packages.package_builder import ONE_VNFD, zip_of

CMS = "-----BEGIN CMS-----\nMIIG\n-----END CMS-----\n"


def packed(folder: Path, *names: str) -> Path:
    return zip_of(folder / "package.zip", dict.fromkeys(names, "x"))


@pytest.mark.parametrize("names", [("a.csar", "a.cms"), ("a.zip", "a.cms", "a.cert"), ("A.CSAR", "b.CMS", "c.pem")])
def test_an_archive_of_a_csar_and_its_signature_is_a_signed_one(tmp_path: Path, names: tuple[str, ...]) -> None:
    found = signed_archive(packed(tmp_path, *names))
    assert found is not None
    assert (found.csar, found.signature) == names[:2]
    assert found.certificate == (names[2] if len(names) == 3 else None)


@pytest.mark.parametrize(
    "names",
    [
        ("a.csar",),
        ("a.cms",),
        ("a.csar", "b.csar", "a.cms"),
        ("a.csar", "a.cms", "b.cms"),
        ("a.csar", "a.cms", "a.cert", "b.cert"),
        ("a.csar", "a.cms", "readme.txt"),
        ("folder/a.csar", "folder/a.cms"),
    ],
)
def test_any_other_archive_is_not(tmp_path: Path, names: tuple[str, ...]) -> None:
    assert signed_archive(packed(tmp_path, *names)) is None


def test_a_signature_larger_than_any_is_makes_it_none(tmp_path: Path) -> None:
    assert signed_archive(packed(tmp_path, "a.csar", "a.cms"), limits=Limits(text_bytes=0)) is None


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"PK")
    with pytest.raises(PackageRefused, match="not a zip archive"):
        signed_archive(tmp_path / "a")


def test_a_manifest_is_divided_from_its_signature_to_the_byte() -> None:
    assert split_signature(b"Source: a\r\n" + CMS.encode()) == (b"Source: a\r\n", CMS.encode())
    assert split_signature(b"Source: a\n") == (b"Source: a\n", b"")


def test_files_without_a_digest_in_the_manifest_are_not_covered(tmp_path: Path) -> None:
    digest = hashlib.sha256(ONE_VNFD.encode()).hexdigest()
    manifest = (
        f"Source: one.yaml\nAlgorithm: SHA-256\nHash: {digest}\n\nSource: listed.txt\n\n"
        f"Source: own.sh\nSignature: own.sig\nCertificate: own.cert\n\n{CMS}"
    )
    files: dict[str, str | bytes] = {
        "one.yaml": ONE_VNFD, "one.mf": manifest, "one.cert": "x", "listed.txt": "x", "stray.txt": "x",
        "own.sh": "x", "own.sig": "x", "own.cert": "x", "by_name.sh": "x", "by_name.sh.sig.cms": "x",
    }  # fmt: skip
    csar = open_csar(zip_of(tmp_path / "package.zip", files))
    found = describe(csar)
    assert found.certificate == "one.cert"
    assert found.security == {
        "one.mf": ("one.cert",),
        "own.sh": ("own.sig", "own.cert"),
        "by_name.sh": ("by_name.sh.sig.cms",),
    }
    keys = {file for files in found.security.values() for file in files}
    assert uncovered(csar, keys, {"own.sh", "by_name.sh"}) == ("listed.txt", "stray.txt")
    assert uncovered(csar, keys, set()) == ("by_name.sh", "listed.txt", "own.sh", "stray.txt")
    assert {one.path for one in found.artifacts} == {"listed.txt", "stray.txt", "own.sh", "by_name.sh"}


def test_a_missing_signature_is_reported(tmp_path: Path) -> None:
    manifest = "Source: one.yaml\nSignature: none.sig\n"
    with pytest.raises(PackageRefused, match="signature, but the package does not contain it") as caught:
        open_csar(zip_of(tmp_path / "package.zip", {"one.yaml": ONE_VNFD, "one.mf": manifest}))
    assert caught.value.file == "none.sig"


def test_sets_of_non_mano_artifacts_are_read_wherever_they_stand(tmp_path: Path) -> None:
    sets = (
        "non_mano_artifact_sets:\n  acme.docs:\n    Source: a.md\n    Source: 'b.md'\n  acme.more:\n    Source: c.md\n"
    )
    after = "metadata:\nvnf_product_name: x\n"
    files: dict[str, str | bytes] = {"one.yaml": ONE_VNFD, "a.md": "", "b.md": "", "c.md": ""}
    for manifest in (f"{sets}{after}", f"{after}\n{sets}{CMS}"):
        csar = open_csar(zip_of(tmp_path / "package.zip", {**files, "one.mf": manifest}))
        expected = {"acme.docs": ("a.md", "b.md"), "acme.more": ("c.md",)}
        assert {name: names for name, names in csar.index.sets.items() if names} == expected
