"""StackResources from lists in the form of a real Heat, Nova and Neutron."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from kubevnfm_csar.vnfd.model import Cp
from kubevnfm_infra_openstack.domain.errors import StackFailed, StackTimedOut
from kubevnfm_infra_openstack.domain.failure import MARK, failed_resources, failure_of
from kubevnfm_infra_openstack.domain.hot import AUTO_SCALING_GROUP, FLOATING_IP, NETWORK, PORT, SERVER, VOLUME
from kubevnfm_infra_openstack.domain.resources import existing, stack_resources
from kubevnfm_infra_openstack.domain.stack import (
    FloatingIp,
    HeatResource,
    NeutronPort,
    NovaServer,
    Stack,
    StackContents,
    StackState,
)
from kubevnfm_secrets import Secret

TOP = Stack("top", "vnf-1", StackState.READY)
VDUS = {"masterNode": "masterNode", "workerNode": "worker"}


def a_resource(
    name: str,
    kind: str,
    physical_id: str = "",
    *,
    stack: str = "top",
    status: str = "CREATE_COMPLETE",
    reason: str = "",
) -> HeatResource:
    nested = physical_id if kind in (AUTO_SCALING_GROUP,) or kind.endswith(".yaml") else ""
    return HeatResource(name, kind, physical_id, status, reason, stack, nested_id=nested)


def tree() -> list[HeatResource]:
    members = [
        (
            a_resource(f"rnd{n}", "worker.yaml", f"member{n}", stack="group"),
            a_resource("workerNode", SERVER, f"w{n}", stack=f"member{n}"),
            a_resource("worker_CP1", PORT, f"wp{n}", stack=f"member{n}"),
        )
        for n in (1, 2)
    ]
    return [
        a_resource("masterNode", SERVER, "m"),
        a_resource("master_CP1", PORT, "mp"),
        a_resource("master_FIP", FLOATING_IP, "mf"),
        a_resource("vip_CP", PORT, "vip"),
        a_resource("internal", NETWORK, "net"),
        a_resource("data", VOLUME, "vol"),
        a_resource("worker_instance", AUTO_SCALING_GROUP, "group"),
        *(resource for member in members for resource in member),
    ]


def contents() -> StackContents:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    return StackContents(
        resources=tree(),
        server_by_id={
            "m": NovaServer("m", "master", host="compute1", zone="nova", created_at=moment, volume_ids=("vol",)),
            "w1": NovaServer("w1", "w", created_at=moment.replace(minute=2)),
            "w2": NovaServer("w2", "w", created_at=moment.replace(minute=1)),
        },
        port_by_id={
            "mp": NeutronPort("mp", ("10.0.0.4",), ("s1",), "fa:16", "net0", "172.24.4.9", device_id="m"),
            "wp1": NeutronPort("wp1", ("10.0.0.5", "fd00::5"), ("s1", "s2"), "fa:17", "net0", device_id="w1"),
        },
        floating_by_id={"mf": FloatingIp("mf", "172.24.4.9", "mp", "public")},
        cidr_by_subnet_id={"s1": "10.0.0.0/24", "s2": "fd00::/64"},
    )


def test_servers_are_sorted_by_vdu_then_oldest_first() -> None:
    facts = stack_resources(TOP, contents(), VDUS)
    assert [server.server_id for server in facts.servers] == ["m", "w2", "w1"]


def test_a_member_is_reported_with_its_group_and_the_ports_of_its_stack() -> None:
    worker = stack_resources(TOP, contents(), VDUS).servers[-1]
    assert (worker.group, worker.member, worker.stack_id, worker.vdu_id) == (
        "worker_instance",
        "rnd1",
        "member1",
        "workerNode",
    )
    (port,) = worker.ports
    assert port.addresses == ("10.0.0.5", "fd00::5")
    assert port.subnet_cidrs == ("10.0.0.0/24", "fd00::/64")


def test_servers_of_one_stack_have_the_ports_that_neutron_has_bound_to_them() -> None:
    resources = [
        a_resource("A", SERVER, "a"),
        a_resource("B", SERVER, "b"),
        a_resource("B_CP", PORT, "pb"),
        a_resource("A_CP", PORT, "pa"),
        a_resource("router_port", PORT, "pr"),
        a_resource("vip", PORT, "pv"),
        a_resource("A_FIP", FLOATING_IP, "fa"),
        a_resource("free_FIP", FLOATING_IP, "ff"),
    ]
    ports = {"pa": "a", "pb": "b", "pr": "router", "pv": "", "made before": "a", "made by Nova": "b"}
    found = StackContents(
        resources,
        server_by_id={"a": NovaServer("a", "a"), "b": NovaServer("b", "b")},
        port_by_id={port_id: NeutronPort(port_id, device_id=device) for port_id, device in ports.items()},
        floating_by_id={"fa": FloatingIp("fa", "172.24.4.1", "pa"), "ff": FloatingIp("ff", "172.24.4.2")},
    )
    facts = stack_resources(TOP, found, {})
    assert {server.server_id: [(p.name, p.resource_id) for p in server.ports] for server in facts.servers} == {
        "a": [("A_CP", "pa"), ("", "made before"), ("A_FIP", "fa")],
        "b": [("B_CP", "pb"), ("", "made by Nova")],
    }
    assert {port.name for port in facts.ports} == {"A_CP", "B_CP", "router_port", "vip", "A_FIP", "free_FIP"}


def test_the_top_stacks_ports_and_floating_ips_are_reported() -> None:
    facts = stack_resources(TOP, contents(), VDUS)
    by_name = {port.name: port for port in facts.ports}
    assert set(by_name) == {"master_CP1", "master_FIP", "vip_CP"}
    assert by_name["master_CP1"].floating_address == "172.24.4.9"
    assert by_name["master_FIP"].floating_address == "172.24.4.9"
    assert by_name["master_FIP"].addresses == ()
    assert by_name["vip_CP"].addresses == ()
    assert [network.resource_id for network in facts.networks] == ["net"]
    assert [(volume.resource_id, volume.server_id) for volume in facts.volumes] == [("vol", "m")]


def test_the_parameters_that_user_data_left_are_reported_with_their_passwords_hidden() -> None:
    nfv = {"VDU": {"masterNode": {"vcImageId": "image-1", "password": "s3cret"}}}
    facts = stack_resources(TOP, replace(contents(), nfv=nfv), VDUS)
    assert facts.nfv == {"VDU": {"masterNode": {"vcImageId": "image-1", "password": Secret("s3cret")}}}
    assert "s3cret" not in facts.model_dump_json()


def test_the_parameters_of_a_failed_change_are_not_reported() -> None:
    broken = existing(replace(contents(), nfv={"VDU": {}}))
    assert stack_resources(TOP, broken, VDUS).nfv == {}


def vdu_of(*resources: HeatResource, vdus: dict[str, str]) -> str:
    return stack_resources(TOP, StackContents(list(resources)), vdus).servers[0].vdu_id


def test_a_vdu_is_found_by_the_names_around_its_server() -> None:
    inner = a_resource("server", SERVER, "s", stack="n")
    assert vdu_of(a_resource("VDU1", SERVER, "s"), vdus={"VDU1": "x"}) == "VDU1"
    assert vdu_of(a_resource("web", SERVER, "s"), vdus={"VDU1": "web"}) == "VDU1"
    assert vdu_of(a_resource("VDU1-0", "VDU1.yaml", "n"), inner, vdus={"VDU1": "x"}) == "VDU1"
    assert vdu_of(a_resource("VDU1_group", "VDU1.yaml", "n"), inner, vdus={"VDU1": "x"}) == "VDU1"
    assert vdu_of(a_resource("else", SERVER, "s"), vdus={"VDU1": "x"}) == "else"


def test_a_clone_is_the_group_of_its_server() -> None:
    resources = [a_resource("VDU1-0", "VDU1.yaml", "n"), a_resource("VDU1", SERVER, "s", stack="n")]
    (server,) = stack_resources(TOP, StackContents(resources), {"VDU1": "VDU1"}).servers
    assert (server.group, server.member) == ("VDU1-0", None)


def test_numbered_names_stand_for_the_nodes_of_the_vnfd() -> None:
    """A node of the VNFD may have such a name itself."""
    made = [
        (f"{name}-{n}", kind, f"{name}{n}")
        for name, kind in (("WEB", SERVER), ("CP", PORT), ("data", VOLUME))
        for n in (0, 2)
    ]
    others = [("CP-1", PORT, "own"), ("CP-x", PORT, "x"), ("CP-²", PORT, "two"), ("log-7", VOLUME, "log")]
    found = StackContents(
        [a_resource(*one) for one in (*made, *others)],
        port_by_id={f"CP{n}": NeutronPort(f"CP{n}", device_id=f"WEB{n}") for n in (0, 2)},
    )
    cps = [Cp(cp_id=name, vdu_id="WEB") for name in ("CP", "CP-1")]
    facts = stack_resources(TOP, found, {"WEB": "web"}, cps=cps, storages=["data"])
    assert [server.vdu_id for server in facts.servers] == ["WEB", "WEB"]
    assert {port.cpd_id for server in facts.servers for port in server.ports} == {"CP"}
    assert [port.cpd_id for port in facts.ports] == ["CP", "CP", "CP-1", "CP-x", "CP-²"]
    assert [volume.storage_id for volume in facts.volumes] == ["data", "data", "log-7"]


def test_a_rebuilt_server_is_another_vnfc() -> None:
    first, again, rebuilt = (
        stack_resources(TOP, StackContents([a_resource("VDU1", SERVER, server_id)]), {}).servers[0].vnfc_id
        for server_id in ("a", "a", "b")
    )
    assert first == again != rebuilt


def test_the_deepest_failure_is_named_without_its_repetitions() -> None:
    failed = "CREATE_FAILED"
    resources = [
        a_resource("group", AUTO_SCALING_GROUP, "group", status=failed, reason="resources.group: echo"),
        a_resource("rnd", "worker.yaml", "member", stack="group", status=failed, reason="echo of an echo"),
        a_resource("vm", SERVER, stack="member", status=failed, reason="No valid host was found"),
        a_resource("other", SERVER, status=failed, reason="CREATE aborted (user triggered cancel)"),
    ]
    assert [resource.name for resource in failed_resources(resources)] == ["vm"]
    error = failure_of(Stack("top", "vnf-1", StackState.BROKEN, "Resource CREATE failed"), resources)
    assert isinstance(error, StackFailed)
    assert str(error) == "stack vnf-1: vm (OS::Nova::Server): No valid host was found"


def test_a_resource_that_was_only_marked_is_not_the_reason() -> None:
    resources = [
        a_resource("VDU1-0", "worker.yaml", "member", status="UPDATE_FAILED", reason="Image VDU1-image is not found"),
        a_resource("vm", SERVER, stack="member", status="CHECK_FAILED", reason=MARK),
    ]
    stack = Stack("top", "vnf-1", StackState.BROKEN, "Property error: x")
    assert str(failure_of(stack, resources)) == "stack vnf-1: VDU1-0 (worker.yaml): Image VDU1-image is not found"
    assert str(failure_of(stack, resources[1:])) == "stack vnf-1: Property error: x"


def test_a_passed_deadline_names_the_unfinished_resources() -> None:
    resources = [a_resource("vm", SERVER, "s", status="CREATE_IN_PROGRESS")]
    error = failure_of(Stack("top", "vnf-1", StackState.BROKEN, "CREATE timed out"), resources)
    assert isinstance(error, StackTimedOut)
    assert error.status == 504
    assert "unfinished: vm" in str(error)


def test_without_a_failed_resource_the_stacks_reason_is_reported() -> None:
    error = failure_of(Stack("top", "vnf-1", StackState.BROKEN, "Property error: x"), [])
    assert str(error) == "stack vnf-1: Property error: x"
