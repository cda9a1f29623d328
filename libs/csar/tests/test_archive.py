"""The rules that an archive must keep before it is unpacked."""

from __future__ import annotations

import hashlib
import resource
import stat
import struct
import unicodedata
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pytest
from kubevnfm_csar.archive import external_name, extract, open_csar
from kubevnfm_csar.errors import PackageRefused
from kubevnfm_csar.files import FolderFiles, inside, listed_path, locate, read_text
from kubevnfm_csar.limits import Limits
from kubevnfm_csar.manifest import read_entry
from packages.package_builder import META, ONE_VNFD, package, raw_zip, v1_files, with_meta, zip_of


def refusal(path: Path, limits: Limits | None = None) -> PackageRefused:
    with pytest.raises(PackageRefused) as caught:
        open_csar(path, limits=limits)
    return caught.value


def written(folder: Path, raw: bytes) -> Path:
    path = folder / "package.zip"
    path.write_bytes(raw)
    return path


def external(folder: Path, uri: str, content: bytes) -> Path:
    """Return the folder with an artifact that was fetched from outside of a package."""
    outside = folder / "outside"
    outside.mkdir(exist_ok=True)
    digest = hashlib.sha256(content).hexdigest()
    (outside / external_name(uri, "SHA-256", digest)).write_bytes(content)
    return outside


def test_a_good_package_opens_with_its_entry_and_digests(tmp_path: Path) -> None:
    csar = open_csar(package(tmp_path))
    assert csar.index.entry == "Definitions/top.yaml"
    assert csar.index.listed["Scripts/install_k8s_cluster.sh"].algorithm == "SHA-256"
    assert csar.size("Scripts/install_k8s_cluster.sh") == len("#!/bin/bash\n")
    assert read_text(csar, "Scripts/install_k8s_cluster.sh") == "#!/bin/bash\n"


ZUERICH, ZUERICH_NFD, HYOJI = "Files/zürich.yaml", "Files/zu\u0308rich.yaml", "Files/表示.yaml"


def unicode_path(name: str, raw: bytes, *, crc: int | None = None) -> bytes:
    """Info-ZIP's extra field with a name in UTF-8 (APPNOTE 4.6.9)."""
    data = struct.pack("<BL", 1, zlib.crc32(raw) if crc is None else crc) + name.encode()
    return struct.pack("<HH", 0x7075, len(data)) + data


def named(
    folder: Path, raw: bytes, *, extra: bytes = b"", system: int = 3, head: str = "", reference: str = ""
) -> Path:
    """A package with a file whose name has these bytes, without bit 11; TOSCA.meta lists it as ``reference``."""
    holder = b"_" * len(raw)
    files = with_meta({**v1_files(), "Files/listed": "x"}, listed=("Files/listed",) if reference else ())
    files[META] = head + str(files[META]).replace("Name: Files/listed", f"Name: {reference}")
    del files["Files/listed"]
    path = zip_of(folder / "package.zip", files)
    info = zipfile.ZipInfo(holder.decode())
    info.extra, info.create_system = extra, system
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(info, "x")
    return written(folder, path.read_bytes().replace(holder, raw))


@pytest.mark.parametrize(
    ("raw", "more", "name"),
    [
        (ZUERICH.encode(), {}, ZUERICH),
        (ZUERICH_NFD.encode(), {"system": 19}, ZUERICH),
        (ZUERICH.encode(), {"system": 0}, "Files/z├╝rich.yaml"),
        (ZUERICH.encode("cp437"), {}, ZUERICH),
        (ZUERICH.encode("cp850"), {"extra": unicode_path(ZUERICH, ZUERICH.encode("cp850"))}, ZUERICH),
        (b"Files/z_rich.yaml", {"extra": unicode_path(ZUERICH_NFD, b"Files/z_rich.yaml")}, ZUERICH),
        (b"Files/z_rich.yaml", {"extra": unicode_path(ZUERICH, b"Files/another.yaml")}, "Files/z_rich.yaml"),
        (b"Files/z_rich.yaml", {"extra": b"\x75\x70\x01\x00\x01"}, "Files/z_rich.yaml"),
        (HYOJI.encode("cp932"), {"system": 0, "head": "File-Name-Encoding: Shift_JIS\n"}, HYOJI),
        (HYOJI.encode("euc_jp"), {"head": "File-Name-Encoding: EUC-JP\n"}, HYOJI),
        (HYOJI.encode(), {"head": "File-Name-Encoding: Shift_JIS\n"}, HYOJI),
    ],
)
def test_a_file_has_the_name_that_every_unzip_shows(
    tmp_path: Path, raw: bytes, more: dict[str, Any], name: str
) -> None:
    """It is found by both of Unicode's forms, NFC and NFD, and its digest is checked."""
    for reference in ("", name, unicodedata.normalize("NFD", f"./{name}")):
        with open_csar(named(tmp_path, raw, reference=reference, **more)) as csar:
            assert name in csar.names()
            assert read_text(csar, name) == "x"
            assert locate(csar, unicodedata.normalize("NFD", name), beside=META) == name
            assert (name in csar.index.listed) == bool(reference)
            extract(csar, tmp_path / f"{bool(reference)}{len(reference)}")
    assert locate(FolderFiles(tmp_path / "False0"), unicodedata.normalize("NFD", name), beside="a") == name
    assert inside(unicodedata.normalize("NFD", name)) == listed_path(unicodedata.normalize("NFD", f"./{name}")) == name


@pytest.mark.parametrize(
    ("raw", "more", "rule"),
    [
        (b"Files/harmless", {"extra": unicode_path("../outside", b"Files/harmless")}, "leaves the package"),
        (b"Files/harmless", {"extra": unicode_path("Files/\0", b"Files/harmless")}, "a control character"),
        (b"Files/harmless", {"extra": unicode_path(META, b"Files/harmless")}, "this name twice"),
        (HYOJI.encode("cp932"), {"system": 0}, "a backslash in a name; File-Name-Encoding in TOSCA.meta declares"),
        (HYOJI.encode("cp932"), {"head": "File-Name-Encoding: punycode\n"}, "no code page of file names that is known"),
        (HYOJI.encode("cp932"), {"head": "File-Name-Encoding: x\n"}, "no code page of file names that is known"),
        (b"Files/\x81", {"head": "File-Name-Encoding: cp932\n"}, "a name that is not cp932"),
    ],
)
def test_a_name_that_is_none_is_refused(tmp_path: Path, raw: bytes, more: dict[str, Any], rule: str) -> None:
    assert rule in refusal(named(tmp_path, raw, reference=HYOJI, **more)).rule


def test_two_files_whose_names_differ_in_their_unicode_form_are_one_twice(tmp_path: Path) -> None:
    error = refusal(zip_of(tmp_path / "package.zip", {**v1_files(), ZUERICH: "x", ZUERICH_NFD: "y"}))
    assert "this name twice" in error.rule


DIGEST = hashlib.sha512(b"x").hexdigest()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Entry-Definitions: Definitions/top.yaml", "Entry-Definitions: Definitions/to\n p.yaml"),
        ("Entry-Definitions: Definitions/top.yaml", "Entry-Definitions: ./Definitions/top.yaml"),
        ("Created-By: a test", "Created-By: a tool: of ours\n http://example.org\n and so on"),
        ("Name: Files/x y", "Name:\n ./Files/x\n  y"),
        ("Name: Files/x y", "Name: Files/../Files/x y"),
        ("\nAlgorithm: SHA-512\n", "\n  Algorithm: SHA-512\n"),
        (f"Hash: {DIGEST}", f"Hash: {DIGEST[:60]}\n {DIGEST[60:120]}\n {DIGEST[120:]}"),
        ("Algorithm: SHA-512", "# Hash: 0\nAlgorithm: SHA-512"),
    ],
)
def test_lines_of_tosca_meta_may_go_on_and_paths_may_begin_with_a_dot(tmp_path: Path, old: str, new: str) -> None:
    """TOSCA 1.0, 16.2: a line that begins with a blank continues the one before."""
    meta = (
        "TOSCA-Meta-File-Version: 1.0\nCSAR-Version: 1.1\nCreated-By: a test\nEntry-Definitions: Definitions/top.yaml\n\n"
        f"Name: Files/x y\nAlgorithm: SHA-512\nHash: {DIGEST}\n"
    )
    assert old in meta
    path = zip_of(tmp_path / "package.zip", {**v1_files(), "Files/x y": "x", META: meta.replace(old, new)})
    with open_csar(path) as csar:
        assert csar.index.entry == read_entry(csar) == "Definitions/top.yaml"
        assert csar.index.listed["Files/x y"].hash == DIGEST


def test_all_paths_of_a_signed_package_may_begin_with_a_dot(tmp_path: Path) -> None:
    digest = hashlib.sha256(b"x").hexdigest()
    files: dict[str, str | bytes] = {
        "one.yaml": ONE_VNFD,
        "Files/x": "x",
        "x.cms": "s",
        "x.cert": "c",
        "m.mf": f"metadata:\n  vnf_provider_id: a\n\nSource: ./Files/x\nAlgorithm: SHA-256\nHash: {digest[:40]}\n {digest[40:]}\n"
        "Signature: ./x.cms\nCertificate: ./x.cert\n\nnon_mano_artifact_sets:\n  tests:\n    Source: ./Files/x\n",
    }
    meta = with_meta(files, entry="one.yaml")
    more = "ETSI-Entry-Manifest: ./m.mf\nETSI-Entry-Certificate: ./x.cert\n"
    with open_csar(zip_of(tmp_path / "package.zip", {**meta, META: str(meta[META]) + more})) as csar:
        listed = csar.index.listed["Files/x"]
        assert (csar.index.manifest, csar.index.certificate) == ("m.mf", "x.cert")
        assert (listed.hash, listed.signature, listed.certificate) == (digest, "x.cms", "x.cert")
        assert csar.index.sets == {"tests": ("Files/x",)}


def test_content_that_is_not_a_zip_is_refused(tmp_path: Path) -> None:
    assert "not a zip archive" in refusal(written(tmp_path, b"PK is not enough")).rule


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("/etc/passwd", "an absolute path"),
        ("C:/windows", "an absolute path"),
        ("../outside", "leaves the package"),
        ("Scripts/../../outside", "leaves the package"),
        ("Scripts\\outside", "a backslash"),
        ("Scripts//double", "empty or '.' parts"),
        ("./Scripts/dot", "empty or '.' parts"),
        ("Scripts/\x01", "a control character"),
        ("x" * 300, "longer than file systems take"),
    ],
)
def test_a_name_that_could_land_elsewhere_is_refused(tmp_path: Path, name: str, rule: str) -> None:
    """MC-126."""
    error = refusal(zip_of(tmp_path / "package.zip", {**v1_files(), name: "x"}))
    assert rule in error.rule
    assert error.file


@pytest.mark.parametrize(("kind", "rule"), [(stat.S_IFLNK, "a link"), (stat.S_IFCHR, "a device, socket or pipe")])
def test_links_and_devices_are_refused(tmp_path: Path, kind: int, rule: str) -> None:
    """MC-126."""
    info = zipfile.ZipInfo("Scripts/x")
    info.external_attr = (kind | 0o777) << 16
    error = refusal(written(tmp_path, raw_zip([(info, b"/etc/passwd")])))
    assert (error.rule, error.file) == (rule, "Scripts/x")


def test_a_name_that_comes_twice_is_refused(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="Duplicate"):
        raw = raw_zip([(zipfile.ZipInfo("a"), b"1"), (zipfile.ZipInfo("a"), b"2")])
    assert refusal(written(tmp_path, raw)).rule == "the archive contains this name twice"


def test_a_name_that_is_file_and_folder_is_refused(tmp_path: Path) -> None:
    raw = raw_zip([(zipfile.ZipInfo("a"), b"1"), (zipfile.ZipInfo("a/b"), b"2")])
    assert refusal(written(tmp_path, raw)).rule == "both a file and a folder"


def test_an_encrypted_entry_is_refused(tmp_path: Path) -> None:
    raw = bytearray(raw_zip([(zipfile.ZipInfo("a"), b"1")]))
    directory = raw.index(b"PK\x01\x02")
    struct.pack_into("<H", raw, directory + 8, 1)
    assert refusal(written(tmp_path, bytes(raw))).rule == "encrypted"


def test_too_many_entries_are_refused(tmp_path: Path) -> None:
    """MC-126."""
    assert "at most 3 are allowed" in refusal(package(tmp_path), Limits(entries=3)).rule


def test_a_bomb_is_refused_by_its_ratio_and_a_small_file_that_compresses_well_is_not(tmp_path: Path) -> None:
    """MC-126."""
    files = {**v1_files(), "zeros": b"\0" * 2_000_000}
    path = zip_of(tmp_path / "package.zip", files)
    assert "times its size" in refusal(path, Limits(small_bytes=1_000_000)).rule
    assert open_csar(path, limits=Limits(small_bytes=3_000_000)).size("zeros") == 2_000_000


def test_a_package_or_file_above_its_size_is_refused(tmp_path: Path) -> None:
    assert "bytes unpacked" in refusal(package(tmp_path), Limits(unpacked_bytes=100)).rule
    assert "for one file" in refusal(package(tmp_path), Limits(file_bytes=100)).rule
    assert "text file" in refusal(package(tmp_path), Limits(text_bytes=10)).rule


@pytest.mark.parametrize("content", [b"x" * 50_000, bytes(range(256)) * 50, b"ab"])
def test_broken_data_is_refused(tmp_path: Path, content: bytes) -> None:
    files = with_meta({"Definitions/top.yaml": "a: 1", "Scripts/x": content}, listed=("Scripts/x",))
    raw = bytearray(zip_of(tmp_path / "package.zip", files).read_bytes())
    start = raw.index(b"Scripts/x") + len("Scripts/x")
    raw[start] ^= 0xFF
    error = refusal(written(tmp_path, bytes(raw)))
    assert "cannot be unpacked" in error.rule
    assert error.file == "Scripts/x"


def test_broken_data_of_a_file_that_is_read_as_text_is_refused(tmp_path: Path) -> None:
    raw = bytearray(package(tmp_path).read_bytes())
    raw[raw.index(META.encode()) + len(META)] ^= 0xFF
    error = refusal(written(tmp_path, bytes(raw)))
    assert "cannot be unpacked" in error.rule
    assert error.file == META


def test_a_disk_that_takes_no_more_is_not_the_packages_fault(tmp_path: Path) -> None:
    """The upload can be repeated later: the caller must not get a refusal of the package."""
    files = with_meta({"Definitions/top.yaml": "a: 1", "Scripts/x": b"x" * 50_000}, listed=("Scripts/x",))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with open_csar(zip_of(tmp_path / "package.zip", files)) as csar:
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
        try:
            with pytest.raises(OSError, match="File too large"):
                extract(csar, tmp_path / "files")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("algorithm", ["SHA-224", "SHA-256", "SHA-384", "SHA-512"])
def test_a_digest_that_differs_is_refused_with_the_file_and_both_digests(tmp_path: Path, algorithm: str) -> None:
    files = v1_files()
    files[META] = f"{files[META]!s}\nName: UserData/k8s_cluster_user_data.py\nAlgorithm: {algorithm}\nHash: abcd\n"
    error = refusal(zip_of(tmp_path / "package.zip", files))
    assert error.file == "UserData/k8s_cluster_user_data.py"
    assert algorithm in error.rule
    assert f"{META} says abcd" in error.rule
    files = {
        **v1_files(),
        META: f"{v1_files()[META]!s}".replace("Entry-Definitions", "ETSI-Entry-Manifest: m.mf\nEntry-Definitions", 1),
    }
    files["m.mf"] = f"Source: UserData/k8s_cluster_user_data.py\nAlgorithm: {algorithm}\nHash: abcd\n"
    assert "m.mf says abcd" in refusal(zip_of(tmp_path / "package.zip", files)).rule


@pytest.mark.parametrize(
    ("block", "rule"),
    [
        ("Name: Scripts/absent.sh\nAlgorithm: SHA-256\nHash: ab\n", "does not contain it"),
        ("Name: Scripts/install_k8s_cluster.sh\nAlgorithm: MD5\nHash: ab\n", "asks for MD5"),
        ("Name: UserData/k8s_cluster_user_data.py\nHash: ab\n", "only one of Algorithm and Hash"),
        ("Name: Scripts/install_k8s_cluster.sh\nAlgorithm: SHA-256\nHash: ab\n", "lists it twice"),
        ("Content-Type: text/plain\nAlgorithm: SHA-256\nHash: ab\n", "a block without Name"),
        ("Name: https://example.org/a.sh?t=marked\n", "outside of the package without Algorithm and Hash"),
        ("Name: ftp://example.org/a.sh\nAlgorithm: SHA-256\nHash: ab\n", "an http or https URI without"),
        ("Name: https://u:marked@example.org/a.sh\nAlgorithm: SHA-256\nHash: ab\n", "URI without a login expected"),
        ("Name: https://example.org/a.sh?t=marked\nAlgorithm: SHA-256\nHash: ab\n", "and not fetched"),
        (
            "".join(f"\nName: https://example.org/{n}\nAlgorithm: SHA-256\nHash: ab\n" for n in range(65)),
            "more than 64 artifacts",
        ),
    ],
)
def test_a_wrong_block_of_tosca_meta_is_refused(tmp_path: Path, block: str, rule: str) -> None:
    files = v1_files()
    files[META] = f"{files[META]!s}\n{block}"
    error = refusal(zip_of(tmp_path / "package.zip", files))
    assert rule in error.rule
    assert not [one for one in ("marked", "@") if one in str(error)]


def test_a_package_needs_tosca_meta_or_a_vnfd_in_the_root(tmp_path: Path) -> None:
    files = v1_files()
    del files[META]
    assert "one YAML file, the VNFD" in refusal(zip_of(tmp_path / "package.zip", files)).rule
    several = {"one.mf": "", "two.mf": "", "one.yaml": "a: 1\n"}
    assert "one manifest (*.mf); 2 found" in refusal(zip_of(tmp_path / "package.zip", several)).rule


def test_an_entry_that_is_missing_is_refused(tmp_path: Path) -> None:
    files = with_meta(v1_files(), entry="Definitions/absent.yaml")
    files[META] = str(files[META]).replace("top.yaml", "absent.yaml")
    assert "Entry-Definitions" in refusal(zip_of(tmp_path / "package.zip", files)).rule


def test_the_manifest_of_a_package_without_tosca_metadata_is_checked_like_tosca_meta(tmp_path: Path) -> None:
    manifest = (
        "metadata:\n  vnf_product_name: x\n\nSource: vnfd.yaml\nAlgorithm: SHA-256\nHash: {}\n"
        "Source: https://images.example.org/a.img\nAlgorithm: SHA-256\nHash: {}\n"
        "-----BEGIN CMS-----\nMIIG: x\n-----END CMS-----\n"
    )
    outside = external(tmp_path, "https://images.example.org/a.img", b"an image")
    image = hashlib.sha256(b"an image").hexdigest()
    files: dict[str, str | bytes] = {"vnfd.yaml": "a: 1\n", "vnfd.mf": manifest.format("00", image)}
    with pytest.raises(PackageRefused) as refused:
        open_csar(zip_of(tmp_path / "package.zip", files), external=outside)
    assert refused.value.file == "vnfd.yaml"
    right = hashlib.sha256(b"a: 1\n").hexdigest()
    files["vnfd.mf"] = manifest.format(right, image)
    csar = open_csar(zip_of(tmp_path / "package.zip", files), external=outside)
    assert csar.index.entry == "vnfd.yaml"
    (fetched,) = csar.index.external
    assert set(csar.index.listed) == {"vnfd.yaml", fetched.name}
    assert fetched.name == locate(csar, "https://images.example.org/a.img", beside="vnfd.yaml")
    assert fetched.name.startswith("Files/images/external/")
    extract(csar, tmp_path / "unpacked")
    assert (tmp_path / "unpacked" / fetched.name).read_bytes() == b"an image"
    with pytest.raises(PackageRefused, match="the path of an artifact outside of the package"):
        open_csar(zip_of(tmp_path / "package.zip", {**files, fetched.name: "x"}), external=outside)


def test_extracting_gives_the_files_without_the_skipped_ones_and_nothing_executable(tmp_path: Path) -> None:
    info = zipfile.ZipInfo("Scripts/run.sh")
    info.external_attr = (stat.S_IFREG | 0o4777) << 16
    path = tmp_path / "package.zip"
    zip_of(path, {**v1_files(), "Files/images/big.img": b"image"})
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(info, "#!/bin/sh\n")
    target = tmp_path / "unpacked"
    csar = open_csar(path)
    extract(csar, target, skip=lambda name: name.startswith("Files/images/"))
    assert stat.S_IMODE((target / "Scripts/run.sh").stat().st_mode) == 0o600
    assert FolderFiles(target).names() == csar.names() - {"Files/images/big.img"}


def test_a_folder_shows_no_file_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    (tmp_path / "package").mkdir()
    (tmp_path / "package/link").symlink_to(tmp_path / "secret")
    files = FolderFiles(tmp_path / "package")
    assert files.names() == frozenset()
    with pytest.raises(PackageRefused):
        files.open("link")
