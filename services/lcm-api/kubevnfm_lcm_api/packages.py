"""The VNF packages: their documents and states (SOL005 clause 9; api.md 7.2)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

import structlog
from kubevnfm_csar import Package, PackageRefused, Vnfd
from kubevnfm_events import Envelope, Message, PackageRef
from kubevnfm_events.lcm import OnboardPackage, PackageChanged
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.errors import Conflict, InvalidInput, NotFound, Unprocessable
from kubevnfm_kit.ids import derived_id, new_id
from kubevnfm_secrets import KeyRing, hide, sealed
from kubevnfm_sol.problem import ProblemDetails
from kubevnfm_store.port import AlreadyExists, DocumentStore, RevisionConflict
from kubevnfm_store.query import Query, Stored, by
from kubevnfm_worker import Done, Outbox, Outcome, StepContext

from kubevnfm_lcm_api.domain import instance as instances
from kubevnfm_lcm_api.domain.ports import PackageFiles
from kubevnfm_lcm_api.domain.saga import SOURCE

log = structlog.get_logger()

COLLECTION: Final = "vnf_packages"
VNFDS: Final = "vnfds"
_CACHED_VNFDS: Final = 64


class PackageUnusable(Unprocessable):
    """The VNF package of the vnfdId is missing, not ONBOARDED or not ENABLED (SOL003 5.4.2.3.1: 422)."""

    code = "package-unusable"


class PackageBusy(Conflict):
    """The package's state does not allow what was asked."""

    code = "package-state"


class DescriptorTaken(PackageRefused):
    """Another package has the same descriptor_id (api.md 7.2: 409 in the details)."""

    code = "descriptor-taken"
    status = 409


class Packages:
    """Creates, fills, shows, enables and deletes VNF packages."""

    def __init__(
        self,
        *,
        store: DocumentStore,
        outbox: Outbox,
        files: PackageFiles,
        ring: KeyRing,
        clock: Clock,
        limit_bytes: int,
    ) -> None:
        self._store, self._outbox, self._files, self._ring, self._clock = store, outbox, files, ring, clock
        self._limit_bytes = limit_bytes
        self._vnfds: dict[tuple[str, str], Vnfd] = {}

    async def create(self, user_data: Mapping[str, Any]) -> Mapping[str, Any]:
        """Make a package resource in state CREATED; return its document."""
        now = rfc3339(self._clock.now())
        body: dict[str, Any] = {
            "id": new_id(),
            "onboardingState": "CREATED",
            "operationalState": "DISABLED",
            "createdAt": now,
        }
        if user_data:
            body["userDefinedData"] = sealed(hide(user_data), self._ring)
        await self._outbox.insert(COLLECTION, body["id"], body, events=[self._news(body, "CREATED")])
        return body

    async def get(self, package_id: str) -> Stored:
        """Return the package. Raises NotFound."""
        stored = await self._store.get(COLLECTION, package_id)
        if stored is None:
            raise NotFound(f"VNF package {package_id} does not exist")
        return stored

    async def upload(self, package_id: str, chunks: AsyncIterator[bytes]) -> None:
        """Take a CSAR in: it is on disk when this returns, and is checked in the background.

        Raises: NotFound; PackageBusy unless CREATED or ERROR; PackageTooLarge; what ``chunks`` raises.
        """
        stored = await self.get(package_id)
        state = stored.body["onboardingState"]
        if state not in {"CREATED", "ERROR"}:
            raise PackageBusy(f"the package is {state}: content can be uploaded while it is CREATED or ERROR")
        try:
            stored = await self._outbox.update(
                COLLECTION,
                package_id,
                {"onboardingState": "UPLOADING"},
                unset=["onboardingFailureDetails"],
                if_revision=stored.revision,
            )
        except RevisionConflict as error:
            raise PackageBusy("another upload of this package has begun") from error
        uploaded = False
        try:
            upload = await self._files.store(package_id, chunks, limit_bytes=self._limit_bytes)
            uploaded = True
        finally:
            if not uploaded:  # the sender went away, or sent too much: as if it had not begun
                await self._outbox.update(
                    COLLECTION, package_id, {"onboardingState": "CREATED"}, where=by(onboardingState="UPLOADING")
                )
        task = Envelope[Message](
            data=OnboardPackage(package_id=package_id),
            source=SOURCE,
            id=derived_id("onboard", package_id, str(stored.revision)),
            subject=package_id,
        )
        fields = {
            "onboardingState": "PROCESSING",
            "checksum": {"algorithm": "SHA-256", "hash": upload.sha256},
            "sizeBytes": upload.size_bytes,
        }
        try:
            where = by(onboardingState="UPLOADING")
            await self._outbox.update(COLLECTION, package_id, fields, where=where, events=[task])
        except RevisionConflict as error:  # another process has just started, and taken the upload back
            raise PackageBusy("the upload was interrupted: send it again") from error

    async def onboard_package(self, command: OnboardPackage, _: StepContext) -> Outcome:
        """Check, unpack and read an uploaded CSAR: ONBOARDED and ENABLED, or ERROR with the reason."""
        stored = await self._store.get(COLLECTION, command.package_id)
        if stored is None or stored.body["onboardingState"] != "PROCESSING":
            gone = stored is None
            return Done(PackageChanged(vnf_pkg_id=command.package_id, change="DELETED" if gone else "ONBOARDED"))
        try:
            found = await self._files.onboard(command.package_id)
            await self._refuse_duplicate(command.package_id, found.vnfd)
        except PackageRefused as refusal:
            return await self._refused(command.package_id, refusal)
        await self._store_vnfd(command.package_id, found)
        fields = {**_facts(found), "onboardingState": "ONBOARDED", "operationalState": "ENABLED"}
        try:
            await self._outbox.update(COLLECTION, command.package_id, fields, where=by(onboardingState="PROCESSING"))
        except AlreadyExists:  # the index found a twin that was onboarded since we looked
            return await self._refused(command.package_id, _duplicate(found.vnfd, "another VNF package"))
        log.info("package_onboarded", package_id=command.package_id, vnfd_id=found.vnfd.vnfd_id)
        return Done(PackageChanged(vnf_pkg_id=command.package_id, vnfd_id=found.vnfd.vnfd_id, change="ONBOARDED"))

    async def _refuse_duplicate(self, package_id: str, vnfd: Vnfd) -> None:
        twins = await self._store.find(COLLECTION, Query(by(vnfdId=vnfd.vnfd_id), limit=2))
        for twin in twins:
            if twin.id != package_id:
                raise _duplicate(vnfd, f"VNF package {twin.id}")

    async def _refused(self, package_id: str, refusal: PackageRefused) -> Outcome:
        problem = ProblemDetails(type=refusal.code, title=refusal.title, status=refusal.status, detail=str(refusal))
        await self._outbox.update(
            COLLECTION,
            package_id,
            {
                "onboardingState": "ERROR",
                "onboardingFailureDetails": problem.model_dump(by_alias=True, exclude_none=True),
            },
        )
        log.warning("package_refused", package_id=package_id, detail=str(refusal))
        return Done(PackageChanged(vnf_pkg_id=package_id, change="ERROR"))

    async def _store_vnfd(self, package_id: str, found: Package) -> None:
        body = {"vnfd": found.vnfd.model_dump(mode="json"), "files": list(found.files), "entry": found.entry}
        stored = await self._store.get(VNFDS, package_id)
        if stored is None:
            await self._store.insert(VNFDS, package_id, body)
        else:
            await self._store.replace(VNFDS, package_id, body, if_revision=stored.revision)

    async def modify(self, package_id: str, changes: Mapping[str, Any]) -> Mapping[str, Any]:
        """Set operationalState and/or merge userDefinedData (RFC 7396); return only what was changed (SOL005 9.4.3.3.4).

        Raises: NotFound; InvalidInput; PackageBusy when the state is that already, or not ONBOARDED.
        """
        wanted, user_data = changes.get("operationalState"), changes.get("userDefinedData")
        if wanted is None and "userDefinedData" not in changes:
            raise InvalidInput("", "operationalState or userDefinedData expected")
        stored = await self.get(package_id)
        fields: dict[str, Any] = {}
        if wanted is not None:
            if wanted not in ("ENABLED", "DISABLED"):  # a list: what a body holds need not be hashable
                raise InvalidInput("operationalState", f"ENABLED or DISABLED expected, got {wanted!r}")
            if stored.body["onboardingState"] != "ONBOARDED":
                raise PackageBusy(f"the package is {stored.body['onboardingState']}, not ONBOARDED")
            if stored.body["operationalState"] == wanted:
                raise PackageBusy(f"operationalState: the package is {wanted} already")
            fields["operationalState"] = wanted
        if "userDefinedData" in changes:
            if not isinstance(user_data, Mapping | None):
                raise InvalidInput("userDefinedData", "an object or null expected")
            merged = _merged(stored.body.get("userDefinedData"), hide(user_data)) or {}
            fields["userDefinedData"] = sealed(merged, self._ring)
        events = [self._news(stored.body, wanted)] if wanted is not None else []
        try:
            await self._outbox.update(COLLECTION, package_id, fields, if_revision=stored.revision, events=events)
        except RevisionConflict as error:
            raise PackageBusy("the package was changed by another request meanwhile: try again") from error
        return fields

    async def delete(self, package_id: str) -> None:
        """Remove the package. Raises NotFound; PackageBusy while ENABLED, IN_USE or being taken in."""
        stored = await self.get(package_id)
        body = stored.body
        if body["operationalState"] == "ENABLED":
            raise PackageBusy("the package is ENABLED: disable it first")
        if body["onboardingState"] in {"UPLOADING", "PROCESSING"}:
            raise PackageBusy(f"the package is {body['onboardingState']}")
        if await self.is_in_use(body):
            raise PackageBusy("the package is IN_USE: VNF instances of it exist")
        try:
            await self._outbox.delete(
                COLLECTION, package_id, if_revision=stored.revision, events=[self._news(body, "DELETED")]
            )
        except RevisionConflict as error:
            raise PackageBusy("the package was changed by another request meanwhile: try again") from error
        await self._store.delete(VNFDS, package_id)
        await self._files.remove(package_id)

    async def is_in_use(self, body: Mapping[str, Any]) -> bool:
        """Tell whether VNF instances of the package's vnfdId exist, whatever their state."""
        vnfd_id = body.get("vnfdId")
        return vnfd_id is not None and await self._store.count(instances.COLLECTION, by(vnfdId=vnfd_id), limit=1) > 0

    async def usable(self, vnfd_id: str) -> Stored:
        """Return the ONBOARDED and ENABLED package of a VNFD. Raises PackageUnusable."""
        found = await self._store.find(COLLECTION, Query(by(vnfdId=vnfd_id), limit=1))
        if not found:
            raise PackageUnusable("vnfdId", f"no VNF package with VNFD {vnfd_id} is onboarded")
        body = found[0].body
        if body["onboardingState"] != "ONBOARDED" or body["operationalState"] != "ENABLED":
            state = f"{body['onboardingState']} and {body['operationalState']}"
            raise PackageUnusable("vnfdId", f"the VNF package {found[0].id} is {state}; ONBOARDED and ENABLED expected")
        return found[0]

    async def vnfd(self, package_id: str, sha256: str) -> Vnfd:
        """Return the package's descriptor; cached, as one package's bytes never change once ONBOARDED."""
        key = (package_id, sha256)
        if key not in self._vnfds:
            stored = await self._store.get(VNFDS, package_id)
            if stored is None:
                raise NotFound(f"VNF package {package_id} has no VNFD")
            if len(self._vnfds) >= _CACHED_VNFDS:
                self._vnfds.pop(next(iter(self._vnfds)))
            self._vnfds[key] = Vnfd.model_validate(stored.body["vnfd"])
        return self._vnfds[key]

    async def recover(self) -> None:
        """Take back uploads that a crash cut off: their senders are gone."""
        for stored in await self._store.find(COLLECTION, Query(by(onboardingState="UPLOADING"))):
            await self._store.update(COLLECTION, stored.id, {"onboardingState": "CREATED"}, if_revision=stored.revision)

    async def file_names(self, package_id: str) -> frozenset[str]:
        """Return the paths of the package's files."""
        stored = await self._store.get(VNFDS, package_id)
        return frozenset(stored.body["files"]) if stored is not None else frozenset()

    def _news(self, body: Mapping[str, Any], change: Any) -> Envelope[Message]:
        event = PackageChanged(vnf_pkg_id=body["id"], vnfd_id=body.get("vnfdId", ""), change=change)
        return Envelope(data=event, source=SOURCE, subject=body["id"])


def reference(stored: Stored) -> PackageRef:
    """Return how commands name the package."""
    return PackageRef(
        package_id=stored.id, vnfd_id=stored.body["vnfdId"], checksum=stored.body.get("checksum", {}).get("hash", "")
    )


def _duplicate(vnfd: Vnfd, owner: str) -> DescriptorTaken:
    return DescriptorTaken(f"descriptor_id {vnfd.vnfd_id} belongs to {owner} already", file=vnfd.files[0])


def _merged(stored: Any, patch: Any) -> Any:
    """Return a JSON Merge Patch (RFC 7396) applied: null removes, objects merge, anything else replaces."""
    if not isinstance(patch, Mapping):
        return patch
    merged = dict(stored) if isinstance(stored, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = _merged(merged.get(name), value)
    return merged


def _facts(found: Package) -> dict[str, Any]:
    """Return the attributes of VnfPkgInfo that the VNFD gives (api.md 7.3)."""
    vnfd = found.vnfd
    images = [
        {
            "id": image.image_id,
            "name": image.name,
            "provider": image.provider,
            "version": image.version,
            "checksum": {
                "algorithm": image.checksum.algorithm if image.checksum else "",
                "hash": image.checksum.hash if image.checksum else "",
            },
            "containerFormat": image.container_format.upper(),
            "diskFormat": image.disk_format.upper(),
            "minDisk": image.min_disk_bytes,
            "minRam": image.min_ram_bytes,
            "size": image.size_bytes,
            "imagePath": image.path or "",
        }
        for image in vnfd.software_images
    ]
    artifacts = [
        {"artifactPath": one.path, **({"checksum": one.checksum.model_dump()} if one.checksum else {})}
        for one in found.artifacts
    ]
    return {
        "vnfdId": vnfd.vnfd_id,
        "vnfProvider": vnfd.provider,
        "vnfProductName": vnfd.product_name,
        "vnfSoftwareVersion": vnfd.software_version,
        "vnfdVersion": vnfd.descriptor_version,
        **({"softwareImages": images} if images else {}),
        **({"additionalArtifacts": artifacts} if artifacts else {}),
    }
