"""Which port each connection point instance is to have: the one reading of ``extVirtualLinks`` as documents hold them.

An entry of ``cpConfig`` is one connection point instance (SOL003 4.4.1.10, note 2). An entry that gives nothing that only one
port can have is for all instances, if it is the only one: most clients send one for all machines of a VDU.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, TypeVar

I = TypeVar("I", bound=Hashable)  # noqa: E741 - an instance of a connection point


@dataclass(frozen=True)
class AskedAddresses:
    """Addresses of one type: fixed ones, a number of free ones, or one of a range."""

    is_ipv6: bool
    fixed: tuple[str, ...] = ()
    """In canonical form."""
    dynamic: int = 0
    within: tuple[str, str] | None = None
    """The first and the last address of the range, of which one is wanted."""
    subnet_id: str | None = None

    @property
    def amount(self) -> int:
        """The number of addresses."""
        return len(self.fixed) + self.dynamic + (self.within is not None)

    def is_within(self, address: str) -> bool:
        """Return whether an address is one of the range."""
        if self.within is None or (":" in address) != self.is_ipv6:
            return False
        first, last = (int(ip_address(end)) for end in self.within)
        return first <= int(ip_address(address)) <= last


@dataclass(frozen=True)
class AskedPort:
    """An entry of ``cpConfig``."""

    config_id: str
    link_port_id: str | None = None
    port_id: str | None = None
    """The VIM's id of that link port; None: the link has no such port."""
    mac: str | None = None
    addresses: tuple[AskedAddresses, ...] = ()

    @property
    def fixed(self) -> tuple[str, ...]:
        """All fixed addresses."""
        return tuple(address for one in self.addresses for address in one.fixed)

    @property
    def is_plain(self) -> bool:
        """Whether a port that names no address gets what is asked: the VIM gives it one free address of each type."""
        return all(one.dynamic == 1 and one.subnet_id is None for one in self.addresses) and len(self.addresses) == len(
            {one.is_ipv6 for one in self.addresses}
        )

    @property
    def is_for_one(self) -> bool:
        """Whether it gives what only one port can have."""
        return self.link_port_id is not None or self.mac is not None or bool(self.fixed)

    def is_shown_by(self, port_id: str, mac: str | None, addresses: Collection[str]) -> bool:
        """Return whether a port is the one that the entry describes, by what only one port can have."""
        if self.link_port_id is not None:
            return port_id == self.port_id
        if self.mac is not None:
            return mac is not None and mac.lower() == self.mac
        return bool(self.fixed) and set(self.fixed) <= {canonical(one) for one in addresses}


@dataclass(frozen=True)
class AskedPoint:
    """The wanted network and ports of a connection point."""

    cpd_id: str
    link_id: str
    network: str
    """Id or name."""
    ports: tuple[AskedPort, ...] = ()


def asked_points(*links: Iterable[Mapping[str, Any]]) -> Mapping[str, AskedPoint]:
    """Return what is asked by connection point; ``links``: extVirtualLinks, of several sources the first that names it."""
    found: dict[str, AskedPoint] = {}
    for source in links:
        for link in source:
            port_by_id = {one["id"]: one["resourceHandle"]["resourceId"] for one in link.get("extLinkPorts") or ()}
            for cp in link.get("extCps") or ():
                cpd_id = str(cp.get("cpdId"))
                if cpd_id in found:
                    continue
                configs = (cp.get("cpConfig") or {}).items()
                ports = tuple(_port(str(name), config, port_by_id) for name, config in configs if config is not None)
                found[cpd_id] = AskedPoint(cpd_id, str(link.get("id", "")), str(link["resourceId"]), ports)
    return found


def _port(name: str, config: Mapping[str, Any], port_by_id: Mapping[str, str]) -> AskedPort:
    ethernet = [one.get("ipOverEthernet") or {} for one in config.get("cpProtocolData") or ()]
    link_port_id = config.get("linkPortId")
    return AskedPort(
        name,
        link_port_id=link_port_id,
        port_id=port_by_id.get(link_port_id) if link_port_id is not None else None,
        mac=next((str(one["macAddress"]).lower() for one in ethernet if one.get("macAddress")), None),
        addresses=tuple(_addresses(each) for one in ethernet for each in one.get("ipAddresses") or ()),
    )


def _addresses(given: Mapping[str, Any]) -> AskedAddresses:
    fixed = tuple(canonical(str(one)) for one in given.get("fixedAddresses") or ())
    bounds = given.get("addressRange")
    within = (canonical(str(bounds["minAddress"])), canonical(str(bounds["maxAddress"]))) if bounds else None
    return AskedAddresses(
        is_ipv6=given.get("type") == "IPV6",
        fixed=fixed,
        dynamic=0 if fixed or within else int(given.get("numDynamicAddresses") or 1),
        within=within,
        subnet_id=given.get("subnetId") or None,
    )


def canonical(address: str) -> str:
    """Return an address in canonical form, as VIMs report it: an IPv6 address can be written in many ways."""
    try:
        return str(ip_address(address))
    except ValueError:
        return address


def assigned(ports: Sequence[AskedPort], instances: Sequence[I], known: Mapping[I, str]) -> Mapping[I, AskedPort]:
    """Return the entry of each instance that has one. ``known``: the entries that instances have already, by their ids.

    An instance keeps its entry as long as there is one with that id; the others get the free ones in their order.
    """
    shared = [port for port in ports if not port.is_for_one]
    if len(ports) == len(shared) == 1:
        return dict.fromkeys(instances, shared[0])
    by_id = {port.config_id: port for port in ports}
    found: dict[I, AskedPort] = {}
    for instance in instances:
        port = by_id.pop(known[instance], None) if instance in known else None
        if port is not None:
            found[instance] = port
    free = iter(tuple(by_id.values()))
    for instance in instances:
        if instance not in found:
            port = next(free, shared[-1] if shared else None)
            if port is not None:
                found[instance] = port
    return found


def merged_links(
    present: Iterable[Mapping[str, Any]], wanted: Iterable[Mapping[str, Any]], *, keeps_configs: bool
) -> list[dict[str, Any]]:
    """Return the wanted external links together with the present ones: a connection point is on one link only.

    Connection points that ``wanted`` does not name stay as they are, on their network, also if it gives their link another
    one; the link is there twice then. ``keeps_configs``: an entry of cpConfig that is not named stays, null removes one,
    and the removal of the last one removes the point (SOL003 4.4.1.11).
    """
    links = [{**link, "extCps": list(link.get("extCps") or ())} for link in present]
    for link in wanted:
        here: list[dict[str, Any]] = []
        for cp in link.get("extCps") or ():
            configs: dict[str, Any] = {}
            for other in links:
                for old in [one for one in other["extCps"] if one["cpdId"] == cp["cpdId"]]:
                    configs.update((old.get("cpConfig") or {}) if keeps_configs else {})
                    other["extCps"].remove(old)
            given = cp.get("cpConfig") or {}
            for name, config in given.items():
                if config is None:
                    configs.pop(name, None)
                else:
                    configs[name] = config
            if configs or not given:
                here.append({"cpdId": cp["cpdId"], "cpConfig": configs})
        same = next((one for one in links if _same_network(one, link)), None)
        ports = {one["id"]: one for each in (same or {}, link) for one in each.get("extLinkPorts") or ()}
        made = {**link, "extCps": [*(same or {}).get("extCps", ()), *here]}
        if ports:
            made["extLinkPorts"] = list(ports.values())
        if same is None:
            links.append(made)
        else:
            links[links.index(same)] = made
    # A link without connection points is no longer connected to the VNF.
    return [link for link in links if link["extCps"]]


def _same_network(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return (one.get("id"), one.get("resourceId")) == (other.get("id"), other.get("resourceId"))
