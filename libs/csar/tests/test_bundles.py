"""Resource bundles of ONAP as packages: what their archives may have, and what a profile puts over a chart."""

from __future__ import annotations

import gzip
import io
import tarfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from zipfile import ZipFile

import pytest
from kubevnfm_csar.bundle_facts import CHART, BundleFacts
from kubevnfm_csar.bundles import chart_in, lay_over, unpack_tar, write_package
from kubevnfm_csar.errors import PackageRefused
from kubevnfm_csar.limits import Limits
from kubevnfm_csar.package import read_package
from kubevnfm_kit.foreign_yaml.kubernetes import read_one_kubernetes_yaml

FACTS = BundleFacts(vnfd_id="7f6b2b5c-9d11-4a63-8f0e-3b1c7d5e2a91", product="vfw: 'x'", version="1")
CHART_FILES = {
    "./": "",
    "vfw/Chart.yaml": "{apiVersion: v2, name: vfw, version: 1.0.0}\n",
    "vfw/values.yaml": "{image: {tag: '1.0', pull: Always}, gone: 1, a-b: 1}\n",
    "vfw/.helmignore": "ci/\n",
}


def tar(folder: Path, name: str, files: Mapping[str, str | tarfile.TarInfo]) -> Path:
    """Return a tar.gz; a name with a slash at its end is a folder."""
    path = folder / name
    with tarfile.open(path, "w:gz") as out:
        for each, text in files.items():
            member = text if isinstance(text, tarfile.TarInfo) else tarfile.TarInfo(each)
            member.name = each
            content = text.encode() if isinstance(text, str) else b""
            member.type = tarfile.DIRTYPE if each.endswith("/") else member.type
            member.size = member.size or len(content)
            out.addfile(member, io.BytesIO(content or bytes(member.size)))
    return path


def unpacked(folder: Path, name: str, files: Mapping[str, str | tarfile.TarInfo]) -> Path:
    unpack_tar(tar(folder, f"{name}.tgz", files), folder / name, Limits(entries=20, small_bytes=2000))
    return folder / name


def test_a_profile_is_laid_over_the_chart_and_both_are_one_package(tmp_path: Path) -> None:
    """MC-131: as Helm merges values; a file of the profile may be new in the chart."""
    chart = unpacked(tmp_path, "chart", CHART_FILES)
    manifest = (
        "version: v1\ntype:\n  values: over.yaml\n  configresource:\n  - {filepath: a.txt, chartpath: vfw/conf/a.txt}\n"
    )
    over = "{image: {tag: '2.0', pull: null}, gone: null, a-b: 5}\n"
    lay_over(chart, "vfw", unpacked(tmp_path, "profile", {"manifest.yaml": manifest, "over.yaml": over, "a.txt": "hi"}))
    assert chart_in(chart, "") == chart_in(chart, "vfw") == "vfw"
    values = read_one_kubernetes_yaml((chart / "vfw/values.yaml").read_text())
    assert values == {"image": {"tag": "2.0"}, "a-b": 5}
    write_package(chart, "vfw", FACTS, tmp_path / "out.zip")
    assert read_package(tmp_path / "out.zip").vnfd.vnfd_id == FACTS.vnfd_id
    first = (tmp_path / "out.zip").read_bytes()
    write_package(chart, "vfw", FACTS, tmp_path / "out.zip")
    assert (tmp_path / "out.zip").read_bytes() == first
    with ZipFile(tmp_path / "out.zip") as csar, tarfile.open(fileobj=io.BytesIO(csar.read(CHART))) as packed:
        assert packed.getnames() == ["vfw/.helmignore", "vfw/Chart.yaml", "vfw/conf/a.txt", "vfw/values.yaml"]


@pytest.mark.parametrize(
    ("files", "rule"),
    [
        ({"/etc/x": "a"}, "an absolute path"),
        ({"a/../../x": "a"}, "a path that leaves"),
        ({"a\nb": "a"}, "a control character"),
        ({"a": "x", "./a": "y"}, "twice"),
        ({"a": "x", "a/b": "y"}, "twice"),
        ({"a/b": "y", "a": "x"}, "twice"),
        ({f"f{each}": "" for each in range(21)}, "more than 20 entries"),
        ({"big": "0" * 70_000}, "unpacks to more than the"),
    ],
)
def test_an_archive_that_leads_out_of_its_folder_or_is_too_large_is_refused(
    tmp_path: Path, files: Mapping[str, str], rule: str
) -> None:
    """MC-126, MC-131."""
    with pytest.raises(PackageRefused, match=rule):
        unpacked(tmp_path, "bad", files)


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.GNUTYPE_SPARSE])
def test_links_and_devices_are_refused(tmp_path: Path, kind: bytes) -> None:
    """MC-126, MC-131."""
    member = tarfile.TarInfo("x")
    member.type, member.linkname = kind, "/etc/passwd"
    with pytest.raises(PackageRefused, match="a link"):
        unpacked(tmp_path, "bad", {"x": member})


@pytest.mark.parametrize("raw", [b"", b"PK\x03\x04", b"\x1f\x8b\x08\x00garbage", b"x" * 1000])
def test_what_is_no_tar_is_refused(tmp_path: Path, raw: bytes) -> None:
    """MC-131."""
    (tmp_path / "x.tgz").write_bytes(raw)
    with pytest.raises(PackageRefused, match=r"not a tar\.gz"):
        unpack_tar(tmp_path / "x.tgz", tmp_path / "x", Limits())


def test_an_archive_as_helm_packages_it_is_read(tmp_path: Path) -> None:
    """MC-048, MC-131: ``helm package`` writes an extra field and a comment into the header of gzip."""
    content = gzip.decompress(tar(tmp_path, "x.tgz", CHART_FILES).read_bytes())
    field, packer = b"+aHR0cHM6Ly95b3V0dS5iZS96OVV6MWljandyTQo=", zlib.compressobj(wbits=-zlib.MAX_WBITS)
    head = b"\x1f\x8b\x08\x14\0\0\0\0\0\xff" + len(field).to_bytes(2, "little") + field + b"Helm\0"
    tail = zlib.crc32(content).to_bytes(4, "little") + len(content).to_bytes(4, "little")
    (tmp_path / "x.tgz").write_bytes(head + packer.compress(content) + packer.flush() + tail)
    unpack_tar(tmp_path / "x.tgz", tmp_path / "x", Limits())
    assert chart_in(tmp_path / "x", "") == "vfw"


def test_a_header_of_any_size_is_not_read(tmp_path: Path) -> None:
    """MC-126, MC-131: tarfile would have the whole header in memory before it names a member."""
    header = tarfile.TarInfo("././@PaxHeader")
    header.type, header.size = tarfile.XHDTYPE, 2**30
    with gzip.open(tmp_path / "x.tgz", "wb") as out:
        out.write(header.tobuf(tarfile.USTAR_FORMAT) + bytes(100_000))
    with pytest.raises(PackageRefused, match=r"unpacks to more than \d+ bytes with its headers"):
        unpack_tar(tmp_path / "x.tgz", tmp_path / "x", Limits(entries=20, small_bytes=2000))


def test_an_archive_that_ends_in_the_middle_of_a_file_is_refused(tmp_path: Path) -> None:
    """MC-131."""
    whole = tar(tmp_path, "x.tgz", {"a": "".join(map(str, range(9999)))}).read_bytes()
    (tmp_path / "x.tgz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(PackageRefused, match=r"not a tar\.gz"):
        unpack_tar(tmp_path / "x.tgz", tmp_path / "x", Limits())


@pytest.mark.parametrize(
    ("profile", "rule"),
    [
        ({}, r"manifest\.yaml: the package has no such file"),
        ({"manifest.yaml": "a: [\n"}, "invalid YAML"),
        ({"manifest.yaml": "[]"}, "an object expected"),
        ({"manifest.yaml": "type: {valuess: x}"}, "type/valuess: one of values, configresource expected"),
        ({"manifest.yaml": "type: {values: ../x}"}, "type/values: a path inside"),
        ({"manifest.yaml": "type: {values: none.yaml}"}, r"none\.yaml: the package has no such file"),
        (
            {"manifest.yaml": "type: {configresource: [{filepath: manifest.yaml, chartpath: other/x}]}"},
            "in the chart vfw",
        ),
        (
            {"manifest.yaml": "type: {configresource: [{filepath: manifest.yaml, chartpath: vfw/../x}]}"},
            "a path inside",
        ),
        (
            {"manifest.yaml": "type: {configresource: [{filepath: manifest.yaml, chartpath: vfw/Chart.yaml/x}]}"},
            "a folder",
        ),
        ({"manifest.yaml": "type: {configresource: [3]}"}, "a list of objects"),
    ],
)
def test_a_profile_that_would_do_something_else_is_refused(
    tmp_path: Path, profile: Mapping[str, str], rule: str
) -> None:
    """MC-131."""
    chart = unpacked(tmp_path, "chart", CHART_FILES)
    with pytest.raises(PackageRefused, match=rule):
        lay_over(chart, "vfw", unpacked(tmp_path, "profile", profile))


def test_a_chart_is_a_folder_with_its_file(tmp_path: Path) -> None:
    """MC-131."""
    chart = unpacked(tmp_path, "chart", {**CHART_FILES, "a/x": "1"})
    for named in ("a", "none", "../chart/vfw", "vfw/"):
        with pytest.raises(PackageRefused, match="no such chart"):
            chart_in(chart, named)
    with pytest.raises(PackageRefused, match="no chart"):
        chart_in(unpacked(tmp_path, "none", {"x/y": "1"}), "")
    with pytest.raises(PackageRefused, match="plain manifests are not taken") as caught:
        chart_in(unpacked(tmp_path, "plain", {"x/deployment.yaml": "kind: Deployment"}), "")
    assert "deployment.yaml" in str(caught.value)
