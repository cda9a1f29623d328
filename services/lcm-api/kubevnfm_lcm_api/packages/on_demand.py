"""Packages on demand (multicloud.md MC-122 to MC-125): one that is not held is fetched, once, for all that wait for it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from kubevnfm_kit.errors import InUse, Unprocessable, VnfmError
from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_store.port import DocumentStore
from kubevnfm_store.query import Query, Stored

from kubevnfm_lcm_api.packages.catalogue import PackageBusy, Packages, is_copy
from kubevnfm_lcm_api.packages.copies import Copies
from kubevnfm_lcm_api.packages.onboarding import Onboarding
from kubevnfm_lcm_api.packages.usable import COLLECTION

_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
"""The ids that can be fetched: they name folders, and are a part of addresses."""
_STATUS: Final = {"CREATED": "CREATED", "UPLOADING": "FETCHING", "PROCESSING": "CHECKING", "ERROR": "FAILED"}
_LARGE: Final = ("additionalArtifacts", "softwareImages", "userDefinedData", "warnings")


class PackageNotFetched(VnfmError, code="package-not-fetched", title="VNF package not fetched", status=502):
    """The fetch of a package has failed, or its content is refused; the text has the reason."""


@dataclass(frozen=True)
class PackagesOnDemand:
    """Fetches packages, and shows how far that is."""

    packages: Packages
    onboarding: Onboarding
    copies: Copies
    store: DocumentStore
    has_catalogue: bool
    longest_s: float

    async def shown(self, csar_id: str) -> JsonMapping | None:
        """Return what is shown of a package; None if it is neither held nor being fetched."""
        stored = await self.store.get(COLLECTION, csar_id)
        return None if stored is None else _shown(stored)

    async def page(self, *, limit: int, after: str | None) -> list[JsonMapping]:
        """Return what is shown of packages by id, after one."""
        behind = None if after is None else (None, after)
        found = await self.store.find(COLLECTION, Query(after=behind, limit=limit, exclude=_LARGE))
        return list(map(_shown, found))

    def check(self, csar_id: str, source: JsonMapping, place: str) -> None:
        """Raise Unprocessable at this place of a request unless the package could be fetched. ``source``: empty for the catalogue."""
        if not _ID.fullmatch(csar_id):
            raise Unprocessable(place, "the id of a package expected: letters, digits, dots, dashes and underscores")
        if not source and not self.has_catalogue:
            reason = "does not exist, and no catalogue is configured (setting artifact_catalogue_url)"
            raise Unprocessable(place, f"VNF package {csar_id} {reason}")

    async def ensure(self, csar_id: str, source: JsonMapping, *, failed_since: str | None = None) -> JsonMapping:
        """Begin the fetch of a package, unless it is held or being fetched; return what is shown of it.

        A fetch that has failed is begun again, unless it failed after ``failed_since``. Raises PackageNotFetched.
        """
        while True:
            stored = await self.store.get(COLLECTION, csar_id)
            if stored is not None:
                state = stored.body["onboardingState"]
                if not is_copy(stored.body) and state != "ONBOARDED":
                    raise PackageNotFetched(f"VNF package {csar_id} is {state}: its content is uploaded by SOL005")
                if state == "ONBOARDED" and is_copy(stored.body):
                    await self.copies.touch(stored)
                if state not in {"CREATED", "ERROR"}:
                    return _shown(stored)
                if failed_since is not None and stored.body["updatedAt"] >= failed_since:
                    raise PackageNotFetched(_failure(stored))
            try:
                await self.onboarding.fetch_copy(csar_id, source or {"catalogue": csar_id})
            except PackageBusy:  # another request was faster
                continue

    async def note_use(self, vnfd_id: str) -> None:
        """Update the usage of a package after an instance got its VNFD."""
        await self.packages.note_use(vnfd_id)

    async def remove(self, csar_id: str) -> None:
        """Remove a copy. Raises NotFound; InUse; PackageBusy if it is being fetched, or was uploaded."""
        stored = await self.packages.get(csar_id)
        if not is_copy(stored.body):
            raise PackageBusy(f"VNF package {csar_id} was uploaded by SOL005: delete it there")
        if await self.packages.is_in_use(stored.body):
            holders = await self.packages.holders(stored.body)
            raise InUse(f"VNF package {csar_id} is in use by {len(holders)} VNF instances or more", holders)
        await self.copies.remove(stored)


def _shown(stored: Stored) -> JsonMapping:
    body = stored.body
    internal = body.get("internal", {})
    fetch, content = internal.get("fetch"), internal.get("content", {})
    is_enabled, state = body["operationalState"] == "ENABLED", body["onboardingState"]
    status = ("READY" if is_enabled else "DISABLED") if state == "ONBOARDED" else _STATUS[state]
    found = {
        "csar_id": stored.id,
        "status": status,
        "origin": "uploaded" if fetch is None else "fetched",
        "vnfd_id": body.get("vnfdId"),
        "size_bytes": content.get("sizeBytes"),
        "sha256": content.get("sha256"),
        "error": _failure(stored) if state == "ERROR" else None,
        "in_use": body["usageState"] == "IN_USE",
    }
    if fetch is not None:
        found |= {"used_at": fetch["usedAt"]}
        if state == "UPLOADING":
            found |= {"done_bytes": fetch.get("done", 0), "total_bytes": fetch.get("total")}
    return {name: value for name, value in found.items() if value is not None}


def _failure(stored: Stored) -> str:
    """Return why the fetch of a package has failed, or its content is refused."""
    details: Any = stored.body.get("onboardingFailureDetails") or {}
    return str(details.get("detail", "its fetch has failed"))
