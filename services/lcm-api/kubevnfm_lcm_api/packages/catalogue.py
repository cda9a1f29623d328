"""The VNF packages: their documents and states (SOL005 clause 9; api.md 7.2)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any, Final

from kubevnfm_bus.port import Ack, Delivery, Verdict
from kubevnfm_csar import BaseHot, Vnfd
from kubevnfm_events import Envelope, Message, PackageRef
from kubevnfm_events.lcm import InstanceCreated, InstanceDeleted, OperationChanged, PackageChanged
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.errors import Conflict, InvalidInput, NotFound, Unprocessable
from kubevnfm_kit.ids import new_id
from kubevnfm_secrets import KeyRing, hide, sealed
from kubevnfm_sol.lcm import TERMINAL
from kubevnfm_store.port import DocumentStore, RevisionConflict
from kubevnfm_store.query import Query, Stored, by
from kubevnfm_worker import Outbox

from kubevnfm_lcm_api.event_chain import SOURCE, EventRef
from kubevnfm_lcm_api.packages.domain.contents import PackageContents
from kubevnfm_lcm_api.packages.domain.ports import PackageFiles, PackageUsers

COLLECTION: Final = "vnf_packages"
VNFDS: Final = "vnfds"
CONTENTS: Final = "package_contents"
_TRIES: Final = 5
"""How often a change is tried that others' changes came before; each try is judged anew."""
_CHANGE_THE_VNFD: Final = frozenset({"MODIFY_INFO", "CHANGE_VNFPKG"})
_CACHED_VNFDS: Final = 64


class PackageUnusable(Unprocessable):
    """The VNF package of the vnfdId is missing, not ONBOARDED or not ENABLED (SOL003 5.4.2.3.1: 422)."""

    code = "package-unusable"


class PackageBusy(Conflict):
    """The package's state does not allow what was asked."""

    code = "package-state"


class Packages:
    """Creates, shows, enables and deletes VNF packages; `onboarding` fills them."""

    def __init__(
        self,
        *,
        store: DocumentStore,
        outbox: Outbox,
        files: PackageFiles,
        users: PackageUsers,
        ring: KeyRing,
        clock: Clock,
    ) -> None:
        self._store, self._outbox, self._files, self._users = store, outbox, files, users
        self._ring, self._clock = ring, clock
        self._vnfds: dict[tuple[str, str], Vnfd] = {}

    async def create(self, user_data: Mapping[str, Any]) -> Mapping[str, Any]:
        """Make a package resource in state CREATED; return its document."""
        now = rfc3339(self._clock.now())
        body: dict[str, Any] = {
            "id": new_id(),
            "onboardingState": "CREATED",
            "operationalState": "DISABLED",
            "usageState": "NOT_IN_USE",
            "createdAt": now,
            "updatedAt": now,
        }
        if user_data:
            body["userDefinedData"] = sealed(hide(user_data), self._ring)
        await self._outbox.insert(COLLECTION, body["id"], body, events=[news_of(body, "CREATED")])
        return body

    async def get(self, package_id: str) -> Stored:
        """Return the package. Raises NotFound."""
        stored = await self._store.get(COLLECTION, package_id)
        if stored is None:
            raise NotFound(f"VNF package {package_id} does not exist")
        return stored

    async def modify(
        self, package_id: str, changes: Mapping[str, Any], *, check: Callable[[Stored], Awaitable[None]]
    ) -> Mapping[str, Any]:
        """Set operationalState and/or merge userDefinedData (RFC 7396); return only what was changed (SOL005 9.4.3.3.4).

        ``check`` is given the package as it will be changed and raises when the caller meant another state of it.
        Raises: NotFound; InvalidInput; PackageBusy when the state is that already, or not ONBOARDED.
        """
        if changes.get("operationalState") is None and "userDefinedData" not in changes:
            raise InvalidInput("", "operationalState or userDefinedData expected")
        for _ in range(_TRIES):
            stored = await self.get(package_id)
            await check(stored)
            fields = self._modified(stored.body, changes)
            written = {**fields, "updatedAt": rfc3339(self._clock.now())}
            events = []
            if (state := fields.get("operationalState")) is not None:
                events = [news_of(stored.body, state, is_in_use=await self.is_in_use(stored.body))]
                written |= last_news(events[0])
            try:
                await self._outbox.update(COLLECTION, package_id, written, if_revision=stored.revision, events=events)
            except RevisionConflict:
                continue
            return fields
        raise _changed_meanwhile()

    def _modified(self, body: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
        wanted, user_data = changes.get("operationalState"), changes.get("userDefinedData")
        fields: dict[str, Any] = {}
        if wanted is not None:
            if wanted not in ("ENABLED", "DISABLED"):  # a list: what a body holds need not be hashable
                raise InvalidInput("operationalState", f"ENABLED or DISABLED expected, got {wanted!r}")
            if body["onboardingState"] != "ONBOARDED":
                raise PackageBusy(f"the package is {body['onboardingState']}, not ONBOARDED")
            if body["operationalState"] == wanted:
                raise PackageBusy(f"operationalState: the package is {wanted} already")
            fields["operationalState"] = wanted
        if "userDefinedData" in changes:
            if not isinstance(user_data, Mapping | None):
                raise InvalidInput("userDefinedData", "an object or null expected")
            merged = _merged(body.get("userDefinedData"), hide(user_data)) or {}
            fields["userDefinedData"] = sealed(merged, self._ring)
        return fields

    async def delete(self, package_id: str) -> None:
        """Remove the package. Raises NotFound; PackageBusy while ENABLED, IN_USE or being taken in."""
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
                    COLLECTION, package_id, if_revision=stored.revision, events=[news_of(body, "DELETED")]
                )
            except RevisionConflict:
                continue
            for collection in (VNFDS, CONTENTS):
                await self._store.delete(collection, package_id)
            await self._files.remove(package_id)
            return
        raise _changed_meanwhile()

    async def is_in_use(self, body: Mapping[str, Any]) -> bool:
        """Tell whether VNF instances of the package's vnfdId exist, whatever their state, or are changed to it."""
        vnfd_id = body.get("vnfdId")
        return vnfd_id is not None and await self._users.exist(vnfd_id)

    async def reference(self, package_id: str) -> PackageRef:
        """Return how commands refer to the package; its ``vnfd_id`` is empty before onboarding. Raises NotFound."""
        return _reference(await self.get(package_id))

    async def usable(self, vnfd_id: str) -> PackageRef:
        """Return the ONBOARDED and ENABLED package of a VNFD. Raises PackageUnusable."""
        found = await self._store.find(COLLECTION, Query(by(vnfdId=vnfd_id), limit=1))
        if not found:
            raise PackageUnusable("vnfdId", f"no VNF package with VNFD {vnfd_id} is onboarded")
        body = found[0].body
        if body["onboardingState"] != "ONBOARDED" or body["operationalState"] != "ENABLED":
            state = f"{body['onboardingState']} and {body['operationalState']}"
            raise PackageUnusable("vnfdId", f"the VNF package {found[0].id} is {state}; ONBOARDED and ENABLED expected")
        return _reference(found[0])

    async def vnfd(self, package_id: str, checksum: str) -> Vnfd:
        """Return the package's descriptor; cached, as one package's bytes never change once ONBOARDED."""
        key = (package_id, checksum)
        if key not in self._vnfds:
            stored = await self._store.get(VNFDS, package_id)
            if stored is None:
                raise NotFound(f"VNF package {package_id} has no VNFD")
            if len(self._vnfds) >= _CACHED_VNFDS:
                self._vnfds.pop(next(iter(self._vnfds)))
            self._vnfds[key] = Vnfd.model_validate(stored.body["vnfd"])
        return self._vnfds[key]

    async def contents(self, stored: Stored) -> PackageContents:
        """Return what lies in the package. Raises PackageBusy unless ONBOARDED."""
        state = stored.body["onboardingState"]
        body = await self._store.get(CONTENTS, stored.id) if state == "ONBOARDED" else None
        if body is None:
            raise PackageBusy(f"the package is {state}, not ONBOARDED")
        return PackageContents.from_document(body.body)

    async def file_names(self, package_id: str) -> frozenset[str]:
        """Return the paths of the package's files."""
        stored = await self._store.get(CONTENTS, package_id)
        return frozenset(stored.body["files"]) if stored is not None else frozenset()

    async def base_hot(self, package_id: str, flavour_id: str) -> BaseHot | None:
        """Return the flavour's Base HOT, None if it has none. Raises PackageRefused."""
        return await self._files.base_hot(package_id, flavour_id)

    async def follow_instances(self, delivery: Delivery) -> Verdict:
        """Write usageState anew when instances came, went or change their VNFD: lists are filtered by it."""
        news = delivery.envelope.data
        vnfd_ids: set[str] = set()
        has_come = isinstance(news, InstanceCreated)
        if isinstance(news, InstanceCreated | InstanceDeleted):
            vnfd_ids = {news.vnfd_id}
        elif isinstance(news, OperationChanged) and news.operation in _CHANGE_THE_VNFD:
            if news.state in TERMINAL:
                used = await self._store.find(COLLECTION, Query(by(usageState="IN_USE")))
                vnfd_ids = {news.vnfd_id, *(str(stored.body["vnfdId"]) for stored in used)}
            elif (next_vnfd := await self._users.next_vnfd(news.vnf_instance_id)) is not None:
                vnfd_ids, has_come = {next_vnfd}, True
        for vnfd_id in vnfd_ids:
            await self._write_usage(vnfd_id, has_come=has_come)
        return Ack()

    async def _write_usage(self, vnfd_id: str, *, has_come: bool) -> None:
        """Look until what is written is what is true: another instance may come or go meanwhile.

        An instance that has come or comes (``has_come``) changes nothing about a package in use; its going is told by
        itself.
        """
        while True:
            found = await self._store.find(COLLECTION, Query(by(vnfdId=vnfd_id), limit=1))
            if not found or (has_come and found[0].body["usageState"] == "IN_USE"):
                return
            usage = usage_state(await self.is_in_use(found[0].body))
            if found[0].body["usageState"] == usage:
                return
            try:
                await self._store.update(COLLECTION, found[0].id, {"usageState": usage}, if_revision=found[0].revision)
            except RevisionConflict:
                continue


def news_of(body: Mapping[str, Any], change: Any, *, is_in_use: bool = False) -> Envelope[Message]:
    """Return the event that tells a package's change."""
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


def last_news(event: Envelope[Message]) -> dict[str, Any]:
    """Return the field by which a package knows, from ONBOARDED on, what was told of it last: the next event follows it."""
    return {"internal/lastNews": EventRef(id=event.id, at=rfc3339(event.time)).model_dump()}


def usage_state(is_in_use: bool) -> str:
    """Return the SOL005 name."""
    return "IN_USE" if is_in_use else "NOT_IN_USE"


def _changed_meanwhile() -> PackageBusy:
    return PackageBusy("the package was changed by other requests meanwhile: try again")


def _reference(stored: Stored) -> PackageRef:
    checksum = stored.body.get("checksum", {}).get("hash", "")
    return PackageRef(package_id=stored.id, vnfd_id=stored.body.get("vnfdId", ""), checksum=checksum)


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
