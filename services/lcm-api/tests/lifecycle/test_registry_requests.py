"""Private registries of a request against the package."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest
from kubevnfm_cluster.parameters import ClusterParameters
from kubevnfm_events import PackageRef
from kubevnfm_events.stacks import PortFacts, ServerFacts, StackResources
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_lcm_api.lifecycle.clusters.nodes import find_registry
from kubevnfm_lcm_api.lifecycle.clusters.registries import check_certificates
from kubevnfm_lcm_api.lifecycle.core.ports import PackageCatalogue
from kubevnfm_lcm_api.lifecycle.machines.addresses import NodeNotFound
from servers.certificates import Authority

LOGIN = {"ssh_cp_name": "CP1", "username": "ubuntu", "password": "x"}


class OneFile:
    """A package with one file."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    async def file(self, package_id: str, path: str, *, limit_bytes: int) -> bytes | None:
        return self.content if path == "Files/ca.crt" and len(self.content) <= limit_bytes else None


async def test_a_file_that_is_no_certificate_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    """2.6, SEQ-137."""
    registries = [
        {"connection_type": 0, "server": "r:5000"},
        {"connection_type": 1, "server": "s:5000", "certificate_path": "Files/ca.crt"},
    ]
    cluster = ClusterParameters.model_validate(
        {
            "script_path": "x",
            "master_node": {**LOGIN, "cluster_cp_name": "CP1"},
            "worker_node": LOGIN,
            "private_registry_connection_info": registries,
        }
    )
    package = PackageRef(package_id="p", vnfd_id="d")
    right = Authority(tmp_path).file.read_bytes()
    await check_certificates(cast("PackageCatalogue", OneFile(right)), package, cluster)
    await check_certificates(cast("PackageCatalogue", OneFile(right + right)), package, cluster)
    for wrong in (b"a: 1\n", b"", right[:-40], right + b"\n" * 2**20):
        with pytest.raises(Unprocessable, match="not a certificate in PEM form") as caught:
            await check_certificates(cast("PackageCatalogue", OneFile(wrong)), package, cluster)
        assert caught.value.field.endswith("private_registry_connection_info/1/certificate_path")


def stack(*ports: PortFacts, servers: int = 1) -> StackResources:
    own = PortFacts(name="CP1", resource_id="p1", addresses=("10.0.0.5",))
    machines = tuple(
        ServerFacts(vnfc_id=f"v{number}", name="VDU", vdu_id="VDU", server_id=f"s{number}", stack_id="s", ports=(own,))
        for number in range(servers)
    )
    return StackResources(stack_id="s", stack_name="s", servers=machines, ports=ports)


def test_a_registry_is_reached_at_its_floating_ip_and_asked_at_its_own_address() -> None:
    """1.6, 2."""
    floating = PortFacts(
        name="FIP", resource_id="f", resource_type="OS::Neutron::FloatingIP", floating_address="203.0.113.5"
    )
    found = find_registry(stack(floating), "FIP")
    assert (found.ssh_address, found.nic_address, found.vnfc_id) == ("203.0.113.5", "10.0.0.5", "v0")
    assert find_registry(stack(floating), "CP1").ssh_address == "10.0.0.5"
    with pytest.raises(NodeNotFound, match=r"installation_param\.ssh_cp_name: there is no connection"):
        find_registry(stack(), "CP9")
    with pytest.raises(NodeNotFound, match="ssh_cp_name: the stack has 2 servers: one expected"):
        find_registry(stack(servers=2), "CP1")
