"""The driver that has a load balancer forward to a CNF's node ports, with a script of the package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kubevnfm_events.common import PackageRef, ServiceFacts
from kubevnfm_events.mgmt import ManagedNode, Phase, RunPhase
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_mgmt_executor.domain.errors import AddressRefused, CommandUnsuccessful, LoginRefused
from kubevnfm_secrets import hide, sealing
from servers.ssh_keys import encrypted_key
from worlds.mgmt_lab import MgmtLab

SERVICES = (
    ServiceFacts(namespace="default", name="web", node_ports=(30080, 30443)),
    ServiceFacts(namespace="edge", name="api", node_ports=(31000,)),
)
SCRIPT = 'echo "$*" >> "$HOME/lb.log"\n'
ADD = "-i default,web,30080,30443#edge,api,31000 -a True"
REMOVE = "-i default,web#edge,api -a False"


class Balancer:
    """A machine outside of the cluster, and the commands of a CNF whose package has its script."""

    def __init__(self, lab: MgmtLab, node: ManagedNode, folder: Path) -> None:
        self.lab, self._node = lab, node
        (folder / "Scripts").mkdir(parents=True, exist_ok=True)
        (folder / "Scripts/configure_lb.sh").write_text(SCRIPT)
        lab.packages.root = folder

    @property
    def home(self) -> Path:
        return Path(self.lab.machine(self._node).root) / "home/ubuntu"

    def calls(self) -> list[str]:
        """Return the arguments of each run of the script."""
        log = self.home / "lb.log"
        return log.read_text().splitlines() if log.exists() else []

    def command(self, phase: Phase, *, services: tuple[ServiceFacts, ...] = SERVICES, **changes: Any) -> RunPhase:
        login = {"ssh_ip": self._node.ssh_address, "ssh_username": "ubuntu", "ssh_password": "ubuntu"}
        balancer = {"script_path": changes.pop("script_path", "Scripts/configure_lb.sh")}
        force = changes.pop("force", False)
        return RunPhase(
            vnf_instance_id=self.lab.instance_id,
            driver="mgmt-drivers-cnf-nodeport",
            phase=phase,
            package=PackageRef(package_id="p", vnfd_id="d"),
            nodes=(),
            parameters=hide({"lcm-kubernetes-external-lb": {**balancer, "external_lb_param": {**login, **changes}}}),
            services=services,
            force=force,
        )


@pytest.fixture
async def balancer(lab: MgmtLab, tmp_path: Path) -> Balancer:
    return Balancer(lab, await lab.boot("worker", 90), tmp_path / "package")


async def test_node_ports_are_added_after_instantiate_and_removed_at_terminate(balancer: Balancer) -> None:
    lab = balancer.lab
    await lab.run(balancer.command("instantiate_end"))
    assert balancer.calls() == [ADD]
    await lab.run(balancer.command("terminate_end"), operation="op-2", message="m-2")
    assert balancer.calls() == [ADD, REMOVE]
    assert lab.finished() == {("expose", "external-lb"), ("conceal", "external-lb")}
    assert not list((balancer.home / ".kubevnfm").glob("*"))
    # Instantiated again, the load balancer is configured again.
    await lab.run(balancer.command("instantiate_end"), operation="op-3", message="m-3")
    assert balancer.calls() == [ADD, REMOVE, ADD]


async def test_a_load_balancer_is_reached_by_key_through_a_bastion(lab: MgmtLab, tmp_path: Path) -> None:
    key, public_key = encrypted_key("open sesame")
    node = await lab.boot("worker", 91, public_key=public_key)
    balancer, jump = Balancer(lab, node, tmp_path / "package"), await lab.boot("worker", 92)
    port = lab.machines.ssh_port
    way = {"host": jump.ssh_address, "port": port, "username": "ubuntu", "password": "ubuntu"}
    login: dict[str, Any] = {
        "ssh_password": None,
        "ssh_private_key": key,
        "ssh_private_key_passphrase": "open sesame",
        "ssh_port": port,
        "bastion": way,
    }
    command = balancer.command("instantiate_end", **login)
    # Sealed, as a message brings them.
    sent = RunPhase.model_validate_json(command.model_dump_json(context=sealing(lab.ring)))
    await lab.run(sent)
    assert balancer.calls() == [ADD]
    assert lab.calls(jump, "ssh connect") == 1


async def test_a_command_that_is_delivered_again_does_not_run_the_script_again(balancer: Balancer) -> None:
    for _ in range(2):
        await balancer.lab.run(balancer.command("instantiate_end"))
    assert balancer.calls() == [ADD]


async def test_a_try_that_came_to_an_unknown_point_is_taken_back_first(balancer: Balancer) -> None:
    script = balancer.lab.packages.root / "Scripts/configure_lb.sh"
    script.write_text(f"{SCRIPT}echo no haproxy here >&2; exit 3\n")
    with pytest.raises(CommandUnsuccessful, match=r"(?s)configure_lb\.sh ended with exit code 3.*no haproxy here"):
        await balancer.lab.run(balancer.command("instantiate_end"))
    script.write_text(SCRIPT)
    await balancer.lab.run(balancer.command("instantiate_end"), message="m-2")
    assert balancer.calls() == [ADD, REMOVE, ADD]


async def test_a_cnf_without_node_ports_needs_no_load_balancer(balancer: Balancer) -> None:
    await balancer.lab.run(balancer.command("instantiate_end", services=(), ssh_password="wrong"))
    assert balancer.calls() == []


async def test_a_load_balancer_that_refuses_holds_up_a_termination_unless_it_is_forced(balancer: Balancer) -> None:
    with pytest.raises(LoginRefused):
        await balancer.lab.run(balancer.command("terminate_end", ssh_password="wrong"))
    await balancer.lab.run(balancer.command("terminate_end", ssh_password="wrong", force=True), message="m-2")
    assert balancer.calls() == []


async def test_an_address_that_is_not_granted_fails_the_instantiation_and_never_holds_up_a_termination(
    balancer: Balancer,
) -> None:
    """It may have become so by an upgrade, and no repeat would reach it."""
    with pytest.raises(AddressRefused, match=r"198\.51\.100\.7 is in none of the networks of VNFs"):
        await balancer.lab.run(balancer.command("instantiate_end", ssh_ip="198.51.100.7"))
    await balancer.lab.run(balancer.command("terminate_end", ssh_ip="198.51.100.7"), message="m-2")
    assert balancer.calls() == []


async def test_a_script_that_the_package_lacks_is_named(balancer: Balancer) -> None:
    with pytest.raises(InvalidInput, match=r"the package has no file Scripts/none\.sh"):
        await balancer.lab.run(balancer.command("instantiate_end", script_path="Scripts/none.sh"))
