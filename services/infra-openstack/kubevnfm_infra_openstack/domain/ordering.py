"""Determines everything that Heat needs to create a VNF's stack, and checks the tenant's quota."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import structlog
from kubevnfm_csar.documents import parse_heat_yaml
from kubevnfm_csar.hot import BaseHot, nested_templates
from kubevnfm_csar.vnfd.model import Flavour, SoftwareImage
from kubevnfm_events.stacks import CreateResources, StackCommand, StackResources
from kubevnfm_kit.errors import NotFound
from kubevnfm_secrets import KeyRing

from kubevnfm_infra_openstack.domain import quota
from kubevnfm_infra_openstack.domain.default_parameters import heat_parameters, with_managed_links, with_requested
from kubevnfm_infra_openstack.domain.errors import BaseHotMissing
from kubevnfm_infra_openstack.domain.grant import Granted, capacity_of, granted_images
from kubevnfm_infra_openstack.domain.hot import Template, Templates
from kubevnfm_infra_openstack.domain.images import image_identity, image_paths, package_images
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


@dataclass(frozen=True)
class StackOrders:
    """Builds stack orders."""

    packages: PackageFlavours
    user_data: UserDataPort
    ring: KeyRing

    async def order(
        self, command: CreateResources | StackCommand, cloud: Cloud, *, tags: tuple[str, ...], is_new: bool = True
    ) -> StackOrder:
        """Return the input for Heat. The package's images are in Glance when this returns.

        ``is_new``: False for a stack that replaces another one; then the caller compares the quota with that stack.

        Raises QuotaExceeded, UserDataFailed, UserDataTimedOut and what the ports raise, before any stack is created.
        """
        flavour = await self.packages.flavour(command.package, command.flavour_id)
        request, grant = in_clear(command.request, self.ring), in_clear(command.grant, self.ring)
        # Before the template is made, because the template contains their ids.
        images = await self.made_images(command, cloud, flavour.vnfd, granted_images(grant))
        given = Granted(request, grant, in_clear(command.grant_request, self.ring), images)
        heat = _at_level(await self._heat_input(command, flavour, given, cloud), flavour, given)
        if is_new:
            await self._check_quota(cloud, flavour, heat)
        return StackOrder(
            name=command.stack_name,
            template=heat.template,
            files=heat.files,
            parameters=heat.parameters,
            tags=tags,
            timeout_s=command.timeout_s,
        )

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
        return stack_resources(stack, contents, names, images, vnfd.cps.values(), known_secrets(command))

    async def _heat_input(
        self, command: CreateResources | StackCommand, flavour: PackageFlavour, given: Granted, cloud: Cloud
    ) -> HeatInput:
        hot = flavour.hot
        if hot is None and command.user_data is None:
            return HeatInput({}, template_of(flavour.vnfd, given, await cloud.capacity.flavors()), {})
        if hot is None:
            raise BaseHotMissing(command.flavour_id, "a Heat template for the user data expected in the package")
        if command.user_data is None:
            parameters = heat_parameters(hot.top.body, flavour.vnfd, given)
            return HeatInput(parameters, with_managed_links(hot.top.body, given) or hot.top.text, hot.file_texts)
        secrets = clear_texts((command.request, command.instance, command.grant), self.ring)
        given_to_class = user_data_input(command, flavour, given, in_clear(command.instance, self.ring), secrets)
        heat = await self.user_data.instantiate(command.user_data, flavour.folder, hot, given_to_class)
        return replace(heat, parameters=with_requested(heat.parameters, hot.top.body, given))

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
