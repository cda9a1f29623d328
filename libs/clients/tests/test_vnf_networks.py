"""Addresses that packages choose: the rule in every spelling, the facts that it is given, and connections."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_network
from typing import Any

import aiohttp
import pytest
from kubevnfm_clients import vnf_networks
from kubevnfm_clients.outbound import refusal_in
from kubevnfm_clients.peers import Peer, own_ports, peer_at, peers_of
from kubevnfm_clients.vnf_addresses import VnfAddressRules, read_networks
from kubevnfm_clients.vnf_network_settings import VnfNetworkSettings
from kubevnfm_clients.vnf_networks import PeersUnresolved, VnfAddressRefused, VnfNetworks, own_addresses
from pydantic import SecretStr, ValidationError
from servers.connect_proxy import environment

NAMED = read_networks("10.20.0.0/16, fd12::/16, 203.0.113.0/24, fec0::/16")
OWN, PEER = IPv4Address("10.20.0.1"), IPv4Address("10.20.0.2")
RULES = VnfAddressRules(
    NAMED,
    own=frozenset({OWN, IPv6Address("fd12::1"), IPv4Address("127.0.0.1")}),
    peers={PEER: "the setting amqp_url (broker)", IPv6Address("fd12::2"): "the setting nfvo_url (nfvo)"},
    excluded=(ip_network("10.20.9.0/24"),),
)


@pytest.mark.parametrize(
    "address",
    [
        "10.20.0.7", "10.20.255.255", "203.0.113.9", "fd12::7", "fd12::7%eth0", "fec0::7", "::ffff:10.20.0.7",
        "64:ff9b::10.20.0.7", "2002:0a14:0007::1", "::10.20.0.7",
    ],
)  # fmt: skip
def test_addresses_in_named_networks_are_granted_in_every_form(address: str) -> None:
    assert RULES.refusal(address) == ""


@pytest.mark.parametrize(
    ("forms", "why"),
    [
        (("10.20.0.1", "::ffff:10.20.0.1", "64:ff9b::10.20.0.1", "::10.20.0.1", "2002:a14:1::", "fd12::1", "fd12::1%2"),
         "is an address of this host"),
        (("10.20.0.2", "::ffff:a14:2", "64:ff9b::a14:2", "2002:a14:2::9", "::a14:2"), "is an address of the setting amqp_url"),
        (("fd12::2", "fd12:0:0::2%eth0"), "is an address of the setting nfvo_url"),
        (("10.20.9.8", "::ffff:10.20.9.8"), "is excluded by the setting vnf_networks_except"),
        (("10.21.0.1", "8.8.8.8", "2606:2800:220:1::1", "fd13::1", "fec1::1", "::ffff:8.8.8.8", "64:ff9b:1::8.8.8.8",
          "64:ff9b:1:a00:0:100:a14:7"),
         "is in none of the networks of VNFs (vnf_networks: 10.20.0.0/16, fd12::/16"),
        (("127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "64:ff9b::127.0.0.1", "::127.0.0.1", "2002:7f00:1::"),
         "is a loopback address"),
        (("0.0.0.0", "::", "::ffff:0.0.0.0", "0.1.2.3"), "is never granted: it is an address of this host"),
        (("169.254.169.254", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "::169.254.169.254", "fe80::a9fe:a9fe%eth0"),
         "link-local"),
        (("100.100.100.200", "fd00:ec2::254", "fd20:ce::254", "168.63.129.16"), "the metadata service of a cloud"),
        (("224.0.0.1", "ff02::1", "::ffff:224.0.0.1"), "multicast"),
        (("0177.0.0.1", "2130706433", "0x7f000001", "10.20.7", "010.020.0.7", "broker", "", "10.20.0.7%eth0", "10.20.0.7 "),
         "is no IP address in its usual form"),
    ],
)  # fmt: skip
def test_other_addresses_are_refused_with_the_reason_in_every_form(forms: tuple[str, ...], why: str) -> None:
    for address in forms:
        assert why in RULES.refusal(address), address


def test_only_what_a_named_network_would_grant_is_unnamed() -> None:
    """A FORCEFUL termination gives up on the others: no setting could grant them."""
    for address in ("10.21.0.1", "fd13::1", "::ffff:8.8.8.8"):
        assert RULES.is_unnamed(address, 6443), address
    for address in (
        *("10.20.0.7", "fd12::7"),  # granted
        *("10.20.0.1", "10.20.0.2", "10.20.9.8", "169.254.169.254", "fe80::1", "0.0.0.0", "224.0.0.1", "broker"),
    ):
        assert not RULES.is_unnamed(address, 6443), address
    at_loopback = VnfAddressRules((), taken_ports=frozenset({5672}))
    assert at_loopback.is_unnamed("127.0.0.1", 6443)
    assert not at_loopback.is_unnamed("127.0.0.1", 5672)


def test_no_network_grants_what_is_never_granted() -> None:
    everything = VnfAddressRules(read_networks("0.0.0.0/0, ::/0"), own=frozenset({OWN}), peers={PEER: "a peer"})
    assert everything.refusal("8.8.8.8") == "" == everything.refusal("fd00::5")
    for address in (
        "10.20.0.1",
        "10.20.0.2",
        "127.0.0.1",
        "169.254.169.254",
        "fd00:ec2::254",
        "::1",
        "0.0.0.0",
        "fe80::1",
    ):
        assert everything.refusal(address, 22), address


def test_the_empty_setting_refuses_everything_and_says_how_to_go_on() -> None:
    assert VnfAddressRules(()).refusal("10.0.0.5") == (
        "10.0.0.5 is in none of the networks of VNFs (vnf_networks is empty): add its network to the setting vnf_networks, "
        "restart, and retry"
    )


def test_loopback_is_granted_at_single_ports_of_a_network_that_names_it() -> None:
    rules = VnfAddressRules(
        read_networks("127.5.0.0/16, ::1"), own=frozenset({IPv4Address("127.5.0.1")}), taken_ports=frozenset({5672})
    )
    assert rules.refusal("127.5.0.1", 2222) == "" == rules.refusal("::1", 6443) == rules.refusal("::ffff:127.5.0.9", 22)
    assert "single ports" in rules.refusal("127.5.0.1")
    assert "port 5672 is a port of kubevnfm" in rules.refusal("127.5.0.1", 5672)
    assert "is a loopback address" in rules.refusal("127.6.0.1", 2222)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("10.0.0.5/8", "host bits"), ("ten", "does not appear"), ("169.254.0.0/16", "never granted"), ("fe80::/64", "never granted"),
        ("::ffff:10.0.0.0/104", "the IPv4 network expected"), ("224.0.0.0/8", "never granted"),
    ],
)  # fmt: skip
def test_a_setting_that_would_grant_nothing_is_refused_at_start(text: str, problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        VnfNetworkSettings(vnf_networks=text)


@pytest.mark.parametrize(
    "text", ["10.0.0.1/8", "10.0.0.1.5", "10.0.0.0/33", "two words", "http://nfvo.example", "nfvo.example:8080"]
)
def test_an_exception_that_names_no_address_is_refused_at_start(text: str) -> None:
    with pytest.raises(ValidationError, match="an address, a network without host bits or a host name expected"):
        VnfNetworkSettings(vnf_networks_except=f"10.0.0.7, {text}")


class Service(VnfNetworkSettings):
    """Settings as those of a service."""

    host: str = "10.0.0.1"
    port: int = 9890
    health_port: int = 9895
    ssh_port: int = 22
    page_size: int = 100
    amqp_url: SecretStr = SecretStr("amqp://user:p%40ss@broker:5673/vhost")
    mongo_url: SecretStr = SecretStr("mongodb://u:p@db-1:27018,db-2/?replicaSet=rs")
    nfvo_url: str | None = "https://[fd12::9]/api"
    auth_bearer_issuer: str | None = None
    receiver_hosts: str = "receiver, other:8443"
    log_level: str = "INFO"


def test_peers_are_derived_from_every_setting_that_names_a_server() -> None:
    with environment(https_proxy="http://proxy:3128", no_proxy="intra.example"):
        settings = Service()
        found = peers_of(settings)
    assert set(found) == {
        Peer("amqp_url", "broker", 5673),
        Peer("mongo_url", "db-1", 27018),
        Peer("mongo_url", "db-2", 27017),
        Peer("nfvo_url", "fd12::9", 443),
        Peer("receiver_hosts", "receiver", None),
        Peer("receiver_hosts", "other", 8443),
        Peer("https_proxy", "proxy", 3128),
    }
    assert own_ports(settings) == {9890, 9895}
    assert peer_at("no url", setting="x") == ()


class Names:
    """A name server whose answers the test changes."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.asked: list[str] = []

    async def __call__(self, host: str) -> tuple[str, ...]:
        self.asked.append(host)
        found = self.answers.get(host, (host,))
        if isinstance(found, OSError):
            raise found
        return tuple(found)


async def refusal(networks: VnfNetworks, address: str, port: int | None = None) -> str:
    return (await networks.rules()).refusal(address, port)


async def test_a_name_is_connected_to_at_its_granted_addresses_only() -> None:
    names = Names(machine=["169.254.169.254", "10.20.0.9", "10.20.0.1"], attack=["10.20.0.1", "127.0.0.1"])
    given = VnfNetworks(NAMED, resolve=names, own=lambda: frozenset({OWN}))
    assert await given.granted("machine", 22) == ["10.20.0.9"]
    with pytest.raises(
        VnfAddressRefused, match=r"attack: 10.20.0.1 is an address of this host.*; 127.0.0.1 is a loopback"
    ):
        await given.granted("attack", 22)


async def test_an_address_that_the_host_gets_later_is_refused_from_then_on() -> None:
    own: set[Any] = set()
    given = VnfNetworks(NAMED, own=lambda: frozenset(own))
    assert await refusal(given, "10.20.0.1") == ""
    own.add(OWN)
    assert "is an address of this host" in await refusal(given, "10.20.0.1")


async def test_every_address_of_a_peer_is_refused_and_looked_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    names = Names(broker=["10.20.0.2", "fd12::2"])
    given = VnfNetworks(NAMED, [Peer("amqp_url", "broker", 5672)], resolve=names, own=frozenset)
    assert "is an address of the setting amqp_url (broker)" in await refusal(given, "10.20.0.2", 443)
    assert "is an address of the setting amqp_url (broker)" in await refusal(given, "fd12::2")
    assert names.asked == ["broker"], "it is looked up once in a while only"
    names.answers["broker"] = ["10.20.0.3"]
    monkeypatch.setattr(vnf_networks, "_RESOLVED_FOR_S", 0.0)
    given = VnfNetworks(NAMED, [Peer("amqp_url", "broker", 5672)], resolve=names, own=frozenset)
    assert await refusal(given, "10.20.0.2") == ""
    assert await refusal(given, "10.20.0.3")
    # A name server that fails leaves the addresses of the last time.
    names.answers["broker"] = socket.gaierror(socket.EAI_AGAIN, "no answer")
    assert await refusal(given, "10.20.0.3")


async def test_nothing_is_granted_before_the_addresses_of_the_peers_are_known() -> None:
    names = Names(
        broker=socket.gaierror(socket.EAI_AGAIN, "no answer"), none=socket.gaierror(socket.EAI_NONAME, "none")
    )
    with pytest.raises(PeersUnresolved, match="the name broker of the settings cannot be resolved now"):
        await refusal(VnfNetworks(NAMED, [Peer("amqp_url", "broker", 5672)], resolve=names), "10.20.0.9")
    # A name that does not exist has no address.
    unknown = VnfNetworks(NAMED, [Peer("nfvo_url", "none", 443)], resolve=names, own=frozenset)
    assert await refusal(unknown, "10.20.0.9") == ""
    # From the moment on at which it exists, as that of a container that starts, its address is one of a peer.
    names.answers["none"] = ("10.20.0.9",)
    assert "is an address of the setting nfvo_url" in await refusal(unknown, "10.20.0.9")


async def test_excluded_names_and_networks_come_from_the_setting() -> None:
    settings = VnfNetworkSettings(vnf_networks="10.20.0.0/16", vnf_networks_except="10.20.7.0/24, 10.20.8.1, localhost")
    given = VnfNetworks.from_settings(settings)
    assert await refusal(given, "10.20.6.1") == ""
    assert "vnf_networks_except" in await refusal(given, "10.20.7.9")
    assert "vnf_networks_except" in await refusal(given, "10.20.8.1")
    assert settings.excluded_names == ("localhost",)


def test_the_own_addresses_are_those_of_the_interfaces() -> None:
    assert IPv4Address("127.0.0.1") in own_addresses()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]"])
async def test_a_session_judges_each_connection(host: str) -> None:
    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = int(server.sockets[0].getsockname()[1])
        url = f"http://{host}:{port}/"
        async with VnfNetworks(read_networks("127.0.0.0/8")).session() as session, session.get(url) as response:
            assert response.status == 200
        at_peer = VnfNetworks(read_networks("127.0.0.0/8"), [Peer("amqp_url", "127.0.0.1", port)])
        for refusing in (VnfNetworks(read_networks("10.0.0.0/8")), at_peer):
            async with refusing.session() as session:
                with pytest.raises(aiohttp.ClientConnectorError) as caught:
                    await session.get(url)
            refusal = refusal_in(caught.value) or ""
            assert "is a loopback address" in refusal or f"port {port} is a port of kubevnfm" in refusal


async def test_an_open_connection_is_not_judged_for_each_request() -> None:
    """A judgement reads the interfaces of the host, and looks up peers that have no address."""
    looks: list[int] = []

    def own() -> frozenset[Any]:
        looks.append(1)
        return frozenset()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError):
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    names = Names(none=socket.gaierror(socket.EAI_NONAME, "none"))
    given = VnfNetworks(read_networks("127.0.0.0/8"), [Peer("nfvo_url", "none", 443)], resolve=names, own=own)
    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server, given.session() as session:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        for _ in range(3):
            async with session.get(url) as response:
                assert response.status == 200
    assert (len(looks), names.asked) == (1, ["none"])
