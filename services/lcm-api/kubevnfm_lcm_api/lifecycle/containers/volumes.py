"""The persistent volumes of a VNF of containers: what a request names, and its checks (multicloud.md MC-101, MC-103)."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence

from kubevnfm_clients.multicloud.volumes import PersistentVolume, PersistentVolumes, VolumeMountRequest
from kubevnfm_events.objects import ClaimedVolume
from kubevnfm_kit.errors import ConflictingInput, NotFound, Unprocessable

from kubevnfm_lcm_api.lifecycle.core.faults import Faults


async def requested_volumes(
    volumes: PersistentVolumes,
    wanted: Sequence[VolumeMountRequest],
    faults: Faults,
    *,
    vim_id: str | None,
    used: Sequence[ClaimedVolume] = (),
) -> tuple[ClaimedVolume, ...]:
    """Return the volumes that a request names, with what its workloads need to know of them.

    ``used``: those that the VNF uses already. A claim is that of one volume as long as the VNF exists: data of another one
    would appear under its name while pods still use the first.
    All wrong places of the request go to the faults; then the result is good for further checks alone.
    """
    wrong: list[tuple[str, str]] = []
    taken: list[tuple[str, str]] = []
    found: list[ClaimedVolume] = []
    ids: set[str] = set()
    names: set[str] = set()
    present = await _present(volumes, {each.persistent_volume_id for each in wanted})
    for index, each in enumerate(wanted):
        place, named = f"volumes[{index}]/persistent_volume_id", each.persistent_volume_id
        if each.claim_name in names:
            wrong.append((f"volumes[{index}]/claim_name", f"each name once expected, {each.claim_name} is given twice"))
        names.add(each.claim_name)
        if named in ids:
            wrong.append((place, f"each volume once expected, {named} is given twice"))
            found.append(ClaimedVolume(persistent_volume_id=named, claim_name=each.claim_name))
            continue
        ids.add(named)
        earlier = next((one for one in used if named == one.persistent_volume_id), None)
        owner = next((one for one in used if each.claim_name == one.claim_name), None)
        if earlier is not owner:
            reason = (
                f"{earlier.claim_name}, by which the VNF uses the volume, expected: it is not renamed"
                if earlier is not None
                else f"another name expected: {each.claim_name} is the claim of a volume that the VNF uses"
            )
            wrong.append((f"volumes[{index}]/claim_name", reason))
        elif earlier is not None:
            found.append(earlier)
            continue
        volume = present[named]
        if isinstance(volume, NotFound):
            wrong.append((place, str(volume)))
            found.append(ClaimedVolume(persistent_volume_id=named, claim_name=each.claim_name))
            continue
        if volume.vim_id != vim_id:
            wrong.append((place, f"{volume.name} is in cloud region {volume.cloud_region_id}, not in that of the VNF"))
        elif volume.refusal and earlier is None:
            taken.append((place, f"persistent volume {volume.name} cannot be used now: {volume.refusal}"))
        found.append(
            ClaimedVolume(persistent_volume_id=named, claim_name=each.claim_name, access_modes=volume.access_modes)
        )
    with faults.noted():
        if wrong:
            raise Unprocessable(*wrong[0], *wrong[1:])
    with faults.noted():
        if taken:
            raise ConflictingInput(*taken[0], *taken[1:])
    return tuple(found)


async def _present(volumes: PersistentVolumes, ids: Collection[str]) -> Mapping[str, PersistentVolume | NotFound]:
    """Return the volumes of these ids, or why there is none: all at once, since each may wait for a slow region."""

    async def one(volume_id: str) -> PersistentVolume | NotFound:
        try:
            return await volumes.get(volume_id)
        except NotFound as error:
            return error

    return dict(zip(ids, await asyncio.gather(*map(one, ids)), strict=True))
