"""Helm charts of registries and repositories (multicloud.md MC-048): each is fetched once, for all that render it, and kept while it is used."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final

import structlog
from kubevnfm_clients.charts import ChartState, ChartWanted
from kubevnfm_csar.oci_references import DIGEST_PATTERN, OciReference, is_reference
from kubevnfm_events import Envelope
from kubevnfm_events.lcm import ChartFetched, FetchChart
from kubevnfm_kit.clock import rfc3339
from kubevnfm_kit.errors import NotFound, Unprocessable, VnfmError
from kubevnfm_kit.ids import derived_id, new_id
from kubevnfm_kit.json_types import JsonMapping, JsonObject
from kubevnfm_kit.request_ids import present_request_id
from kubevnfm_store.port import AlreadyExists, DocumentStore, RevisionConflict, StoreUnavailable
from kubevnfm_store.query import Query, Stored, by
from kubevnfm_worker.outbox import Outbox
from kubevnfm_worker.outcome import Done, NotYet, Outcome, StepContext

from kubevnfm_lcm_api.event_chain import SOURCE
from kubevnfm_lcm_api.packages.catalogue import Packages
from kubevnfm_lcm_api.packages.domain.ports import ChartFiles, PackageSources
from kubevnfm_lcm_api.packages.room import Copy, Room
from kubevnfm_lcm_api.packages.usable import COLLECTION as PACKAGES

log = structlog.get_logger()

COLLECTION: Final = "fetched_charts"
LARGEST: Final = 10 * 2**20
"""Bytes, as of a file of a package that infra-k8s reads. Charts have some KiB."""
_MOST_PACKAGES: Final = 1000
_MOST_FETCHES: Final = 8
"""The limit in one process, as of packages."""
_LATER_S: Final = 1.0
_AGAIN_AFTER: Final = timedelta(seconds=1)
"""A fetch that has just failed is the answer for all that have waited for it."""
_FETCHING: Final = by(state="FETCHING")


@dataclass
class Charts:
    """The charts that were fetched, one document for each, by the digest of its manifest."""

    store: DocumentStore
    outbox: Outbox
    sources: PackageSources
    files: ChartFiles
    packages: Packages
    room: Room
    limit_bytes: int
    _running: int = field(default=0, init=False)

    async def ensure(self, wanted: ChartWanted) -> ChartState:
        """Begin the fetch of a chart unless it is held, or being fetched; return how far it is.

        One that has failed is begun again. Raises Unprocessable for what is no reference.
        """
        try:
            chart_id = _id_of(wanted)
        except ValueError as error:
            raise Unprocessable("oci", str(error)) from error
        while True:
            stored = await self.store.get(COLLECTION, chart_id)
            try:
                if stored is None:
                    stored = await self._insert(chart_id, wanted)
                elif await self._is_to_begin(stored, wanted):
                    stored = await self._begin(stored, wanted)
                else:
                    stored = await self._used(stored, wanted.package_id)
            except (AlreadyExists, RevisionConflict):  # another request was faster
                continue
            return shown(stored)

    async def state(self, chart_id: str) -> ChartState:
        """Return how far the fetch of a chart is. Raises NotFound."""
        return shown(await self._stored(chart_id))

    async def archive(self, chart_id: str) -> Path:
        """Return the archive of a chart. Raises NotFound."""
        path = await self.files.path((await self._stored(chart_id)).id)
        if path is None:
            raise NotFound(f"the archive of chart {chart_id} is not there")
        return path

    async def _stored(self, chart_id: str) -> Stored:
        stored = await self.store.get(COLLECTION, chart_id)
        if stored is None:
            raise NotFound(f"chart {chart_id} was not fetched")
        return stored

    async def _is_to_begin(self, stored: Stored, wanted: ChartWanted) -> bool:
        body = stored.body
        if body["state"] == "FAILED":
            return (
                body["oci"] != wanted.oci
                or datetime.fromisoformat(body["updatedAt"]) + _AGAIN_AFTER <= self.room.clock.now()
            )
        return body["state"] == "READY" and await self.files.path(stored.id) is None

    async def _insert(self, chart_id: str, wanted: ChartWanted) -> Stored:
        now = rfc3339(self.room.clock.now())
        fields = {**_begun(wanted), "packages": [wanted.package_id], "createdAt": now, "usedAt": now, "updatedAt": now}
        return await self.outbox.insert(COLLECTION, chart_id, fields, events=[_task(chart_id)])

    async def _begin(self, stored: Stored, wanted: ChartWanted) -> Stored:
        fields = {**_begun(wanted), **self._named(stored, wanted.package_id), **self._times()}
        unset = ["failure", "done", "total", "sizeBytes", "sha256"]
        return await self.outbox.update(
            COLLECTION, stored.id, fields, unset=unset, if_revision=stored.revision, events=[_task(stored.id)]
        )

    async def _used(self, stored: Stored, package_id: str) -> Stored:
        named = self._named(stored, package_id)
        if not named and self.room.is_touched(stored.body["usedAt"]):
            return stored
        fields = {**named, "usedAt": rfc3339(self.room.clock.now())}
        return await self.store.update(COLLECTION, stored.id, fields, if_revision=stored.revision)

    def _named(self, stored: Stored, package_id: str) -> JsonObject:
        """Return what names the package among those that use the chart, unless it is named."""
        known = stored.body["packages"]
        return {} if package_id in known else {"packages": [*known, package_id][-_MOST_PACKAGES:]}

    def _times(self) -> JsonObject:
        now = rfc3339(self.room.clock.now())
        return {"usedAt": now, "updatedAt": now}

    async def fetch_chart(self, command: FetchChart, _: StepContext) -> Outcome:
        """Fetch a chart from its registry, and check it; it is then READY, or FAILED with the reason."""
        chart_id = command.chart_id
        stored, done = await self.store.get(COLLECTION, chart_id), Done(ChartFetched(chart_id=chart_id))
        # A redelivery after the result was stored.
        if stored is None or stored.body["state"] != "FETCHING":
            return done
        if self._running >= _MOST_FETCHES:
            return NotYet(_LATER_S)
        self._running += 1
        try:
            fields = {"state": "READY", **await self._fetched(stored)}
        # The database's failure says nothing about the chart: the command is repeated.
        except StoreUnavailable:
            raise
        except VnfmError as error:
            is_final = bool(getattr(error, "is_final", not error.retryable))
            fields = {"state": "FAILED", "failure": {"reason": str(error), "isFinal": is_final}}
            log.warning("chart_not_fetched", chart_id=chart_id, detail=str(error))
        finally:
            self._running -= 1
        try:
            await self.store.update(COLLECTION, chart_id, {**fields, **self._times()}, where=_FETCHING)
        except RevisionConflict:  # ended by another delivery of the command
            log.info("chart_fetched_already", chart_id=chart_id)
        return done

    async def _fetched(self, stored: Stored) -> JsonObject:
        """Store the archive of a chart. Raises what refuses it; StoreUnavailable."""
        source = {"chart": stored.body["oci"], "digest": stored.body["digest"], "limit_bytes": self.limit_bytes}

        async def write(progress: JsonMapping) -> None:
            await self.store.update(COLLECTION, stored.id, progress, where=_FETCHING)

        async with self.sources.open(source) as content:
            await self.room.make(stored.id, content.size_bytes or 0)
            counted = self.room.counted(content, write)
            upload = await self.files.store(stored.id, counted, limit_bytes=self.limit_bytes)
        return {"sizeBytes": upload.size_bytes, "sha256": upload.sha256}

    async def remove_orphans(self) -> None:
        """Delete archives without a document: a process was killed after it had removed that."""
        for chart_id in await self.files.ids():
            if await self.store.get(COLLECTION, chart_id) is None:
                await self.files.remove(chart_id)
                log.info("chart_without_document_removed", chart_id=chart_id)

    async def copies(self) -> Sequence[Copy]:
        """Return the charts, for the room that they take."""
        return [
            Copy(
                each.id,
                each.body["usedAt"],
                int(each.body.get("sizeBytes", each.body.get("total", 0))),
                None if each.body["state"] == "FETCHING" else partial(self._removed, each),
            )
            for each in await self.store.find(COLLECTION, Query())
        ]

    async def _removed(self, stored: Stored) -> bool:
        """Remove a chart unless VNF instances of a package that has named it exist; return whether it is gone."""
        for package_id in stored.body["packages"]:
            package = await self.store.get(PACKAGES, package_id)
            if package is not None and await self.packages.is_in_use(package.body):
                return False
        try:
            await self.store.delete(COLLECTION, stored.id, if_revision=stored.revision)
        except RevisionConflict:  # used since
            return False
        await self.files.remove(stored.id)
        return True


def shown(stored: Stored) -> ChartState:
    """Return how far the fetch of a chart is."""
    body = stored.body
    failure: JsonMapping = body.get("failure") or {}
    return ChartState(
        state=body["state"],
        oci=body["oci"],
        sha256=body.get("sha256"),
        done_bytes=body.get("done"),
        total_bytes=body.get("total"),
        failure=failure.get("reason"),
        is_final=bool(failure.get("isFinal")),
    )


def _id_of(wanted: ChartWanted) -> str:
    """Return the digest without its algorithm. Raises ValueError for what is neither a reference nor the URL of an archive."""
    if is_reference(wanted.oci):
        return OciReference.from_text(wanted.oci, wanted.digest).hex
    if not re.fullmatch(DIGEST_PATTERN, wanted.digest) or not wanted.oci.startswith(("http://", "https://")):
        raise ValueError("oci://<host>/<repository> or an http(s) URL expected, and sha256:<hex> as the digest")
    return wanted.digest.partition(":")[2]


def _begun(wanted: ChartWanted) -> JsonObject:
    return {"state": "FETCHING", "oci": wanted.oci, "digest": wanted.digest}


def _task(chart_id: str) -> Envelope[FetchChart]:
    command = FetchChart(chart_id=chart_id)
    message_id, request_id = derived_id("fetch-chart", chart_id, new_id()), present_request_id()
    return Envelope(data=command, source=SOURCE, id=message_id, subject=chart_id, requestid=request_id)
