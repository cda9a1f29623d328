"""The onboarding of VNF packages: uploaded by a caller or fetched from an address, then checked (api.md 7.2).

CREATED or ERROR -> UPLOADING -> PROCESSING -> ONBOARDED or ERROR; each arrow is one write that expects the state before.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta
from typing import Final

import structlog
from kubevnfm_csar.errors import ExternalMissing, PackageRefused
from kubevnfm_csar.vnfd.model import Vnfd
from kubevnfm_events import Envelope, Message
from kubevnfm_events.lcm import FetchPackage, OnboardPackage, PackageChanged, PackageChecked, PackageFetched
from kubevnfm_kit.clock import Clock, lease_left_s, rfc3339
from kubevnfm_kit.errors import VnfmError
from kubevnfm_kit.ids import derived_id, new_id
from kubevnfm_kit.json_types import JsonMapping, JsonObject
from kubevnfm_kit.owners import Owners
from kubevnfm_kit.request_ids import present_request_id
from kubevnfm_secrets import KeyRing, opened, sealed
from kubevnfm_sol.packages import ExternalArtifactsAccessConfig
from kubevnfm_sol.problem import ProblemDetails
from kubevnfm_store.port import AlreadyExists, DocumentStore, RevisionConflict, StoreUnavailable
from kubevnfm_store.query import AllOf, Compare, Exists, Filter, Op, Query, Stored, by
from kubevnfm_worker.leases import lease_end, lease_is_over
from kubevnfm_worker.outbox import Outbox
from kubevnfm_worker.outcome import Done, NotYet, Outcome, StepContext

from kubevnfm_lcm_api.event_chain import SOURCE
from kubevnfm_lcm_api.packages.catalogue import (
    CONTENTS,
    VNFDS,
    PackageBusy,
    Packages,
    is_copy,
    last_event,
    package_event,
)
from kubevnfm_lcm_api.packages.copies import PROGRESS, Copies
from kubevnfm_lcm_api.packages.domain.contents import PackageContents
from kubevnfm_lcm_api.packages.domain.facts import facts_of
from kubevnfm_lcm_api.packages.domain.ports import Foresight, OnboardedFiles, PackageFiles, PackageSources, Upload
from kubevnfm_lcm_api.packages.external import ArtifactNotFetched, ExternalArtifacts, shown, unused
from kubevnfm_lcm_api.packages.room import DiskFull
from kubevnfm_lcm_api.packages.usable import COLLECTION

log = structlog.get_logger()

_UPLOAD_LEASE_S: Final = 60.0
"""How long an upload stays reserved for a process that no longer renews it."""
_RENEW_AFTER: Final = timedelta(seconds=15)
_MAX_FETCHES: Final = 8
"""The limit in one process: a fetch may last for hours, and must not block other commands."""
_FETCH_LATER_S: Final = 2.0

_CONTENT: Final = "internal/content"
_HELD: Final[JsonMapping] = {"held": True}
"""The source of content that is on disk already."""
_UPLOADING: Final = by(onboardingState="UPLOADING")
_SENT_UPLOADS: Final = AllOf([_UPLOADING, Exists("internal/source", exists=False)])
"""Uploads of callers. A fetch is a command, which the broker delivers again if its worker dies."""


class DescriptorTaken(PackageRefused, code="descriptor-taken", status=409):
    """Another package has the same descriptor_id (api.md 7.2: 409 in the details)."""


class Onboarding:
    """Receives content, checks it and records the result."""

    def __init__(
        self,
        *,
        packages: Packages,
        store: DocumentStore,
        outbox: Outbox,
        files: PackageFiles,
        sources: PackageSources,
        ring: KeyRing,
        clock: Clock,
        owners: Owners,
        limit_bytes: int,
        foresee: Foresight,
        copies: Copies,
        external: ExternalArtifacts,
    ) -> None:
        self._packages, self._store, self._outbox, self._files = packages, store, outbox, files
        self._sources, self._ring, self._clock, self._limit_bytes = sources, ring, clock, limit_bytes
        self._foresee, self._copies, self._external = foresee, copies, external
        self._owners, self._me = owners, owners.new()
        self._fetches = 0

    # --- sent by a caller ---------------------------------------------------------------------------------------------

    async def upload(self, package_id: str, chunks: AsyncIterator[bytes]) -> None:
        """Store a CSAR: it is on disk when this returns, and is checked in the background.

        Raises: NotFound; PackageBusy unless CREATED or ERROR; what the port's ``store`` and ``chunks`` raise.
        """
        upload_id = new_id()
        await self._begin(package_id, {"internal/upload": self._lease(upload_id)})
        ours = AllOf([_UPLOADING, Compare("internal/upload/id", Op.EQ, [upload_id])])
        upload = None
        try:
            renewing = self._renewing(package_id, upload_id, ours, chunks)
            upload = await self._files.store(package_id, renewing, limit_bytes=self._limit_bytes)
        except RevisionConflict as error:
            raise _interrupted() from error
        finally:
            if upload is None:  # the sender disconnected, or sent no package: as if the upload had not begun
                await self._reset(package_id, ours)
        try:
            await self._stored(package_id, upload, where=ours, cause=upload_id)
        except RevisionConflict as error:
            raise _interrupted() from error

    async def _begin(self, package_id: str, fields: JsonMapping, events: list[Envelope[Message]] | None = None) -> None:
        stored = await self._packages.get(package_id)
        state = stored.body["onboardingState"]
        if state not in {"CREATED", "ERROR"}:
            raise PackageBusy(f"the package is {state}: content can be uploaded while it is CREATED or ERROR")
        try:
            await self._outbox.update(
                COLLECTION,
                package_id,
                self._now({**fields, "onboardingState": "UPLOADING"}),
                unset=["onboardingFailureDetails"],
                if_revision=stored.revision,
                events=events or [],
            )
        except RevisionConflict as error:
            raise _taken() from error

    def _lease(self, upload_id: str) -> dict[str, str]:
        return {"id": upload_id, "owner": self._me, "until": lease_end(self._clock.now(), _UPLOAD_LEASE_S)}

    async def _renewing(
        self, package_id: str, upload_id: str, ours: Filter, chunks: AsyncIterator[bytes]
    ) -> AsyncIterator[bytes]:
        """Yield the chunks and renew the lease while they arrive. Raises RevisionConflict if it was lost."""
        renew_at = self._clock.now() + _RENEW_AFTER
        async for chunk in chunks:
            if self._clock.now() >= renew_at:
                await self._store.update(
                    COLLECTION, package_id, {"internal/upload": self._lease(upload_id)}, where=ours
                )
                renew_at = self._clock.now() + _RENEW_AFTER
            yield chunk

    async def _reset(self, package_id: str, where: Filter) -> None:
        fields = self._now({"onboardingState": "CREATED"})
        try:
            await self._outbox.update(COLLECTION, package_id, fields, unset=["internal/upload"], where=where)
        except RevisionConflict:
            log.info("upload_reset_already", package_id=package_id)

    async def recover(self) -> None:
        """Reset abandoned uploads: those of processes that have ended, and those with an expired lease."""
        now = self._clock.now()
        for stored in await self._store.find(COLLECTION, Query(_SENT_UPLOADS)):
            lease = stored.body.get("internal", {}).get("upload")
            if lease is None or self._is_over(lease, now):
                theirs = Compare("internal/upload/id", Op.EQ, [lease["id"]]) if lease else AllOf()
                await self._reset(stored.id, AllOf([_SENT_UPLOADS, theirs]))

    def _is_over(self, lease: JsonMapping, now: datetime) -> bool:
        has_ended = self._owners.has_ended(str(lease.get("owner", "")))  # earlier releases have named the host
        return has_ended or not lease_left_s(str(lease["until"]), now, _UPLOAD_LEASE_S)

    async def reset_expired(self) -> None:
        """Reset uploads with an expired lease. Raises StoreUnavailable."""
        late = lease_is_over("internal/upload/until", self._clock.now(), _UPLOAD_LEASE_S)
        for stored in await self._store.find(COLLECTION, Query(AllOf([_SENT_UPLOADS, late]))):
            # The condition once more: the lease may have been renewed since the read.
            await self._reset(stored.id, AllOf([_SENT_UPLOADS, late]))

    # --- fetched from an address --------------------------------------------------------------------------------------

    async def upload_from_uri(self, package_id: str, source: JsonMapping) -> None:
        """Store where the content is and fetch it in the background. ``source``: as the port expects it, secrets as
        Secret. Raises NotFound; PackageBusy unless CREATED or ERROR.
        """
        task = _task(FetchPackage(package_id=package_id), derived_id("fetch", package_id, new_id()))
        await self._begin(package_id, {"internal/source": sealed(source, self._ring)}, [task])

    async def fetch_package(self, command: FetchPackage, context: StepContext) -> Outcome:
        """Fetch the content of a package from its address; the package is then PROCESSING, or ERROR with the reason."""
        package_id = command.package_id
        stored = await self._store.get(COLLECTION, package_id)
        source = stored.body.get("internal", {}).get("source") if stored is not None else None
        # A redelivery after the content was stored, or after the package was deleted: nothing is left to fetch.
        if stored is None or stored.body["onboardingState"] != "UPLOADING" or source is None:
            return Done(PackageFetched(vnf_pkg_id=package_id))
        if source == _HELD:
            content = stored.body["internal"]["content"]
            upload = Upload(size_bytes=content["sizeBytes"], sha256=content["sha256"])
            await self._stored(package_id, upload, where=_UPLOADING, cause=context.message_id)
            return Done(PackageFetched(vnf_pkg_id=package_id))
        if self._fetches >= _MAX_FETCHES:
            return NotYet(again_in_s=_FETCH_LATER_S)
        self._fetches += 1
        try:
            upload = await self._fetched(stored, opened(source))
        # The database's failure says nothing about the package: the command is repeated, and the package is not
        # rejected.
        except StoreUnavailable:
            raise
        except VnfmError as refusal:
            return await self._reject(package_id, refusal, (_CONTENT, *PROGRESS), where=_UPLOADING)
        finally:
            self._fetches -= 1
        await self._stored(package_id, upload, where=_UPLOADING, cause=context.message_id)
        return Done(PackageFetched(vnf_pkg_id=package_id))

    async def _fetched(self, stored: Stored, source: JsonMapping) -> Upload:
        """Store the content of a source on disk. Raises what refuses it; StoreUnavailable."""
        async with self._sources.open(source) as content:
            if not is_copy(stored.body):
                return await self._files.store(stored.id, content.chunks, limit_bytes=self._limit_bytes)
            limit_bytes = self._copies.limit_bytes
            if content.size_bytes is not None:
                await self._copies.room.make(stored.id, min(content.size_bytes, limit_bytes))
            counted = self._copies.counted(stored.id, content, where=_UPLOADING)
            upload = await self._files.store(stored.id, counted, limit_bytes=limit_bytes)
        if content.size_bytes is None:
            try:
                await self._copies.room.make(stored.id, upload.size_bytes)
            except DiskFull:
                await self._files.remove(stored.id)
                raise
        return upload

    async def fetch_copy(self, package_id: str, source: JsonMapping) -> None:
        """Fetch a package on demand, in the background; at most one fetch of an id runs. ``source``: as the port expects it.

        Raises PackageBusy if it is not CREATED or ERROR, also because another request was faster.
        """
        task = _task(FetchPackage(package_id=package_id), derived_id("fetch", package_id, new_id()))
        fields = {"internal/source": sealed(source, self._ring), **self._copies.begun()}
        if await self._store.get(COLLECTION, package_id) is not None:
            await self._begin(package_id, fields, [task])
            return
        body = self._packages.document(package_id)
        internal = {path.removeprefix("internal/"): value for path, value in fields.items()}
        body |= {"onboardingState": "UPLOADING", "internal": internal}
        try:
            await self._outbox.insert(COLLECTION, package_id, body, events=[package_event(body, "CREATED"), task])
        except AlreadyExists as error:
            raise _taken() from error

    # --- checked ------------------------------------------------------------------------------------------------------

    async def _stored(self, package_id: str, upload: Upload, *, where: Filter, cause: str) -> None:
        """Start the check of content that is on disk. Raises RevisionConflict if the upload was reset."""
        task = _task(OnboardPackage(package_id=package_id), derived_id("onboard", package_id, cause))
        fields = {
            "onboardingState": "PROCESSING",
            _CONTENT: {"sha256": upload.sha256, "sizeBytes": upload.size_bytes},
        }
        unset = ["internal/upload", "internal/source"]
        await self._outbox.update(COLLECTION, package_id, self._now(fields), unset=unset, where=where, events=[task])

    async def onboard_package(self, command: OnboardPackage, _: StepContext) -> Outcome:
        """Check, unpack and read a CSAR on disk; the package is then ONBOARDED and ENABLED, or ERROR with the reason."""
        package_id = command.package_id
        stored = await self._store.get(COLLECTION, package_id)
        # A redelivery after the result was stored: the command is answered with that result.
        if stored is None or stored.body["onboardingState"] != "PROCESSING":
            is_refused = stored is not None and stored.body["onboardingState"] == "ERROR"
            refused = PackageChanged(vnf_pkg_id=package_id, change="ERROR")
            return Done(refused if is_refused else PackageChecked(vnf_pkg_id=package_id))
        processing = by(onboardingState="PROCESSING")
        # The archive of a copy stays on the disk, and counts, until it makes room.
        gone = () if is_copy(stored.body) else (_CONTENT,)
        try:
            found = await self._files_of(stored)
            if found is None:
                return NotYet(again_in_s=_FETCH_LATER_S)
            vnfd = found.package.vnfd
            await self._refuse_duplicate(package_id, vnfd)
        except StoreUnavailable:
            raise
        except ArtifactNotFetched as refusal:
            # The content stays: another access configuration may suffice.
            return await self._reject(package_id, refusal, (), where=processing)
        except VnfmError as refusal:
            return await self._reject(package_id, refusal, gone, where=processing)
        # Before the state: as soon as it is ONBOARDED, requests read both documents.
        await self._store_contents(package_id, found)
        content = stored.body["internal"]["content"]
        uris = [one.uri for one in found.package.external]
        fields = {
            **facts_of(
                found,
                created_at=rfc3339(self._clock.now()),
                foresee=self._foresee,
                further=unused(stored.body, uris),
            ),
            "checksum": {"algorithm": "SHA-256", "hash": content["sha256"]},
            "onboardingState": "ONBOARDED",
            "operationalState": "ENABLED",
        }
        event = package_event({**stored.body, **fields}, "ONBOARDED")
        try:
            await self._outbox.update(
                COLLECTION, package_id, self._now({**fields, **last_event(event)}), where=processing, events=[event]
            )
        except AlreadyExists:  # the index found a package with the same VNFD that was onboarded after the check above
            return await self._reject(package_id, _duplicate(vnfd, "another VNF package"), gone, where=processing)
        log.info("package_onboarded", package_id=package_id, vnfd_id=vnfd.vnfd_id)
        return Done(PackageChecked(vnf_pkg_id=package_id))

    async def _files_of(self, stored: Stored) -> OnboardedFiles | None:
        """Check and unpack a CSAR with the artifacts outside of it, which are fetched first; None: later. Raises as the ports."""
        try:
            return await self._files.onboard(stored.id)
        except ExternalMissing as error:
            missing = error.missing
        if self._fetches >= _MAX_FETCHES:
            return None
        self._fetches += 1
        try:
            await self._external.fetch(stored.id, stored.body, missing)
        finally:
            self._fetches -= 1
        return await self._files.onboard(stored.id)

    async def configure_external(self, package_id: str, config: ExternalArtifactsAccessConfig) -> JsonObject | None:
        """Store the access configuration of artifacts outside of a package; return it as it is shown.

        None: the package has content, and is checked again with it. Raises NotFound; PackageBusy unless CREATED or ERROR.
        """
        stored = await self._packages.get(package_id)
        fields = self._external.stored(config)
        if stored.body["onboardingState"] == "ERROR" and "content" in stored.body.get("internal", {}):
            task = _task(FetchPackage(package_id=package_id), derived_id("fetch", package_id, new_id()))
            await self._begin(package_id, {**fields, "internal/source": dict(_HELD)}, [task])
            return None
        if stored.body["onboardingState"] not in {"CREATED", "ERROR"}:
            state = stored.body["onboardingState"]
            raise PackageBusy(
                f"the package is {state}: access to its external artifacts is configured while it is CREATED or ERROR"
            )
        try:
            await self._outbox.update(COLLECTION, package_id, self._now(fields), if_revision=stored.revision)
        except RevisionConflict as error:
            raise _taken() from error
        return shown((await self._packages.get(package_id)).body)

    async def _refuse_duplicate(self, package_id: str, vnfd: Vnfd) -> None:
        for twin in await self._store.find(COLLECTION, Query(by(vnfdId=vnfd.vnfd_id), limit=2)):
            if twin.id != package_id:
                raise _duplicate(vnfd, f"VNF package {twin.id}")

    async def _reject(self, package_id: str, refusal: VnfmError, gone: Sequence[str], *, where: Filter) -> Outcome:
        """Store why a package is refused; ``gone``: members of its document that do not hold any more."""
        problem = ProblemDetails.from_error(refusal)
        fields = {
            "onboardingState": "ERROR",
            "onboardingFailureDetails": problem.model_dump(by_alias=True, exclude_none=True),
        }
        await self._outbox.update(
            COLLECTION,
            package_id,
            self._now(fields),
            unset=["internal/source", *gone],
            where=where,
        )
        log.warning("package_refused", package_id=package_id, detail=str(refusal))
        return Done(PackageChanged(vnf_pkg_id=package_id, change="ERROR"))

    async def _store_contents(self, package_id: str, found: OnboardedFiles) -> None:
        package = found.package
        await self._put(VNFDS, package_id, {"vnfd": package.vnfd.model_dump(mode="json")})
        await self._put(CONTENTS, package_id, PackageContents.from_package(package).document())

    async def _put(self, collection: str, id: str, body: JsonMapping) -> None:
        stored = await self._store.get(collection, id)
        if stored is None:
            await self._store.insert(collection, id, body)
        else:
            await self._store.replace(collection, id, body, if_revision=stored.revision)

    def _now(self, fields: JsonMapping) -> JsonObject:
        return {**fields, "updatedAt": rfc3339(self._clock.now())}


def _task(command: FetchPackage | OnboardPackage, id: str) -> Envelope[Message]:
    request_id = present_request_id()
    return Envelope(data=command, source=SOURCE, id=id, subject=command.package_id, requestid=request_id)


def _taken() -> PackageBusy:
    return PackageBusy("the package was changed by another request at the same time: try again")


def _interrupted() -> PackageBusy:
    return PackageBusy("the upload was interrupted: send the content again")


def _duplicate(vnfd: Vnfd, owner: str) -> DescriptorTaken:
    return DescriptorTaken(f"descriptor_id {vnfd.vnfd_id} belongs to {owner} already", file=vnfd.files[0])
