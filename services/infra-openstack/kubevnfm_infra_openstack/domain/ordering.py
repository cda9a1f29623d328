"""Determines everything that Heat needs to create a VNF's stack, and checks the tenant's quota."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import structlog
from kubevnfm_csar.documents import parse_heat_yaml
from kubevnfm_csar.hot import BaseHot, nested_templates
from kubevnfm_csar.vnfd.model import Flavour, SoftwareImage
from kubevnfm_events.stacks import (
    ChangeTemplate,
    CreateResources,
    HealResources,
    RestoreResources,
    ScaleResources,
    ServerFacts,
    StackCommand,
    StackResources,
)
from kubevnfm_kit.errors import NotFound
from kubevnfm_secrets import KeyRing

from kubevnfm_infra_openstack.domain import quota
from kubevnfm_infra_openstack.domain.as_asked import AskedStack, as_before, differences, in_one, shown_before
from kubevnfm_infra_openstack.domain.asked_networks import check_networks
from kubevnfm_infra_openstack.domain.asked_ports import FixedIp
from kubevnfm_infra_openstack.domain.default_parameters import (
    heat_parameters,
    reads_zones,
    with_managed_links,
    with_requested,
)
from kubevnfm_infra_openstack.domain.errors import BaseHotMissing, StackNotAsAsked
from kubevnfm_infra_openstack.domain.grant import (
    Granted,
    capacity_of,
    granted_flavors,
    granted_images,
    managed_links,
    zone_among,
    zones_of,
)
from kubevnfm_infra_openstack.domain.hot import Template, Templates
from kubevnfm_infra_openstack.domain.images import image_identity, image_paths, package_images
from kubevnfm_infra_openstack.domain.link_subnets import needs_ranges
from kubevnfm_infra_openstack.domain.passed_on import check_passed_on
from kubevnfm_infra_openstack.domain.ports import (
    Cloud,
    HeatInput,
    PackageFlavour,
    PackageFlavours,
    UserDataPort,
)
from kubevnfm_infra_openstack.domain.resources import known_secrets, stack_resources
from kubevnfm_infra_openstack.domain.scaling import with_sizes
from kubevnfm_infra_openstack.domain.stack import Stack, StackContents, StackOrder
from kubevnfm_infra_openstack.domain.topology import template_of
from kubevnfm_infra_openstack.domain.user_data import clear_texts, in_clear, user_data_input

log = structlog.get_logger()

_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NO_ZONE: Final = (
    "no zone is granted: of the cloud's available zones none is `nova`, and they are not exactly one; "
    "set default_zone of infra-openstack"
)
NO_IPS: Final[Mapping[str, Sequence[FixedIp]]] = {}


@dataclass(frozen=True)
class StackOrders:
    """Builds stack orders."""

    packages: PackageFlavours
    user_data: UserDataPort
    ring: KeyRing
    default_zone: str | None = None
    """The zone that is granted where the NFVO grants none; None: the cloud's."""

    async def order(
        self,
        command: CreateResources | StackCommand,
        cloud: Cloud,
        *,
        tags: tuple[str, ...],
        is_new: bool = True,
        present_ips: Mapping[str, Sequence[FixedIp]] = NO_IPS,
    ) -> StackOrder:
        """Return the input for Heat. The package's images are in Glance when this returns.

        ``is_new``: False for a stack that replaces another one; then the caller compares the quota with that stack.

        Raises QuotaExceeded, UserDataFailed, UserDataTimedOut and what the ports raise, before any stack is created.
        """
        flavour = await self.packages.flavour(command.package, command.flavour_id)
        given = self._given(command)
        # Before the template is made, because the template contains their ids.
        images = await self.made_images(command, cloud, flavour.vnfd, granted_images(given.grant))
        given = replace(given, image_by_node=images, present_ips=present_ips)
        given = await self.with_networks(given, cloud)
        lacks_zone = False
        if command.user_data is not None or (flavour.hot is not None and reads_zones(flavour.hot.top.body)):
            given = await self.with_zone(given, cloud)
            lacks_zone = not given.grant.get("zones") and given.default_zone is None
        heat = _at_level(await self._heat_input(command, flavour, given, cloud), flavour, given)
        if command.user_data is not None:
            self.check_passed_on(command, given, flavour, [heat.template, *heat.files.values(), heat.parameters])
        if is_new:
            await self._check_quota(cloud, flavour, heat)
        return StackOrder(
            name=command.stack_name,
            template=heat.template,
            files=heat.files,
            parameters=heat.parameters,
            tags=tags,
            timeout_s=command.timeout_s,
            if_unassigned=_NO_ZONE if lacks_zone else "",
        )

    def check_passed_on(
        self, command: CreateResources | StackCommand, given: Granted, flavour: PackageFlavour, heat: Sequence[Any]
    ) -> None:
        """Raise Unprocessable if user data leave out what the command asks of ports; ``heat``: what Heat would read."""
        asked = asked_stack(given, flavour, command)
        check_passed_on(asked.points, asked.counts, flavour.vnfd, heat)

    async def check_networks(self, command: CreateResources | StackCommand, cloud: Cloud) -> None:
        """Raise Unprocessable for what request or grant name in the VIM's networks and the VIM does not have.

        A class of user data may read the names as it likes.
        """
        if command.user_data is None:
            await check_networks(
                cloud.networks, in_clear(command.request, self.ring), in_clear(command.grant, self.ring)
            )

    async def with_zone(self, given: Granted, cloud: Cloud) -> Granted:
        """Return the input with the zone that is granted without an NFVO, unless the grant has zones."""
        if given.grant.get("zones"):
            return given
        return replace(given, default_zone=self.default_zone or zone_among(await cloud.capacity.zones()))

    async def with_networks(self, given: Granted, cloud: Cloud) -> Granted:
        """Return the input with the networks in which addresses have to be chosen."""
        found = {name: await cloud.networks.find(name) for name in given.ports.networks_to_choose_in}
        return (
            replace(given, networks={name: one for name, one in found.items() if one is not None}) if found else given
        )

    async def with_used_ranges(self, given: Granted, vnfd: Flavour, cloud: Cloud) -> Granted:
        """Return the input with the ranges of the VNF's other networks, if one has to be chosen for a network of the stack."""
        managed = managed_links(given)
        if not needs_ranges(vnfd, managed, given.present_cidrs):
            return given
        names = {*(point.network for point in given.ports.points.values()), *managed.values()}
        found = [given.networks.get(name) or await cloud.networks.find(name) for name in sorted(names)]
        return replace(given, used_cidrs=[one.cidr for network in found if network for one in network.subnets])

    async def images(self, cloud: Cloud, vnfd: Flavour, tag: str) -> tuple[str, ...]:
        """Return the ids of the images that were uploaded for the instance."""
        # Most packages bring no image files, and then the request to Glance is superfluous.
        if not any(True for _ in package_images(vnfd)):
            return ()
        return tuple(sorted((await cloud.images.tagged(tag)).values()))

    async def facts(
        self,
        cloud: Cloud,
        stack: Stack,
        contents: StackContents,
        vnfd: Flavour,
        command: CreateResources | StackCommand,
    ) -> StackResources:
        """Return what the stack holds; ``contents``: those of it that count."""
        images = await self.images(cloud, vnfd, command.tag)
        names = {vdu_id: vdu.name or vdu_id for vdu_id, vdu in vnfd.vdus.items()}
        return stack_resources(
            stack, contents, names, images, vnfd.cps.values(), known_secrets(command), vnfd.storages.keys()
        )

    async def check_as_asked(
        self, cloud: Cloud, facts: StackResources, command: CreateResources | StackCommand
    ) -> None:
        """Raise StackNotAsAsked if the infrastructure does not show what the command asked for."""
        flavour = await self.packages.flavour(command.package, command.flavour_id)
        flavors: Mapping[str, quota.Flavor] | None = None
        if isinstance(command, HealResources | RestoreResources):
            if command.before is None:
                return
            flavors = await cloud.capacity.flavors()
            links = in_clear(command.connections_before, self.ring).get("extVirtualLinks") or ()
            asked = as_before(command.before, links, flavors, redefined=_redefined(command))
            if isinstance(command, HealResources):
                # Heat also makes the machines again that an operation before has lost.
                now = Counter(server.vdu_id for server in facts.servers)
                asked = replace(asked, counts={vdu: max(count, now[vdu]) for vdu, count in asked.counts.items()})
        else:
            asked = asked_stack(self._given(command), flavour, command)
        found = {point.network for point in asked.points.values()}
        shown = {port.network_id for server in facts.servers for port in server.ports}
        names = found - shown if asked.points else set()
        ids = {name: await cloud.networks.id_of(name) for name in sorted(names)}
        asked = replace(
            asked,
            network_ids={**{one: one for one in found & shown}, **{n: i for n, i in ids.items() if i is not None}},
            subnet_ids=await _subnet_ids(cloud, asked, facts),
        )
        if isinstance(command, HealResources | RestoreResources) and command.before is not None:
            asked = shown_before(asked, command.before, flavour.vnfd)
        if flavors is None:
            flavors = await cloud.capacity.flavors() if asked.flavors else {}
        differs = differences(asked, facts, flavour.vnfd, flavors, is_changed=partial(_is_changed, command))
        if differs:
            raise StackNotAsAsked(in_one(differs), remains=facts)

    def _given(self, command: CreateResources | StackCommand) -> Granted:
        request, grant = in_clear(command.request, self.ring), in_clear(command.grant, self.ring)
        return Granted(request, grant, in_clear(command.grant_request, self.ring), instance=command.instance)

    async def _heat_input(
        self, command: CreateResources | StackCommand, flavour: PackageFlavour, given: Granted, cloud: Cloud
    ) -> HeatInput:
        hot = flavour.hot
        if hot is None and command.user_data is None:
            given = await self.with_used_ranges(given, flavour.vnfd, cloud)
            return HeatInput({}, template_of(flavour.vnfd, given, await cloud.capacity.flavors()), {})
        if hot is None:
            raise BaseHotMissing(command.flavour_id, "a Heat template for the user data expected in the package")
        if command.user_data is None:
            parameters = heat_parameters(hot.top.body, flavour.vnfd, given)
            return HeatInput(parameters, with_managed_links(hot.top.body, given) or hot.top.text, hot.file_texts)
        secrets = clear_texts((command.request, command.instance, command.grant), self.ring)
        given_to_class = user_data_input(command, flavour, given, in_clear(command.instance, self.ring), secrets)
        heat = await self.user_data.instantiate(command.user_data, flavour.folder, hot, given_to_class)
        return replace(heat, parameters=with_requested(heat.parameters, hot.top.body, flavour.vnfd, given))

    async def _check_quota(self, cloud: Cloud, flavour: PackageFlavour, heat: HeatInput) -> None:
        template, nested = await _templates(flavour.hot, heat)
        demand = quota.demand_of(template, nested, heat.parameters, await cloud.capacity.flavors())
        quota.check(demand, await cloud.capacity.free(tuple(demand)))

    async def made_images(
        self, command: CreateResources | StackCommand, cloud: Cloud, vnfd: Flavour, granted: Mapping[str, str]
    ) -> Mapping[str, str]:
        """Return the Glance ids, by VDU or storage, of the package's images. Missing images are uploaded first."""
        made: dict[str, str] = {}
        for image in package_images(vnfd):
            # The NFVO has supplied this image.
            if image.image_id in granted:
                continue
            image_id = await self._ensure_image(command, cloud, vnfd, image)
            if image_id is not None:
                made[image.image_id] = image_id
        return made

    async def _ensure_image(
        self, command: CreateResources | StackCommand, cloud: Cloud, vnfd: Flavour, image: SoftwareImage
    ) -> str | None:
        """Return the image's id; None if the package lacks its file, which means that Glance has it already."""
        for path in image_paths(image, vnfd):
            try:
                return await cloud.images.ensure(
                    image_identity(image, command.package),
                    tag=command.tag,
                    disk_format=image.disk_format or "qcow2",
                    container_format=image.container_format or "bare",
                    content=partial(self.packages.stream, command.package, path),
                )
            except NotFound:
                log.info("image_file_not_in_package", path=path, image=image.name)
        return None


def asked_stack(given: Granted, flavour: PackageFlavour, command: CreateResources | StackCommand) -> AskedStack:
    """Return what a command asks for beyond its package: what a Base HOT says itself, the package has chosen."""
    vnfd = flavour.vnfd
    counts: Mapping[str, int] = {}
    # Without a level in the request, a Base HOT or its user data may say how many machines there are.
    if isinstance(command, CreateResources) and (flavour.hot is None or given.request.get("instantiationLevelId")):
        # A stack that replaces a scaled one is made at its level by some classes. The scaling that follows is compared.
        at_level = vnfd.initial_counts(given.request.get("instantiationLevelId"))
        counts = {vdu: count for vdu, count in at_level.items() if count == capacity_of(vdu, vnfd, given)}
    elif isinstance(command, ScaleResources | ChangeTemplate):
        counts = command.counts
    if isinstance(command, ScaleResources):
        return AskedStack(counts=counts)
    flavors, images = granted_flavors(given.grant), granted_images(given.grant)
    return AskedStack(
        points=given.ports.points,
        counts=counts,
        flavors={vdu: flavors[vdu] for vdu in vnfd.vdus if vdu in flavors},
        images={vdu: images[vdu] for vdu in vnfd.vdus if vdu in images and _UUID.fullmatch(images[vdu])},
        zones={vdu: zones_of(vdu, given) for vdu in vnfd.vdus} if isinstance(command, CreateResources) else {},
    )


def _redefined(command: HealResources | RestoreResources) -> Sequence[str]:
    """Return the servers that the command replaces by those of another definition."""
    if isinstance(command, HealResources) and (command.left_package or command.user_data):
        return command.servers
    return ()


def _is_changed(command: CreateResources | StackCommand, server: ServerFacts) -> bool:
    """Return whether the command has brought a server to what is asked: a rolling update changes some with each of its commands."""
    if not isinstance(command, ChangeTemplate):
        return True
    is_named = not command.changed_vdus or server.vdu_id in command.changed_vdus
    return is_named and (server.group or server.name) not in command.unchanged


async def _subnet_ids(cloud: Cloud, asked: AskedStack, facts: StackResources) -> Mapping[str, str]:
    """Return the ids of the subnets that the request names by another text: Heat takes names too."""
    named = {
        one.subnet_id
        for point in asked.points.values()
        for port in point.ports
        for one in port.addresses
        if one.subnet_id is not None
    }
    shown = {subnet_id for server in facts.servers for port in server.ports for subnet_id in port.subnet_ids}
    ids = {name: await cloud.networks.subnet_id_of(name) for name in sorted(named - shown)}
    return {name: found for name, found in ids.items() if found is not None}


def _at_level(heat: HeatInput, flavour: PackageFlavour, given: Granted) -> HeatInput:
    """Return the input with the sizes of the instantiation level that the request names, where the template sets them.

    The classes of Tacker's v1 guides return parameters only, and their templates give the sizes of the smallest level.
    """
    hot, vnfd = flavour.hot, flavour.vnfd
    if given.request.get("instantiationLevelId") is None or hot is None:
        return heat
    if isinstance(heat.template, str) and heat.template != hot.top.text:
        return heat  # a template that a class has made is as the class wants it
    body = hot.top.body if isinstance(heat.template, str) else heat.template
    nested = {name: one.body for name, one in hot.nested.items()}
    counts = {vdu: count for vdu in vnfd.vdus if (count := capacity_of(vdu, vnfd, given)) is not None}
    changed = with_sizes(body, nested, vnfd, counts)
    return heat if changed is None else replace(heat, template=changed)


async def _templates(hot: BaseHot | None, heat: HeatInput) -> tuple[Template, Templates]:
    """Return the top template and the nested ones, parsed."""
    # The package's own templates are cached as parsed documents; only what user data has changed is parsed here, in a
    # thread, because a large template takes longer than other commands should wait.
    known = {one.text: one.body for one in (hot.top, *hot.nested.values())} if hot is not None else {}

    async def parsed(text: str, name: str) -> Template:
        return known[text] if text in known else await asyncio.to_thread(parse_heat_yaml, text, name=name)

    template = heat.template
    top = await parsed(template, "template of the user data") if isinstance(template, str) else template
    return top, await asyncio.to_thread(nested_templates, heat.files, known)
