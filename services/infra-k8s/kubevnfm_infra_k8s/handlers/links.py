"""The handlers that take the virtual links of an instance and give them back (multicloud.md MC-086)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kubevnfm_csar.networked_workloads import NetworkedWorkload
from kubevnfm_events.objects import HoldLinks, LinksHeld, LinksReleased, NetworkAttachment, ReleaseLinks
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_worker.outcome import Done, Outcome, StepContext, nothing_made

from kubevnfm_infra_k8s.domain.errors import AccessRefused, Forbidden
from kubevnfm_infra_k8s.domain.links.attaching import address_of
from kubevnfm_infra_k8s.domain.links.uses import link_uses
from kubevnfm_infra_k8s.domain.objects import field_at
from kubevnfm_infra_k8s.domain.planning.networks import check_networks
from kubevnfm_infra_k8s.domain.ports import Cluster, LinkUse
from kubevnfm_infra_k8s.handlers.frame import Handling
from kubevnfm_infra_k8s.handlers.repeating import repeatable

_KUBEVIRT: Final = ("kubevirt.io/v1", "KubeVirt")


@dataclass(frozen=True)
class LinkHandlers(Handling):
    """Takes and gives back the references of instances."""

    @repeatable
    async def hold_links(self, command: HoldLinks, context: StepContext) -> Outcome:
        """Check the interfaces against the manifests, and hold their links in the namespaces of their workloads."""
        mine = command.vnf_instance_id
        async with self.step(command, context, await self.releases.get(mine)) as step:
            manifests = await step.manifests(command)
            with nothing_made():
                workloads = check_networks([each.body for each in manifests], command)
                await _check_plugins(step.cluster, workloads)
            planned = await step.planned(command, manifests)
        uses = {**_uses_before(command.before), **link_uses(planned.attachments)}
        await self.links.hold(mine, uses)
        await step.progress("links").finished("the virtual links are held", total=len(uses))
        return Done(LinksHeld(link_ids=tuple(uses)))

    async def release_links(self, command: ReleaseLinks, context: StepContext) -> Outcome:
        """Release the links that the instance no longer needs; one that is gone already is released."""
        released = await self.links.keep(command.vnf_instance_id, _uses_before(command.kept_networks))
        return Done(LinksReleased(link_ids=tuple(released)))


def _uses_before(networks: tuple[NetworkAttachment, ...]) -> dict[str, LinkUse]:
    """Return the use of links that the instance holds, in the namespaces that they have for it."""
    addresses: dict[str, list[str]] = {}
    for each in networks:
        fixed = [address_of(each.ip_address)] if each.ip_address is not None else []
        addresses.setdefault(each.virtual_link_id, []).extend(fixed)
    return {link_id: LinkUse(None, tuple(found)) for link_id, found in addresses.items()}


async def _check_plugins(cluster: Cluster, workloads: Sequence[NetworkedWorkload]) -> None:
    """Raise Unprocessable for binding plug-ins that KubeVirt does not know (MC-066), unless its configuration cannot be read."""
    asked = [(index, each.plugin) for one in workloads for index, each in one.networks if each.plugin is not None]
    resource = await cluster.resource(*_KUBEVIRT) if asked else None
    if resource is None:
        return
    try:
        found = await cluster.list(resource)
    except (AccessRefused, Forbidden):
        return
    known = {name for each in found for name in field_at(each, "spec", "configuration", "network", "binding") or {}}
    faults = [
        (f"networks[{index}]/binding", f"a plug-in of the region expected: {', '.join(sorted(known)) or 'none'}")
        for index, plugin in asked
        if found and plugin not in known
    ]
    if faults:
        raise Unprocessable(*faults[0], *faults[1:])
