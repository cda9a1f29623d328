"""The common part of PM jobs and thresholds: made after the test of their callback, shown, changed, deleted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.error_text import bounded
from kubevnfm_kit.errors import NotFound, Unprocessable, VnfmError
from kubevnfm_kit.ids import new_id
from kubevnfm_kit.json_types import JsonMapping, JsonObject
from kubevnfm_secrets import KeyRing
from kubevnfm_sol.performance import ObjectType
from kubevnfm_sol.resources import InstantiatedVnfInfo
from kubevnfm_store.port import DocumentStore, RevisionConflict
from kubevnfm_store.query import AllOf, Compare, Op, Stored

from kubevnfm_lcm_api.lifecycle.core.instance import COLLECTION as INSTANCES
from kubevnfm_lcm_api.notifications.own_callbacks import ADDRESS, OwnCallbacks
from kubevnfm_lcm_api.performance.domain.measured_objects import Objects, measured
from kubevnfm_lcm_api.performance.domain.metrics import Wanted
from kubevnfm_lcm_api.performance.domain.monitoring import read_monitoring
from kubevnfm_lcm_api.performance.domain.requests import CallbackPatch, CreatePmJobRequest, CreateThresholdRequest
from kubevnfm_lcm_api.performance.pod_sampling import PodSampling
from kubevnfm_lcm_api.performance.sources import Sources

SHOWN: Final = "internal/shown"
"""The path of the number of changes that answers show: measuring alone does not change an entity tag."""
ERROR: Final = "internal/error"
"""The path of the reason why the last measurement gave no values, or not all; absent: it gave all."""
SAMPLED: Final = "internal/sampled"
"""The path of the samples of pods in periods that are not measured yet (`domain.tallies`)."""
_LONGEST_ERROR: Final = 1000
_ADDRESS_NUMBER: Final = "internal/address"
_POINTS: Final = ("VnfIntCp", "VnfExtCp")


@dataclass(frozen=True)
class Shared:
    """The parts that both kinds of resources need."""

    store: DocumentStore
    clock: Clock
    ring: KeyRing
    callbacks: OwnCallbacks
    sources: Sources
    pods: PodSampling
    most: int
    """The most resources of each kind."""


@dataclass(frozen=True)
class Resources:
    """The resources of one kind."""

    on: Shared
    collection: str
    name: str
    """In errors."""

    async def drafted(
        self,
        request: CreatePmJobRequest | CreateThresholdRequest,
        instance_ids: Sequence[str],
        places: Mapping[str, str],
        wanted: Sequence[Wanted],
    ) -> JsonObject:
        """Return the document to store of a request, with its callback tested. Raises InvalidInput, Unprocessable, CallbackRefused.

        ``places``: where the request has the metrics, by name.
        """
        monitoring = read_monitoring(request.metadata)
        place = "objectInstanceIds" if isinstance(request, CreatePmJobRequest) else "objectInstanceId"
        infos = await read_instances(self.on.store, instance_ids)
        for index, each in enumerate(instance_ids):
            if each not in infos:
                where = f"{place}[{index}]" if isinstance(request, CreatePmJobRequest) else place
                raise Unprocessable(where, "no such VNF instance")
        for index, sub_id in enumerate(request.sub_object_instance_ids or ()):
            if not _has_part(request.object_type, instance_ids[0], infos[instance_ids[0]], sub_id):
                reason = f"no such part of the VNF instance for objectType {request.object_type}"
                raise Unprocessable(f"subObjectInstanceIds[{index}]", reason)
        internal: JsonObject = {"sources": self.on.sources.chosen(monitoring)}
        if self.on.sources.is_sampled(internal):
            objects = Objects(request.object_type, instance_ids, request.sub_object_instance_ids or (), wanted)
            period_s = request.criteria.collection_period if isinstance(request, CreatePmJobRequest) else None
            await self.on.pods.check(objects, places, period_s)
        if await self.on.store.count(self.collection, AllOf(), limit=self.on.most) >= self.on.most:
            raise Unprocessable("", f"there are {self.on.most} {self.name}s, the most (setting pm_most_jobs)")
        address = await self.on.callbacks.checked(request.callback_uri, request.authentication)
        first = await self.on.store.get(INSTANCES, instance_ids[0])
        name = None if first is None else first.body.get("vnfInstanceName")
        now = rfc3339(self.on.clock.now())
        document = request.document(self.on.ring)
        metadata = {"metadata": monitoring.metadata} if monitoring.metadata else {}
        return {
            **{name: value for name, value in document.items() if name != "metadata"},
            **metadata,
            **address,
            "id": new_id(),
            "createdAt": now,
            "internal": {
                "updatedAt": now,
                "shown": 1,
                "address": 1,
                **internal,
                **({"vnfInstanceName": name} if name else {}),
            },
        }

    async def get(self, resource_id: str) -> Stored:
        """Return one. Raises NotFound."""
        stored = await self.find(resource_id)
        if stored is None:
            raise NotFound(f"{self.name} {resource_id} does not exist")
        return stored

    async def find(self, resource_id: str) -> Stored | None:
        """Return one; None: there is none."""
        return await self.on.store.get(self.collection, resource_id)

    async def modify(self, resource_id: str, patch: CallbackPatch, *, check: Callable[[Stored], None]) -> Stored:
        """Change where notifications go; ``check`` raises if the caller has seen another state.

        Raises NotFound, PreconditionFailed, CallbackRefused, InvalidInput.
        """
        while True:
            stored = await self.get(resource_id)
            check(stored)
            internal = stored.body["internal"]
            address = await self._patched(stored, patch)
            own = {
                "internal/updatedAt": rfc3339(self.on.clock.now()),
                SHOWN: internal["shown"] + 1,
                _ADDRESS_NUMBER: internal["address"] + 1,
            }
            unset = [name for name in ADDRESS if name not in address]
            # Not by the revision, which measuring changes too.
            unchanged = Compare(SHOWN, Op.EQ, [internal["shown"]])
            try:
                changed = await self.on.store.update(
                    self.collection, resource_id, {**address, **own}, unset=unset, where=unchanged
                )
            except RevisionConflict:
                continue
            await self.follow(changed)
            return changed

    async def _patched(self, stored: Stored, patch: CallbackPatch) -> JsonObject:
        """Return the attributes of the callback after a change; what is not named stays, also if it is not shown."""
        present = {name: stored.body[name] for name in ADDRESS if name in stored.body}
        wants_uri = "callback_uri" in patch.model_fields_set
        wants_login = "authentication" in patch.model_fields_set
        return await self.on.callbacks.changed(
            present,
            uri=patch.callback_uri if wants_uri else None,
            authentication=patch.authentication,
            keeps_authentication=not wants_login,
        )

    async def follow(self, stored: Stored) -> None:
        """Have notifications go where the resource says."""
        await self.on.callbacks.follow(stored.id, stored.body, stored.body["internal"]["address"])

    async def exists(self, resource_id: str) -> bool:
        """Return whether there is such a resource."""
        return await self.find(resource_id) is not None

    async def delete(self, resource_id: str) -> None:
        """Delete it with its callback. Raises NotFound."""
        if not await self.on.store.delete(self.collection, resource_id):
            raise NotFound(f"{self.name} {resource_id} does not exist")
        await self.on.callbacks.remove(resource_id)


async def read_instances(store: DocumentStore, instance_ids: Sequence[str]) -> Mapping[str, InstantiatedVnfInfo | None]:
    """Return the instances that exist, by id; None for one that is not instantiated."""
    found = await store.get_many(INSTANCES, instance_ids)
    return {
        each.id: InstantiatedVnfInfo.model_validate(info)
        if (info := each.body.get("instantiatedVnfInfo")) is not None
        else None
        for each in found
    }


def with_error(internal: JsonMapping, error: str, now: datetime) -> JsonObject:
    """Return the fields that show a new error, or that there is none any more; none if that is shown already."""
    if error == internal.get("error", ""):
        return {}
    return {ERROR: error, SHOWN: internal["shown"] + 1, "internal/updatedAt": rfc3339(now)}


def away_error(internal: JsonMapping, error: VnfmError, now: datetime) -> str | None:
    """Return the error to show of a measurer that does not answer: that of the first try; None: a later one, whose reason may differ."""
    if internal.get("failures"):
        return None
    return bounded(f"No answer since {rfc3339(now)}: {error}", _LONGEST_ERROR)


def _has_part(object_type: ObjectType, instance_id: str, info: InstantiatedVnfInfo | None, sub_id: str) -> bool:
    if info is None:
        return False
    found = measured(object_type, [(instance_id, info)])
    if object_type not in _POINTS:
        return any(each.id == sub_id for each in found.vnfcs)
    # Which interfaces pods have is only known where they are measured.
    return any(each.id == sub_id for each in found.points) or any(each.pod is not None for each in found.vnfcs)
