"""Virtual links as their users see them: each call is one write of the link's document, and wakes the work on it (ADR 14)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Protocol

from kubevnfm_clients.multicloud.links import VNF_REFERENCE, CreatedLink, LinkRequest, VirtualLink
from kubevnfm_clients.multicloud.networks import AttachRequest
from kubevnfm_clients.multicloud.suspension import Suspension
from kubevnfm_clients.multicloud.types import Page
from kubevnfm_clients.ports import VimDirectory
from kubevnfm_events import VimConnection
from kubevnfm_events.objects import NetworkAttachment
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.errors import (
    BeingRemoved,
    Conflict,
    InUse,
    NotFound,
    OutsideUnavailable,
    PreconditionFailed,
    Unprocessable,
)
from kubevnfm_kit.ids import new_id
from kubevnfm_store.port import AlreadyExists
from kubevnfm_store.races import repeat_lost_writes

from kubevnfm_infra_k8s.domain.links.attaching import attachments
from kubevnfm_infra_k8s.domain.links.checking import (
    check_free,
    check_namespaces,
    check_places,
    check_primary,
    check_same,
    check_served,
)
from kubevnfm_infra_k8s.domain.links.ports import LinkRecords
from kubevnfm_infra_k8s.domain.links.record import MOST_HOLDERS, Link
from kubevnfm_infra_k8s.domain.links.spec import LinkSpec, Places
from kubevnfm_infra_k8s.domain.links.types import read_spec
from kubevnfm_infra_k8s.domain.ports import Clusters
from kubevnfm_infra_k8s.domain.reconciling.permitted import check_permitted
from kubevnfm_infra_k8s.domain.reconciling.ports import Region, Regions, Turns

_TURN_S: Final = 20.0
"""How long a creation waits for another one in the same region."""


class LinkWork(Protocol):
    """The work that brings links to what their documents say."""

    def wake(self, link_id: str, /) -> None:
        """Have the link looked at now."""
        ...

    async def decided(self, link_id: str, /, *, within_s: float) -> Link | None:
        """Return the link once waiting would not change it, or after this time; None if it is gone."""
        ...


@dataclass(frozen=True)
class VirtualLinks:
    """The owner of links: what `adapters.http` serves as `kubevnfm_clients.multicloud.links.VirtualLinks`."""

    records: LinkRecords
    turns: Turns
    regions: Regions
    vims: VimDirectory
    clusters: Clusters
    work: LinkWork
    clock: Clock

    async def create(self, wanted: LinkRequest, *, wait_s: float) -> CreatedLink:
        spec = read_spec(wanted.type, wanted.spec)
        try:
            region = await self.regions.region(wanted.cloud_region_id)
        except NotFound as error:
            raise Unprocessable("cloud_region_id", str(error)) from error
        named = [(f"spec/{place}", each) for place, each in spec.named_namespaces()]
        check_permitted([*_places(wanted.namespaces or ()), *named], region)
        reference = wanted.reference or f"ref-{new_id()}"
        link, is_new = await self._created(wanted, spec, region, reference)
        self.work.wake(link.id)
        present = await self.work.decided(link.id, within_s=wait_s)
        return CreatedLink(link=await self._shown(present or link), reference=reference, is_new=is_new)

    async def find(self, filters: Mapping[str, str], *, limit: int, after: str | None = None) -> Page[VirtualLink]:
        found = await self.records.page(filters, limit=limit + 1, after=after)
        shown = await self._all_shown(found[:limit])
        return Page(shown, shown[-1].id if len(found) > limit else None)

    async def get(self, link_id: str, *, wait_s: float = 0.0) -> VirtualLink:
        if wait_s:
            await self.work.decided(link_id, within_s=wait_s)
        return await self._shown(await self._link(link_id))

    async def attach(self, asked: AttachRequest) -> tuple[NetworkAttachment, ...]:
        """Return the interfaces of an instance with what its pods need to know of the links; nothing is taken.

        Raises: Unprocessable, ConflictingInput.
        """
        ids = dict.fromkeys(each.virtual_link_id for each in asked.networks)
        found = {each: link for each in ids if (link := await self.records.get(each)) is not None}
        made = await asyncio.to_thread(
            attachments,
            asked.networks,
            found,
            vim_id=asked.vim_id,
            reference=asked.reference,
            namespace=asked.namespace,
        )
        for index, each in enumerate(asked.networks):
            spec = found[each.virtual_link_id].read_spec()
            try:
                await self._check_primary(spec, asked.vim_id, [asked.namespace] if asked.namespace else [])
            except Unprocessable as error:
                raise Unprocessable(f"networks[{index}]/virtual_link_id", error.places[0][1]) from error
        return made

    async def hold(
        self,
        link_id: str,
        reference: str,
        namespaces: Sequence[str] | None,
        *,
        addresses: Sequence[str] = (),
        wait_s: float = 0.0,
    ) -> VirtualLink:
        """Have the reference among those of the link.

        ``namespaces``: None for those that it has; ``addresses``: those that its user fixes.

        Raises NotFound, BeingRemoved, Unprocessable, Conflict.
        """
        link = await self._link(link_id)
        if namespaces:
            check_permitted(_places(namespaces), await self.regions.region(link.cloud_region_id))
        await self._check_primary(link.read_spec(), link.vim_id, namespaces or ())
        link = await self._taken(link_id, reference, namespaces, addresses)
        self.work.wake(link_id)
        present = await self.work.decided(link_id, within_s=wait_s)
        return await self._shown(present or link)

    async def release(
        self, link_id: str, reference: str | None, *, wait_s: float = 0.0, if_revision: int | None = None
    ) -> VirtualLink | None:
        """Remove a reference, or with None the link that its creator alone uses; None: the link is gone.

        Raises: NotFound, InUse, Conflict.
        """
        link = await self._given_back(link_id, reference, if_revision)
        self.work.wake(link_id)
        # A caller waits for the end of a removal only: what is left of a link is its other users' business.
        if link.is_removed:
            present = await self.work.decided(link_id, within_s=wait_s)
            return None if present is None else await self._shown(present)
        return await self._shown(link)

    async def _link(self, link_id: str) -> Link:
        link = await self.records.get(link_id)
        if link is None:
            raise NotFound(f"virtual link {link_id} does not exist")
        return link

    async def _created(self, wanted: LinkRequest, spec: LinkSpec, region: Region, reference: str) -> tuple[Link, bool]:
        """Return the link of this name with the reference, and whether it is new."""
        there = await self.records.named(region.vim_id, wanted.name)
        if there is None:
            suspension = (await self.regions.suspensions()).get(region.vim_id)
            if suspension is not None:
                raise suspension.refusal(f"cloud region {wanted.cloud_region_id}")
            await self._check(wanted, spec, region)
            # Two creations at once must not both find a subnet free.
            async with self.turns.held(f"region/{region.vim_id}", within_s=_TURN_S):
                there = await self.records.named(region.vim_id, wanted.name)
                if there is None:
                    others = await self.records.in_region(region.vim_id)
                    # A region can have thousands of links.
                    await asyncio.to_thread(check_free, wanted, spec, others)
                    now = rfc3339(self.clock.now())
                    new = Link.from_request(wanted, region, id=new_id(), reference=reference, now=now)
                    try:
                        return await self.records.insert(new), True
                    except AlreadyExists:  # the turn has ended: this process stood still for long
                        there = await self.records.named(region.vim_id, wanted.name)
        if there is None:
            raise BeingRemoved(f"virtual link {wanted.name} was removed at the same time: try again")
        check_same(wanted, there)
        await self._check_primary(spec, region.vim_id, wanted.namespaces or ())
        return await self._taken(there.id, reference, wanted.namespaces), False

    async def _check(self, wanted: LinkRequest, spec: LinkSpec, region: Region) -> None:
        namespaces = wanted.namespaces or ()
        async with self.clusters.cluster(await self.vims.connection(VimConnection(vim_id=region.vim_id))) as cluster:
            await check_served(cluster, wanted.cloud_region_id, spec, region.sriov_namespace)
            places = Places(namespaces, region.links_namespace, region.sriov_namespace)
            await check_places(cluster, spec, wanted.name, places)
            check_namespaces(spec, sorted(set(namespaces)))
            await check_primary(cluster, namespaces if spec.needs_primary else ())

    async def _check_primary(self, spec: LinkSpec, vim_id: str, namespaces: Sequence[str]) -> None:
        if spec.needs_primary and namespaces:
            async with self.clusters.cluster(await self.vims.connection(VimConnection(vim_id=vim_id))) as cluster:
                await check_primary(cluster, namespaces)

    async def _permitted(self, link: Link, changed: Link, reference: str | None) -> Link:
        """Return the link as it may be written. In a suspended region users are counted; what needs other objects is refused.

        An operation of a VNF was accepted before: its users are stored, and the objects follow when the region is resumed.
        """
        if (reference or "").startswith(VNF_REFERENCE):
            return changed
        suspension = (await self.regions.suspensions()).get(link.vim_id)
        if suspension is None:
            return changed
        counted = link.counted_only(changed)
        if counted is None:
            raise suspension.refusal(f"cloud region {link.cloud_region_id}")
        return counted

    async def _shown(self, link: Link) -> VirtualLink:
        (shown,) = await self._all_shown([link])
        return shown

    async def _all_shown(self, links: Sequence[Link]) -> list[VirtualLink]:
        suspensions: Mapping[str, Suspension] = {}
        # The documents of this service can be read while vim-registry is away.
        with suppress(OutsideUnavailable):
            suspensions = await self.regions.suspensions()
        return [link.shown().model_copy(update={"suspended": suspensions.get(link.vim_id)}) for link in links]

    @repeat_lost_writes
    async def _taken(
        self, link_id: str, reference: str, namespaces: Sequence[str] | None, addresses: Sequence[str] = ()
    ) -> Link:
        link = await self._link(link_id)
        if link.is_removed:
            raise BeingRemoved(f"virtual link {link.name} is being removed: try again once it is gone")
        if reference not in link.references and len(link.holders) >= MOST_HOLDERS:
            raise Conflict(f"virtual link {link.name} has {MOST_HOLDERS} references, which is the most")
        wanted = link.namespaces_of(reference) if namespaces is None else namespaces
        for address in addresses:
            if (holder := link.holder_of_address(address, other_than=reference)) is not None:
                raise Conflict(f"{address} of virtual link {link.name} is in use by {holder}")
        changed = link.with_holder(reference, wanted, addresses=addresses, now=rfc3339(self.clock.now()))
        check_namespaces(link.read_spec(), changed.namespaces)
        return await self._write(await self._permitted(link, changed, reference))

    @repeat_lost_writes
    async def _given_back(self, link_id: str, reference: str | None, if_revision: int | None) -> Link:
        link = await self._link(link_id)
        if if_revision is not None and link.revision != if_revision:
            raise PreconditionFailed("the virtual link has changed since it was read")
        if link.is_removed:
            return link
        now = rfc3339(self.clock.now())
        if reference is None:
            if set(link.references) - {link.creator}:
                raise InUse(f"virtual link {link.name} is in use", link.references)
            return await self._write(await self._permitted(link, link.removing(now), None))
        if reference not in link.references:
            raise NotFound(f"{reference} does not hold virtual link {link.name}")
        changed = link.without_holder(reference, now=now)
        return await self._write(await self._permitted(link, changed, reference))

    async def _write(self, link: Link) -> Link:
        return await self.records.replace(link.model_copy(update={"updated_at": rfc3339(self.clock.now())}))


def _places(namespaces: Sequence[str]) -> Sequence[tuple[str, str]]:
    return [(f"namespaces[{index}]", each) for index, each in enumerate(namespaces)]
