"""Makes a package out of a resource bundle of ONAP: the chart of a definition, with what a profile puts over it.

Both are tar.gz archives of callers. Everything here blocks, and what it reads may cost any time and memory: callers run it
in a process that can be killed. Source: ONAP multicloud-k8s, docs of resource bundles and profiles.
"""

from __future__ import annotations

import gzip
import os
import shutil
import stat
import tarfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

from kubevnfm_kit.foreign_yaml.kubernetes import read_one_kubernetes_yaml
from kubevnfm_kit.foreign_yaml.reader import YamlRefused
from kubevnfm_kit.foreign_yaml.writing import write_yaml

from kubevnfm_csar.archive import CHUNK, check_name
from kubevnfm_csar.bundle_facts import CHART, BundleFacts
from kubevnfm_csar.errors import PackageRefused
from kubevnfm_csar.files import FolderFiles, inside, read_text
from kubevnfm_csar.limits import Limits
from kubevnfm_csar.pack import pack

_CHART_FILE: Final = "Chart.yaml"
_MANIFEST: Final = "manifest.yaml"
_VALUES: Final = "values.yaml"
_MANIFESTS: Final = (".yaml", ".yml", ".json")
_BROKEN: Final = (
    tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError, ValueError, OverflowError, RecursionError,
)  # fmt: skip
"""The errors of tarfile and gzip for data that is no tar.gz."""
_HEADER_BYTES: Final = 2048
"""For each entry: its header, that of a longer name, and what is filled up."""
_MODE: Final = 0o644
_ORDER: Final = {"artifacts": [{"chart": "chart.tgz"}]}
_META: Final = "TOSCA-Meta-File-Version: 1.0\nCSAR-Version: 1.1\nCreated-By: kubevnfm\nEntry-Definitions: Definitions/bundle.yaml\n"


def unpack_tar(archive: Path, target: Path, limits: Limits) -> None:
    """Unpack a tar.gz into the folder ``target``, which is created, within the limits of packages. Raises PackageRefused."""
    target.mkdir(mode=0o700)
    allowed = max(limits.small_bytes, int(archive.stat().st_size * limits.expansion_ratio))
    try:
        # Not tarfile's own reader of gzip, which fails for a header with an extra field: each archive of Helm has one.
        with gzip.open(archive) as packed:
            content = _Bounded(packed, allowed + limits.entries * _HEADER_BYTES)
            with tarfile.open(fileobj=cast("Any", content), mode="r|") as tar:
                _unpack(tar, target, entries=limits.entries, allowed_bytes=allowed)
    except _BROKEN as error:
        raise PackageRefused(f"not a tar.gz archive: {error}") from error


class _Bounded:
    """A stream that ends with PackageRefused: tarfile reads a header of any size into memory before a member is seen."""

    def __init__(self, content: gzip.GzipFile, most: int) -> None:
        self._content, self._left, self._most = content, most, most

    def read(self, size: int) -> bytes:
        chunk = self._content.read(size)
        self._left -= len(chunk)
        if self._left < 0:
            raise PackageRefused(f"unpacks to more than {self._most} bytes with its headers")
        return chunk


def _unpack(tar: tarfile.TarFile, target: Path, *, entries: int, allowed_bytes: int) -> None:
    files, folders, total, count = set[str](), set[str](), 0, 0
    while (member := tar.next()) is not None:
        # It would keep every header.
        cast("Any", tar).members.clear()
        count += 1
        if count > entries:
            raise PackageRefused(f"more than {entries} entries")
        name = member.name.removeprefix("./").rstrip("/")
        if name in ("", "."):
            continue
        check_name(name)
        if not (member.isdir() or member.type in (tarfile.REGTYPE, tarfile.AREGTYPE)) or member.sparse is not None:
            raise PackageRefused("a link, a device or a sparse file", file=name)
        parents = {name[:end] for end, character in enumerate(name) if character == "/"}
        if name in files or parents & files or (name in folders and not member.isdir()):
            raise PackageRefused("the archive contains this name twice", file=name)
        folders |= parents
        if member.isdir():
            folders.add(name)
            continue
        files.add(name)
        total += member.size
        if total > allowed_bytes:
            raise PackageRefused(f"unpacks to more than the {allowed_bytes} bytes allowed for an archive of its size")
        _write(tar, member, target / name)


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    source = tar.extractfile(member)
    assert source is not None
    handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "wb") as out:
        while chunk := source.read(CHUNK):
            out.write(chunk)


def chart_in(folder: Path, named: str) -> str:
    """Return the name of the folder that is the chart: the one that is named, else the first one. Raises PackageRefused."""
    if named:
        if inside(named) != named or not (folder / named / _CHART_FILE).is_file():
            raise PackageRefused("the archive has no such chart: a folder with Chart.yaml expected", file=named)
        return named
    found = sorted(path.parent.name for path in folder.glob(f"*/{_CHART_FILE}") if path.is_file())
    if not found:
        manifest = next((each.name for each in sorted(folder.rglob("*")) if each.suffix in _MANIFESTS), None)
        if manifest is not None:
            raise PackageRefused(
                "no chart: plain manifests are not taken; put them into the folder templates of a chart", file=manifest
            )
        raise PackageRefused("the archive has no chart: a folder with Chart.yaml expected")
    return found[0]


def lay_over(folder: Path, chart: str, profile: Path) -> None:
    """Put the values and the files that the manifest of a profile names over a chart. Raises PackageRefused."""
    files = FolderFiles(profile)
    manifest = _read_map(files, _MANIFEST)
    _check_members(manifest, ("version", "type"), "")
    kinds = manifest.get("type") or {}
    if not isinstance(kinds, dict):
        raise PackageRefused("type: an object expected", file=_MANIFEST)
    _check_members(kinds, ("values", "configresource"), "type/")
    listed = kinds.get("configresource") or []
    if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
        raise PackageRefused("type/configresource: a list of objects expected", file=_MANIFEST)
    for index, each in enumerate(listed):
        place = f"type/configresource/{index}"
        _check_members(each, ("filepath", "chartpath"), f"{place}/")
        source = _path(each.get("filepath"), f"{place}/filepath")
        target = _path(each.get("chartpath"), f"{place}/chartpath")
        if not target.startswith(f"{chart}/"):
            raise PackageRefused(f"{place}/chartpath: a path in the chart {chart} expected", file=_MANIFEST)
        with files.open(source) as content:
            _put(content.read(), folder, target)
    if kinds.get("values"):
        _override(folder / chart, _read_map(files, _path(kinds["values"], "type/values")))


def _override(chart: Path, values: Mapping[str, Any]) -> None:
    own = FolderFiles(chart)
    before = _read_map(own, _VALUES) if _VALUES in own.names() else {}
    _put(write_yaml(_merged(before, values)).encode(), chart, _VALUES)


def _merged(before: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values as Helm merges a file of values over those of a chart: null removes one."""
    found = dict(before)
    for name, value in values.items():
        earlier = found.get(name)
        if value is None:
            found.pop(name, None)
        elif isinstance(value, Mapping):
            found[name] = _merged(earlier if isinstance(earlier, Mapping) else {}, value)
        else:
            found[name] = value
    return found


def _put(content: bytes, folder: Path, target: str) -> None:
    place = folder / target
    parents = [folder / target[:end] for end, character in enumerate(target) if character == "/"]
    if place.is_dir() or any(each.is_file() for each in parents):
        raise PackageRefused("both a file and a folder", file=target)
    place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    place.write_bytes(content)


def _read_map(files: FolderFiles, name: str) -> dict[str, Any]:
    try:
        body = read_one_kubernetes_yaml(read_text(files, name))
    except YamlRefused as error:
        raise PackageRefused(f"invalid YAML: {error}", file=name) from None
    if body is None:
        return {}
    if not isinstance(body, dict):
        raise PackageRefused("an object expected", file=name)
    return body


def _check_members(body: Mapping[str, Any], known: tuple[str, ...], place: str) -> None:
    for name in body:
        if name not in known:
            raise PackageRefused(f"{place}{name[:100]}: one of {', '.join(known)} expected", file=_MANIFEST)


def _path(given: object, place: str) -> str:
    path = inside(given) if isinstance(given, str) else None
    if path is None:
        raise PackageRefused(f"{place}: a path inside the archive expected", file=_MANIFEST)
    check_name(path)
    return path


def write_package(folder: Path, chart: str, facts: BundleFacts, out: Path) -> None:
    """Write the package whose order is the chart in ``folder``. Raises PackageRefused if onboarding would refuse it."""
    root = out.with_suffix(".package")
    for name in ("Definitions", "TOSCA-Metadata", "Artifacts"):
        (root / name).mkdir(parents=True, mode=0o700)
    (root / "TOSCA-Metadata/TOSCA.meta").write_text(_META)
    (root / "Definitions/bundle.yaml").write_text(write_yaml(_vnfd(facts)))
    (root / "Artifacts/artifact-order.yaml").write_text(write_yaml(_ORDER))
    _write_chart(folder / chart, chart, root / CHART)
    pack(root, out)
    shutil.rmtree(root)


def _write_chart(source: Path, chart: str, target: Path) -> None:
    with (
        target.open("wb") as out,
        gzip.GzipFile("", "wb", 6, out, 0) as packed,
        tarfile.open(fileobj=packed, mode="w") as tar,
    ):
        for path in sorted(source.rglob("*")):
            if not stat.S_ISREG(path.lstat().st_mode):
                continue
            member = tarfile.TarInfo(f"{chart}/{path.relative_to(source).as_posix()}")
            member.size, member.mode = path.stat().st_size, _MODE
            with path.open("rb") as content:
                tar.addfile(member, content)


def _vnfd(facts: BundleFacts) -> Mapping[str, Any]:
    """Return a VNFD without VDUs: what the chart makes is known when it is rendered."""
    identity = {
        "descriptor_id": facts.vnfd_id,
        "provider": "ONAP",
        "product_name": facts.product,
        "software_version": facts.version,
        "descriptor_version": facts.version,
        "flavour_id": "default",
        "flavour_description": "The chart of a resource bundle",
        "vnfm_info": ["kubevnfm"],
    }
    return {
        "tosca_definitions_version": "tosca_simple_yaml_1_2",
        "imports": ["etsi_nfv_sol001_common_types.yaml", "etsi_nfv_sol001_vnfd_types.yaml"],
        "topology_template": {
            "substitution_mappings": {"node_type": "tosca.nodes.nfv.VNF", "properties": {"flavour_id": "default"}},
            "node_templates": {"VNF": {"type": "tosca.nodes.nfv.VNF", "properties": identity}},
        },
    }
