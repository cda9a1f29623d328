"""The VNF instances: created from enabled packages, deleted with the remains of a failed instantiate (SOL003 5.4.2, 5.4.3)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

from kubevnfm_events import PackageRef
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.errors import Conflict, NotFound, Unprocessable
from kubevnfm_kit.ids import derived_id, new_id
from kubevnfm_secrets import KeyRing, hide, listed_names
from kubevnfm_sol.access import SITE_MARK
from kubevnfm_sol.lcm import CreateVnfRequest, InstantiationState, VnfInstance
from kubevnfm_store.port import DocumentStore, RevisionConflict
from kubevnfm_store.query import Stored
from kubevnfm_worker.outbox import Outbox

from kubevnfm_lcm_api.lifecycle.core import occurrence as occurrences
from kubevnfm_lcm_api.lifecycle.core.dependencies import Provided
from kubevnfm_lcm_api.lifecycle.core.engine import Engine
from kubevnfm_lcm_api.lifecycle.core.event_refs import creation_event
from kubevnfm_lcm_api.lifecycle.core.instance import COLLECTION, InstanceRecord
from kubevnfm_lcm_api.lifecycle.core.instance_events import creation, deletion
from kubevnfm_lcm_api.lifecycle.core.messages import removal_of_remains
from kubevnfm_lcm_api.lifecycle.core.occurrence import OccurrenceRecord
from kubevnfm_lcm_api.lifecycle.core.orphan_marks import Dependencies
from kubevnfm_lcm_api.lifecycle.core.own_metadata import check_not_given
from kubevnfm_lcm_api.lifecycle.core.ports import PackageCatalogue
from kubevnfm_lcm_api.lifecycle.core.server_notifier import check_values
from kubevnfm_lcm_api.site_entries import insert_once, site_entry

_ACCEPTED_WITHIN_S: Final = 5.0
"""An occurrence is stored so soon after the claim; or by the process that starts after the one that died between the two writes."""
_LOOK_S: Final = 0.05


def _site_entry(metadata: Mapping[str, object] | None) -> str | None:
    return site_entry((metadata or {}).get(SITE_MARK), "site", "name")


def any_state(_: Stored) -> None:
    """Accept an instance in whatever state it is."""


class Instances:
    """Creates, finds and deletes VNF instances."""

    def __init__(
        self,
        *,
        store: DocumentStore,
        outbox: Outbox,
        engine: Engine,
        packages: PackageCatalogue,
        ring: KeyRing,
        clock: Clock,
    ) -> None:
        self._store, self._outbox, self._engine, self._packages = store, outbox, engine, packages
        self._ring, self._clock = ring, clock

    async def operation_of(self, record: InstanceRecord) -> OccurrenceRecord | None:
        """Return the operation that has claimed an instance; None if none has, or it is not stored in a short time."""
        claim = record.internals.current_operation
        if claim is None:
            return None
        with suppress(TimeoutError):
            async with asyncio.timeout(_ACCEPTED_WITHIN_S):
                # No event reports that an occurrence was stored.
                while (stored := await self._store.get(occurrences.COLLECTION, claim)) is None:  # noqa: ASYNC110
                    await asyncio.sleep(_LOOK_S)
                return OccurrenceRecord.from_document(stored.body)
        return None

    async def create(self, request: CreateVnfRequest) -> Stored:
        """Create an instance of an enabled package; return its document. Raises PackageUnusable, InvalidInput, Conflict."""
        package, record = await self.check_new(request)
        entry = _site_entry(request.metadata)
        record = record.with_internals(site_entry=entry)
        stored = await insert_once(
            self._store,
            COLLECTION,
            entry,
            lambda: self._outbox.insert(
                COLLECTION, record.vnf.id, record.document(self._ring), events=[creation(record)]
            ),
            present=lambda body: _site_entry(body.get("metadata")),
        )
        # The package may have been disabled and deleted since it was read. A deletion needs a disabled package and then
        # counts its instances, so at least one of the two requests sees the other.
        try:
            await self._packages.confirm(package, instance_id=record.vnf.id)
        except Unprocessable:
            await self._outbox.delete(COLLECTION, record.vnf.id, events=[deletion(record)])
            raise
        return stored

    async def check_new(self, request: CreateVnfRequest) -> tuple[PackageRef, InstanceRecord]:
        """Return a new instance that can be created, with its package; nothing is stored. Raises as `create`."""
        check_not_given(request.metadata, {})
        check_values(request.metadata or {}, "metadata")
        package = await self._packages.recently_usable(request.vnfd_id)
        return package, await self.new(request, package)

    async def new(
        self, request: CreateVnfRequest, package: PackageRef, *, instance_id: str | None = None
    ) -> InstanceRecord:
        """Return a new instance of a package, with a random id unless one is given; nothing is stored."""
        vnfd = await self._packages.vnfd(package.package_id, package.checksum)
        now = rfc3339(self._clock.now())
        initial = vnfd.initial_values
        names = tuple(sorted(listed_names(request.metadata or {}).union(vnfd.secret_names)))
        record = InstanceRecord(
            vnf=VnfInstance(
                id=instance_id or new_id(),
                vnf_instance_name=request.vnf_instance_name,
                vnf_instance_description=request.vnf_instance_description,
                vnfd_id=vnfd.vnfd_id,
                vnf_provider=vnfd.provider,
                vnf_product_name=vnfd.product_name,
                vnf_software_version=vnfd.software_version,
                vnfd_version=vnfd.descriptor_version,
                vnf_pkg_id=package.package_id,
                vnf_configurable_properties=hide(initial.configurable_properties, names),
                extensions=hide(initial.extensions, names),
                metadata=hide({**initial.metadata, **(request.metadata or {})}, names),
            ),
            created_at=now,
            updated_at=now,
        )
        return record.with_internals(last_news=creation_event(record.vnf.id, now), secret_names=names)

    def of_awaited(
        self, request: CreateVnfRequest, package_id: str, *, instance_id: str | None = None
    ) -> InstanceRecord:
        """Return a new instance of a package that is not known yet: the package's id stands for that of the VNFD; nothing is stored."""
        now = rfc3339(self._clock.now())
        vnf = VnfInstance(
            id=instance_id or new_id(),
            vnf_instance_name=request.vnf_instance_name,
            vnf_instance_description=request.vnf_instance_description,
            vnfd_id=package_id,
            vnf_provider="",
            vnf_product_name="",
            vnf_software_version="",
            vnfd_version="",
            vnf_pkg_id=package_id,
        )
        record = InstanceRecord(vnf=vnf, created_at=now, updated_at=now)
        return record.with_internals(last_news=creation_event(vnf.id, now))

    async def get(self, instance_id: str) -> Stored:
        """Return the instance. Raises NotFound."""
        stored = await self._store.get(COLLECTION, instance_id)
        if stored is None:
            raise NotFound(f"VNF instance {instance_id} does not exist")
        return stored

    async def delete(self, instance_id: str, *, check: Callable[[Stored], None] = any_state) -> None:
        """Delete a NOT_INSTANTIATED instance; the remains of a failed instantiate are then removed in the background.

        ``check`` gets the instance as it will be deleted; it raises if the caller expected another state (If-Match).
        Raises: NotFound; Conflict while INSTANTIATED or an operation runs.
        """
        stored = await self.get(instance_id)
        check(stored)
        record = InstanceRecord.from_document(stored.body)
        await self._engine.check_free(record, InstantiationState.NOT_INSTANTIATED)
        messages = [deletion(record)]
        remains_of = record.internals.remains_of
        if remains_of is not None:
            messages.append(removal_of_remains(instance_id, remains_of, derived_id("remove-remains", instance_id)))
        try:
            await self._outbox.delete(COLLECTION, instance_id, if_revision=stored.revision, events=messages)
        except RevisionConflict as error:
            raise Conflict("the VNF instance was changed by another request meanwhile: try again") from error

    async def users(self, vim_id: str) -> list[str]:
        """Return the ids of the instances that have, are getting or may still have resources on the VIM."""
        return await Dependencies(self._store).users(Provided("cluster", (vim_id,)))
