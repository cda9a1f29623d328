"""The contents of an onboarded package, and the files that each resource returns (SOL005 9.4.4 to 9.4.7)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

from kubevnfm_csar.package import Package
from kubevnfm_kit.json_types import JsonMapping, JsonObject
from pydantic import BaseModel, ConfigDict


class ArtifactEntry(BaseModel):
    """A file that is neither a descriptor nor an image."""

    model_config = ConfigDict(frozen=True)

    content_type: str
    non_mano_set: str = ""
    is_external: bool = False
    """Whether it is outside of the package as it was uploaded."""


@dataclass(frozen=True)
class ArtifactSelection:
    """The artifacts to put into an archive (SOL005 9.4.5a.3.2)."""

    signatures: bool = False
    mano: bool = True
    non_mano: bool = True
    sets: frozenset[str] | None = None
    """Names of the sets of non-MANO artifacts; None: all of them."""
    external: bool = False
    """Those outside of the package too."""


class PackageContents(BaseModel):
    """The files of one package."""

    model_config = ConfigDict(frozen=True)

    files: tuple[str, ...]
    """Every file."""
    vnfd_files: tuple[str, ...]
    """The definitions; the entry definitions file is the first."""
    meta: str | None = None
    """TOSCA-Metadata/TOSCA.meta, if the package has it."""
    manifest: str | None = None
    certificate: str | None = None
    """The certificate of the manifest's signer, if it is a separate file."""
    artifacts: Mapping[str, ArtifactEntry]
    security: Mapping[str, tuple[str, ...]]
    """Signature and certificate files by the signed file."""

    @classmethod
    def from_package(cls, found: Package) -> Self:
        """Return the contents that onboarding has found."""
        return cls(
            files=found.files,
            vnfd_files=found.vnfd.files,
            meta=next((name for name in found.descriptor_files if name not in found.vnfd.files), None),
            manifest=found.manifest,
            certificate=found.certificate,
            artifacts={
                one.path: ArtifactEntry(
                    content_type=one.content_type, non_mano_set=one.non_mano_set, is_external=bool(one.uri)
                )
                for one in found.artifacts
            },
            security=found.security,
        )

    @classmethod
    def from_document(cls, body: JsonMapping) -> Self:
        """Return the contents that ``document`` has written."""
        return cls.model_validate({**body, "artifacts": dict(body["artifacts"]), "security": dict(body["security"])})

    def document(self) -> JsonObject:
        """Return the form for the store. Paths are values there: keys do not allow all characters of paths."""
        body = self.model_dump(mode="json")
        return {**body, "artifacts": list(body["artifacts"].items()), "security": list(body["security"].items())}

    def vnfd_archive(self, *, signatures: bool) -> tuple[str, ...]:
        """Return the files of the VNFD as an archive."""
        names = [*self.vnfd_files, *([self.meta] if self.meta else [])]
        return self._with_security(names, signatures=signatures)

    def manifest_archive(self) -> tuple[str, ...]:
        """Return the manifest and its certificate."""
        return tuple(name for name in (self.manifest, self.certificate) if name is not None)

    def artifact_archive(self, selection: ArtifactSelection) -> tuple[str, ...]:
        """Return the selected artifacts; images are not artifacts (they are fetched one by one)."""
        names = [
            name
            for name, entry in self.artifacts.items()
            if (selection.mano if not entry.non_mano_set else selection.non_mano)
            and (not entry.non_mano_set or selection.sets is None or entry.non_mano_set in selection.sets)
            and (selection.external or not entry.is_external)
        ]
        return self._with_security(names, signatures=selection.signatures)

    def _with_security(self, names: Iterable[str], *, signatures: bool) -> tuple[str, ...]:
        chosen = list(names)
        if signatures:
            chosen += [file for name in chosen for file in self.security.get(name, ())]
        # Sorted: the cache and the entity tag depend on the list of names, so a selection must always give one order.
        return tuple(sorted(set(chosen)))
