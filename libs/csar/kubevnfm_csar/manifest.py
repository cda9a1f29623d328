"""TOSCA-Metadata/TOSCA.meta and the ETSI manifest: the VNFD's entry file and the digests of the files.

Source: TOSCA Simple Profile (TOSCA meta file), SOL004 (manifest).
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal
from urllib.parse import urlsplit

from kubevnfm_secrets import MASK, shown_url

from kubevnfm_csar.errors import PackageRefused
from kubevnfm_csar.files import PackageFiles, external_path, is_uri, locate, read_text
from kubevnfm_csar.zip_names import plain_name

META: Final = "TOSCA-Metadata/TOSCA.meta"
HASH_NAMES: Final = {"SHA-224": "sha224", "SHA-256": "sha256", "SHA-384": "sha384", "SHA-512": "sha512"}
"""hashlib's name by the manifest's (SOL004, IANA's registry of hash names)."""
_LINE: Final = re.compile(r"^\s*([A-Za-z0-9_.-]+)\s*:(.*)$")
"""A key and its value, with the blanks around it: a pattern that left them out would take the square of their number."""
_META_KEYS: Final = frozenset({
    "name", "content-type", "algorithm", "hash", "signature", "certificate", "digest", "digest-algorithms",
    "tosca-meta-file-version", "csar-version", "created-by", "entry-definitions", "other-definitions", "entry-manifest",
    "entry-change-log", "entry-tests", "entry-licenses", "entry-certificate", "etsi-entry-manifest", "etsi-entry-change-log",
    "etsi-entry-tests", "etsi-entry-licenses", "etsi-entry-certificate", "file-name-encoding",
})  # fmt: skip
"""The keys of TOSCA.meta, in lower case."""
_CMS_BEGIN: Final = b"-----BEGIN "
_SETS: Final = "non_mano_artifact_sets:"
_MOST_EXTERNAL: Final = 64


Classification = Literal["HISTORY", "TESTING", "LICENSE"]
_ENTRIES: Final[Mapping[Classification, tuple[str, str]]] = {
    "HISTORY": ("entry-change-log", "ChangeLog.txt"),
    "TESTING": ("entry-tests", "Tests"),
    "LICENSE": ("entry-licenses", "Licenses"),
}
"""The key of TOSCA.meta, and the name without one (SOL004 4.3.3 to 4.3.5)."""
_VERSIONS: Final = re.compile(r"^\s*compatible_specification_versions\s*:([^\r\n]*)$", re.MULTILINE)


@dataclass(frozen=True)
class Listed:
    """A file that TOSCA.meta or the manifest lists."""

    name: str
    content_type: str = ""
    algorithm: str = ""
    """``SHA-256`` ...; empty when the file is listed without a digest."""
    hash: str = ""
    """Hex, lower case."""
    signature: str = ""
    """The file that holds this file's own signature."""
    certificate: str = ""
    """The file with the certificate of this file's signer."""
    uri: str = ""
    """The address that it is fetched from, if it is outside of the package."""


@dataclass(frozen=True)
class Index:
    """The index of a package: its entry file and the files that it lists."""

    path: str = ""
    """The file of the index: TOSCA.meta or the manifest."""
    entry: str = ""
    """The file that the VNFD starts with."""
    manifest: str | None = None
    listed: dict[str, Listed] = field(default_factory=dict)
    certificate: str | None = None
    """The file with the certificate of the manifest's signer, if the signature does not contain it."""
    in_manifest: frozenset[str] = frozenset()
    """The files whose digests the manifest gives: a signature of the manifest covers them."""
    sets: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Files of the sets of non-MANO artifacts (SOL004 4.3.7), by the set's name."""
    warnings: tuple[str, ...] = ()
    """Breaches of SOL004 that make nothing unusable."""

    specification_versions: tuple[str, ...] = ()
    """``compatible_specification_versions`` of the manifest (SOL004 4.3.2)."""
    entries: dict[Classification, str] = field(default_factory=dict)
    """The file or folder of the change history, the tests and the licenses."""

    @property
    def external(self) -> tuple[Listed, ...]:
        """The artifacts outside of the package; ``name`` is the path that each gets in it."""
        return tuple(one for one in self.listed.values() if one.uri)


def read_index(files: PackageFiles, *, is_copy: bool = False) -> Index:
    """Return the index from TOSCA.meta, or from the root's VNFD and manifest of a package without TOSCA-Metadata.

    ``is_copy``: ``files`` are an unpacked copy, which lacks the images; listed files that it lacks are left out.
    Raises: PackageRefused if no VNFD is found, the entry file is missing, or an entry is incomplete.
    """
    if META in files.names():
        return _from_meta(files, is_copy=is_copy)
    entry, manifest = _root_files(files)
    if manifest is None:
        missing = "without a manifest (*.mf) in the root no digest is checked (SOL004 4.3.2)"
        return Index(path=entry, entry=entry, warnings=(missing,))
    listed = _from_manifest(files, manifest, is_copy=is_copy)
    return Index(
        path=manifest,
        entry=entry,
        manifest=manifest,
        listed=listed,
        certificate=_certificate(files, manifest, ""),
        in_manifest=_with_digest(listed),
        sets=_sets(files, manifest),
        specification_versions=_specification_versions(files, manifest),
        entries=_entries({}),
    )


def split_signature(raw: bytes) -> tuple[bytes, bytes]:
    """Return a manifest's text, which is the signed part, and its signature (CMS in PEM form), empty without one."""
    text, begin, signature = raw.partition(_CMS_BEGIN)
    return text, begin + signature


def _with_digest(listed: dict[str, Listed]) -> frozenset[str]:
    return frozenset(name for name, one in listed.items() if one.hash)


def _certificate(files: PackageFiles, manifest: str, named: str) -> str | None:
    """Return the certificate file that TOSCA.meta names, else the one beside the manifest, of its name (SOL004 5.3)."""
    if named:
        return _place(files, named, "ETSI-Entry-Certificate")
    beside = f"{posixpath.splitext(manifest)[0]}.cert"
    return beside if beside in files.names() else None


def _root_files(files: PackageFiles) -> tuple[str, str | None]:
    """Return VNFD and manifest of a package without TOSCA-Metadata: in the root (SOL004 4.1.2), the manifest optional."""
    manifests = sorted(name for name in files.names() if "/" not in name and name.endswith(".mf"))
    roots = sorted(name for name in files.names() if "/" not in name and name.endswith((".yaml", ".yml")))
    if len(manifests) > 1:
        raise PackageRefused(f"without {META} the root holds one manifest (*.mf); {len(manifests)} found")
    manifest = manifests[0] if manifests else None
    if len(roots) > 1 and manifest is not None:
        # SOL004 4.3.2: the manifest has the name of the VNFD's main file.
        stem = posixpath.splitext(manifest)[0]
        roots = [name for name in roots if posixpath.splitext(name)[0] == stem]
    if len(roots) != 1:
        raise PackageRefused(
            f"without {META} the root holds one YAML file, the VNFD, or one with the manifest's name; {len(roots)} found"
        )
    return roots[0], manifest


def read_entry(files: PackageFiles) -> str:
    """Return the file that the VNFD starts with, without further checks: an unpacked copy may lack its images.

    Raises: PackageRefused as ``read_index``.
    """
    return _head(files)[0]["entry-definitions"] if META in files.names() else _root_files(files)[0]


def _head(files: PackageFiles) -> tuple[dict[str, str], list[dict[str, str]]]:
    """Return TOSCA.meta's first block, its entry file checked, and the further ones."""
    blocks = list(_blocks(read_text(files, META), first_keys={"name"}))
    # A first block with Name is about a file: then the head is missing.
    head = blocks[0] if blocks and "name" not in blocks[0] else {}
    entry = head.get("entry-definitions", "")
    if not entry:
        raise PackageRefused("Entry-Definitions is missing from the first block", file=META)
    return {**head, "entry-definitions": _place(files, entry, "Entry-Definitions")}, blocks[1:]


def _place(files: PackageFiles, name: str, key: str) -> str:
    """Return the path of a file that a key of TOSCA.meta names: ``./a`` is ``a``. Raises PackageRefused."""
    place = locate(files, name, beside="")
    if place is None:
        raise PackageRefused(f"{key} names {name}, which the package does not contain", file=META)
    return place


def _from_meta(files: PackageFiles, *, is_copy: bool) -> Index:
    head, blocks = _head(files)
    manifest = head.get("etsi-entry-manifest") or head.get("entry-manifest")
    listed: dict[str, Listed] = {}
    for block in blocks:
        _take(block, key="name", files=files, where=META, listed=listed, is_copy=is_copy)
    index = Index(path=META, entry=head["entry-definitions"], listed=listed, entries=_entries(head))
    if not manifest:
        return index
    manifest = _place(files, manifest, "ETSI-Entry-Manifest")
    more = _from_manifest(files, manifest, is_copy=is_copy)
    return replace(
        index,
        manifest=manifest,
        # For a file in both lists the manifest's digest counts: it is the one that a signature covers.
        listed={**listed, **more},
        certificate=_certificate(files, manifest, head.get("etsi-entry-certificate", "")),
        in_manifest=_with_digest(more),
        sets=_sets(files, manifest),
        specification_versions=_specification_versions(files, manifest),
    )


def _entries(head: Mapping[str, str]) -> dict[Classification, str]:
    """Return the files and folders that have a meaning, as the first block of TOSCA.meta names them."""
    return {kind: head.get(f"etsi-{key}") or head.get(key) or name for kind, (key, name) in _ENTRIES.items()}


def _specification_versions(files: PackageFiles, manifest: str) -> tuple[str, ...]:
    found = _VERSIONS.search(read_text(files, manifest).split("-----BEGIN", 1)[0])
    return tuple(part for each in found[1].split(",") if (part := each.strip().strip("\"'"))) if found else ()


def _from_manifest(files: PackageFiles, path: str, *, is_copy: bool) -> dict[str, Listed]:
    text = read_text(files, path).split("-----BEGIN", 1)[0]  # what follows is the signature
    listed: dict[str, Listed] = {}
    for block in _blocks(text, first_keys={"source"}):
        if "source" in block:
            _take(block, key="source", files=files, where=path, listed=listed, is_copy=is_copy)
    return listed


def _take(
    block: dict[str, str],
    *,
    key: str,
    files: PackageFiles,
    where: str,
    listed: dict[str, Listed],
    is_copy: bool,
) -> None:
    """Check one block about one file, in the package or outside of it, and add it to ``listed``."""
    name = block.get(key, "")
    if not name:
        raise PackageRefused(f"a block without {key.capitalize()}: {', '.join(block)}", file=where)
    place = locate(files, name, beside="")
    shown = shown_url(name) if is_uri(name) else name
    if is_uri(name):
        _check_external(name, block, where, listed)
        # A copy may lack it, as it lacks images.
        place = place or (None if is_copy else external_path(name))
        if place is None:
            return
    if place is None:
        if files.below(plain_name(posixpath.normpath(name)) + "/"):
            return  # a folder listed as a whole: some packages do so, and there is no digest to compare
        if is_copy:
            return
        raise PackageRefused(f"listed in {where}, but the package does not contain it", file=name)
    algorithm, digest = block.get("algorithm", "").upper(), block.get("hash", "").lower()
    if bool(algorithm) != bool(digest):
        raise PackageRefused(f"{where} gives only one of Algorithm and Hash", file=shown)
    if algorithm and algorithm not in HASH_NAMES:
        raise PackageRefused(f"{where} asks for {algorithm}; known are {', '.join(HASH_NAMES)}", file=shown)
    new = Listed(
        name=place,
        content_type=block.get("content-type", ""),
        algorithm=algorithm,
        hash=digest,
        signature=_beside(block, "signature", files, where),
        certificate=_beside(block, "certificate", files, where),
        uri=name if is_uri(name) else "",
    )
    old = listed.get(place)
    if old is not None and old.hash and new.hash and (old.algorithm, old.hash) != (new.algorithm, new.hash):
        raise PackageRefused(f"{where} lists it twice, with different digests", file=shown)
    # An entry without a digest must not replace one that has it.
    if old is None or new.hash:
        listed[place] = new


def _check_external(uri: str, block: dict[str, str], where: str, listed: dict[str, Listed]) -> None:
    """Raise PackageRefused for an artifact outside of the package that is not fetched."""
    try:
        parts = urlsplit(uri)
        is_fetched = parts.scheme.lower() in {"http", "https"} and bool(parts.hostname) and parts.port != 0
        is_fetched = is_fetched and parts.username is None
    except ValueError:
        is_fetched = False
    if not is_fetched:
        # An error that shows a login, even a masked one, is shown to no caller.
        named = shown_url(uri).replace(f"{MASK}@", "")
        raise PackageRefused(
            f"{where} lists it outside of the package: an http or https URI without a login expected", file=named
        )
    if not block.get("algorithm") or not block.get("hash"):
        raise PackageRefused(f"{where} lists it outside of the package without Algorithm and Hash", file=shown_url(uri))
    if sum(bool(one.uri) for one in listed.values()) >= _MOST_EXTERNAL:
        raise PackageRefused(f"more than {_MOST_EXTERNAL} artifacts are outside of the package", file=where)


def lists_external(files: PackageFiles, uri: str) -> bool:
    """Return whether the package lists an artifact outside of it, so that it has been fetched, although a copy may lack it."""
    names = files.names()
    indexes = [name for name in names if name == META or name.endswith(".mf")]
    keys = {name: "name" if name == META else "source" for name in indexes}
    return any(
        block.get(key) == uri
        for name, key in keys.items()
        for block in _blocks(read_text(files, name).split("-----BEGIN", 1)[0], first_keys={key})
    )


def _beside(block: dict[str, str], key: str, files: PackageFiles, where: str) -> str:
    """Return the signature's or certificate's file that a block names, empty without one."""
    name = block.get(key, "")
    place = locate(files, name, beside="") if name else ""
    if place is None:
        raise PackageRefused(f"{where} names it as a {key}, but the package does not contain it", file=name)
    return place


def _sets(files: PackageFiles, path: str) -> dict[str, tuple[str, ...]]:
    """Return the manifest's sets of non-MANO artifacts: a name without a value, and ``Source`` lines below it."""
    lines = read_text(files, path).split("-----BEGIN", 1)[0].splitlines()
    start = next((at for at, line in enumerate(lines) if line.strip().lower() == _SETS), None)
    if start is None:
        return {}
    sets: dict[str, list[str]] = {}
    name = ""
    for line in lines[start + 1 :]:
        found = _LINE.match(line)
        if not found:
            continue
        key, value = found[1], _value(found)
        if not value:
            name = key
            sets[name] = []
        elif key.lower() == "source" and name:
            sets[name].append(value)
        elif not line[:1].isspace():
            break  # another section begins
    return {
        name: tuple(place for each in sources if (place := locate(files, each, beside="")) is not None)
        for name, sources in sets.items()
    }


def _value(line: re.Match[str]) -> str:
    return line[2].strip().strip("\"'")


def _blocks(text: str, *, first_keys: set[str]) -> Iterator[dict[str, str]]:
    """Yield the ``Key: value`` blocks, keys in lower case.

    An empty line ends a block, and so does a key of ``first_keys``: hand-written files forget the empty line.
    """
    block: dict[str, str] = {}
    for line in _whole_lines(text, _META_KEYS if "name" in first_keys else None):
        found = _LINE.match(line)
        if not line.strip() or (found and found[1].lower() in first_keys):
            if block:
                yield block
            block = {}
        if found and not line.lstrip().startswith("#"):
            block[found[1].lower()] = _value(found)
    if block:
        yield block


def _whole_lines(text: str, keys: Collection[str] | None) -> Iterator[str]:
    """Yield the lines, each with those that continue it: they begin with a blank, which is not part of the value.

    A line of 72 bytes goes on so (TOSCA 1.0, 16.2, as a manifest of Java). Hand-written files indent whole blocks instead, and
    sections of a manifest are indented: an indented line with one of the ``keys``, None: with any, is a line of its own.
    """
    parts: list[str] = []
    for line in text.splitlines():
        found = _LINE.match(line)
        if parts and line[:1] == " " and line.strip() and not (found and (keys is None or found[1].lower() in keys)):
            parts.append(line[1:])
            continue
        if parts:
            yield "".join(parts)
        parts = [line] if line.strip() and not line.lstrip().startswith("#") else []
        if not parts:
            yield line
    if parts:
        yield "".join(parts)


def declared_encoding(text: str) -> str:
    """Return the encoding of file names that the first block of a TOSCA.meta declares; empty if it declares none."""
    return next(_blocks(text, first_keys={"name"}), {}).get("file-name-encoding", "")
