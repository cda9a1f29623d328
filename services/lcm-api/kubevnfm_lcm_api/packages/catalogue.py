"""The VNF packages: their documents and states (SOL005 clause 9; api.md 7.2)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from cachetools import LRUCache
from kubevnfm_bus.port import Ack, Delivery, Verdict
from kubevnfm_csar.artifact_order import ORDER
from kubevnfm_csar.hot import BaseHot
from kubevnfm_csar.manifest_limits import LONGEST_PROBLEM, MOST_PROBLEMS
from kubevnfm_csar.manifest_values import VALUES
from kubevnfm_csar.values_schema import ValuesSchema
from kubevnfm_csar.vnfd.model import Vnfd
from kubevnfm_events import Envelope, Message, PackageRef
from kubevnfm_events.lcm import InstanceCreated, InstanceDeleted, OperationChanged, PackageChanged
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.errors import Conflict, InvalidInput, NotFound, Unprocessable
from kubevnfm_kit.ids import new_id
from kubevnfm_kit.json_pointer import escaped
from kubevnfm_kit.json_types import JsonMapping, JsonObject
from kubevnfm_kit.merge_patch import merge_patch
from kubevnfm_secrets import KeyRing, hide, revealed, sealed
from kubevnfm_sol.access import SITE_MARK
from kubevnfm_sol.lcm import TERMINAL
from kubevnfm_store.port import DocumentStore, RevisionConflict
from kubevnfm_store.query import Query, Stored, by
from kubevnfm_worker.outbox import Outbox

from kubevnfm_lcm_api.event_chain import SOURCE, EventRef
from kubevnfm_lcm_api.packages.domain.contents import PackageContents
from kubevnfm_lcm_api.packages.domain.ports import PackageFiles, PackageUsers, Schemas, SchemaUnusable, Violation
from kubevnfm_lcm_api.packages.usable import COLLECTION, UsablePackages, reference
from kubevnfm_lcm_api.site_entries import insert_once, site_entry

VNFDS: Final = "vnfds"
CONTENTS: Final = "package_contents"
_TRIES: Final = 5
"""How often a change is tried after concurrent changes; each try checks the new state."""
_CHANGE_THE_VNFD: Final = frozenset({"MODIFY_INFO", "CHANGE_VNFPKG"})
_CACHED: Final = 64
"""Packages whose facts are kept in memory: an ONBOARDED package never changes."""


def _site_entry(user_data: JsonMapping | None) -> str | None:
    return site_entry((user_data or {}).get(SITE_MARK), "site", "name", "sha256")


class PackageBusy(Conflict, code="package-state"):
    """The package's state does not allow what was asked."""


class Packages:
    """Creates, shows, enables and deletes VNF packages; `onboarding` fills them."""

    def __init__(
        self,
        *,
        store: DocumentStore,
        outbox: Outbox,
        files: PackageFiles,
        users: PackageUsers,
        schemas: Schemas,
        ring: KeyRing,
        clock: Clock,
    ) -> None:
        self._store, self._outbox, self._files, self._users = store, outbox, files, users
        self._schemas, self._ring, self._clock = schemas, ring, clock
        self._vnfds: LRUCache[tuple[str, str], Vnfd] = LRUCache(_CACHED)
        self._references: LRUCache[str, PackageRef] = LRUCache(_CACHED)
        self._file_names: LRUCache[str, frozenset[str]] = LRUCache(_CACHED)
        self._reads = UsablePackages(store)

    async def create(self, user_data: JsonMapping) -> JsonMapping:
        """Create a package resource in state CREATED; return its document. Raises Conflict."""
        body = self.document(new_id())
        if user_data:
            body["userDefinedData"] = sealed(hide(user_data), self._ring)
        entry = _site_entry(user_data)
        if entry is not None:
            body["internal"] = {"siteEntry": entry}
        await insert_once(
            self._store,
            COLLECTION,
            entry,
            lambda: self._outbox.insert(COLLECTION, body["id"], body, events=[package_event(body, "CREATED")]),
            present=lambda found: _site_entry(found.get("userDefinedData")),
        )
        return body

    def document(self, package_id: str) -> JsonObject:
        """Return a new package resource in state CREATED; nothing is stored."""
        now = rfc3339(self._clock.now())
        return {
            "id": package_id,
            "onboardingState": "CREATED",
            "operationalState": "DISABLED",
            "usageState": "NOT_IN_USE",
            "createdAt": now,
            "updatedAt": now,
        }

    async def get(self, package_id: str) -> Stored:
        """Return the package. Raises NotFound."""
        stored = await self._store.get(COLLECTION, package_id)
        if stored is None:
            raise NotFound(f"VNF package {package_id} does not exist")
        return stored

    async def of_vnfd(self, vnfd_id: str) -> Stored:
        """Return the onboarded package of a VNFD. Raises NotFound."""
        stored = await self._of_vnfd(vnfd_id)
        if stored is None:
            raise NotFound(f"no VNF package with VNFD {vnfd_id} is onboarded")
        return stored

    async def _of_vnfd(self, vnfd_id: str) -> Stored | None:
        # A package has the id of its VNFD from the write on that makes it ONBOARDED.
        return next(iter(await self._store.find(COLLECTION, Query(by(vnfdId=vnfd_id), limit=1))), None)

    async def modify(
        self, package_id: str, changes: JsonMapping, *, check: Callable[[Stored], Awaitable[None]]
    ) -> JsonMapping:
        """Set operationalState and/or merge userDefinedData (RFC 7396); return only the changed attributes (SOL005 9.4.3.3.4).

        ``changes``: a VnfPkgInfoModificationRequest as it came.
        ``check`` gets the package in the state that is changed, and raises if the caller expects another one.
        Raises: NotFound; InvalidInput; PackageBusy if the package has that state already, or is not ONBOARDED.
        """
        if changes.get("operationalState") is None and "userDefinedData" not in changes:
            raise InvalidInput("", "operationalState or userDefinedData expected")
        for _ in range(_TRIES):
            stored = await self.get(package_id)
            # For each read: the caller's If-Match must hold for the revision that is changed.
            await check(stored)
            fields = self._modified(stored.body, changes)
            written = {**fields, "updatedAt": rfc3339(self._clock.now())}
            events = []
            if (state := fields.get("operationalState")) is not None:
                events = [package_event(stored.body, state, is_in_use=await self.is_in_use(stored.body))]
                written |= last_event(events[0])
            try:
                await self._outbox.update(COLLECTION, package_id, written, if_revision=stored.revision, events=events)
            except RevisionConflict:
                continue
            self._reads.forget()
            return fields
        raise _changed_meanwhile()

    def _modified(self, body: JsonMapping, changes: JsonMapping) -> JsonObject:
        wanted, user_data = changes.get("operationalState"), changes.get("userDefinedData")
        fields: JsonObject = {}
        if wanted is not None:
            if body["onboardingState"] != "ONBOARDED":
                raise PackageBusy(f"the package is {body['onboardingState']}, not ONBOARDED")
            if body["operationalState"] == wanted:
                raise PackageBusy(f"operationalState: the package is {wanted} already")
            fields["operationalState"] = wanted
        if "userDefinedData" in changes:
            merged = merge_patch(body.get("userDefinedData"), hide(user_data)) or {}
            fields["userDefinedData"] = sealed(merged, self._ring)
        return fields

    async def delete(self, package_id: str) -> None:
        """Delete the package. Raises NotFound; PackageBusy while it is ENABLED, IN_USE, UPLOADING or PROCESSING."""
        for _ in range(_TRIES):
            stored = await self.get(package_id)
            body = stored.body
            if body["operationalState"] == "ENABLED":
                raise PackageBusy("the package is ENABLED: disable it first")
            if body["onboardingState"] in {"UPLOADING", "PROCESSING"}:
                raise PackageBusy(f"the package is {body['onboardingState']}")
            if await self.is_in_use(body):
                raise PackageBusy("the package is IN_USE: VNF instances of it exist, or are being changed to it")
            try:
                await self._outbox.delete(
                    COLLECTION, package_id, if_revision=stored.revision, events=[package_event(body, "DELETED")]
                )
            except RevisionConflict:
                continue
            self._reads.forget()
            # After the document, which makes the package exist: a crash here leaves only what no request can reach.
            for collection in (VNFDS, CONTENTS):
                await self._store.delete(collection, package_id)
            await self._files.remove(package_id)
            # A copy may be fetched again under its id.
            self._references.pop(package_id, None)
            self._file_names.pop(package_id, None)
            return
        raise _changed_meanwhile()

    async def is_in_use(self, body: JsonMapping) -> bool:
        """Return whether VNF instances of the package's VNFD exist, in any state, or are being changed to it."""
        # An instance that waits for a package to be fetched has the package's id as that of its VNFD.
        waiting = [body["id"]] if is_copy(body) else []
        known = [body["vnfdId"]] if "vnfdId" in body else []
        return any([await self._users.exist(vnfd_id) for vnfd_id in (*known, *waiting)])

    async def holders(self, body: JsonMapping) -> list[str]:
        """Return the ids of up to 101 VNF instances of the package."""
        return await self._users.ids([name for name in (body.get("vnfdId"), body["id"]) if name is not None])

    async def reference(self, package_id: str) -> PackageRef:
        """Return how commands refer to the package; its ``vnfd_id`` is empty before onboarding. Raises NotFound."""
        if package_id in self._references:
            return self._references[package_id]
        stored = await self.get(package_id)
        found = reference(stored)
        # Another process may remove a copy, and fetch other content by the same id.
        if found.vnfd_id and not is_copy(stored.body):
            self._references[package_id] = found
        return found

    async def usable(self, vnfd_id: str) -> PackageRef:
        """Return the ONBOARDED and ENABLED package of a VNFD. Raises PackageUnusable."""
        return (await self._reads.read(vnfd_id)).reference

    async def recently_usable(self, vnfd_id: str) -> PackageRef:
        """As ``usable``, but as read up to 5 s ago: what is made of the package needs ``confirm``."""
        return await self._reads.recent(vnfd_id)

    async def confirm(self, package: PackageRef, *, instance_id: str) -> None:
        """Check that the package is still usable, after an instance of it was stored. Raises PackageUnusable."""
        await self._reads.confirm(package, instance_id=instance_id)

    async def vnfd(self, package_id: str, checksum: str) -> Vnfd:
        """Return the package's descriptor. Raises NotFound."""
        key = (package_id, checksum)
        if key not in self._vnfds:
            stored = await self._store.get(VNFDS, package_id)
            if stored is None:
                raise NotFound(f"VNF package {package_id} has no VNFD")
            self._vnfds[key] = Vnfd.model_validate(stored.body["vnfd"])
        return self._vnfds[key]

    async def contents(self, stored: Stored) -> PackageContents:
        """Return the contents of the package. Raises PackageBusy unless it is ONBOARDED."""
        state = stored.body["onboardingState"]
        body = await self._store.get(CONTENTS, stored.id) if state == "ONBOARDED" else None
        if body is None:
            raise PackageBusy(f"the package is {state}, not ONBOARDED")
        return PackageContents.from_document(body.body)

    async def file_names(self, package_id: str) -> frozenset[str]:
        """Return the paths of the package's files; empty before onboarding."""
        if package_id in self._file_names:
            return self._file_names[package_id]
        stored = await self._store.get(CONTENTS, package_id)
        if stored is None:
            return frozenset()
        names = frozenset(stored.body["files"])
        # The contents are stored before the package is ONBOARDED, and a try that is repeated may store others.
        if package_id in self._references:
            self._file_names[package_id] = names
        return names

    async def base_hot(self, package_id: str, flavour_id: str) -> BaseHot | None:
        """Return the flavour's Base HOT, None if it has none. Raises PackageRefused."""
        return await self._files.base_hot(package_id, flavour_id)

    async def file(self, package_id: str, path: str, *, limit_bytes: int) -> bytes | None:
        """Return a file of the package; None if the package has no such file, or a larger one."""
        return (await self.files(package_id, [path], limit_bytes=limit_bytes)).get(path)

    async def files(self, package_id: str, paths: Sequence[str], *, limit_bytes: int) -> Mapping[str, bytes]:
        """Return those of the files that the package has; without larger ones."""
        return await self._files.files(package_id, paths, limit_bytes=limit_bytes)

    async def check_values(self, schema: ValuesSchema, values: Mapping[str, Any], *, place: str = VALUES) -> None:
        """Compare values, which may have Secrets, with a schema of a package. Raises Unprocessable naming all wrong places."""
        try:
            found = await self._schemas.violations(schema.body, revealed(values, self._ring), MOST_PROBLEMS)
        except SchemaUnusable as error:
            raise Unprocessable(ORDER if place == VALUES else place, f"{schema.name}: {error}") from error
        if found:
            first, *more = dict.fromkeys(_place(values, one, place) for one in found)
            raise Unprocessable(*first, *more)

    async def follow_instances(self, delivery: Delivery) -> Verdict:
        """Update usageState after instances are created, deleted or change their VNFD: lists are filtered by it."""
        event = delivery.envelope.data
        vnfd_ids: set[str] = set()
        is_added = isinstance(event, InstanceCreated)
        if isinstance(event, InstanceCreated) and await self._reads.was_in_use(event.vnf_instance_id):
            return Ack()
        if isinstance(event, InstanceCreated | InstanceDeleted):
            vnfd_ids = {event.vnfd_id}
        elif isinstance(event, OperationChanged) and event.operation in _CHANGE_THE_VNFD:
            if event.state in TERMINAL:
                # The event no longer names the VNFD that the operation may have released, so all packages in use are
                # checked.
                used = await self._store.find(COLLECTION, Query(by(usageState="IN_USE")))
                vnfd_ids = {event.vnfd_id, *(str(stored.body["vnfdId"]) for stored in used)}
            elif (next_vnfd := await self._users.next_vnfd(event.vnf_instance_id)) is not None:
                vnfd_ids, is_added = {next_vnfd}, True
        for vnfd_id in vnfd_ids:
            await self._write_usage(vnfd_id, is_added=is_added)
        return Ack()

    async def note_use(self, vnfd_id: str) -> None:
        """Update usageState after an instance got the VNFD of a package that it had waited for."""
        await self._write_usage(vnfd_id, is_added=True)

    async def _write_usage(self, vnfd_id: str, *, is_added: bool) -> None:
        """Write until the stored state is true: another instance may be created or deleted at the same time.

        A new instance (``is_added``) does not change a package in use; its deletion is another event.
        """
        while True:
            stored = await self._of_vnfd(vnfd_id)
            if stored is None or (is_added and stored.body["usageState"] == "IN_USE"):
                return
            usage = usage_state(await self.is_in_use(stored.body))
            if stored.body["usageState"] == usage:
                return
            try:
                await self._store.update(COLLECTION, stored.id, {"usageState": usage}, if_revision=stored.revision)
            except RevisionConflict:
                continue


def _place(values: Mapping[str, Any], violation: Violation, place: str) -> tuple[str, str]:
    """Return a wrong place, below that of the values, and its rule."""
    node: Any = values
    for part in violation.path:
        place += f"/{escaped(str(part))}"
        try:
            node = node[part]
        except (KeyError, IndexError, TypeError):
            break
    return place[:LONGEST_PROBLEM], violation.rule[:LONGEST_PROBLEM]


def package_event(body: JsonMapping, change: Any, *, is_in_use: bool = False) -> Envelope[Message]:
    """Return the event of a package's change."""
    last = body.get("internal", {}).get("lastNews")
    event = PackageChanged(
        vnf_pkg_id=body["id"],
        vnfd_id=body.get("vnfdId", ""),
        vnf_provider=body.get("vnfProvider", ""),
        vnf_product_name=body.get("vnfProductName", ""),
        vnf_software_version=body.get("vnfSoftwareVersion", ""),
        vnfd_version=body.get("vnfdVersion", ""),
        vnfm_info=tuple(body.get("vnfmInfo", ())),
        usage_state=usage_state(is_in_use),
        change=change,
        follows=last["id"] if last else "",
        follows_at=datetime.fromisoformat(last["at"]) if last else None,
    )
    return Envelope(data=event, source=SOURCE, subject=body["id"])


def last_event(event: Envelope[Message]) -> JsonObject:
    """Return the field with a package's last event, set from ONBOARDED on: the next event refers to it."""
    return {"internal/lastNews": EventRef(id=event.id, at=rfc3339(event.time)).model_dump()}


def is_copy(body: JsonMapping) -> bool:
    """Return whether a package was fetched on demand (multicloud.md MC-122): it can be removed and fetched again."""
    return "fetch" in body.get("internal", {})


def usage_state(is_in_use: bool) -> str:
    """Return the name of the state in SOL005."""
    return "IN_USE" if is_in_use else "NOT_IN_USE"


def _changed_meanwhile() -> PackageBusy:
    return PackageBusy("the package was changed by other requests at the same time: try again")
