"""The ports of packages: the outside and the life cycle as Protocols."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from kubevnfm_csar.bundle_facts import BundleFacts
from kubevnfm_csar.errors import External
from kubevnfm_csar.hot import BaseHot
from kubevnfm_csar.package import Package
from kubevnfm_csar.vnfd.model import Vnfd
from kubevnfm_kit.json_types import JsonMapping


@dataclass(frozen=True)
class Upload:
    """A CSAR on disk."""

    size_bytes: int
    sha256: str
    """Hex."""


@dataclass(frozen=True)
class Checksum:
    """The checksum that content must have."""

    algorithm: str
    """As `hashlib` names it: ``sha256``, ``sha512``."""
    hex: str


@dataclass(frozen=True)
class Content:
    """Content that is being fetched."""

    chunks: AsyncGenerator[bytes]
    size_bytes: int | None = None
    """None: not known before its end."""


@dataclass(frozen=True)
class OnboardedFiles:
    """A CSAR that was checked and unpacked."""

    package: Package
    security_option: str = ""
    """How it is signed: OPTION_1, OPTION_2 (SOL004 5.1); empty when it is not."""
    certificate: str = ""
    """PEM of the signer, if the package contains it as a file."""
    encrypted: frozenset[str] = frozenset()
    """The encrypted files, by path."""


class PackageSources(Protocol):
    """Servers that packages are fetched from."""

    def open(self, source: JsonMapping) -> AbstractAsyncContextManager[Content]:
        """Yield the content of a CSAR.

        ``source``: ``uri`` (a Secret, as its query may contain one), and the credentials: ``userName`` and ``password``,
        or ``paramsOauth2ClientCredentials``. On demand: ``catalogue``, the id of a package in the operator's catalogue; ``oci`` and
        ``digest``; or ``uri`` with ``sha256``. ``chart``, ``digest`` and ``limit_bytes``: a Helm chart of a registry, or of an address.
        An artifact from outside of a package: ``uri`` with ``checksum``, a `Checksum`. Entering and reading raise SourceFailed.
        """
        ...


class PackageFiles(Protocol):
    """The packages' bytes: uploads stream to disk, no package is read into memory as a whole."""

    async def store(self, package_id: str, chunks: AsyncIterator[bytes], *, limit_bytes: int) -> Upload:
        """Write the upload; it replaces an earlier one when it is complete.

        Raises: PackageTooLarge (413); NoArchive (400) as soon as the first bytes show it; StorageFailed (503).
        """
        ...

    async def store_external(
        self, package_id: str, external: External, chunks: AsyncIterator[bytes], *, limit_bytes: int
    ) -> Upload:
        """Write an artifact from outside of the package, whose digest ``chunks`` checks. Raises PackageTooLarge, StorageFailed."""
        ...

    async def onboard(self, package_id: str) -> OnboardedFiles:
        """Check and unpack the stored CSAR; safe to repeat.

        Raises: PackageRefused with the file and the rule; ExternalMissing with the artifacts to store first; StorageFailed.
        """
        ...

    def content(self, package_id: str) -> Path:
        """Return the uploaded file's path."""
        ...

    def folder(self, package_id: str) -> Path:
        """Return the folder with the unpacked files."""
        ...

    async def selection(self, package_id: str, names: Sequence[str]) -> Path:
        """Return a zip archive of these unpacked files: the same bytes for the same names."""
        ...

    async def base_hot(self, package_id: str, flavour_id: str) -> BaseHot | None:
        """Return the flavour's Base HOT, None when it has none. Raises PackageRefused."""
        ...

    async def files(self, package_id: str, paths: Sequence[str], *, limit_bytes: int) -> Mapping[str, bytes]:
        """Return those of the files that the package has; without larger ones."""
        ...

    async def archive(self, package_id: str) -> Path:
        """Return a zip of the package without its VM images, for the other services."""
        ...

    async def remove(self, package_id: str) -> None:
        """Delete all files of the package, if there are any."""
        ...


class ChartFiles(Protocol):
    """The archives of Helm charts."""

    async def store(self, chart_id: str, chunks: AsyncIterator[bytes], *, limit_bytes: int) -> Upload:
        """Write an archive, once it is a chart within the limits of packages. Raises PackageTooLarge, Unprocessable, StorageFailed."""
        ...

    async def path(self, chart_id: str) -> Path | None:
        """Return the archive; None if it is not there."""
        ...

    async def remove(self, chart_id: str) -> None:
        """Delete the archive, if there is one."""
        ...

    async def ids(self) -> Sequence[str]:
        """Return the charts of which there may be an archive, or a part of one."""
        ...


class BundleArchives(Protocol):
    """Makes packages of the archives of resource bundles."""

    def package(
        self, facts: BundleFacts, content: bytes | None, base: Path | None, chart_name: str
    ) -> AbstractAsyncContextManager[tuple[Path, str]]:
        """Yield the package of a bundle while the block lasts, and the name of its chart.

        ``content``: the tar.gz of a caller: of a profile if there is a ``base``, which is a tar.gz with the chart.
        Raises: Unprocessable with the file and the rule; StorageFailed.
        """
        ...


@dataclass(frozen=True)
class Violation:
    """A value that is not as a schema says."""

    path: tuple[str | int, ...]
    """The names and positions that lead to it."""
    rule: str
    """The expectation; never with the value."""


class SchemaUnusable(Exception):
    """A schema is none, refers to another file, or cannot be used within the limits; the text says why."""


class Schemas(Protocol):
    """Compares values with JSON Schemas."""

    async def violations(self, schema: JsonMapping, values: JsonMapping, most: int) -> Sequence[Violation]:
        """Return the first ``most`` violations. Raises SchemaUnusable."""
        ...


Foresight = Callable[[Vnfd, Collection[str]], Iterable[str]]
"""Returns why instantiates of the VNFD will be refused, whatever they request; takes the flavours with a Base HOT too."""


class PackageUsers(Protocol):
    """The VNF instances that use packages."""

    async def exist(self, vnfd_id: str) -> bool:
        """Return whether VNF instances of the VNFD exist, in any state, or are being changed to it."""
        ...

    async def ids(self, vnfd_ids: Sequence[str]) -> list[str]:
        """Return the ids of up to 101 VNF instances of these VNFDs."""
        ...

    async def next_vnfd(self, instance_id: str) -> str | None:
        """Return the VNFD that a running operation changes the instance to; None if there is no such change."""
        ...
