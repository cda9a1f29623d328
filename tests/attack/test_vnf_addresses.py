"""A package that gives its machines the addresses of kubevnfm itself: neither its script nor SSH gets there.

The rule in every spelling: `libs/clients/tests/test_vnf_networks.py`.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from io import BytesIO
from pathlib import Path
from textwrap import dedent
from zipfile import ZipFile

import pytest
from callers.user import User
from contracts.sandbox_kernel import needs_confinement
from kubevnfm_clients.peers import Peer
from kubevnfm_clients.vnf_addresses import read_networks
from kubevnfm_clients.vnf_networks import VnfNetworks
from kubevnfm_events.mgmt import RunScript
from kubevnfm_mgmt_executor.adapters.ssh import SshMachines
from kubevnfm_mgmt_executor.domain.errors import AddressRefused
from kubevnfm_mgmt_executor.domain.ports import Address, Login
from kubevnfm_mgmt_executor.wiring import INDEXES
from kubevnfm_sandbox.runs import Limits
from kubevnfm_secrets import KeyRing, hide
from kubevnfm_store.sqlite.store import SqliteStore
from packages.user_data_packages import FORMS, instantiate_body, user_data_package
from servers.installations import Installation
from servers.vnf_networks import host_address, networks
from worlds.package_scripts import PACKAGE, PackageScripts

SCRIPT = """
import socket, sys
for port in {ports}:
    try:
        socket.create_connection(("{address}", port), timeout=10)
        print("reached", port, file=sys.stderr)
    except OSError as error:
        print(type(error).__name__, file=sys.stderr)
sys.exit(1)
"""
NESTED = """\
heat_template_version: 2018-08-31
parameters:
  flavor: {{type: string}}
  image-VDU1: {{type: string}}
  net1: {{type: string}}
resources:
  own: {{type: OS::Neutron::Net}}
  own_subnet:
    type: OS::Neutron::Subnet
    properties: {{network: {{get_resource: own}}, cidr: {address}/32, gateway_ip: null, enable_dhcp: false}}
  VDU1:
    type: OS::Nova::Server
    properties:
      flavor: {{get_param: flavor}}
      image: {{get_param: image-VDU1}}
      networks: [{{port: {{get_resource: VDU1_CP1}}}}, {{port: {{get_resource: hidden}}}}]
  VDU1_CP1:
    type: OS::Neutron::Port
    properties: {{network: {{get_param: net1}}}}
  hidden:
    type: OS::Neutron::Port
    properties:
      network: {{get_resource: own}}
      fixed_ips: [{{subnet: {{get_resource: own_subnet}}, ip_address: {address}}}]
"""


@pytest.fixture(scope="module")
def own_address() -> str:
    return host_address()


@pytest.fixture
async def user(single: Installation) -> AsyncIterator[User]:
    """A user of an installation whose operator has named every network."""
    async with User(single) as user:
        await user.register_lab()
        yield user


def package(vnfd_id: str, script: str, address: str) -> bytes:
    """Return a package whose template makes a network with the VNFM's address, and a server that has it."""
    packed = user_data_package(
        vnfd_id,
        FORMS["none"],
        scripts={"instantiate_end": "Scripts/attack.py"},
        extra={"Scripts/attack.py": dedent(script)},
    )
    content = BytesIO()
    with ZipFile(BytesIO(packed)) as old, ZipFile(content, "w") as new:
        for name in old.namelist():
            is_nested = name.endswith("nested/VDU1.yaml")
            new.writestr(name, NESTED.format(address=address).encode() if is_nested else old.read(name))
    return content.getvalue()


async def test_a_script_gets_no_address_of_the_vnfm_that_its_template_gives_a_machine(
    user: User, own_address: str
) -> None:
    needs_confinement()
    gateway = int(user.installation.url.rpartition(":")[2])
    ports = (gateway, user.installation.lab.ssh_port)
    vnfd_id = str(uuid.uuid4())
    await user.upload(package(vnfd_id, SCRIPT.format(address=own_address, ports=ports), own_address))
    instance = await user.create(vnfd_id)
    operation = await user.start(instance, "instantiate", instantiate_body(FORMS["none"]))
    view = await user.rest(operation)
    detail = view["error"]["detail"]
    assert f"{own_address} is an address of this host, which code and clusters of packages may not reach" in detail
    assert "reached" not in detail
    assert detail.count("PermissionError") == len(ports)
    await user.act(operation, "rollback")
    await user.delete(instance)


PROBE = """
import socket, sys
try:
    socket.create_connection(("{address}", {port}), timeout=10)
    print("reached", file=sys.stderr)
except OSError as error:
    print(type(error).__name__, file=sys.stderr)
"""


@pytest.mark.parametrize("is_peer", [True, False])
async def test_a_script_gets_no_address_of_a_peer(own_address: str, is_peer: bool, tmp_path: Path) -> None:
    """The broker's name has two addresses, and the template gives a machine the second; without it, the script gets there."""
    needs_confinement()

    async def never(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async def resolve(host: str) -> tuple[str, ...]:
        return ("203.0.113.1", own_address) if host == "broker" else (host,)

    # The test's own listener is the broker, so the address of this host is not refused as such.
    peers = [Peer("amqp_url", "broker", 5672)] if is_peer else []
    named = VnfNetworks(read_networks("0.0.0.0/0"), peers, resolve=resolve, own=frozenset)
    ring = KeyRing([bytes(32)])
    async with (
        SqliteStore.open(tmp_path / "store.db") as store,
        await asyncio.start_server(never, own_address, 0) as server,
    ):
        for collection, indexes in INDEXES.items():
            await store.ensure_indexes(collection, indexes)
        scripts = PackageScripts(tmp_path, store, ring, Limits(), vnf_networks=named)
        port = int(server.sockets[0].getsockname()[1])
        (scripts.package / "probe.py").write_text(PROBE.format(address=own_address, port=port))
        given = {
            "operation": "scale_end",
            "request": {},
            "vnf_instance": {"id": "i"},
            "user_script_err_handling_data": {},
        }
        command = RunScript(
            vnf_instance_id="i",
            package=PACKAGE,
            file="probe.py",
            task="scale_end",
            given=hide(given),
            folders={"tmp_csar_dir": PACKAGE},
            reach=(own_address, "203.0.113.77"),
        )
        await scripts.ask(command)
        assert (await scripts.log()).split() == (["PermissionError"] if is_peer else ["reached"])
        said = " ".join(one.message for one in scripts.news)
        assert (f"{own_address} is an address of the setting amqp_url (broker)" in said) is is_peer


class NoKeys:
    """No host key is known, and none may be learned."""

    async def pinned(self, vnf_instance_id: str, vnfc_id: str) -> str | None:
        return None

    async def pin(self, vnf_instance_id: str, vnfc_id: str, key: str) -> str:
        raise AssertionError("a host was connected to")

    async def forget(self, vnf_instance_id: str, *, vnfc_ids: object = None) -> None:
        """Nothing is kept."""


@pytest.mark.parametrize("form", ["{}", "::ffff:{}"])
async def test_ssh_to_an_address_of_the_vnfm_is_refused_at_once_and_by_name(own_address: str, form: str) -> None:
    async def never(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()
        raise AssertionError("it was connected to")

    async with await asyncio.start_server(never, own_address, 0) as server:
        port = int(server.sockets[0].getsockname()[1])
        machines = SshMachines(NoKeys(), networks("0.0.0.0/0, ::/0"), port=port)
        address = Address("master1", "instance", "vnfc-1", form.format(own_address))
        with pytest.raises(
            AddressRefused, match=f"node master1: no SSH to .*{own_address}.* is an address of this host"
        ):
            await machines.reach(address, Login("root", "secret"), within_s=300)


async def test_ssh_outside_the_named_networks_is_refused_with_the_way_on() -> None:
    machines = SshMachines(NoKeys(), networks(""), port=22)
    address = Address("master1", "instance", "vnfc-1", "127.0.0.1")
    with pytest.raises(AddressRefused, match=r"127\.0\.0\.1 is a loopback address, which needs a network inside"):
        await machines.reach(address, Login("root", "secret"), within_s=300)
    address = Address("master1", "instance", "vnfc-1", "198.51.100.7")
    with pytest.raises(AddressRefused, match="add its network to the setting vnf_networks, restart, and retry"):
        await machines.reach(address, Login("root", "secret"), within_s=300)
