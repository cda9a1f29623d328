"""The interfaces that the life cycle needs of the other subjects, as Protocols; wiring connects them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from kubevnfm_csar.hot import BaseHot
from kubevnfm_csar.manifest_values import VALUES
from kubevnfm_csar.values_schema import ValuesSchema
from kubevnfm_csar.vnfd.model import Vnfd
from kubevnfm_events import PackageRef
from kubevnfm_kit.json_types import JsonMapping

from kubevnfm_lcm_api.lifecycle.core.occurrence import OccurrenceRecord
from kubevnfm_lcm_api.lifecycle.core.saga import Move

Change = Callable[[str, Callable[[OccurrenceRecord, datetime], Move | None]], Awaitable[OccurrenceRecord | None]]
"""The engine's compare-and-set: reads the occurrence with this id, applies the move and stores the result."""


class PackageCatalogue(Protocol):
    """The onboarded VNF packages."""

    async def reference(self, package_id: str) -> PackageRef:
        """Return how commands refer to the package; its ``vnfd_id`` is empty before onboarding. Raises NotFound."""
        ...

    async def usable(self, vnfd_id: str) -> PackageRef:
        """Return the ONBOARDED and ENABLED package of a VNFD. Raises Unprocessable if there is none."""
        ...

    async def recently_usable(self, vnfd_id: str) -> PackageRef:
        """As ``usable``, but as read a few seconds ago: what is made of the package needs ``confirm``."""
        ...

    async def confirm(self, package: PackageRef, *, instance_id: str) -> None:
        """Check that the package is still usable, after an instance of it was stored. Raises Unprocessable."""
        ...

    async def vnfd(self, package_id: str, checksum: str) -> Vnfd:
        """Return the package's descriptor. Raises NotFound."""
        ...

    async def file_names(self, package_id: str) -> frozenset[str]:
        """Return the paths of the package's files; empty before onboarding."""
        ...

    async def base_hot(self, package_id: str, flavour_id: str) -> BaseHot | None:
        """Return the flavour's Base HOT, None if it has none. Raises PackageRefused if the file is not valid."""
        ...

    async def file(self, package_id: str, path: str, *, limit_bytes: int) -> bytes | None:
        """Return a file of the package; None if the package has no such file, or a larger one."""
        ...

    async def files(self, package_id: str, paths: Sequence[str], *, limit_bytes: int) -> Mapping[str, bytes]:
        """Return those of the files that the package has; without larger ones."""
        ...

    async def check_values(self, schema: ValuesSchema, values: Mapping[str, Any], *, place: str = VALUES) -> None:
        """Compare values, which may have Secrets, with a schema of a package; ``place``: theirs in the request.

        Raises Unprocessable naming all wrong places.
        """
        ...


class PackageFetches(Protocol):
    """VNF packages that are fetched when they are needed (multicloud.md MC-122)."""

    @property
    def longest_s(self) -> float:
        """How long fetching one may take."""
        ...

    def check(self, csar_id: str, source: JsonMapping, place: str) -> None:
        """Raise Unprocessable at this place of a request unless the package could be fetched. ``source``: empty for the catalogue."""
        ...

    async def shown(self, csar_id: str) -> JsonMapping | None:
        """Return what is shown of a package that is held or being fetched; None if it is neither."""
        ...

    async def ensure(self, csar_id: str, source: JsonMapping, *, failed_since: str | None = None) -> JsonMapping:
        """Begin the fetch of a package, unless it is held or being fetched; return what is shown of it.

        A fetch that has failed is begun again, unless it failed after ``failed_since``: then its error is raised.
        """
        ...

    async def note_use(self, vnfd_id: str) -> None:
        """Update the usage of a package after an instance got its VNFD."""
        ...


class Grants(Protocol):
    """An authority outside the VNFM that grants operations."""

    async def pursue(self, record: OccurrenceRecord, change: Change) -> float | None:
        """Bring the grant of a STARTING operation as far as is possible now.

        Returns: the seconds after which to call again; None if the operation is no longer STARTING.
        """
        ...
