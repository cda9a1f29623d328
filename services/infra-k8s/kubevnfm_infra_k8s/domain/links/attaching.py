"""Checks the interfaces that a VNF asks for on virtual links, and finds how its pods name these (multicloud.md chapter 10). No I/O."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from ipaddress import IPv4Interface, IPv6Interface, ip_interface
from typing import Final

from kubevnfm_clients.multicloud.networks import NetworkRequest
from kubevnfm_csar.machine_bindings import REMOVED_BINDINGS, why_removed
from kubevnfm_events.objects import AttachedLink, NetworkAttachment
from kubevnfm_kit.errors import ConflictingInput, Unprocessable

from kubevnfm_infra_k8s.domain.links.record import Link
from kubevnfm_infra_k8s.domain.links.spec import LinkSpec, Unattachable
from kubevnfm_infra_k8s.domain.links.subnets import in_ranges

Fault = tuple[str, str]
_INTERFACE: Final = re.compile("[a-z0-9-]{1,15}")
_OF_THE_POD: Final = frozenset({"eth0", "lo"})
_MAC: Final = re.compile("([0-9a-f]{2}:){5}[0-9a-f]{2}")
_BINDINGS: Final = ("bridge", "masquerade", "sriov")
_PLUGIN: Final = re.compile("[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_LOST: Final = ("FAILED", "REMOVING")


def attachments(
    asked: Sequence[NetworkRequest],
    links: Mapping[str, Link],
    *,
    vim_id: str,
    reference: str,
    namespace: str | None = None,
) -> tuple[NetworkAttachment, ...]:
    """Return the interfaces with what pods need to know of their links.

    ``links``: those that exist, by id; ``namespace``: that of the pods, None if it is not known yet.

    Raises Unprocessable with all wrong places; ConflictingInput for links that cannot be used now, and for addresses in use.
    """
    faults = [*_requested_faults(asked)]
    conflicts: list[Fault] = []
    found: list[NetworkAttachment] = []
    numbers: dict[str, int] = defaultdict(int)
    for index, each in enumerate(asked):
        numbers[each.vdu_id] += 1
        place, link = f"networks[{index}]", links.get(each.virtual_link_id)
        if link is None or link.vim_id != vim_id:
            where = "does not exist" if link is None else f"is in region {link.cloud_region_id}"
            faults.append((f"{place}/virtual_link_id", f"virtual link {each.virtual_link_id} {where}"))
            continue
        if link.status in _LOST:
            detail = f": {link.status_detail}" if link.status_detail else ""
            conflicts.append((f"{place}/virtual_link_id", f"virtual link {link.name} is {link.status}{detail}"))
        faults += _link_faults(each, link, place)
        faults += [(f"{place}/virtual_link_id", reason) for reason in _namespace_faults(link, reference, namespace)]
        conflicts += [(f"{place}/ip_address", reason) for reason in _taken_by(each, link, reference)]
        if not faults:
            found.append(_attachment(each, link, f"net{numbers[each.vdu_id]}"))
    if faults:
        raise Unprocessable(*faults[0], *faults[1:], *conflicts)
    if conflicts:
        raise ConflictingInput(*conflicts[0], *conflicts[1:])
    return tuple(found)


def address_of(text: str) -> str:
    """Return an address without its prefix length, in the form in which equal ones are equal."""
    return str(ip_interface(text).ip)


def _attachment(asked: NetworkRequest, link: Link, usual_name: str) -> NetworkAttachment:
    spec = link.read_spec()
    definition = spec.definition(link.name, link.places)
    binding = asked.binding
    return NetworkAttachment(
        vdu_id=asked.vdu_id,
        virtual_link_id=link.id,
        interface=asked.interface or usual_name,
        ip_address=asked.ip_address,
        mac_address=asked.mac_address.lower() if asked.mac_address is not None else None,
        default_gateway=asked.default_gateway,
        binding=binding if isinstance(binding, str) else None,
        plugin=str(binding["plugin"]) if isinstance(binding, Mapping) else None,
        link=AttachedLink(
            name=link.name,
            type=link.type,
            definition=definition.name if definition is not None else "",
            definition_namespace=definition.namespace if definition is not None else "",
            is_definition_by_namespace=definition is not None and definition.is_by_namespace,
            gateways=tuple(spec.addressing.gateways),
        ),
    )


def _requested_faults(asked: Sequence[NetworkRequest]) -> Iterator[Fault]:
    """Yield what is wrong whatever the links are."""
    names: set[tuple[str, str]] = set()
    addresses: set[tuple[str, str]] = set()
    leading: set[str] = set()
    for index, each in enumerate(asked):
        place, name = f"networks[{index}]", each.interface
        if name is not None and (_INTERFACE.fullmatch(name) is None or name in _OF_THE_POD):
            yield f"{place}/interface", "1 to 15 of a-z, 0-9 and - expected, other than eth0 and lo"
        elif name is not None and (each.vdu_id, name) in names:
            yield f"{place}/interface", f"another name expected: {each.vdu_id} has {name} already"
        names.add((each.vdu_id, name or ""))
        if each.mac_address is not None and not _is_mac(each.mac_address):
            yield (
                f"{place}/mac_address",
                "an address such as 02:00:00:00:00:01 expected, of one interface (no multicast)",
            )
        if each.ip_address is not None and _interface(each.ip_address) is not None:
            address = (each.virtual_link_id, address_of(each.ip_address))
            if address in addresses:
                yield f"{place}/ip_address", "another address expected: the request gives it twice"
            addresses.add(address)
        if each.default_gateway and each.vdu_id in leading:
            yield f"{place}/default_gateway", f"not expected: {each.vdu_id} has another default gateway"
        if each.default_gateway:
            leading.add(each.vdu_id)
        reason = _binding_fault(each.binding)
        if reason is not None:
            yield f"{place}/binding", reason


def _binding_fault(binding: object) -> str | None:
    if isinstance(binding, Mapping):
        name = binding.get("plugin")
        if set(binding) != {"plugin"} or not isinstance(name, str) or _PLUGIN.fullmatch(name) is None:
            return 'the name of a plug-in expected: {"plugin": "<name>"}'
        return None
    if isinstance(binding, str) and binding in REMOVED_BINDINGS:
        return why_removed(binding)
    if binding == "masquerade":
        return "not expected: it is for the network of the pods alone, and a virtual link is another one"
    return None if binding is None or binding in _BINDINGS else 'bridge, sriov or {"plugin": "<name>"} expected'


def _link_faults(asked: NetworkRequest, link: Link, place: str) -> Iterator[Fault]:
    """Yield what the link cannot fulfil (MC-092)."""
    spec = link.read_spec()
    try:
        definition = spec.definition(link.name, link.places)
    except Unattachable as error:
        yield f"{place}/virtual_link_id", f"virtual link {link.name}: {error}"
        return
    if definition is None:
        for member in ("interface", "ip_address", "mac_address", "binding"):
            if getattr(asked, member) is not None:
                yield (
                    f"{place}/{member}",
                    f"not expected: {link.name} is the primary network of all pods of a namespace",
                )
        if asked.default_gateway:
            yield f"{place}/default_gateway", f"not expected: {link.name} has the default route of its pods"
        return
    addressing = spec.addressing
    if asked.ip_address is not None:
        reason = addressing.why_no_address or _address_fault(asked.ip_address, spec)
        if reason:
            yield f"{place}/ip_address", reason
    if asked.mac_address is not None and addressing.why_no_mac:
        yield f"{place}/mac_address", addressing.why_no_mac
    if asked.default_gateway and not addressing.gateways:
        yield f"{place}/default_gateway", f"not expected: no gateway of {link.name} is known"


def _address_fault(text: str, spec: LinkSpec) -> str | None:
    found = _interface(text)
    if found is None:
        return "an IP address expected"
    if ("/" in text) != spec.addressing.needs_prefix:
        return (
            "an address with its prefix length expected, such as 10.1.0.5/24: the link has no subnet that says it"
            if spec.addressing.needs_prefix
            else "an address without a prefix length expected"
        )
    subnets = [network for _, network in spec.subnets()]
    if subnets and not any(found.ip in network for network in subnets):
        return f"an address in {', '.join(map(str, subnets[:3]))} expected"
    if in_ranges(found.ip, spec.addressing.excluded):
        return "another address expected: this one is excluded, or that of the gateway"
    return None


def _namespace_faults(link: Link, reference: str, namespace: str | None) -> Iterator[str]:
    """Yield why the link cannot serve a namespace beside those of its other users (MC-093)."""
    most = link.read_spec().most_namespaces
    others = {each for one in link.holders if one.reference != reference for each in one.namespaces}
    if namespace is not None and most is not None and len({*others, namespace}) > most:
        yield f"a link that serves {namespace} expected: {link.name} serves {', '.join(sorted(others))}"


def _taken_by(asked: NetworkRequest, link: Link, reference: str) -> Iterator[str]:
    if asked.ip_address is None or _interface(asked.ip_address) is None:
        return
    holder = link.holder_of_address(address_of(asked.ip_address), other_than=reference)
    if holder is not None:
        yield f"{asked.ip_address} of {link.name} is in use by {holder}"


def _interface(text: str) -> IPv4Interface | IPv6Interface | None:
    try:
        return ip_interface(text)
    except ValueError:
        return None


def _is_mac(text: str) -> bool:
    return _MAC.fullmatch(text.lower()) is not None and not int(text[:2], 16) & 1
