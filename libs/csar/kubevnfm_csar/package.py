"""Reads a package for onboarding: all checks, and all facts of VnfPkgInfo."""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from kubevnfm_csar.archive import Csar, copy_entry, file_digest, open_csar
from kubevnfm_csar.documents import check_manifests
from kubevnfm_csar.errors import PackageRefused
from kubevnfm_csar.files import PackageFiles
from kubevnfm_csar.hot import read_base_hot
from kubevnfm_csar.interfaces import interface_warnings
from kubevnfm_csar.limits import Limits
from kubevnfm_csar.manifest import META, Listed
from kubevnfm_csar.vnfd.model import Checksum, SoftwareImage, Vnfd
from kubevnfm_csar.vnfd.read import read_vnfd

_TYPES: Final = {
    ".yaml": "application/yaml", ".yml": "application/yaml", ".json": "application/json", ".sh": "application/x-sh",
    ".py": "text/x-python", ".md": "text/markdown", ".txt": "text/plain", ".meta": "text/plain", ".mf": "text/plain",
    ".crt": "application/x-x509-ca-cert", ".pem": "application/x-pem-file", ".tgz": "application/gzip",
    ".gz": "application/gzip", ".zip": "application/zip", ".tar": "application/x-tar",
}  # fmt: skip
_MEDIA_TYPE: Final = re.compile(r"^[\w!#$&^.+-]+/[\w!#$&^.+-]+(\s*;\s*[\w.-]+=[\w.:+-]+)*$", re.ASCII)
"""RFC 9110 8.3.1; a media type from a package is used in a header."""
_SIGNATURES: Final = (".sig.cms", ".cms", ".sig")


class Artifact(BaseModel):
    """A file of the package beside its descriptor and its images (SOL005 ``VnfPackageArtifactInfo``)."""

    model_config = ConfigDict(frozen=True)

    path: str
    size_bytes: int
    content_type: str
    checksum: Checksum
    """The listed digest, which was verified; SHA-256 for a file that is not listed."""
    uri: str = ""
    """The address that it was fetched from, if it is outside of the package."""
    classification: Literal["", "HISTORY", "TESTING", "LICENSE"] = ""
    """The meaning that SOL004 gives it (4.3.3 to 4.3.5)."""
    non_mano_set: str = ""
    """The set of non-MANO artifacts (SOL004 4.3.7) that it belongs to."""


class Package(BaseModel):
    """The facts of a checked package."""

    model_config = ConfigDict(frozen=True)

    checksum: Checksum
    """The checksum of the uploaded archive."""
    size_bytes: int
    entry: str
    """The file that the VNFD starts with."""
    index: str
    """TOSCA-Metadata/TOSCA.meta, or the manifest of a package without."""
    manifest: str | None = None
    vnfd: Vnfd
    files: tuple[str, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    external: tuple[Listed, ...] = ()
    """The artifacts outside of the package, images too, which were fetched."""
    specification_versions: tuple[str, ...] = ()
    """The versions of SOL004 that the manifest names."""
    image_checksums: dict[str, Checksum] = Field(default_factory=dict)
    """SHA-256 of the images in the package whose checksum the VNFD does not give, by path."""
    security: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Signature and certificate files by the file that they belong to."""
    certificate: str | None = None
    """The file with the certificate of the manifest's signer."""
    base_hot_flavours: tuple[str, ...] = ()
    """The flavours that have Heat templates."""
    manifests: tuple[str, ...] = Field(default=())
    """Listed YAML files under Files/: the candidates for ``lcm-kubernetes-def-files``."""
    warnings: tuple[str, ...] = ()
    """Faults that make nothing unusable which the VNF needs, each with its file."""

    @property
    def software_images(self) -> tuple[SoftwareImage, ...]:
        return self.vnfd.software_images

    @property
    def descriptor_files(self) -> tuple[str, ...]:
        """The files of ``GET .../vnfd``: the definitions, and TOSCA.meta if the package has it."""
        return (*self.vnfd.files, META) if self.index == META else self.vnfd.files

    def artifact(self, path: str) -> Artifact | None:
        """Return the artifact at a path."""
        return next((one for one in self.artifacts if one.path == path), None)


def _terraform(names: Collection[str], *, is_other: bool) -> Sequence[str]:
    """Return a warning for a Terraform configuration in a package that can be deployed otherwise; ``is_other``: by a Base HOT or manifests.

    Raises PackageRefused for a package that Terraform alone would deploy.
    """
    found = sorted(name for name in names if name.endswith((".tf", ".tf.json")))
    if not found:
        return ()
    why = "Terraform is not supported"
    if not is_other and not any(posixpath.basename(name) == "Chart.yaml" or name.endswith(".tgz") for name in names):
        raise PackageRefused(f"{why}: a Base HOT, Kubernetes manifests or a Helm chart expected", file=found[0])
    return (f"{found[0]}: {why}; its files ({len(found)}) are not used",)


def content_type_of(name: str) -> str:
    """Return a file's media type by its extension."""
    return _TYPES.get(posixpath.splitext(name)[1].lower(), "application/octet-stream")


def read_package(path: Path, *, limits: Limits | None = None) -> Package:
    """Check the archive at ``path`` completely and return its content.

    Raises: PackageRefused with the file and the rule that it breaks.
    """
    with open_csar(path, limits=limits) as csar:
        return describe(csar)


def describe(csar: Csar) -> Package:
    """Read an archive that is open already; as ``read_package``."""
    vnfd = read_vnfd(csar, entry=csar.index.entry)
    read = {flavour_id: read_base_hot(csar, flavour_id) for flavour_id in vnfd.flavours}
    hots = {flavour_id: hot for flavour_id, hot in read.items() if hot is not None}
    interfaces = [
        warning
        for flavour_id, flavour in vnfd.flavours.items()
        for warning in interface_warnings(flavour, has_base_hot=flavour_id in hots)
    ]
    hidden = {name for hot in hots.values() for name in hot.hidden_parameters}
    vnfd = vnfd.model_copy(update={"secret_names": tuple(sorted(hidden.union(vnfd.secret_names)))})
    images = {image.path for image in vnfd.software_images if image.path is not None}
    security = _security(csar)
    keys = {file for files in security.values() for file in files}
    apart = {*vnfd.files, *images, META, csar.index.path, csar.index.manifest, *keys}
    set_by_name = {name: set_name for set_name, names in csar.index.sets.items() for name in names}
    artifacts = tuple(
        _artifact(csar, name, set_by_name.get(name, "")) for name in sorted(csar.names()) if name not in apart
    )
    manifests = tuple(
        one.path for one in artifacts if one.path.startswith("Files/") and one.path.endswith((".yaml", ".yml"))
    )
    check_manifests(csar, manifests)
    terraform = _terraform(csar.names(), is_other=bool(hots or manifests))
    return Package(
        checksum=Checksum(algorithm="SHA-256", hash=file_digest(csar.path)),
        size_bytes=csar.path.stat().st_size,
        entry=csar.index.entry,
        index=csar.index.path,
        manifest=csar.index.manifest,
        vnfd=vnfd,
        files=tuple(sorted(csar.names())),
        artifacts=artifacts,
        external=csar.index.external,
        specification_versions=csar.index.specification_versions,
        image_checksums={
            image.path: _checksum(csar, image.path)
            for image in vnfd.software_images
            if image.path in csar.names() and image.checksum is None
        },
        security=security,
        certificate=csar.index.certificate,
        base_hot_flavours=tuple(hots),
        manifests=manifests,
        warnings=(*csar.index.warnings, *vnfd.warnings, *interfaces, *_strays(csar, vnfd), *terraform),
    )


def _strays(files: PackageFiles, vnfd: Vnfd) -> list[str]:
    """Return a warning for each folder of templates of a flavour that the VNFD does not have: they are not used."""
    found = (name.removeprefix("BaseHOT/").partition("/") for name in files.below("BaseHOT/"))
    known = ", ".join(vnfd.flavours)
    return [
        f"BaseHOT/{folder}/: no flavour {folder}: the VNFD has {known}; these templates are not used"
        for folder in dict.fromkeys(folder for folder, _, rest in found if rest)
        if folder not in vnfd.flavours
    ]


def _security(csar: Csar) -> dict[str, tuple[str, ...]]:
    """Return signatures and certificates by the file that they belong to: as listed, otherwise by file name."""
    found: dict[str, tuple[str, ...]] = {}
    names = csar.names()
    if csar.index.manifest is not None and csar.index.certificate is not None:
        found[csar.index.manifest] = (csar.index.certificate,)
    for name in sorted(names):
        listed = csar.index.listed.get(name)
        given = (listed.signature, listed.certificate) if listed is not None else ("", "")
        signature = given[0] or next((f"{name}{end}" for end in _SIGNATURES if f"{name}{end}" in names), "")
        if signature:
            certificate = given[1] or (f"{name}.cert" if f"{name}.cert" in names else "")
            found[name] = (signature, certificate) if certificate else (signature,)
    return found


def _artifact(csar: Csar, name: str, non_mano_set: str) -> Artifact:
    listed = csar.index.listed.get(name)
    content_type = listed.content_type if listed is not None else ""
    return Artifact(
        path=name,
        size_bytes=csar.size(name),
        # A value that is no media type is not refused: the file is usable, but a header must not carry it.
        content_type=content_type if _MEDIA_TYPE.match(content_type) else content_type_of(name),
        checksum=_checksum(csar, name),
        uri=listed.uri if listed is not None else "",
        classification=_classification(csar, name),
        non_mano_set=non_mano_set,
    )


def _classification(csar: Csar, name: str) -> Literal["", "HISTORY", "TESTING", "LICENSE"]:
    """Return the meaning of a file: as TOSCA.meta names it or its folder, otherwise by the names of SOL004."""
    for kind, named in csar.index.entries.items():
        if name == named or name.startswith(f"{named.rstrip('/')}/"):
            return kind
    return ""


def _checksum(csar: Csar, name: str) -> Checksum:
    """Return the digest that the package lists, which was compared with the file; without one, the file's own."""
    listed = csar.index.listed.get(name)
    if listed is not None and listed.hash:
        return Checksum(algorithm=listed.algorithm, hash=listed.hash)
    # SOL005 requires a checksum for each artifact, also for one that the package lists without a digest.
    digest = hashlib.sha256()
    copy_entry(csar, name, digest.update)
    return Checksum(algorithm="SHA-256", hash=digest.hexdigest())
