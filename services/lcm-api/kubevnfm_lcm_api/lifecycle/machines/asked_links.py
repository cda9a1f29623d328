"""Checks the virtual links and connection points that a request names: what cannot be done is refused before the operation."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Any, Final

from kubevnfm_csar.hot import NETWORK, BaseHot, parameter_paths
from kubevnfm_csar.vnfd.clones import node_of, number_of
from kubevnfm_csar.vnfd.model import Flavour
from kubevnfm_kit.errors import InvalidInput, Unprocessable
from kubevnfm_sol.connection_points import AskedPoint, AskedPort, asked_points
from kubevnfm_sol.connectivity import (
    ExtManagedVirtualLinkData,
    ExtVirtualLinkData,
    VnfExtCpConfig,
    VnfExtCpData,
)
from kubevnfm_sol.granting import Grant
from kubevnfm_sol.resources import InstantiatedVnfInfo, ResourceHandle

from kubevnfm_lcm_api.lifecycle.core.granting import GrantUnusable

_NO_TRUNKS: Final = "not supported: trunks of a VNF are made by its templates"
_ONE_NETWORK: Final = "the machines of a VDU have a connection point on the same network"


@dataclass(frozen=True)
class LinkRules:
    """The facts that decide whether links can be made."""

    flavour: Flavour
    hot: BaseHot | None
    vim_ids: Collection[str]
    """The names of the VIM in the request: its entry of vimConnectionInfo, and its id. Empty: the grant decides."""
    has_user_data: bool = False
    """Whether a class of the package makes the parameters of the stack: it may read whatever the request has."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """Machines by VDU."""
    before: InstantiatedVnfInfo | None = None
    """The VNF that is changed; None: a new one."""
    links_before: Sequence[Mapping[str, Any]] = ()
    """Its external links."""
    is_numbered: bool = False
    """Whether its stack has a resource for each machine, of which the template has the pattern."""

    @property
    def is_built_in(self) -> bool:
        """Whether the parameters of a Base HOT are made by the built-in rules."""
        return self.hot is not None and not self.has_user_data

    def vdu_of(self, cpd_id: str) -> str:
        """Return the VDU of a connection point; empty: it has none."""
        cp = self.flavour.cps.get(cpd_id)
        return (cp.vdu_id if cp is not None else None) or ""

    def machines_of(self, cpd_id: str) -> int:
        """Return the number of machines that have the connection point."""
        return self.counts.get(self.vdu_of(cpd_id), 0)

    @property
    def texts(self) -> Sequence[str]:
        """The templates of the package."""
        return [one.text for one in self.hot.templates] if self.hot is not None else []

    def has_word(self, word: str) -> bool:
        """Return whether a template has the word, as a name or as a value."""
        pattern = re.compile(rf"(?<![\w-]){re.escape(word)}(?![\w-])")
        return any(pattern.search(text) for text in self.texts)

    def read_by_template(self, cpd_id: str) -> Mapping[str, AbstractSet[tuple[object, ...]]]:
        """Return the rests of the paths ``[nfv, CP, <name>, <attribute>, ...]`` that the top template reads, by attribute."""
        found: dict[str, set[tuple[object, ...]]] = {}
        for path in parameter_paths(self.hot.top.body) if self.hot is not None else ():
            if len(path) > 3 and path[:2] == ["nfv", "CP"] and node_of(str(path[2]), {cpd_id}) is not None:
                found.setdefault(str(path[3]), set()).add(tuple(map(str, path[4:])))
        return found

    def has_numbered(self, cpd_id: str) -> bool:
        """Return whether the stack has parameters of their own for the machines of a VDU: ``CP1-0``, ``CP1-1``."""
        if self.is_numbered:
            return True
        paths = list(parameter_paths(self.hot.top.body)) if self.hot is not None else []
        names = {str(path[2]) for path in paths if len(path) > 3 and path[:2] == ["nfv", "CP"]}
        return any(number_of(name, cpd_id) is not None for name in names)


def check_links(
    links: Sequence[ExtVirtualLinkData], rules: LinkRules, *, after: Sequence[Mapping[str, Any]] | None = None
) -> None:
    """Raise InvalidInput or Unprocessable for what the links cannot have. ``after``: all links after the operation."""
    bodies = [link.model_dump(mode="json", by_alias=True, exclude_none=True) for link in links]
    points = asked_points(after if after is not None else bodies)
    before = asked_points(rules.links_before)
    seen: dict[str, str] = {}
    place_by_cp: dict[str, str] = {}
    check_possible(links, has_user_data=rules.has_user_data)
    for index, (link, body) in enumerate(zip(links, bodies, strict=True)):
        place = f"extVirtualLinks[{index}]"
        _check_vim(link, place, rules)
        for number, port in enumerate(link.ext_link_ports or ()):
            _check_vim(port.resource_handle, f"{place}/extLinkPorts[{number}]/resourceHandle", rules)
        for number, cp in enumerate(link.ext_cps):
            at = f"{place}/extCps[{number}]"
            _check_point(cp, at, rules)
            if place_by_cp.setdefault(cp.cpd_id, at) != at and not rules.has_user_data:
                reason = f"{cp.cpd_id} is at {place_by_cp[cp.cpd_id]} already: {_ONE_NETWORK}"
                raise Unprocessable(f"{at}/cpdId", reason)
            own = asked_points([{**body, "extCps": [body["extCps"][number]]}])[cp.cpd_id]
            known = {each["id"] for one in (body, *_same(rules, link)) for each in one.get("extLinkPorts") or ()}
            for asked in own.ports:
                _check_port(asked, cp.cpd_id, f"{at}/cpConfig/{asked.config_id}", rules, known, link.resource_id, seen)
            wanted = points.get(cp.cpd_id)
            if not rules.has_user_data:
                _check_move(cp, wanted, before.get(cp.cpd_id), f"{at}/cpConfig")
            _check_number(cp.cpd_id, wanted.ports if wanted is not None else (), f"{at}/cpConfig", rules)


def check_added(place: str, rules: LinkRules) -> None:
    """Raise Unprocessable if machines are added to a VDU of a Base HOT that gives each what one port only can have.

    ``rules``: with the wanted numbers of machines.
    """
    if rules.is_built_in and rules.before is not None:
        present = Counter(one.vdu_id for one in rules.before.vnfc_resource_info)
        for cpd_id, point in asked_points(rules.links_before).items():
            if rules.machines_of(cpd_id) > present[rules.vdu_of(cpd_id)]:
                _check_shared(place, cpd_id, point.ports, rules)


def check_kept(place: str, links: Sequence[Mapping[str, Any]], rules: LinkRules, counts: Mapping[str, int]) -> None:
    """Raise Unprocessable if the new template of a VNF would lose what the ports have that the request does not name.

    ``links``: after the change; ``counts``: machines by VDU after it.
    """
    if not rules.is_built_in:
        return
    before = asked_points(rules.links_before)
    for cpd_id, point in asked_points(links).items():
        for asked in point.ports if before.get(cpd_id) == point else ():
            try:
                _check_port_read(asked, cpd_id, f"extVirtualLinks/{cpd_id}/cpConfig/{asked.config_id}", rules)
            except Unprocessable as error:
                raise Unprocessable(place, f"{error.field}: {error.reason}") from error
        _check_shared(place, cpd_id, point.ports, replace(rules, counts=counts))


def _check_shared(place: str, cpd_id: str, ports: Sequence[AskedPort], rules: LinkRules) -> None:
    if rules.machines_of(cpd_id) < 2 or rules.has_numbered(cpd_id):
        return
    read = rules.read_by_template(cpd_id)
    for port in ports:
        given = {"port": port.link_port_id, "mac_address": port.mac, "fixed_ips": ", ".join(port.fixed)}
        for value in [value for name, value in given.items() if value and name in read]:
            reason = (
                f"the package's Heat template gives all machines of {rules.vdu_of(cpd_id)} the same port at {cpd_id}"
            )
            raise Unprocessable(place, f"{rules.machines_of(cpd_id)} machines cannot have {value}: {reason}")


def check_managed_links(links: Sequence[ExtManagedVirtualLinkData], rules: LinkRules) -> None:
    """Raise Unprocessable for a virtual link that the VNF does not have, or that is given twice."""
    seen: set[str] = set()
    check_managed_possible(links)
    for index, link in enumerate(links):
        place, name = f"extManagedVirtualLinks[{index}]", link.vnf_virtual_link_desc_id
        _check_vim(link, place, rules)
        networks = [n for n, kind in (rules.hot.top.resource_types if rules.hot else {}).items() if kind == NETWORK]
        known = dict.fromkeys([*networks, *(rules.flavour.virtual_links if not rules.is_built_in else ())])
        if name in seen or (name not in known and not (rules.has_user_data and rules.has_word(name))):
            expected = f"{', '.join(known)} expected" if known else "the VNF has no virtual link of its own"
            reason = "only once expected" if name in seen else expected
            raise Unprocessable(f"{place}/vnfVirtualLinkDescId", f"{name}: {reason}")
        seen.add(name)


def _check_vim(
    link: ExtVirtualLinkData | ExtManagedVirtualLinkData | ResourceHandle, place: str, rules: LinkRules
) -> None:
    if link.vim_connection_id is not None and rules.vim_ids and link.vim_connection_id not in rules.vim_ids:
        expected = " or ".join(sorted(rules.vim_ids))
        raise Unprocessable(f"{place}/vimConnectionId", f"{expected}, where the machines are, expected")


def _check_point(cp: VnfExtCpData, place: str, rules: LinkRules) -> None:
    # User data may read a name that the VNFD does not have, and hand it to a parameter of its template.
    if cp.cpd_id not in rules.flavour.cps and not rules.has_word(cp.cpd_id):
        known = ", ".join(cp_id for cp_id, one in rules.flavour.cps.items() if one.is_external)
        reason = f"the VNFD has no connection point {cp.cpd_id}; its external ones: {known or 'none'}"
        raise InvalidInput(f"{place}/cpdId", reason)
    if rules.before is not None and rules.is_built_in and "network" not in rules.read_by_template(cp.cpd_id):
        reason = f"the package's Heat template has no parameter for the network of {cp.cpd_id}"
        raise Unprocessable(f"{place}/cpdId", reason)


def _check_move(cp: VnfExtCpData, wanted: AskedPoint | None, before: AskedPoint | None, place: str) -> None:
    """Raise Unprocessable for a move of some connection point instances of a VDU that would move the others too."""
    if wanted is None or before is None or before.network == wanted.network:
        return
    present = {port.config_id for port in before.ports}
    left = sorted(present & {port.config_id for port in wanted.ports} - cp.cp_config.keys())
    if left and not present.isdisjoint(cp.cp_config):
        raise Unprocessable(place, f"{', '.join(left)} expected too: {_ONE_NETWORK}")


def check_possible(links: Sequence[ExtVirtualLinkData], *, has_user_data: bool) -> None:
    """Raise Unprocessable for what no machine can have on links of a request or of a grant."""
    for index, link in enumerate(links):
        place = f"extVirtualLinks[{index}]"
        for number, port in enumerate(link.ext_link_ports or ()):
            at = f"{place}/extLinkPorts[{number}]"
            if port.trunk_resource_id is not None:
                raise Unprocessable(f"{at}/trunkResourceId", _NO_TRUNKS)
        for number, cp in enumerate(link.ext_cps):
            for name, config in cp.cp_config.items():
                if config is not None:
                    at = f"{place}/extCps[{number}]/cpConfig/{name}"
                    _check_config(config, at, has_user_data=has_user_data)


def check_managed_possible(links: Sequence[ExtManagedVirtualLinkData]) -> None:
    """Raise Unprocessable for what no network of a VNF of machines can have in a request or in a grant."""
    for index, link in enumerate(links):
        place = f"extManagedVirtualLinks[{index}]"
        if link.vnf_link_port:
            raise Unprocessable(f"{place}/vnfLinkPort", "not supported: the VNF makes its ports on the network")


def check_granted(grant: Grant, *, has_user_data: bool) -> None:
    """Raise GrantUnusable for links of a grant with what no machine can have."""
    try:
        check_possible(grant.ext_virtual_links or (), has_user_data=has_user_data)
        check_managed_possible(grant.ext_managed_virtual_links or ())
    except Unprocessable as error:
        raise GrantUnusable(error.field, error.reason) from error


def _check_config(config: VnfExtCpConfig, place: str, *, has_user_data: bool) -> None:
    """Raise Unprocessable for what no connection point of a machine can have."""
    if config.create_ext_link_port is not None:
        reason = "expected for a virtual IP address only, and this connection point has none"
        raise Unprocessable(f"{place}/createExtLinkPort", reason)
    if config.net_att_def_resource_id is not None:
        raise Unprocessable(f"{place}/netAttDefResourceId", "for containers only")
    if has_user_data:
        return
    if config.parent_cp_config_id is not None:
        raise Unprocessable(f"{place}/parentCpConfigId", _NO_TRUNKS)
    for index, data in enumerate(config.cp_protocol_data or ()):
        ethernet = data.ip_over_ethernet
        for name, given in (
            ("segmentationId", ethernet and ethernet.segmentation_id),
            ("segmentationType", ethernet and ethernet.segmentation_type),
        ):
            if given is not None:
                raise Unprocessable(f"{place}/cpProtocolData[{index}]/ipOverEthernet/{name}", _NO_TRUNKS)
    if len(config.cp_protocol_data or ()) > 1:
        raise Unprocessable(f"{place}/cpProtocolData[1]", "one element expected: a port has one layer protocol")


def _check_port(
    asked: AskedPort,
    cpd_id: str,
    place: str,
    rules: LinkRules,
    known_ports: Collection[str],
    network: str,
    seen: dict[str, str],
) -> None:
    ethernet = f"{place}/cpProtocolData[0]/ipOverEthernet"
    places = [(f"{place}/linkPortId", asked.link_port_id), (f"{ethernet}/macAddress", asked.mac)]
    for where, value in (*places, *((f"{ethernet}/ipAddresses", address) for address in asked.fixed)):
        # Networks can have the same addresses; one network cannot.
        key = f"{network}/{value}"
        if value is not None and key in seen:
            raise Unprocessable(where, f"{value} is at {seen[key]} already")
        seen[key] = where
    if asked.link_port_id is not None and asked.port_id is None and asked.link_port_id not in known_ports:
        reason = (
            f"{', '.join(sorted(known_ports))} expected, of extLinkPorts" if known_ports else "extLinkPorts is empty"
        )
        raise Unprocessable(f"{place}/linkPortId", f"unknown link port {asked.link_port_id}: {reason}")
    if asked.mac is not None and not _may_have_mac(asked.mac, cpd_id, network, rules):
        reason = "the MAC address of a port cannot be changed on its network: leave it out, or give the present one"
        raise Unprocessable(f"{ethernet}/macAddress", reason)
    if rules.is_built_in:
        _check_port_read(asked, cpd_id, place, rules)


def _check_port_read(asked: AskedPort, cpd_id: str, place: str, rules: LinkRules) -> None:
    """Raise Unprocessable for what the template does not read from the parameters, and does not have itself."""
    ethernet = f"{place}/cpProtocolData[0]/ipOverEthernet"
    read = rules.read_by_template(cpd_id)
    if asked.port_id is not None and "port" not in read and not rules.has_word(asked.port_id):
        raise _unread("the port", "port", cpd_id, f"{place}/linkPortId")
    # The attributes of a port that exists are its own.
    if asked.port_id is not None:
        return
    if asked.mac is not None and "mac_address" not in read and not rules.has_word(asked.mac):
        raise _unread("the MAC address", "mac_address", cpd_id, f"{ethernet}/macAddress")
    _check_addresses_read(asked, cpd_id, f"{ethernet}/ipAddresses", read.get("fixed_ips"), rules.has_word)


def _check_addresses_read(
    asked: AskedPort,
    cpd_id: str,
    place: str,
    read: AbstractSet[tuple[object, ...]] | None,
    has_word: Callable[[str], bool],
) -> None:
    """Raise Unprocessable for addresses that the template does not read from the parameters, and does not have itself."""
    if asked.is_plain:
        return
    place_of = 0
    for number, one in enumerate(asked.addresses):
        # An address is of one subnet.
        member = "subnet" if one.dynamic else "ip_address"
        for index in range(place_of, place_of + one.amount):
            is_read = read is not None and not read.isdisjoint({(), (str(index),), (str(index), member)})
            is_written = bool(one.fixed) and all(map(has_word, one.fixed))
            if not is_read and not is_written:
                raise _unread(f"address {index + 1}", "fixed_ips", cpd_id, f"{place}[{number}]")
        place_of += one.amount


def _unread(what: str, name: str, cpd_id: str, place: str) -> Unprocessable:
    reason = f"the package's Heat template has no parameter [nfv, CP, {cpd_id}, {name}] for {what}"
    return Unprocessable(place, reason)


def _check_number(cpd_id: str, ports: Sequence[AskedPort], place: str, rules: LinkRules) -> None:
    """Raise Unprocessable for more entries than the VDU can have machines, or a template can give addresses."""
    cp = rules.flavour.cps.get(cpd_id)
    if cp is None or cp.vdu_id is None:
        return
    most = rules.flavour.max_count(cp.vdu_id)
    if len(ports) > max(most, 1):
        named = ", ".join(port.config_id for port in ports)
        reason = f"VDU {cp.vdu_id} has no more machines, and there would be {named}: null removes an entry"
        raise Unprocessable(place, f"up to {most} entries expected: {reason}")
    if not rules.is_built_in or rules.has_numbered(cpd_id):
        return
    own = [port for port in ports if port.is_for_one]
    if own and (len(ports) > 1 or rules.counts.get(cp.vdu_id, 1) > 1):
        reason = "the package's Heat template gives all machines of a VDU the same port, MAC and fixed addresses"
        raise Unprocessable(place, f"none of one machine only expected: {reason}")


def _may_have_mac(mac: str, cpd_id: str, network: str, rules: LinkRules) -> bool:
    """Return whether a port can get the MAC address: it is new, moves to another network, or has it."""
    before = asked_points(rules.links_before).get(cpd_id)
    if rules.before is None or before is None or before.network != network:
        return True
    shown = [
        one.ip_over_ethernet.mac_address
        for cp in rules.before.ext_cp_info
        if cp.cpd_id == cpd_id
        for one in cp.cp_protocol_info
        if one.ip_over_ethernet is not None
    ]
    return not shown or mac in [one.lower() for one in shown if one is not None]


def _same(rules: LinkRules, link: ExtVirtualLinkData) -> Sequence[Mapping[str, Any]]:
    """Return the link of that id that the VNF has."""
    return [one for one in rules.links_before if one.get("id") == link.id]
