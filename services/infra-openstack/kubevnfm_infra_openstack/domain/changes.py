"""Determines how Heat has to change a VNF's stack: for each operation, from its command and the stack as it is now."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from kubevnfm_csar.vnfd.clones import node_of
from kubevnfm_csar.vnfd.model import Flavour
from kubevnfm_events.stacks import (
    ChangeConnections,
    ChangeTemplate,
    CreateResources,
    HealResources,
    LeftPackage,
    RestoreResources,
    ScaleResources,
    StackCommand,
    UserData,
)
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_kit.merge_patch import merge_patch

from kubevnfm_infra_openstack.domain.asked_ports import FixedIp
from kubevnfm_infra_openstack.domain.default_parameters import nfv_tree, with_present, zone_names
from kubevnfm_infra_openstack.domain.definitions import check_increase, completed, definition_of, nested, parsed
from kubevnfm_infra_openstack.domain.grant import Granted, adds_machines, granted_images
from kubevnfm_infra_openstack.domain.hot import PORT, SERVER, VOLUME, properties_of, resources_of
from kubevnfm_infra_openstack.domain.link_subnets import present_cidrs
from kubevnfm_infra_openstack.domain.live import (
    KEEP,
    LiveStack,
    Wanted,
    check_kept,
    read_definition,
    whole_parts,
    without_lost_ports,
)
from kubevnfm_infra_openstack.domain.ordering import StackOrders
from kubevnfm_infra_openstack.domain.ports import Cloud, HeatPatch, PackageFlavour
from kubevnfm_infra_openstack.domain.request import SolObject
from kubevnfm_infra_openstack.domain.resources import members
from kubevnfm_infra_openstack.domain.rolling import (
    ReadDefinition,
    lacks_shared,
    put_back,
    separable,
    with_earlier,
    with_parts,
)
from kubevnfm_infra_openstack.domain.scaling import Resized, groups_of, present_value, resized
from kubevnfm_infra_openstack.domain.snapshots import StackBefore, slot_of
from kubevnfm_infra_openstack.domain.stack import StackChange, StackDefinition
from kubevnfm_infra_openstack.domain.topology import indexes_after, template_of, with_present_vdus
from kubevnfm_infra_openstack.domain.user_data import (
    clear_texts,
    creation_of,
    has_numbered_resources,
    in_clear,
    named_class,
    user_data_input,
    with_nfv,
)

_BY_NUMBER: Final[Mapping[str, Collection[str]]] = {
    "scale": ("SCALE", "SCALE_TO_LEVEL"),
    "change_vnfpkg": ("CHANGE_VNFPKG",),
}
"""The operations, by the method of user data, for which built-in rules need to know the names of a stack's resources."""
_LINKS: Final = "extVirtualLinks"
NO_IMAGES: Final[Mapping[str, str]] = {}


@dataclass(frozen=True)
class StackChanges:
    """Makes stack changes: with the package's user data if it has a method for the operation, else by built-in rules."""

    orders: StackOrders

    async def scaled(self, command: ScaleResources, cloud: Cloud, live: LiveStack, tags: tuple[str, ...]) -> Wanted:
        """Return the change that brings the VDUs to their counts.

        Raises VduNotScalable, QuotaExceeded, UserDataFailed, UserDataTimedOut.
        """
        flavour, given = await self._given(command)
        patch: HeatPatch | None = None
        # A scale to the present level changes nothing; classes expect machines in the grant request.
        if given.grant_request.get("addResources") or given.grant_request.get("removeResources"):
            patch = await self._asked("scale", command, cloud, flavour, given, live)
        if patch is not None:
            change = await self._patched(command, live, patch, tags)
        elif flavour.hot is None:
            names = [s.name for s in live.facts.servers if s.server_id in command.leaving]
            change = await self._made_of_topology(command, cloud, live, flavour, given, tags, names)
        else:
            definition = await self._with_new_groups(command, cloud, live, flavour, given)
            found = await self._resized(flavour, definition, command.counts, live.counts)
            change = _changed(command, tags, found)
            if definition is not live.definition:
                change = _whole(command, tags, await completed(change, definition))
        await check_increase(cloud, live.definition, await completed(change, live.definition))
        return Wanted(change, members(live.stack, live.contents.resources, command.leaving))

    async def healed(self, command: HealResources, cloud: Cloud, live: LiveStack, tags: tuple[str, ...]) -> Wanted:
        """Return the change that replaces the servers and volumes."""
        # A server that the stack no longer contains was replaced by an earlier delivery of this command.
        flavour, given = await self._given(command)
        patch = await self._asked("heal", command, cloud, flavour, given, live)
        if (given.request.get("additionalParams") or {}).get(KEEP) is True:
            await check_kept(live, command.servers)
        # An empty update: Heat replaces unhealthy resources in every update.
        change = StackChange(tags, command.timeout_s)
        if patch is not None:
            change = await self._patched(command, live, patch, tags)
        elif command.left_package is not None:
            present = await read_definition(live.definition)
            target = await self._of_new_package(command, command.left_package, cloud, live, flavour, given)
            definition = with_parts(present, target, whole_parts(live.facts, command.servers))
            if definition is not live.definition:
                change = _whole(command, tags, definition)
                await check_increase(cloud, live.definition, definition)
        by_type = {SERVER: command.servers, VOLUME: command.volumes}
        broken = [r for r in live.contents.resources if r.physical_id and r.physical_id in by_type.get(r.type, ())]
        # First: the new server may need the volumes of the old one, its place in a group of servers, or its quota.
        going = [one for one in command.servers if one in live.contents.server_by_id]
        return Wanted(change, broken, leaving_first=going)

    async def connected(
        self, command: ChangeConnections, cloud: Cloud, live: LiveStack, tags: tuple[str, ...]
    ) -> Wanted:
        """Return the change that connects the connection points to their links.

        Raises Unprocessable for a connection point whose network the template does not read from a parameter.
        """
        flavour, given = await self._given(command)
        patch = await self._asked("change_ext_conn", command, cloud, flavour, given, live)
        if patch is not None:
            change = await self._patched(command, live, patch, tags)
            after = await completed(change, live.definition)
            heat = [after.template, *after.files.values(), after.parameters]
            self.orders.check_passed_on(command, given, flavour, heat)
            return Wanted(change)
        if flavour.hot is None:
            return Wanted(await self._made_of_topology(command, cloud, live, flavour, given, tags))
        # Only the CP part is taken from the new tree. The other parameters must stay as they are, because any change
        # of an image or flavor would make Heat replace servers.
        connected = await self._connected(command, cloud, live, given)
        nfv = nfv_tree(live.definition.template, flavour.vnfd, connected)
        # Only those that request or grant name: the others stay as they are, whatever has made them so.
        named = given.ports.points
        points: SolObject = {
            name: values for name, values in nfv.get("CP", {}).items() if node_of(name, named) is not None
        }
        for name in named:
            if not any("network" in values for one, values in points.items() if node_of(one, named) == name):
                raise Unprocessable(_LINKS, f"the package's Heat template has no parameter for the network of {name}")
        parameters = {"nfv": merge_patch(present_value(live.definition, "nfv"), {"CP": points})}
        return Wanted(StackChange(tags, command.timeout_s, parameters=parameters))

    async def replaced(
        self,
        command: ChangeTemplate,
        cloud: Cloud,
        live: LiveStack,
        tags: tuple[str, ...],
        before: StackDefinition,
    ) -> Wanted:
        """Return the stack's new template with its parameters; ``before``: the definition at the operation's start.

        In a rolling update the resources of ``unchanged`` keep their earlier form. The last step leads to exactly what
        one update would have led to.
        Raises what `StackOrders.order` raises.
        """
        change = await self._replacement(command, cloud, live, tags, before)
        if not command.unchanged and live.definition == before:
            found = await self._leaving_last(command, tags, await completed(change, before), live)
            return found if found.finish is not None else Wanted(change)
        # Complete: what an earlier step has left in the live stack must not be merged with it.
        wanted = await completed(change, before)
        if command.unchanged:
            new, old = await read_definition(wanted), await read_definition(before)
            wanted = with_earlier(new, old, separable(new, old, command.unchanged))
            # With all that is gone, which leaves last: the first step finds that there is no room for both.
            await check_increase(cloud, live.definition, wanted)
            return Wanted(_whole(command, tags, wanted))
        return await self._leaving_last(command, tags, wanted, live)

    async def _replacement(
        self,
        command: ChangeTemplate,
        cloud: Cloud,
        live: LiveStack,
        tags: tuple[str, ...],
        before: StackDefinition,
    ) -> StackChange:
        """Return the change of ``before`` that changes all machines; what the quotas leave free must suffice for it."""
        present, live = live.definition, replace(live, definition=before)
        flavour, given = await self._given(command)
        is_package = command.grant_request.get("operation") == "CHANGE_VNFPKG"
        if is_package:
            patch = await self._asked("change_vnfpkg", command, cloud, flavour, given, live)
            if patch is not None:
                return await self._patched(command, live, patch, tags)
            # User data read the request as it came, and the built-in rules the instantiation that it leads to.
            request = command.instantiate_request or command.request
            command = command.model_copy(update={"request": request, "user_data": None})
            flavour, given = await self._given(command)
            if flavour.hot is None:
                change = await self._made_of_topology(command, cloud, live, flavour, given, tags)
                if command.changed_vdus and isinstance(change.template, Mapping):
                    template = with_present_vdus(change.template, before.template, flavour.vnfd, command.changed_vdus)
                    change = replace(change, template=template)
                return change
        change = await self._from_package(command, cloud, tags, before, flavour, given, command.changed_vdus)
        # With the present stack: the machines that a rolling update has changed have taken their share already.
        await check_increase(cloud, present, await completed(change, present))
        return change

    async def _of_new_package(
        self,
        command: StackCommand,
        left: LeftPackage,
        cloud: Cloud,
        live: LiveStack,
        flavour: PackageFlavour,
        given: Granted,
    ) -> ReadDefinition:
        """Return what the stack would be by the command's package: it has the template of the one that a modification left."""
        if flavour.hot is None:
            change = await self._made_of_topology(command, cloud, live, flavour, given, (), is_new=True)
        else:
            # The class that makes the stack, whichever the request names for its operation.
            request = left.instantiate_request
            command = command.model_copy(update={"request": request, "user_data": named_class(request)})
            making = creation_of(command) if command.user_data is not None else command
            change = await self._from_package(command, cloud, (), live.definition, flavour, given, making=making)
        return await read_definition(await completed(change, live.definition))

    async def _with_new_groups(
        self, command: ScaleResources, cloud: Cloud, live: LiveStack, flavour: PackageFlavour, given: Granted
    ) -> StackDefinition:
        """Return the stack's definition, with the groups of those VDUs to scale that it has none of by the package that a modification left."""
        vdus = {vdu for vdu, count in command.counts.items() if count and not live.counts.get(vdu)}
        if command.left_package is None or not vdus:
            return live.definition
        target = await self._of_new_package(command, command.left_package, cloud, live, flavour, given)
        groups = groups_of(target.definition, target.nested, flavour.vnfd, vdus)
        return with_parts(
            await read_definition(live.definition), target, groups - resources_of(live.definition.template).keys()
        )

    async def _from_package(
        self,
        command: StackCommand,
        cloud: Cloud,
        tags: tuple[str, ...],
        before: StackDefinition,
        flavour: PackageFlavour,
        given: Granted,
        changed_vdus: Collection[str] = (),
        making: CreateResources | StackCommand | None = None,
    ) -> StackChange:
        """Return the change to the template and parameters that a new stack of the command's package would have.

        ``making``: the command in the form in which it is answered; None: as it is.
        """
        present_ips = present_fixed_ips(before)
        order = await self.orders.order(making or command, cloud, tags=tags, is_new=False, present_ips=present_ips)
        definition = await definition_of(order)
        top = order.template
        parameters = dict(order.parameters)
        if command.user_data is None and not given.grant.get("zones"):
            # A machine does not leave its zone for that of another setting, since Heat would replace it.
            parameters = _with_kept_vdus(parameters, before, only=zone_names())
        if command.user_data is None and command.grant_request.get("operation") != "CHANGE_FLAVOUR":
            present = {name: present_value(before, name) for name in before.parameters}
            parameters = dict(with_present(parameters, definition.template, present))
        if changed_vdus:
            parameters = _with_kept_vdus(parameters, before, changed=_entries(changed_vdus, flavour.vnfd))
            definition = replace(definition, parameters=parameters)
        if command.counts and flavour.hot is not None:
            found = await self._resized(flavour, definition, command.counts, command.counts)
            top, parameters = found.template or top, {**parameters, **found.parameters}
        return StackChange(tags, command.timeout_s, top, order.files, parameters, is_whole=True)

    async def restored(
        self,
        command: RestoreResources,
        before: StackBefore,
        live: LiveStack,
        tags: tuple[str, ...],
        lost: Collection[str] = (),
    ) -> Wanted:
        """Return the change that restores the stack; servers that the operation added leave their groups first.

        ``lost``: servers of then that Heat lists, and Nova no longer has.
        """
        definition = before.definition
        if command.restored:
            new, old = await read_definition(live.definition), await read_definition(before.definition)
            definition = with_earlier(new, old, put_back(new, old, command.restored))
        wanted = await self._leaving_last(command, tags, definition, live)
        # A server in the place of an earlier one was not added.
        places = set(before.slot_by_server.values())
        came = [
            server.server_id
            for server in live.facts.servers
            if server.server_id not in command.staying and slot_of(server) not in places
        ]
        missing = [r for r in live.contents.resources if r.type == SERVER and r.physical_id in lost]
        return replace(wanted, unhealthy=[*members(live.stack, live.contents.resources, came), *missing])

    async def _leaving_last(
        self, command: StackCommand, tags: tuple[str, ...], wanted: StackDefinition, live: LiveStack
    ) -> Wanted:
        """Return the change to a definition; if it lacks shared resources of the present one, these leave by a change of their own.

        Heat does not know that the ports of a nested template have addresses of a subnet in the top template, and would delete it at once.
        """
        new, present = await read_definition(wanted), await read_definition(live.definition)
        if not lacks_shared(new, present):
            return Wanted(_whole(command, tags, wanted))
        return Wanted(_whole(command, tags, with_earlier(new, present, ())), finish=_whole(command, tags, wanted))

    # --- parts --------------------------------------------------------------------------------------------------------

    async def _given(self, command: StackCommand) -> tuple[PackageFlavour, Granted]:
        flavour = await self.orders.packages.flavour(command.package, command.flavour_id)
        ring = self.orders.ring
        request, grant = in_clear(command.request, ring), in_clear(command.grant, ring)
        return flavour, Granted(request, grant, in_clear(command.grant_request, ring), instance=command.instance)

    async def _with_images(
        self, command: StackCommand, cloud: Cloud, flavour: PackageFlavour, given: Granted
    ) -> Granted:
        """Return the operation's input with the images of the package, which are in Glance after this."""
        images = await self.orders.made_images(command, cloud, flavour.vnfd, granted_images(given.grant))
        return replace(given, image_by_node=images)

    async def _connected(
        self,
        command: StackCommand,
        cloud: Cloud,
        live: LiveStack,
        given: Granted,
        images: Mapping[str, str] = NO_IMAGES,
    ) -> Granted:
        """Return the operation's input with the command's links in place of those of its request."""
        links = in_clear(command.connections, self.orders.ring)
        connected = replace(
            given,
            request={**given.request, **links},
            image_by_node=images,
            present_ips=present_fixed_ips(live.definition),
            present_cidrs=present_cidrs(live.definition.template),
        )
        return await self.orders.with_networks(connected, cloud)

    async def _asked(
        self, method: str, command: StackCommand, cloud: Cloud, flavour: PackageFlavour, given: Granted, live: LiveStack
    ) -> HeatPatch | None:
        """Return the result of the user data; None if the built-in rules apply to the operation.

        These do not know the resources of a stack that has one for each machine, so the ready-made class changes them.
        """
        classes: list[UserData | None] = [] if command.user_data is None else [command.user_data]
        is_own = command.grant_request.get("operation") in _BY_NUMBER.get(method, ())
        if is_own and has_numbered_resources(flavour, live.definition.template, live.facts.servers):
            classes.append(None)
        if not classes or flavour.hot is None:
            return None
        # A class sets the images of the machines that it adds or replaces.
        if not isinstance(command, ChangeConnections):
            given = await self._with_images(command, cloud, flavour, given)
        if adds_machines(given):
            given = await self.orders.with_zone(given, cloud)
        ring, present = self.orders.ring, live.definition
        secrets = clear_texts((command.request, command.instance, command.grant), ring)
        # Instances of version 0.1.0 were stored without it.
        instance = with_nfv(in_clear(command.instance, ring), present_value(present, "nfv"))
        parameters = {name: present_value(present, name) for name in present.parameters}
        to_class = user_data_input(command, flavour, given, instance, secrets, parameters)
        for user_data in classes:
            patch = await self.orders.user_data.change(user_data, method, flavour.folder, flavour.hot, to_class)
            if patch is not None:
                return patch
        return None

    async def _patched(
        self, command: StackCommand, live: LiveStack, patch: HeatPatch, tags: tuple[str, ...]
    ) -> StackChange:
        """Return the change that a class's result describes; its template and parameters are merge patches."""
        if patch.is_whole:
            template = patch.template or live.definition.template
            files = {**patch.attached, **patch.files} if patch.files else {**live.definition.files, **patch.attached}
            return StackChange(tags, command.timeout_s, template, files, patch.parameters, is_whole=True)
        merged = None
        if patch.template is not None:
            merged = merge_patch(live.definition.template, await parsed(patch.template, "template of the user data"))
        parameters = {
            name: value if patch.has_whole_values else merge_patch(present_value(live.definition, name), value)
            for name, value in patch.parameters.items()
        }
        return StackChange(tags, command.timeout_s, merged, {**patch.attached, **patch.files}, parameters)

    async def _resized(
        self,
        flavour: PackageFlavour,
        definition: StackDefinition,
        counts: Mapping[str, int],
        present: Mapping[str, int],
    ) -> Resized:
        return resized(definition, await nested(definition.files), flavour.vnfd, counts, present)

    async def _made_of_topology(
        self,
        command: StackCommand,
        cloud: Cloud,
        live: LiveStack,
        flavour: PackageFlavour,
        given: Granted,
        tags: tuple[str, ...],
        leaving: Sequence[str] = (),
        *,
        is_new: bool = False,
    ) -> StackChange:
        """Return the change to a template that is made from the VNFD for the command's counts."""
        # Instances keep their resource names, so Heat keeps their machines.
        indexes = indexes_after(live.definition.template, flavour.vnfd, command.counts, leaving)
        images = await self.orders.made_images(command, cloud, flavour.vnfd, granted_images(given.grant))
        live = replace(live, definition=without_lost_ports(live))
        wanted = await self._connected(command, cloud, live, given, images)
        wanted = await self.orders.with_used_ranges(wanted, flavour.vnfd, cloud)
        # A change of package decides about every machine; any other change leaves the present ones as they are.
        present = None if is_new or isinstance(command, ChangeTemplate) else live.definition.template
        named = given.ports.points.keys()
        template = template_of(flavour.vnfd, wanted, await cloud.capacity.flavors(), indexes, present, named)
        return StackChange(tags, command.timeout_s, template, is_whole=True)


def _entries(vdus: Collection[str], vnfd: Flavour) -> frozenset[str]:
    """Return the names below ``[nfv, VDU]`` of the VDUs and of their storages."""
    storages = [name for vdu in vdus if vdu in vnfd.vdus for name in vnfd.vdus[vdu].storages]
    return frozenset({*vdus, *storages})


def _with_kept_vdus(
    parameters: Mapping[str, object],
    present: StackDefinition,
    *,
    changed: Collection[str] = (),
    only: Collection[str] | None = None,
) -> dict[str, object]:
    """Return the parameters with the present flavors, images and zones of all VDUs except the changed ones.

    ``only``: the names of those values that stay; None: all.
    """
    new, old = parameters.get("nfv"), present_value(present, "nfv")
    new_vdus = new.get("VDU") if isinstance(new, Mapping) else None
    old_vdus = old.get("VDU") if isinstance(old, Mapping) else None
    if not isinstance(new, Mapping) or not isinstance(new_vdus, Mapping) or not isinstance(old_vdus, Mapping):
        return dict(parameters)
    vdus = {
        name: {
            **entry,
            **{key: value for key, value in old_vdus[name].items() if key in entry and (only is None or key in only)},
        }
        if name not in changed and isinstance(entry, Mapping) and isinstance(old_vdus.get(name), Mapping)
        else entry
        for name, entry in new_vdus.items()
    }
    return {**parameters, "nfv": {**new, "VDU": vdus}}


def present_fixed_ips(definition: StackDefinition) -> Mapping[str, Sequence[FixedIp]]:
    """Return ``fixed_ips`` by the name of the connection point: of the ports in the template, and in ``nfv``."""
    nfv = present_value(definition, "nfv")
    given = nfv.get("CP") if isinstance(nfv, Mapping) else None
    found = {name: entry.get("fixed_ips") for name, entry in (given or {}).items() if isinstance(entry, Mapping)}
    found |= {
        name: properties_of(one).get("fixed_ips")
        for name, one in resources_of(definition.template).items()
        if one.get("type") == PORT
    }
    return {
        name: [ip for ip in listed if isinstance(ip, Mapping)]
        for name, listed in found.items()
        if isinstance(listed, list)
    }


def _changed(command: StackCommand, tags: tuple[str, ...], found: Resized) -> StackChange:
    return StackChange(tags, command.timeout_s, found.template, parameters=found.parameters)


def _whole(command: StackCommand, tags: tuple[str, ...], definition: StackDefinition) -> StackChange:
    return StackChange(
        tags, command.timeout_s, definition.template, definition.files, definition.parameters, is_whole=True
    )
