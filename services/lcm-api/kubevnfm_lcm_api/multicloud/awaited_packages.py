"""Continues with VNFs whose package was not held: has it fetched, then plans the operation with it (multicloud.md MC-122)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from kubevnfm_clients.multicloud.regions import CloudRegions
from kubevnfm_events.lcm import AwaitPackage, PackageAwaited
from kubevnfm_events.mgmt import TaskProgressed
from kubevnfm_kit.errors import InvalidInput, VnfmError
from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_worker.backends import Backends
from kubevnfm_worker.outcome import Done, NotYet, Outcome, StepContext

from kubevnfm_lcm_api.http.bodies import json_of
from kubevnfm_lcm_api.http.documents import json_pointer
from kubevnfm_lcm_api.lifecycle.containers.awaiting import AwaitPackageDraft
from kubevnfm_lcm_api.lifecycle.core import occurrence as occurrences
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord
from kubevnfm_lcm_api.lifecycle.core.occurrence import OccurrenceRecord
from kubevnfm_lcm_api.lifecycle.core.replanning import Replanning
from kubevnfm_lcm_api.lifecycle.core.revision import Origin
from kubevnfm_lcm_api.lifecycle.core.sequences import SEQUENCES
from kubevnfm_lcm_api.lifecycle.requests import bring_up
from kubevnfm_lcm_api.lifecycle.requests.services import RequestServices
from kubevnfm_lcm_api.multicloud import vnf_requests
from kubevnfm_lcm_api.multicloud.bodies import parsed
from kubevnfm_lcm_api.multicloud.vnf_types import VnfInstanceRequest

_TASK: Final = "fetch_package"
_FIRST_LOOK_S: Final = 0.1
_LOOK_S: Final = 1.0
_WORDS: Final = {"FETCHING": "is being fetched", "CHECKING": "is being checked"}


class RequestUnfit(VnfmError, code="unprocessable", title="Unprocessable request"):
    """The request does not fit its package; the text has a JSON Pointer to each wrong member."""

    def __init__(self, error: InvalidInput) -> None:
        super().__init__("; ".join(f"{json_pointer(name)}: {reason}" for name, reason in error.places))


class PackageUnfetched(VnfmError, code="package-not-fetched", title="VNF package not fetched", status=502):
    """The package cannot be fetched, or is refused; the text has a JSON Pointer to the member that names it."""

    def __init__(self, place: str, error: VnfmError) -> None:
        super().__init__(f"{json_pointer(place)}: {error}")


@dataclass(frozen=True)
class AwaitedPackages:
    """The handler of the step that waits for a package."""

    on: RequestServices
    regions: CloudRegions
    backends: Backends

    async def await_package(self, command: AwaitPackage, context: StepContext) -> Outcome:
        """Have the package fetched; once it is there, check the request against it and plan the operation.

        It runs again and again while the package is fetched by another command, which all operations that wait for it share.
        """
        done = Done(PackageAwaited(vnf_instance_id=command.vnf_instance_id))
        stored = await self.backends.store.get(occurrences.COLLECTION, context.operation_id)
        record = None if stored is None else OccurrenceRecord.from_document(stored.body)
        step = None if record is None else record.step(context.step_id)
        # Planned by an earlier delivery; or the operation has ended meanwhile.
        if record is None or step is None or record.plan != AwaitPackageDraft.plan:
            return done
        draft = SEQUENCES.draft(record.plan, record.draft)
        assert isinstance(draft, AwaitPackageDraft)
        try:
            shown = await self.on.fetches.ensure(draft.csar_id, draft.source, failed_since=step.started_at)
        except VnfmError as error:
            if error.retryable:
                raise
            raise PackageUnfetched(draft.place, error) from error
        word = _WORDS.get(str(shown["status"]))
        if word is not None:
            await context.publish(_progress(draft.csar_id, word, shown))
            return NotYet(self._look_s(step.started_at))
        try:
            await self._plan(draft, record)
        except InvalidInput as error:
            raise RequestUnfit(error) from error
        return done

    def _look_s(self, started_at: str | None) -> float:
        """Return when to look again: soon at first, as most packages are there at once, and then after half of the time until now."""
        if started_at is None:
            return _FIRST_LOOK_S
        age = self.backends.clock.now() - datetime.fromisoformat(started_at)
        return min(max(_FIRST_LOOK_S, age.total_seconds() / 2), _LOOK_S)

    async def _plan(self, draft: AwaitPackageDraft, record: OccurrenceRecord) -> None:
        """Put the instantiate of the package in the place of the wait. Raises Unprocessable, Conflict, RegionUnavailable."""
        text = draft.body.reveal(self.on.ring).encode()
        body = await asyncio.to_thread(json_of, text, ("values",))
        wanted = parsed(VnfInstanceRequest, body)
        stored = await self.on.instances.get(draft.vnf_instance_id)
        waiting = InstanceRecord.from_document(stored.body)
        place = waiting.internals.multicloud
        assert place is not None
        region = await vnf_requests.region_of(self.regions, place.cloud_region_id)
        origin = Origin(draft.by, "create", occurrence_id=record.occ.id)
        request, package, asked = await vnf_requests.asked_of(self.on, self.regions, region, wanted, body, origin)
        protected = region.protected_namespaces
        instance, found = await vnf_requests.pointed(
            bring_up.prepared(
                self.on, request, package, place, asked, protected_namespaces=protected, instance_id=waiting.vnf.id
            )
        )
        planned, claims = await vnf_requests.pointed(
            self.on.acceptance.planned(
                instance, found.draft, asked, flavour=found.flavour, secret_names=found.secret_names
            )
        )
        instance = instance.model_copy(update={"created_at": waiting.created_at})
        replanning = Replanning(self.backends.store, self.on.ring)
        await replanning.write_instance(instance, record.occ.id, claims)
        # From here on the package is in use; one that was removed or disabled before is not.
        await vnf_requests.pointed(self.on.packages.usable(package.vnfd_id))
        await self.on.fetches.note_use(package.vnfd_id)
        await replanning.write_occurrence(planned, waiting_plan=AwaitPackageDraft.plan)


def _progress(csar_id: str, word: str, shown: JsonMapping) -> TaskProgressed:
    done, total = shown.get("done_bytes"), shown.get("total_bytes")
    of = "" if done is None else f": {done} bytes" if total is None else f": {done} of {total} bytes"
    return TaskProgressed(
        task=_TASK, state="progressed", message=f"VNF package {csar_id} {word}{of}", done=done, total=total
    )
