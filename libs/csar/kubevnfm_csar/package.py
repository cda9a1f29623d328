"""The one call that takes a package in: everything that onboarding checks and VnfPkgInfo shows."""

from __future__ import annotations

import posixpath
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from kubevnfm_csar.archive import Csar, file_digest, open_csar
from kubevnfm_csar.errors import PackageRefused
from kubevnfm_csar.files import PackageFiles
from kubevnfm_csar.hot import read_base_hot
from kubevnfm_csar.limits import Limits
from kubevnfm_csar.manifest import META
from kubevnfm_csar.vnfd import Checksum, SoftwareImage, Vnfd, read_vnfd

_TYPES: Final = {
    ".yaml": "application/yaml", ".yml": "application/yaml", ".json": "application/json", ".sh": "application/x-sh",
    ".py": "text/x-python", ".md": "text/markdown", ".txt": "text/plain", ".meta": "text/plain", ".mf": "text/plain",
    ".crt": "application/x-x509-ca-cert", ".pem": "application/x-pem-file", ".tgz": "application/gzip",
    ".gz": "application/gzip", ".zip": "application/zip", ".tar": "application/x-tar",
}  # fmt: skip


class Artifact(BaseModel):
    """A file of the package beside its descriptor and its images (SOL005 ``VnfPackageArtifactInfo``)."""

    model_config = ConfigDict(frozen=True)

    path: str
    size_bytes: int
    content_type: str
    checksum: Checksum | None = None
    """As the package lists it, and as it was found to be; None for a file that it does not list."""


class Package(BaseModel):
    """What is known of a package once it is taken in."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    checksum: Checksum
    """Of the archive as it was uploaded."""
    size_bytes: int
    entry: str
    """The file that the VNFD starts with."""
    index: str
    """TOSCA-Metadata/TOSCA.meta, or the manifest of a package without."""
    manifest: str | None = None
    vnfd: Vnfd
    files: tuple[str, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    external_artifacts: tuple[str, ...] = ()
    """URLs."""
    base_hot_flavours: tuple[str, ...] = ()
    """The flavours that have Heat templates."""
    manifests: tuple[str, ...] = Field(default=())
    """Listed YAML files under Files/: what ``lcm-kubernetes-def-files`` may name."""

    @property
    def software_images(self) -> tuple[SoftwareImage, ...]:
        return self.vnfd.software_images

    @property
    def descriptor_files(self) -> tuple[str, ...]:
        """What ``GET .../vnfd`` answers with: the definitions, and TOSCA.meta if the package has it."""
        return (*self.vnfd.files, META) if self.index == META else self.vnfd.files

    def artifact(self, path: str) -> Artifact | None:
        """Return the artifact at a path."""
        return next((one for one in self.artifacts if one.path == path), None)


def content_type_of(name: str) -> str:
    """Return a file's media type by its extension."""
    return _TYPES.get(posixpath.splitext(name)[1].lower(), "application/octet-stream")


def read_package(path: Path, *, limits: Limits | None = None) -> Package:
    """Check the archive at ``path`` in full and return what it holds.

    Raises: PackageRefused with the file and the rule that it breaks.
    """
    return describe(open_csar(path, limits=limits))


def describe(csar: Csar) -> Package:
    """As ``read_package``, of an archive that is open already."""
    vnfd = read_vnfd(csar, entry=csar.index.entry)
    hots = [flavour_id for flavour_id in vnfd.flavours if read_base_hot(csar, flavour_id) is not None]
    _check_strays(csar, vnfd)
    images = {image.path for image in vnfd.software_images if image.path is not None}
    apart = {*vnfd.files, *images, META, csar.index.path, csar.index.manifest}
    artifacts = tuple(_artifact(csar, name) for name in sorted(csar.names()) if name not in apart)
    return Package(
        checksum=Checksum(algorithm="SHA-256", hash=file_digest(csar.path)),
        size_bytes=csar.path.stat().st_size,
        entry=csar.index.entry,
        index=csar.index.path,
        manifest=csar.index.manifest,
        vnfd=vnfd,
        files=tuple(sorted(csar.names())),
        artifacts=artifacts,
        external_artifacts=csar.index.external,
        base_hot_flavours=tuple(hots),
        manifests=tuple(
            one.path for one in artifacts if one.path.startswith("Files/") and one.path.endswith((".yaml", ".yml"))
        ),
    )


def _check_strays(files: PackageFiles, vnfd: Vnfd) -> None:
    """Templates of a flavour that the VNFD does not have would never be used: a misspelt folder."""
    for name in files.names():
        folder, _, rest = name.removeprefix("BaseHOT/").partition("/")
        if name.startswith("BaseHOT/") and rest and folder not in vnfd.flavours:
            known = ", ".join(vnfd.flavours)
            raise PackageRefused(f"no flavour {folder}: the VNFD has {known}", file=f"BaseHOT/{folder}/")


def _artifact(csar: Csar, name: str) -> Artifact:
    listed = csar.index.listed.get(name)
    content_type = listed.content_type if listed is not None else ""
    return Artifact(
        path=name,
        size_bytes=csar.size(name),
        content_type=content_type or content_type_of(name),
        checksum=Checksum(algorithm=listed.algorithm, hash=listed.hash) if listed is not None and listed.hash else None,
    )
