"""The virtual links of VNF instances: references that an instance takes and gives back (multicloud.md MC-086)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from kubevnfm_clients.multicloud.links import VNF_REFERENCE
from kubevnfm_events.objects import NetworkAttachment
from kubevnfm_kit.errors import NotFound

from kubevnfm_infra_k8s.domain.errors import LinkNotReady
from kubevnfm_infra_k8s.domain.links.attaching import address_of
from kubevnfm_infra_k8s.domain.links.owner import VirtualLinks
from kubevnfm_infra_k8s.domain.objects import ObjectKey
from kubevnfm_infra_k8s.domain.ports import LinkUse


@dataclass(frozen=True)
class InstanceLinks:
    """`domain.ports.LinkUses`: each call may be repeated, also after a crash in the middle."""

    links: VirtualLinks

    async def hold(self, vnf_instance_id: str, uses: Mapping[str, LinkUse]) -> None:
        reference = f"{VNF_REFERENCE}{vnf_instance_id}"
        for link_id, use in uses.items():
            link = await self.links.records.get(link_id)
            held = () if link is None else link.namespaces_of(reference)
            namespaces = None if use.namespaces is None else sorted({*held, *use.namespaces})
            await self.links.hold(link_id, reference, namespaces, addresses=use.addresses)

    async def keep(self, vnf_instance_id: str, uses: Mapping[str, LinkUse]) -> Sequence[str]:
        reference = f"{VNF_REFERENCE}{vnf_instance_id}"
        released: list[str] = []
        for link in await self.links.records.held_by(reference):
            if link.id not in uses:
                # Another process has released it meanwhile, or the link is being removed without it.
                with suppress(NotFound):
                    await self.links.release(link.id, reference)
                released.append(link.id)
            elif set(link.addresses_of(reference)) != set(uses[link.id].addresses):
                await self.hold(vnf_instance_id, {link.id: uses[link.id]})
        return released

    async def leave(self, vnf_instance_id: str, namespaces: Sequence[str], *, vim_id: str, within_s: float) -> None:
        await self.keep(vnf_instance_id, {})
        # Also those that a worker has released that was killed, or another instance a moment ago.
        leaving = {
            link.id
            for each in namespaces
            for link in await self.links.records.with_objects_in(each)
            # A region that does not answer may have a namespace of the same name.
            if each not in link.namespaces and vim_id in {"", link.vim_id}
        }
        await asyncio.gather(*(self.links.work.decided(link_id, within_s=within_s) for link_id in leaving))

    async def waited_for(self, vnf_instance_id: str, uses: Mapping[str, LinkUse], *, within_s: float) -> str:
        reference = f"{VNF_REFERENCE}{vnf_instance_id}"
        for link_id, use in uses.items():
            link = await self.links.work.decided(link_id, within_s=within_s)
            if link is None or reference not in link.references:
                raise LinkNotReady(f"virtual link {link_id} is not held: it was removed")
            held = link.namespaces_of(reference)
            # The missing namespace of one user holds up no other one.
            is_ready = link.serves(held)
            if link.status == "FAILED" and not is_ready:
                raise LinkNotReady(f"virtual link {link.name} is FAILED: {link.status_detail}")
            lacking = {*(use.namespaces or ())} - {*held}
            if lacking or link.status == "DEGRADED":
                # A change has workloads in other namespaces; and only a request repairs what others have changed.
                await self.hold(vnf_instance_id, {link_id: use})
            if lacking:
                return f"virtual link {link.name} in {', '.join(sorted(lacking))}"
            if not is_ready:
                return f"virtual link {link.name} is {link.status}: {link.status_detail or 'it is being made'}"
        return ""


def link_uses(attachments: Mapping[ObjectKey, Sequence[NetworkAttachment]]) -> Mapping[str, LinkUse]:
    """Return the use of each virtual link: the namespaces of the workloads, and the addresses that they fix."""
    namespaces: dict[str, set[str]] = {}
    addresses: dict[str, set[str]] = {}
    for key, networks in attachments.items():
        for each in networks:
            namespaces.setdefault(each.virtual_link_id, set()).add(key.namespace)
            fixed = {address_of(each.ip_address)} if each.ip_address is not None else set()
            addresses.setdefault(each.virtual_link_id, set()).update(fixed)
    return {link_id: LinkUse(sorted(found), sorted(addresses[link_id])) for link_id, found in namespaces.items()}
