"""Brings the objects of one volume to what its document says: one look, as far as the region lets it come."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from kubevnfm_kit.error_text import bounded

from kubevnfm_infra_k8s.domain.concurrency import each_of
from kubevnfm_infra_k8s.domain.errors import ObjectRefused
from kubevnfm_infra_k8s.domain.objects import CLAIMS, Body, ObjectKey, Resource, annotations_of, field_at, uid_of
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_infra_k8s.domain.reconciling.news import NotYet, Watched
from kubevnfm_infra_k8s.domain.volumes import binding, bodies
from kubevnfm_infra_k8s.domain.volumes.bodies import VOLUMES, pv_key
from kubevnfm_infra_k8s.domain.volumes.errors import Broken
from kubevnfm_infra_k8s.domain.volumes.events import change_of
from kubevnfm_infra_k8s.domain.volumes.looking import shown
from kubevnfm_infra_k8s.domain.volumes.ports import VolumeRecords
from kubevnfm_infra_k8s.domain.volumes.record import Use, Volume

CLASSES: Final = Resource("storage.k8s.io/v1", "StorageClass", "storageclasses", namespaced=False)
_LATE: Final = "WaitForFirstConsumer"
_CHOSEN_NODE: Final = "volume.kubernetes.io/selected-node"
"""On the claim of a late class: its first pod has come."""

MISSING: Final = 404
"""The status for a claim whose namespace does not exist."""

Problem = NotYet | Broken


@dataclass(frozen=True)
class _Outcome:
    """How far one use of the volume has come."""

    reference: str
    use: Use | None
    """As it is now; None if its claim is gone."""
    problem: Problem | None = None


class Bringing:
    """One look at a volume. Raises NotYet, Broken, RevisionConflict (the document has changed: look again)."""

    def __init__(self, cluster: Cluster, records: VolumeRecords, volume: Volume) -> None:
        self._cluster, self._records, self.volume = cluster, records, volume
        # One that leaves gets the change that it causes too.
        self._leaving = [each.reference for each in volume.uses if each.is_leaving]

    async def bring(self) -> None:
        """Have what is wanted; the document says so at the end. A user that is stuck does not stop the others."""
        own = next((each for each in self.volume.uses if not each.pv), None)
        first = await self._tried(own, self._own)
        others = await each_of(
            [each for each in self.volume.uses if each.pv], lambda use: self._tried(use, self._further)
        )
        changed = self.volume
        for each in (first, *others):
            if changed.use_of(each.reference) is not None:
                changed = changed.without_use(each.reference) if each.use is None else changed.with_use(each.use)
        await self._save(changed)
        _raise([each.problem for each in (first, *others) if each.problem is not None])
        phase, detail = await shown(self._cluster, self.volume)
        reached = {"reached": self.volume.wanted, "former_labels": (), "phase": phase, "phase_detail": bounded(detail)}
        await self._save(self.volume.model_copy(update=reached))

    async def _tried(self, use: Use | None, do: Callable[[Use | None], Awaitable[Use | None]]) -> _Outcome:
        reference = "" if use is None else use.reference
        problem: Problem
        try:
            return _Outcome(reference, await do(use))
        except (NotYet, Broken) as found:
            problem = found
        except ObjectRefused as refusal:
            # A namespace may still come.
            problem = (NotYet if refusal.http_status == MISSING else Broken)(str(refusal))
        present = self.volume.use_of(reference)
        if present is not None:
            present = present.model_copy(update={"claim_uid": "", "detail": bounded(str(problem))})
        return _Outcome(reference, present, problem)

    async def _own(self, use: Use | None) -> Use | None:
        """Have the volume's PersistentVolume bound to the claim of its user, or reserved while it has none."""
        if use is not None and use.is_leaving:
            await self._left(use)
            use = None
        pv = await self._pv(use)
        if use is not None and pv is not None:
            return await self._bound(pv, use)
        await binding.without_claim(self._cluster, self.volume, self.volume.reserved_claim)
        if pv is not None:
            await binding.reserved_for(self._cluster, self.volume, pv, self.volume.reserved_claim)
        return None

    async def _left(self, use: Use) -> None:
        """Have no claim of a user that leaves, and forget it. The PersistentVolume that the class has made for the claim is kept."""
        if self.volume.storage_class is not None and not self.volume.pv_uid:
            with suppress(Broken):  # then there is nothing to keep
                await self._pv(use)
        await binding.without_claim(self._cluster, self.volume, use.claim)
        await self._save(self.volume.without_use(use.reference))

    async def _further(self, use: Use | None) -> Use | None:
        """Have a PersistentVolume of its own, bound to its claim, for a further user; none of them once it leaves."""
        assert use is not None
        if use.is_leaving:
            await binding.without_claim(self._cluster, self.volume, use.claim)
            await binding.without_pv(self._cluster, self.volume, use.pv)
            return None
        pv = await binding.made_pv(self._cluster, self.volume, use.pv)
        return await self._bound(await self._marked(pv), use)

    async def _bound(self, pv: Body, use: Use) -> Use:
        claim = await binding.bound(self._cluster, self.volume, pv, use.claim)
        return use.model_copy(update={"claim_uid": uid_of(claim), "waits_for_consumer": False, "detail": ""})

    async def _pv(self, use: Use | None) -> Body | None:
        """Return the volume's PersistentVolume; None if its class makes it when a VNF comes."""
        volume = self.volume
        if volume.source is not None:
            pv = await binding.made_pv(self._cluster, volume, volume.pv)
        elif volume.pv:
            pv = await self._provisioned(volume.pv)
        else:
            name = await self._name_of_provisioned(use)
            if name is None:
                return None
            # Its name is stored before anything is changed on it.
            await self._save(volume.model_copy(update={"pv": name}))
            pv = await self._provisioned(name)
        pv = await self._marked(pv)
        await self._save(self.volume.model_copy(update={"pv_uid": uid_of(pv), "pv_source": bodies.source_in(pv)}))
        return pv

    async def _marked(self, pv: Body) -> Body:
        """Return a PersistentVolume that survives its claim and has the labels of the volume."""
        if bodies.is_kept(self.volume, pv):
            return pv
        key = pv_key(str(pv["metadata"]["name"]))
        return await self._cluster.patch(VOLUMES, key, bodies.patch_to_keep(self.volume)) or pv

    async def _provisioned(self, name: str) -> Body:
        pv = await self._cluster.get(VOLUMES, pv_key(name))
        if pv is None:
            raise Broken(f"PersistentVolume {name} was deleted by another party: its data are out of reach")
        if self.volume.pv_uid and not bodies.is_of(self.volume, pv):
            raise Broken(f"PersistentVolume {name} was replaced by another party: its data are out of reach")
        return pv

    async def _name_of_provisioned(self, use: Use | None) -> str | None:
        """Return the name of the PersistentVolume that the class has made; None if no claim has asked for it yet."""
        volume = self.volume
        if use is not None and use.is_leaving:
            return await binding.volume_of(self._cluster, volume, use.claim)
        key = ObjectKey(CLASSES.api_version, CLASSES.kind, "", str(volume.storage_class))
        found = await self._cluster.get(CLASSES, key)
        if found is None:
            raise Broken(f"the region has no StorageClass {volume.storage_class}")
        is_late = found.get("volumeBindingMode") == _LATE
        if is_late and use is None:
            return None
        key = use.claim if is_late and use is not None else volume.reserved_claim
        claim = await binding.own_claim(self._cluster, volume, key, bodies.provisioning_claim(volume, key))
        name = field_at(claim, "spec", "volumeName")
        if name and field_at(claim, "status", "phase") == "Bound":
            return str(name)
        if is_late and use is not None:
            waits = _CHOSEN_NODE not in annotations_of(claim)
            await self._save(volume.with_use(use.model_copy(update={"waits_for_consumer": waits})))
        why = await binding.why_unbound(self._cluster, claim, key)
        raise NotYet(why, Watched.from_body(CLAIMS, key, claim))

    async def _save(self, changed: Volume) -> None:
        if changed.document() != self.volume.document():
            self.volume = await self._records.replace(changed, change_of(self.volume, changed, self._leaving))


def _raise(problems: Sequence[Problem]) -> None:
    """Raise the first problem that the work cannot change, or the first one, with the objects that all of them wait for."""
    if problems:
        worst = next((each for each in problems if isinstance(each, Broken)), problems[0])
        raise type(worst)(str(worst), *(one for each in problems for one in each.watched))
