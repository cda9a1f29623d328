"""The interfaces of a CNF on virtual links: what a request of SOL003 asks for, and its checks (multicloud.md MC-099)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from kubevnfm_clients.multicloud.links import VNF_REFERENCE, VirtualLinks
from kubevnfm_clients.multicloud.networks import MOST_NETWORKS, AttachRequest, NetworkRequest
from kubevnfm_csar.manifest_limits import budget_of_a_set
from kubevnfm_csar.networked_workloads import network_faults, networked_workloads
from kubevnfm_csar.ordered_manifests import members_of
from kubevnfm_csar.profiled_workloads import profiled
from kubevnfm_csar.vnfd.model import Flavour
from kubevnfm_events.objects import AttachedLink, ChartOrder, NetworkAttachment
from kubevnfm_kit.errors import InvalidInput, Unprocessable
from kubevnfm_kit.foreign_yaml.kubernetes import read_kubernetes_yaml
from kubevnfm_kit.foreign_yaml.reader import YamlRefused
from kubevnfm_sol.connectivity import ExtManagedVirtualLinkData, ExtVirtualLinkData, VnfExtCpData, shown_of_managed
from kubevnfm_sol.lcm import InstantiateVnfRequest
from kubevnfm_sol.resources import ExtVirtualLinkInfo

from kubevnfm_lcm_api.lifecycle.containers.manifests import package_texts
from kubevnfm_lcm_api.lifecycle.core.faults import Faults
from kubevnfm_lcm_api.lifecycle.core.kind import Asked
from kubevnfm_lcm_api.lifecycle.core.ports import PackageCatalogue
from kubevnfm_lcm_api.lifecycle.core.resource_handle import handle

_LINK: Final = "VirtualLink"
"""The type by which SOL003 shows a virtual link."""
_OF_ETHERNET: Final = frozenset({"macAddress", "ipAddresses"})
_OF_ADDRESSES: Final = frozenset({"type", "fixedAddresses", "numDynamicAddresses"})


@dataclass(frozen=True)
class AskedNetwork:
    """An interface that a request asks for."""

    network: NetworkRequest
    place: str
    """Where the request asks for it."""
    places: Mapping[str, str]
    """Where it has the members of the network, as far as it has them."""


@dataclass(frozen=True)
class AskedNetworks:
    """The interfaces that a request asks for, with what pods need to know of their links."""

    asked: Sequence[AskedNetwork] = ()
    attached: tuple[NetworkAttachment, ...] = ()
    are_known: bool = True
    """Whether all links are; if not, their VDUs alone can be checked."""


async def requested_networks(
    links: VirtualLinks,
    given: Asked[InstantiateVnfRequest],
    flavour: Flavour,
    faults: Faults,
    *,
    vim_id: str | None,
    vim_key: str,
    vnf_id: str,
    namespace: str | None,
) -> AskedNetworks:
    """Return the interfaces of a request, or those that its links stand for. All wrong places of the request go to the faults."""
    asked = [
        *_of_links(given.request.ext_virtual_links, flavour, vim_key, faults),
        *_of_managed_links(given.request.ext_managed_virtual_links, flavour, vim_key, faults),
        *(_as_given(index, network) for index, network in enumerate(given.networks or ())),
    ]
    return await _attached(links, asked, faults, vim_id=vim_id, vnf_id=vnf_id, namespace=namespace)


async def changed_networks(
    links: VirtualLinks,
    networks: Sequence[NetworkRequest],
    faults: Faults,
    *,
    vim_id: str | None,
    vnf_id: str,
    namespace: str | None,
) -> AskedNetworks:
    """Return the interfaces that a change names, as `requested_networks` does."""
    asked = [_as_given(index, network) for index, network in enumerate(networks)]
    return await _attached(links, asked, faults, vim_id=vim_id, vnf_id=vnf_id, namespace=namespace)


async def _attached(
    links: VirtualLinks,
    asked: Sequence[AskedNetwork],
    faults: Faults,
    *,
    vim_id: str | None,
    vnf_id: str,
    namespace: str | None,
) -> AskedNetworks:
    if not asked:
        return AskedNetworks()
    with faults.noted():
        return AskedNetworks(asked, await _known(links, asked, vim_id=vim_id, vnf_id=vnf_id, namespace=namespace))
    unknown = tuple(
        NetworkAttachment(
            vdu_id=each.network.vdu_id,
            virtual_link_id=each.network.virtual_link_id,
            interface=f"net{index}",
            link=AttachedLink(name="", type=""),
        )
        for index, each in enumerate(asked)
    )
    return AskedNetworks(asked, unknown, are_known=False)


async def _known(
    links: VirtualLinks, asked: Sequence[AskedNetwork], *, vim_id: str | None, vnf_id: str, namespace: str | None
) -> tuple[NetworkAttachment, ...]:
    """Raises: InvalidInput, Unprocessable, ConflictingInput, each with all wrong places of the request."""
    if vim_id is None:
        raise Unprocessable(asked[0].place, "a registered VIM expected: virtual links are in cloud regions")
    if len(asked) > MOST_NETWORKS:
        raise Unprocessable(asked[-1].place, f"up to {MOST_NETWORKS} connection points expected")
    wanted = AttachRequest(
        vim_id=vim_id,
        reference=f"{VNF_REFERENCE}{vnf_id}",
        namespace=namespace,
        networks=tuple(each.network for each in asked),
    )
    try:
        return await links.attach(wanted)
    except InvalidInput as error:
        raise _placed(error, asked) from error


async def check_networks(
    packages: PackageCatalogue, order: ChartOrder, networks: AskedNetworks, bodies: Sequence[Any] | None
) -> None:
    """Check the interfaces of an order against the manifests of the package, as far as these are known before the operation.

    ``networks``: those of the order; ``bodies``: the objects of a package with an order, with their variables filled in; None: it has no order.
    Raises Unprocessable.
    """
    # A chart and files behind URLs are known to infra-k8s alone, which checks before it applies anything.
    if not order.networks or order.charts or order.variables is not None:
        return
    is_complete = True
    if bodies is None:
        texts = await package_texts(packages, order.package.package_id, order.def_files)
        is_complete = len(texts) == len(order.def_files)
        bodies = await asyncio.to_thread(_bodies, [text for _, text in texts])
    faults = await asyncio.to_thread(_workload_faults, bodies, order)
    found = [each for each in faults if (is_complete if each[0].endswith("/vdu_id") else networks.are_known)]
    if found:
        raise _placed(Unprocessable(*found[0], *found[1:]), networks.asked)


def link_infos(links: Sequence[Mapping[str, Any]], vim_key: str) -> tuple[ExtVirtualLinkInfo, ...] | None:
    """Return the external links of a CNF as SOL003 shows them; None: it has none."""
    return (
        tuple(
            ExtVirtualLinkInfo(
                id=str(link["id"]),
                resource_handle=handle(str(link["resourceId"]), vim_key, _LINK),
                current_vnf_ext_cp_data=tuple(dict(cp) for cp in link.get("extCps") or ()),
            )
            for link in links
        )
        or None
    )


def managed_link_infos(links: Sequence[Mapping[str, Any]], vim_key: str) -> tuple[dict[str, Any], ...] | None:
    """Return the links of its internal virtual links as SOL003 shows them; None: it has none."""
    return (
        tuple(
            {
                **shown_of_managed(link),
                "networkResource": handle(str(link["resourceId"]), vim_key, _LINK).model_dump(
                    by_alias=True, exclude_none=True
                ),
            }
            for link in links
        )
        or None
    )


def _bodies(texts: Sequence[str]) -> Sequence[Any]:
    budget, bodies = budget_of_a_set(), []
    for text in texts:
        # Faults of files are infra-k8s' matter, which names their places.
        with suppress(YamlRefused):
            bodies += [body for document in read_kubernetes_yaml(text, budget) for body in members_of(document)]
    return bodies


def _workload_faults(bodies: Sequence[Any], order: ChartOrder) -> Sequence[tuple[str, str]]:
    # A profile can have several pods where the manifest has one.
    bodies = profiled(bodies, order.compute_profiles, order.vdus).bodies
    workloads, faults = networked_workloads(bodies, order.networks, order.vdus)
    return [*faults, *(fault for each in workloads for fault in network_faults(each, order.vdus))]


def _placed(error: InvalidInput, asked: Sequence[AskedNetwork]) -> InvalidInput:
    """Return the error with the places of the request in the place of those of the networks."""
    faults = []
    for place, reason in error.places:
        index, _, member = place.removeprefix("networks[").partition("]/")
        if not index.isdigit() or int(index) >= len(asked):
            return error
        one = asked[int(index)]
        faults.append((one.places.get(member, one.place), reason))
    return type(error)(*faults[0], *faults[1:])


def _as_given(index: int, network: NetworkRequest) -> AskedNetwork:
    place = f"networks[{index}]"
    return AskedNetwork(network, place, {name: f"{place}/{name}" for name in NetworkRequest.model_fields})


def _of_links(
    links: Sequence[ExtVirtualLinkData], flavour: Flavour, vim_key: str, faults: Faults
) -> Iterator[AskedNetwork]:
    for index, link in enumerate(links):
        place = f"extVirtualLinks[{index}]"
        with faults.noted():
            _check_vim(link, place, vim_key)
        with faults.noted():
            if link.ext_link_ports:
                raise Unprocessable(f"{place}/extLinkPorts", "not supported for a CNF: its pods get ports of their own")
        for number, cp in enumerate(link.ext_cps):
            with faults.noted():
                yield _of_cp(cp, link.resource_id, flavour, place, f"{place}/extCps[{number}]")


def _of_cp(cp: VnfExtCpData, link_id: str, flavour: Flavour, place: str, at: str) -> AskedNetwork:
    """Return the interface that a connection point on a link stands for; ``place``: that of the link. Raises InvalidInput, Unprocessable."""
    found = flavour.cps.get(cp.cpd_id)
    if found is None or found.vdu_id is None:
        known = ", ".join(cp_id for cp_id, one in flavour.cps.items() if one.is_external and one.vdu_id)
        reason = f"the VNFD has no connection point {cp.cpd_id} of a VDU; its external ones: {known or 'none'}"
        raise InvalidInput(f"{at}/cpdId", reason)
    address, mac, places = _protocol(cp, at)
    network = NetworkRequest(vdu_id=found.vdu_id, virtual_link_id=link_id, ip_address=address, mac_address=mac)
    return AskedNetwork(network, at, {**places, "virtual_link_id": f"{place}/resourceId", "vdu_id": f"{at}/cpdId"})


def _of_managed_links(
    links: Sequence[ExtManagedVirtualLinkData], flavour: Flavour, vim_key: str, faults: Faults
) -> Iterator[AskedNetwork]:
    for index, link in enumerate(links):
        place = f"extManagedVirtualLinks[{index}]"
        with faults.noted():
            _check_vim(link, place, vim_key)
        with faults.noted():
            if link.vnf_link_port:
                raise Unprocessable(f"{place}/vnfLinkPort", "not supported for a CNF: its pods get ports of their own")
        with faults.noted():
            for vdu_id in _vdus_on(link.vnf_virtual_link_desc_id, flavour, place):
                network = NetworkRequest(vdu_id=vdu_id, virtual_link_id=link.resource_id)
                yield AskedNetwork(network, place, {"virtual_link_id": f"{place}/resourceId"})


def _vdus_on(name: str, flavour: Flavour, place: str) -> Sequence[str]:
    """Return the VDUs with a connection point on a virtual link of the VNFD. Raises Unprocessable if there are none."""
    vdus = [cp.vdu_id for cp in flavour.cps.values() if cp.virtual_link == name and cp.vdu_id is not None]
    if not vdus:
        known = ", ".join(flavour.virtual_links) or "none"
        reason = f"no connection point of a VDU is on {name}; the virtual links of the VNFD: {known}"
        raise Unprocessable(f"{place}/vnfVirtualLinkDescId", reason)
    return vdus


def _check_vim(link: ExtVirtualLinkData | ExtManagedVirtualLinkData, place: str, vim_key: str) -> None:
    if link.vim_connection_id not in (None, vim_key):
        raise Unprocessable(f"{place}/vimConnectionId", f"{vim_key}, where the CNF is, expected")


def _protocol(cp: VnfExtCpData, place: str) -> tuple[str | None, str | None, dict[str, str]]:
    """Return the fixed address and MAC of a connection point, and where the request has them. Raises Unprocessable."""
    configs = {name: config for name, config in cp.cp_config.items() if config is not None}
    if len(configs) > 1:
        raise Unprocessable(f"{place}/cpConfig", "up to one entry expected: all pods of a VDU have the same interfaces")
    for name, config in configs.items():
        at = f"{place}/cpConfig/{name}"
        for member, given in (
            ("parentCpConfigId", config.parent_cp_config_id),
            ("linkPortId", config.link_port_id),
            ("createExtLinkPort", config.create_ext_link_port or None),
            ("netAttDefResourceId", config.net_att_def_resource_id),
        ):
            if given is not None:
                raise Unprocessable(f"{at}/{member}", "not supported for a CNF on a virtual link: leave it out")
        data = config.cp_protocol_data or ()
        if len(data) > 1:
            raise Unprocessable(f"{at}/cpProtocolData", "up to one element expected")
        for one in data:
            shown = one.model_dump(mode="json", by_alias=True, exclude_none=True)
            return _of_ethernet(shown, f"{at}/cpProtocolData[0]")
    return None, None, {}


def _of_ethernet(data: Mapping[str, Any], place: str) -> tuple[str | None, str | None, dict[str, str]]:
    at = f"{place}/ipOverEthernet"
    found = data.get("ipOverEthernet") or {}
    if not isinstance(found, Mapping):
        raise Unprocessable(at, "an object expected")
    _check_members(found, _OF_ETHERNET, at)
    lists = found.get("ipAddresses") or []
    if not isinstance(lists, list | tuple) or not all(isinstance(each, Mapping) for each in lists):
        raise Unprocessable(f"{at}/ipAddresses", "an array of objects expected")
    fixed: list[str] = []
    for index, each in enumerate(lists):
        _check_members(each, _OF_ADDRESSES, f"{at}/ipAddresses[{index}]")
        if (each.get("numDynamicAddresses") or 1) > 1:
            raise Unprocessable(f"{at}/ipAddresses[{index}]/numDynamicAddresses", "up to one address expected")
        given = each.get("fixedAddresses") or []
        if not isinstance(given, list | tuple) or not all(isinstance(one, str) for one in given):
            raise Unprocessable(f"{at}/ipAddresses[{index}]/fixedAddresses", "an array of texts expected")
        fixed += given
    if len(fixed) > 1:
        raise Unprocessable(f"{at}/ipAddresses", "up to one fixed address expected")
    mac = found.get("macAddress")
    if mac is not None and not isinstance(mac, str):
        raise Unprocessable(f"{at}/macAddress", "a text expected")
    places = {"ip_address": f"{at}/ipAddresses", "mac_address": f"{at}/macAddress"}
    return (fixed[0] if fixed else None), mac, places


def _check_members(given: Mapping[str, Any], known: frozenset[str], place: str) -> None:
    for name, value in given.items():
        if name not in known and value is not None:
            raise Unprocessable(f"{place}/{name}", "not supported for a CNF on a virtual link: leave it out")
