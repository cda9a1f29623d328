"""The stories: every plan, led through every state of its steps. README.md in the fixtures' folder says what to add."""

from __future__ import annotations

import shutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import yaml
from kubevnfm_cluster import CLUSTER
from kubevnfm_csar.pack import pack
from kubevnfm_events import ClusterAccess, Event, ServiceFacts
from kubevnfm_events.infra import (
    NetworkFacts,
    ObjectFacts,
    ObjectsApplied,
    ObjectsUpdated,
    PodFacts,
    PortFacts,
    ResourcesChanged,
    ResourcesCreated,
    ResourcesDeleted,
    ServerFacts,
    ServersOperated,
    StackResources,
    StorageFacts,
)
from kubevnfm_events.mgmt import PhaseDone, ScriptAnswer, ScriptDone, ScriptEdit
from kubevnfm_events.vim import VimRegistered
from kubevnfm_secrets import Secret
from lcm_builders import ANSWERS
from lcm_world import SAMPLES, sample_request
from nfvo import StubNfvo
from package_variants import OTHER_CNF, OTHER_VM, variant
from script import Script
from vm_packages import OTHER_IMAGE, other_image, two_flavours

DRIVER: Final = "mgmt-drivers-kubernetes"
ACCESS: Final = {"username": "tacker", "password": "secret-of-the-cloud", "project": "nfv", "region": "RegionOne"}
"""The VIM in requests; the password is sealed in what is stored."""
VIM: Final = {
    "vimId": "vim-1",
    "vimType": "ETSINFV.OPENSTACK_KEYSTONE.V_3",
    "interfaceInfo": {"endpoint": "http://127.0.0.1:5000/v3"},
    "accessInfo": ACCESS,
}
MADE_AT: Final = datetime(2026, 1, 1, 0, 0, 30, tzinfo=UTC)


def _server(vdu: str, number: int, *, cp: str, group: str | None = None) -> ServerFacts:
    name = f"{vdu}-{number}"
    port = PortFacts(
        name=cp, resource_id=f"port-{name}", addresses=(f"10.10.0.{10 + number}",), mac=f"fa:16:3e:00:00:{number:02x}",
        network_id="net-internal", subnet_ids=("subnet-internal",), subnet_cidrs=("10.10.0.0/24",),
    )  # fmt: skip
    return ServerFacts(
        vnfc_id=f"vnfc-{name}", name=vdu, vdu_id=vdu, server_id=f"server-{name}", server_name=f"vnf-{name}",
        host=f"compute-{number}", zone="nova", stack_id=f"nested/{name}", group=group, member=f"member-{number}",
        created_at=MADE_AT, ports=(port,), image_id="image-1", flavor="m1.tiny",
    )  # fmt: skip


def vm_stack(*numbers: int) -> StackResources:
    """Return what a stack of the sample ``vm`` holds, with these machines."""
    return StackResources(
        stack_id="stack-1", stack_name="vnf-1",
        servers=tuple(_server("VDU1", number, cp="VDU1_CP1", group="VDU1_scale") for number in numbers),
        networks=(NetworkFacts(name="internalVL1", resource_id="net-internal"),),
        volumes=tuple(
            StorageFacts(name="VirtualStorage", resource_id=f"volume-{number}", server_id=f"server-VDU1-{number}")
            for number in numbers
        ),
        images=("image-1",),
    )  # fmt: skip


def cluster_stack(*workers: int, masters: Sequence[int] = (1,)) -> StackResources:
    """Return what a stack of the sample ``cluster`` holds, with these machines, and a virtual address for several masters."""
    vip = PortFacts(name="vip_CP", resource_id="port-vip", addresses=("10.10.0.100",))
    return StackResources(
        stack_id="stack-1",
        stack_name="vnf-1",
        servers=(
            *(_server("masterNode", number, cp="masterNode_CP1", group="master_instance") for number in masters),
            *(_server("workerNode", number, cp="workerNode_CP2", group="worker_instance") for number in workers),
        ),
        ports=(vip,) if len(masters) > 1 else (),
        networks=(NetworkFacts(name="internalVL1", resource_id="net-internal"),),
    )


CLUSTER_STACK: Final = cluster_stack(2, 3)
CLUSTER_ACCESS: Final = ClusterAccess(
    server="https://10.10.0.11:6443",
    bearer_token=Secret("token-of-the-cluster"),
    ssl_ca_cert="-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
    ssl_ca_cert_hash="sha256:00",
)
NODE_NAMES: Final = {"vnfc-masterNode-1": "master11", "vnfc-workerNode-2": "worker12", "vnfc-workerNode-3": "worker13"}
RELEASE: Final = ObjectsApplied(
    namespace="default",
    objects=(
        ObjectFacts(api_version="v1", kind="ConfigMap", namespace="default", name="web", uid="uid-1"),
        ObjectFacts(api_version="apps/v1", kind="Deployment", namespace="default", name="vdu1", uid="uid-2", vdu_id="VDU1"),
    ),
    pods=(
        PodFacts(
            vdu_id="VDU1", name="vdu1-1", namespace="default", uid="uid-3", owner_kind="Deployment", node="worker12",
            addresses=("192.168.1.5",),
        ),
    ),
)  # fmt: skip

VM_ANSWERS: Final[Mapping[str, Event]] = {
    "infra.openstack.create_resources": ResourcesCreated(resources=vm_stack(1)),
    "infra.openstack.delete_resources": ResourcesDeleted(stack_name="vnf-1"),
    **{
        f"infra.openstack.{what}": ResourcesChanged(resources=vm_stack(1))
        for what in ("scale_resources", "heal_resources", "change_connections", "change_template", "restore_resources")
    },
    "infra.openstack.operate_servers": ServersOperated(servers=("server-VDU1-1",), state="STOPPED"),
    "mgmt.run_script": ScriptDone(
        answer=ScriptAnswer(edits=(ScriptEdit(path=("metadata", "configured"), change={"value": "yes"}),))
    ),
}
CLUSTER_ANSWERS: Final[Mapping[str, Event]] = {
    "infra.openstack.create_resources": ResourcesCreated(resources=CLUSTER_STACK),
    "infra.openstack.delete_resources": ResourcesDeleted(stack_name="vnf-1"),
    "mgmt.run_phase": PhaseDone(driver=DRIVER, phase="instantiate_end", cluster=CLUSTER_ACCESS, node_names=NODE_NAMES),
    "mgmt.run_phase/instantiate_start": PhaseDone(driver=DRIVER, phase="instantiate_start"),
    "mgmt.run_phase/terminate_start": PhaseDone(driver=DRIVER, phase="terminate_start"),
    "vim.register": VimRegistered(
        vim_id="vim-2", name="cluster", vim_type="kubernetes", endpoint="https://10.10.0.11:6443"
    ),
}
RESTARTED: Final = ObjectsUpdated(
    namespace="default",
    objects=RELEASE.objects,
    pods=tuple(pod.model_copy(update={"name": "vdu1-2", "uid": "uid-4"}) for pod in RELEASE.pods),
    def_files=("Files/kubernetes/deployment.yaml",),
)
CNF_ANSWERS: Final[Mapping[str, Event]] = {
    "infra.k8s.apply_objects": RELEASE,
    "infra.k8s.update_objects": RESTARTED,
    "mgmt.run_script": VM_ANSWERS["mgmt.run_script"],
}
NODE_PORTS: Final = "mgmt-drivers-cnf-nodeport"
NODE_PORT_ANSWERS: Final[Mapping[str, Event]] = {
    "infra.k8s.apply_objects": RELEASE.model_copy(
        update={"services": (ServiceFacts(namespace="default", name="web", node_ports=(30080,)),)}
    ),
    "mgmt.run_phase": PhaseDone(driver=NODE_PORTS, phase="instantiate_end"),
    "mgmt.run_phase/terminate_end": PhaseDone(driver=NODE_PORTS, phase="terminate_end"),
}


KURYR_DRIVER: Final = "kuryr-kubernetes"
KURYR_PARAMETERS: Final = {
    "pod_security_group_ids": ["pods"],
    "pod_subnet_ids": ["pod_subnet"],
    "service_subnet_id": "service_subnet",
    "lbaas_id": "api",
    "worker_nodes_subnet_id": "7d5e2b1a-93a7-4c1c-8f5e-2b1f9f0e6a11",
    "router_id": "router",
}
KURYR_RESOURCES: Final = """\
  pods: {type: OS::Neutron::SecurityGroup}
  pod_subnet: {type: OS::Neutron::Subnet, properties: {network: pod-net, cidr: 10.200.0.0/16}}
  service_subnet: {type: OS::Neutron::Subnet, properties: {network: service-net, cidr: 10.96.0.0/16}}
  router: {type: OS::Neutron::Router}
  api: {type: OS::Octavia::LoadBalancer, properties: {vip_subnet: {get_resource: service_subnet}}}
"""
KURYR_ANSWERS: Final[Mapping[str, Event]] = {
    "infra.openstack.create_resources": ResourcesCreated(resources=CLUSTER_STACK),
    "infra.openstack.delete_resources": ResourcesDeleted(stack_name="vnf-1"),
    "infra.openstack.prepare_kuryr": ANSWERS["infra.openstack.prepare_kuryr"],
    "infra.openstack.remove_kuryr": ANSWERS["infra.openstack.remove_kuryr"],
    "mgmt.run_phase": PhaseDone(
        driver=KURYR_DRIVER, phase="instantiate_end", cluster=CLUSTER_ACCESS, node_names=NODE_NAMES
    ),
    "mgmt.run_phase/stop_kuryr": PhaseDone(driver=KURYR_DRIVER, phase="terminate_start"),
    "vim.register": CLUSTER_ANSWERS["vim.register"],
}


REGISTRY_DRIVER: Final = "mgmt-drivers-private-registry"
REGISTRY_STACK: Final = StackResources(
    stack_id="stack-1",
    stack_name="vnf-1",
    servers=(_server("PrivateRegistryVDU", 1, cp="PrivateRegistryVDU_CP1"),),
    images=("image-1",),
)
"""The stack of the sample ``registry``."""
REGISTRY_ANSWERS: Final[Mapping[str, Event]] = {
    "infra.openstack.create_resources": ResourcesCreated(resources=REGISTRY_STACK),
    "infra.openstack.delete_resources": ResourcesDeleted(stack_name="vnf-1"),
    "infra.openstack.heal_resources": ResourcesChanged(resources=REGISTRY_STACK),
    "mgmt.run_phase": PhaseDone(driver=REGISTRY_DRIVER, phase="instantiate_end"),
    "mgmt.run_phase/heal_end": PhaseDone(driver=REGISTRY_DRIVER, phase="heal_end"),
}


Play = Callable[[Script], Awaitable[None]]
"""A whole story, or a part of one."""
Setup = Callable[[Script], Awaitable[str]]
"""Creates the instance of a story and returns its id. Its writes are not recorded."""


@dataclass(frozen=True)
class Story:
    """How one operation came about and what happened to it."""

    play: Play
    answers: Mapping[str, Event] = field(default_factory=lambda: dict(VM_ANSWERS))
    remains: dict[str, object] | None = None
    asks_nfvo: bool = False


# --- how instances come to be -------------------------------------------------------------------------------------------


async def vm(script: Script, content: bytes | None = None) -> str:
    """Return a new instance of the sample ``vm``, or of another package that is like it."""
    package = await script.world.upload(script.world.zipped("vm") if content is None else content)
    return await script.world.create(vnfdId=package["vnfdId"])


async def live_vm(script: Script, content: bytes | None = None, *, version: str = "v2") -> str:
    """Return an instance that is INSTANTIATED."""
    instance_id = await vm(script, content)
    await script.do(instance_id, "instantiate", vm_body(version), version=version)
    return instance_id


def vm_of_two_flavours(version: str = "v2", before: Sequence[tuple[str, object]] = ()) -> Setup:
    """Return the set-up of an INSTANTIATED instance with two flavours, changed by the operations ``before``."""

    async def setup(script: Script) -> str:
        instance_id = await live_vm(script, two_flavours(script.world.folder), version=version)
        for task, body in before:
            await script.do(instance_id, task, body)
        return instance_id

    return setup


async def vm_and_another_package(script: Script) -> str:
    """Return an instance that is INSTANTIATED; the package that it can change to is there too."""
    instance_id = await live_vm(script)
    await script.world.upload(other_image(script.world.folder))
    return instance_id


async def scripted_vm(script: Script) -> str:
    """Return an INSTANTIATED instance whose package has scripts; the package that it can change to is there too."""
    moments = ("start", "end", "rollback_start", "rollback_end")
    phases = {f"change_current_package_{moment}": "own" for moment in moments}
    phases |= {f"modify_information_{moment}": "own" for moment in moments[:2]}
    files = {"Scripts/coordinate.py": "pass\n"}
    folder = script.world.folder
    instance_id = await live_vm(script, variant(folder, "vm", phases=phases, files=files))
    await script.world.upload(variant(folder, "vm", phases=phases, files=files, vnfd_id=OTHER_VM))
    return instance_id


def vm_body(version: str = "v2") -> dict[str, Any]:
    """Return an instantiate request with a VIM and parameters of its own."""
    if version == "v1":
        request = sample_request("vm", "instantiate.v1")
        vim: Any = [{"id": "vim1", **VIM}]
    else:
        request, vim = sample_request("vm", "instantiate"), {"vim1": VIM}
    return {**request, "vimConnectionInfo": vim, "additionalParams": {"colour": "blue", "admin_password": "secret"}}


async def cluster(script: Script) -> str:
    """Return a new instance of the sample ``cluster``, whose driver has all phases of instantiate and terminate."""
    root = script.world.folder / "all-phases"
    shutil.copytree(SAMPLES / "cluster", root, ignore=shutil.ignore_patterns("requests"))
    for phase in ("instantiate_start", "terminate_start"):
        _replace_in(root / "Definitions", f"{phase}: []", f"{phase}: {{implementation: {DRIVER}}}")
    return await _cluster_of(script, root)


async def kuryr_cluster(script: Script) -> str:
    """Return a new instance of a cluster with Kuryr: the sample ``cluster`` with the driver and the networks for it."""
    root = script.world.folder / "kuryr"
    shutil.copytree(SAMPLES / "cluster", root, ignore=shutil.ignore_patterns("requests"))
    _replace_in(root / "Definitions", "terminate_start: []", f"terminate_start: {{implementation: {KURYR_DRIVER}}}")
    _replace_in(root / "Definitions", DRIVER, KURYR_DRIVER)
    _replace_in(root / "BaseHOT/simple", "\nresources:\n", f"\nresources:\n{KURYR_RESOURCES}")
    return await _cluster_of(script, root)


def kuryr_body() -> dict[str, Any]:
    """Return the instantiate request of a cluster with Kuryr."""
    body: dict[str, Any] = sample_request("cluster", "instantiate")
    body["additionalParams"][CLUSTER] = {
        **body["additionalParams"][CLUSTER],
        "kuryr_param": KURYR_PARAMETERS,
    }
    body["additionalParams"][CLUSTER]["master_node"] |= {"pod_cidr": "10.200.0.0/16", "cluster_cidr": "10.96.0.0/17"}
    return body


async def live_kuryr_cluster(script: Script) -> str:
    """Return a cluster with Kuryr that is INSTANTIATED."""
    instance_id = await kuryr_cluster(script)
    await script.do(instance_id, "instantiate", kuryr_body())
    return instance_id


def _replace_in(folder: Path, old: str, new: str) -> None:
    for path in folder.glob("*.yaml"):
        text = path.read_text(encoding="utf-8").replace(old, new)
        assert yaml.safe_load(text)
        path.write_text(text, encoding="utf-8")


async def _cluster_of(script: Script, root: Path) -> str:
    archive = root.with_suffix(".zip")
    pack(root, archive)
    package = await script.world.upload(archive.read_bytes())
    return await script.world.create("cluster", vnfdId=package["vnfdId"])


async def live_cluster(script: Script) -> str:
    """Return a cluster that is INSTANTIATED."""
    instance_id = await cluster(script)
    await script.do(instance_id, "instantiate", sample_request("cluster", "instantiate"))
    return instance_id


async def live_ha_cluster(script: Script) -> str:
    """Return a cluster with three masters that is INSTANTIATED."""
    instance_id = await cluster(script)
    await script.do(instance_id, "instantiate", sample_request("cluster", "instantiate_complex"))
    return instance_id


async def registry(script: Script) -> str:
    """Return a new instance of the sample ``registry``."""
    await script.world.sample("registry")
    return await script.world.create("registry")


async def live_registry(script: Script) -> str:
    """Return a private registry that is INSTANTIATED."""
    instance_id = await registry(script)
    await script.do(instance_id, "instantiate", sample_request("registry", "instantiate"))
    return instance_id


async def cnf(script: Script) -> str:
    """Return a new instance of the sample ``cnf``."""
    script.world.vims.add("vim-k", "kubernetes")
    await script.world.sample("cnf")
    return await script.world.create("cnf")


def cnf_body() -> dict[str, Any]:
    """Return the instantiate request of a CNF."""
    connection = {
        "vimId": "vim-k", "vimType": "ETSINFV.KUBERNETES.V_1",
        "interfaceInfo": {"endpoint": "https://127.0.0.1:6443"}, "accessInfo": {"bearer_token": "token-of-the-vim"},
    }  # fmt: skip
    return {**sample_request("cnf", "instantiate"), "vimConnectionInfo": {"cluster": connection}}


async def live_cnf(script: Script) -> str:
    """Return a CNF that is INSTANTIATED."""
    instance_id = await cnf(script)
    await script.do(instance_id, "instantiate", cnf_body())
    return instance_id


async def updatable_cnf(script: Script) -> str:
    """Return a CNF that is INSTANTIATED and whose driver changes its images; the package to change to is there too."""
    script.world.vims.add("vim-k", "kubernetes")
    phases = {"modify_information_end": "mgmt-container-update"}
    for content in (
        variant(script.world.folder, phases=phases),
        variant(script.world.folder, phases=phases, vnfd_id=OTHER_CNF),
    ):
        await script.world.upload(content)
    instance_id = await script.world.create("cnf")
    await script.do(instance_id, "instantiate", cnf_body())
    return instance_id


async def cnf_with_node_ports(script: Script) -> str:
    """Return a new instance of a CNF whose driver has a load balancer forward to its node ports."""
    script.world.vims.add("vim-k", "kubernetes")
    phases = dict.fromkeys(("instantiate_end", "terminate_end"), NODE_PORTS)
    files = {"Scripts/configure_lb.sh": "exit 0\n"}
    await script.world.upload(variant(script.world.folder, phases=phases, files=files))
    return await script.world.create("cnf")


async def scripted_cnf(script: Script) -> str:
    """Return a new instance of a CNF whose package has scripts; the package that it can change to is there too."""
    script.world.vims.add("vim-k", "kubernetes")
    phases = {f"instantiate_{moment}": "own" for moment in ("start", "end", "rollback_start", "rollback_end")}
    phases |= {f"{name}_{moment}": "own" for name in ("modify_information", "terminate") for moment in ("start", "end")}
    await script.world.upload(variant(script.world.folder, phases=phases))
    await script.world.upload(variant(script.world.folder, phases=phases, vnfd_id=OTHER_CNF))
    return await script.world.create("cnf")


async def live_scripted_cnf(script: Script) -> str:
    """Return such a CNF that is INSTANTIATED."""
    instance_id = await scripted_cnf(script)
    await script.do(instance_id, "instantiate", cnf_body())
    return instance_id


def balanced_body() -> dict[str, Any]:
    """Return the instantiate request of a CNF behind a load balancer."""
    login = {"ssh_ip": "10.0.0.9", "ssh_username": "ubuntu", "ssh_password": "secret-of-the-balancer"}
    balancer = {"script_path": "Scripts/configure_lb.sh", "external_lb_param": login}
    body = cnf_body()
    return {**body, "additionalParams": {**body["additionalParams"], "lcm-kubernetes-external-lb": balancer}}


async def live_cnf_with_node_ports(script: Script) -> str:
    """Return a CNF behind a load balancer that is INSTANTIATED."""
    instance_id = await cnf_with_node_ports(script)
    await script.do(instance_id, "instantiate", balanced_body())
    return instance_id


# --- the parts of stories -----------------------------------------------------------------------------------------------


def play(setup: Setup, *parts: Play, ends: str = "COMPLETED") -> Play:
    """Return the story of an instance: its parts one after the other, and the state in which the operation ends."""

    async def played(script: Script) -> None:
        await script.begin_record(await setup(script))
        for part in parts:
            await part(script)
        await script.reaches(ends)

    return played


def ask(task: str, body: object, *, version: str = "v2") -> Play:
    """Ask for the operation that the story is about."""

    async def part(script: Script) -> None:
        await script.ask(task, body, version=version)

    return part


def succeed(*steps: str) -> Play:
    """Have the steps succeed, one after the other."""

    async def part(script: Script) -> None:
        await script.succeed(*steps)

    return part


def fail(step: str, task: str) -> Play:
    """Have the step fail, and ask for the task: retry, rollback or fail."""

    async def part(script: Script) -> None:
        await script.answer(step, fails=True)
        await script.reaches("FAILED_TEMP")
        await script.task(task)

    return part


def retry(*steps: str) -> Play:
    """Have each step fail once and succeed after a retry."""

    async def part(script: Script) -> None:
        for step in steps:
            await fail(step, "retry")(script)
            await script.answer(step)

    return part


def begin_again(asked: Play) -> Play:
    """Leave out the failed operation, and ask for another one."""

    async def part(script: Script) -> None:
        await script.reaches("FAILED")
        script.forget()
        await asked(script)

    return part


async def fail_to_clean_up(script: Script) -> None:
    """Have the clean-up fail once, and pass the time until it is tried again."""
    await script.answer("create_resources", fails=True)
    script.clock.advance(60)


async def delete(script: Script) -> None:
    """Delete the instance of a failed operation; what it left is removed."""
    await script.reaches("FAILED")
    await script.delete()
    await script.answer("create_resources")
    await script.clean_up_reaches("ROLLED_BACK")


async def modify(script: Script) -> None:
    """Change the instance's information."""
    await script.modify(sample_request("vm", "modify"))


async def modify_cnf(script: Script) -> None:
    """Change a CNF's package, and with it the images of its containers."""
    await script.modify({"vnfdId": OTHER_CNF, "metadata": {"changed": "images"}})


async def fail_side_by_side(script: Script) -> None:
    """Have the two last steps of a cluster's termination fail, and retry both."""
    await script.answer("deregister_vim", fails=True)
    await fail("forget_machines", "retry")(script)


async def cancel_side_by_side(script: Script) -> None:
    """Cancel the two last steps of a cluster's termination."""
    await script.asks("deregister_vim", "forget_machines")
    await script.task("cancel", {"cancelMode": "FORCEFUL"})


async def cancel_after_the_step(script: Script) -> None:
    """Cancel a cluster's instantiation in each mode, and its rollback."""
    await script.asks("create_resources")
    await script.task("cancel", {"cancelMode": "GRACEFUL"})
    await script.answer("create_resources")
    await script.reaches("FAILED_TEMP")
    await script.task("retry")
    await script.answer("instantiate_end")
    await script.asks("register_vim")
    await script.task("cancel", {"cancelMode": "GRACEFUL"})
    await script.task("cancel", {"cancelMode": "FORCEFUL"})
    await script.reaches("FAILED_TEMP")
    await script.task("rollback")
    await script.asks("register_vim")
    await script.task("cancel", {"cancelMode": "FORCEFUL"})


async def ask_nfvo(script: Script) -> StubNfvo:
    """Instantiate a VM and wait until the NFVO, which does not decide yet, was polled."""
    assert script.nfvo is not None
    script.nfvo.undecided = _UNDECIDED
    await script.ask("instantiate", vm_body())
    await script.is_polled()
    return script.nfvo


async def get_grant(script: Script) -> None:
    """The NFVO decides at its second poll."""
    nfvo = await ask_nfvo(script)
    nfvo.undecided = 0
    script.clock.advance()
    await script.asks("create_resources")
    await script.answer("create_resources")


async def get_refusal(script: Script) -> None:
    """The NFVO refuses at its second poll."""
    nfvo = await ask_nfvo(script)
    nfvo.undecided, nfvo.is_refusing = 0, True
    script.clock.advance()


async def cancel_before_the_grant(script: Script) -> None:
    """The operation is cancelled before the NFVO decides."""
    await ask_nfvo(script)
    await script.task("cancel", {"cancelMode": "FORCEFUL"})


# --- the stories --------------------------------------------------------------------------------------------------------


def change(
    task: str, body: object, step: str, *, version: str = "v2", before: Sequence[tuple[str, object]] = ()
) -> Play:
    """Return the story of a change of one step, which fails once and is retried."""
    return play(vm_of_two_flavours(version, before), ask(task, body, version=version), retry(step))


def change_back(task: str, body: object, step: str) -> Play:
    """Return the story of a change that fails and is rolled back."""
    return play(vm_of_two_flavours(), ask(task, body), fail(step, "rollback"), succeed(step), ends="ROLLED_BACK")


_UNDECIDED: Final = 1_000_000
CLUSTER_STEPS: Final = ("instantiate_start", "create_resources", "instantiate_end", "register_vim")
TERMINATE_STEPS: Final = ("terminate_start", "delete_resources", "deregister_vim", "forget_machines")
_GRACEFUL: Final = {"terminationType": "GRACEFUL", "gracefulTerminationTimeout": 30}
_FORCEFUL: Final = {"terminationType": "FORCEFUL"}
_HEAL_ALL: Final = {"cause": "all of it", "additionalParams": {"all": True}}
_ASK_VM: Final = ask("instantiate", vm_body())
_ASK_CLUSTER: Final = ask("instantiate", sample_request("cluster", "instantiate"))
_ASK_BALANCED: Final = ask("instantiate", balanced_body())
_ASK_CNF: Final = ask("instantiate", cnf_body())
_OUT: Final = {"type": "SCALE_OUT", "aspectId": "VDU1_scale", "numberOfSteps": "1"}
_IN: Final = {"type": "SCALE_IN", "aspectId": "VDU1_scale", "numberOfSteps": "1"}
_TWO: Final = {**VM_ANSWERS, "infra.openstack.scale_resources": ResourcesChanged(resources=vm_stack(1, 2))}
_CLUSTER: Final[Mapping[str, Event]] = CLUSTER_ANSWERS
_SCALED_CLUSTER: Final[Mapping[str, Event]] = {
    **CLUSTER_ANSWERS,
    "infra.openstack.scale_resources": ResourcesChanged(resources=cluster_stack(2, 3, 4)),
    "infra.openstack.restore_resources": ResourcesChanged(resources=CLUSTER_STACK),
    "mgmt.run_phase/scale_start": PhaseDone(driver=DRIVER, phase="scale_start"),
    "mgmt.run_phase/scale_end": PhaseDone(
        driver=DRIVER, phase="scale_end", node_names={**NODE_NAMES, "vnfc-workerNode-4": "worker14"}
    ),
    "mgmt.run_phase/scale_rollback_end": PhaseDone(driver=DRIVER, phase="scale_rollback_end"),
}
_NEW_CLUSTER: Final = CLUSTER_STACK.model_copy(
    update={
        "servers": tuple(
            one.model_copy(update={"vnfc_id": f"{one.vnfc_id}b", "server_id": f"{one.server_id}b"})
            for one in CLUSTER_STACK.servers
        )
    }
)
_HEALED_CLUSTER: Final[Mapping[str, Event]] = {
    **CLUSTER_ANSWERS,
    "infra.openstack.heal_resources": ResourcesChanged(resources=cluster_stack(2, 4)),
    "mgmt.run_phase/heal_start": PhaseDone(driver=DRIVER, phase="heal_start"),
    "mgmt.run_phase/heal_end": PhaseDone(
        driver=DRIVER, phase="heal_end", node_names={**NODE_NAMES, "vnfc-workerNode-4": "worker14"}
    ),
}
_HA_STACK: Final = cluster_stack(2, 3, masters=(11, 12, 13))
_HA_NAMES: Final = {one.vnfc_id: f"node-{one.vnfc_id}" for one in _HA_STACK.servers}
_HEALED_MASTER: Final[Mapping[str, Event]] = {
    **CLUSTER_ANSWERS,
    "infra.openstack.create_resources": ResourcesCreated(resources=_HA_STACK),
    "mgmt.run_phase": PhaseDone(driver=DRIVER, phase="instantiate_end", cluster=CLUSTER_ACCESS, node_names=_HA_NAMES),
    "mgmt.run_phase/heal_start": PhaseDone(driver=DRIVER, phase="heal_start", left="vnfc-masterNode-12"),
    "infra.openstack.heal_resources": ResourcesChanged(resources=cluster_stack(2, 3, masters=(11, 13, 14))),
    "mgmt.run_phase/heal_end": PhaseDone(
        driver=DRIVER, phase="heal_end", node_names={**_HA_NAMES, "vnfc-masterNode-14": "node-vnfc-masterNode-12"}
    ),
}
_STARTED: Final = {
    **VM_ANSWERS,
    "infra.openstack.operate_servers": ServersOperated(servers=("server-VDU1-1",), state="STARTED"),
}
_LEFT: Final[dict[str, object]] = vm_stack(1).model_dump(mode="json")
_TWO_LEFT: Final[dict[str, object]] = vm_stack(1, 2).model_dump(mode="json")
_CLUSTER_LEFT: Final[dict[str, object]] = CLUSTER_STACK.model_dump(mode="json")
_RELEASE_LEFT: Final[dict[str, object]] = RELEASE.model_dump(mode="json")
_STOP: Final = {"changeStateTo": "STOPPED", "stopType": "GRACEFUL", "gracefulStopTimeout": 20}

_KEPT: Final[dict[str, object]] = ScriptAnswer(data={"tried": "yes"}).model_dump(mode="json")
_LOGIN: Final = {"cp_name": "VDU1_CP1", "username": "ubuntu", "password": "secret-of-the-machine"}
_ROLLING: Final = {
    "vnfdId": OTHER_VM,
    "additionalParams": {
        "upgrade_type": "RollingUpdate",
        "lcm-operation-coordinate-new-vnf": "Scripts/coordinate.py",
        "lcm-operation-coordinate-old-vnf": "Scripts/coordinate.py",
        "vdu_params": [{"vdu_id": "VDU1", "new_vnfc_param": _LOGIN, "old_vnfc_param": _LOGIN}],
    },
}
_COORDINATED: Final = {
    "vnfdId": OTHER_VM,
    "additionalParams": {
        "lcm-operation-coordinate-new-vnf": "Scripts/coordinate.py",
        "lcm-operation-coordinate-old-vnf": "Scripts/coordinate.py",
        "vdu_params": [{"vdu_id": "VDU1", "new_vnfc_param": _LOGIN, "old_vnfc_param": _LOGIN}],
    },
}

STORIES: Final[Mapping[str, Story]] = {
    "instantiate-vm-v1": Story(play(vm, ask("instantiate", vm_body("v1"), version="v1"), succeed("create_resources"))),
    "instantiate-vm-v2": Story(play(vm, _ASK_VM, succeed("create_resources"))),
    "instantiate-vm-after-remains": Story(
        play(
            vm,
            _ASK_VM,
            fail("create_resources", "fail"),
            begin_again(_ASK_VM),
            succeed("create_resources", "create_resources"),  # the first is the clean-up's
        ),
        remains=_LEFT,
    ),
    "instantiate-vm-given-up-and-deleted": Story(
        play(vm, _ASK_VM, fail("create_resources", "fail"), delete, ends="FAILED"), remains=_LEFT
    ),
    "instantiate-cluster": Story(play(cluster, _ASK_CLUSTER, succeed(*CLUSTER_STEPS)), _CLUSTER),
    "instantiate-cluster-retried": Story(play(cluster, _ASK_CLUSTER, retry(*CLUSTER_STEPS)), _CLUSTER, _CLUSTER_LEFT),
    "instantiate-cluster-rolled-back": Story(
        play(
            cluster,
            _ASK_CLUSTER,
            succeed(*CLUSTER_STEPS[:-1]),
            fail("register_vim", "rollback"),
            succeed("register_vim"),
            fail("instantiate_end", "rollback"),
            succeed("instantiate_end", "create_resources"),
            ends="ROLLED_BACK",
        ),
        _CLUSTER,
    ),
    "instantiate-cluster-retried-after-rollback": Story(
        play(
            cluster,
            _ASK_CLUSTER,
            succeed(*CLUSTER_STEPS[:-1]),
            fail("register_vim", "rollback"),
            succeed("register_vim"),
            fail("instantiate_end", "retry"),
            succeed("instantiate_end", "register_vim"),
        ),
        _CLUSTER,
    ),
    "instantiate-cluster-given-up": Story(
        play(cluster, _ASK_CLUSTER, succeed(*CLUSTER_STEPS[:2]), fail("instantiate_end", "fail"), ends="FAILED"),
        _CLUSTER,
    ),
    "instantiate-cluster-after-remains": Story(
        play(
            cluster,
            _ASK_CLUSTER,
            succeed(*CLUSTER_STEPS[:2]),
            fail("instantiate_end", "fail"),
            begin_again(_ASK_CLUSTER),
            succeed("instantiate_end"),
            fail_to_clean_up,
            succeed("create_resources", *CLUSTER_STEPS),
        ),
        _CLUSTER,
    ),
    "instantiate-cluster-cancelled": Story(
        play(cluster, _ASK_CLUSTER, succeed("instantiate_start"), cancel_after_the_step, ends="FAILED_TEMP"), _CLUSTER
    ),
    "instantiate-kuryr-cluster": Story(
        play(
            kuryr_cluster,
            ask("instantiate", kuryr_body()),
            succeed("create_resources"),
            retry("prepare_kuryr_network", "instantiate_end"),
            succeed("register_vim"),
        ),
        KURYR_ANSWERS,
    ),
    "instantiate-kuryr-cluster-rolled-back": Story(
        play(
            kuryr_cluster,
            ask("instantiate", kuryr_body()),
            succeed("create_resources", "prepare_kuryr_network"),
            fail("instantiate_end", "rollback"),
            succeed("instantiate_end", "prepare_kuryr_network", "create_resources"),
            ends="ROLLED_BACK",
        ),
        KURYR_ANSWERS,
    ),
    "terminate-kuryr-cluster": Story(
        play(
            live_kuryr_cluster,
            ask("terminate", {"terminationType": "GRACEFUL"}),
            retry("stop_kuryr", "remove_kuryr_resources"),
            succeed(*TERMINATE_STEPS[1:]),
        ),
        KURYR_ANSWERS,
    ),
    "instantiate-registry": Story(
        play(
            registry,
            ask("instantiate", sample_request("registry", "instantiate")),
            retry("create_resources", "instantiate_end"),
        ),
        REGISTRY_ANSWERS,
    ),
    "instantiate-registry-rolled-back": Story(
        play(
            registry,
            ask("instantiate", sample_request("registry", "instantiate")),
            succeed("create_resources"),
            fail("instantiate_end", "rollback"),
            succeed("instantiate_end", "create_resources"),
            ends="ROLLED_BACK",
        ),
        REGISTRY_ANSWERS,
    ),
    "heal-registry": Story(
        play(live_registry, ask("heal", {"cause": "it does not answer"}), retry("heal_resources", "heal_end")),
        REGISTRY_ANSWERS,
    ),
    "instantiate-cnf": Story(play(cnf, _ASK_CNF, retry("apply_objects")), CNF_ANSWERS, _RELEASE_LEFT),
    "instantiate-cnf-rolled-back": Story(
        play(cnf, _ASK_CNF, fail("apply_objects", "rollback"), succeed("apply_objects"), ends="ROLLED_BACK"),
        CNF_ANSWERS,
    ),
    "instantiate-cnf-node-ports": Story(
        play(cnf_with_node_ports, _ASK_BALANCED, retry("apply_objects", "instantiate_end")), NODE_PORT_ANSWERS
    ),
    "instantiate-cnf-node-ports-rolled-back": Story(
        play(
            cnf_with_node_ports,
            _ASK_BALANCED,
            succeed("apply_objects"),
            fail("instantiate_end", "rollback"),
            succeed("instantiate_end", "apply_objects"),
            ends="ROLLED_BACK",
        ),
        NODE_PORT_ANSWERS,
    ),
    "terminate-cnf-node-ports": Story(
        play(
            live_cnf_with_node_ports,
            ask("terminate", _GRACEFUL),
            retry("delete_objects", "terminate_end", "forget_machines"),
        ),
        NODE_PORT_ANSWERS,
    ),
    "instantiate-cnf-with-scripts": Story(
        play(scripted_cnf, _ASK_CNF, retry("instantiate_start", "apply_objects", "instantiate_end")), CNF_ANSWERS
    ),
    "instantiate-cnf-with-scripts-rolled-back": Story(
        play(
            scripted_cnf,
            _ASK_CNF,
            succeed("instantiate_start", "apply_objects"),
            fail("instantiate_end", "rollback"),
            fail("instantiate_rollback_start", "rollback"),
            succeed("instantiate_rollback_start", "apply_objects", "instantiate_rollback_end"),
            ends="ROLLED_BACK",
        ),
        CNF_ANSWERS,
        _KEPT,
    ),
    "terminate-cnf-with-scripts": Story(
        play(
            live_scripted_cnf,
            ask("terminate", _GRACEFUL),
            retry("terminate_start", "delete_objects", "terminate_end", "forget_machines"),
        ),
        CNF_ANSWERS,
    ),
    "modify-cnf-with-scripts": Story(
        play(live_scripted_cnf, modify_cnf, retry("modify_information_start", "modify_information_end")), CNF_ANSWERS
    ),
    "instantiate-cnf-after-remains": Story(
        play(
            cnf,
            _ASK_CNF,
            fail("apply_objects", "fail"),
            begin_again(_ASK_CNF),
            succeed("apply_objects", "apply_objects"),  # the first is the clean-up's
        ),
        CNF_ANSWERS,
        _RELEASE_LEFT,
    ),
    "terminate-vm-graceful": Story(play(live_vm, ask("terminate", _GRACEFUL), succeed("delete_resources"))),
    "terminate-vm-forceful-v1": Story(
        play(live_vm, ask("terminate", _FORCEFUL, version="v1"), succeed("delete_resources"))
    ),
    "terminate-vm-given-up": Story(
        play(live_vm, ask("terminate", _GRACEFUL), fail("delete_resources", "fail"), ends="FAILED")
    ),
    "terminate-cluster-graceful": Story(
        play(live_cluster, ask("terminate", _GRACEFUL), succeed(*TERMINATE_STEPS)), _CLUSTER
    ),
    "terminate-cluster-forceful-retried": Story(
        play(
            live_cluster,
            ask("terminate", _FORCEFUL),
            retry(*TERMINATE_STEPS[:2]),
            fail_side_by_side,
            succeed("forget_machines", "deregister_vim"),
        ),
        _CLUSTER,
    ),
    "terminate-cluster-forceful": Story(
        play(live_cluster, ask("terminate", _FORCEFUL), succeed(*TERMINATE_STEPS)), _CLUSTER
    ),
    "terminate-cluster-cancelled": Story(
        play(
            live_cluster,
            ask("terminate", _FORCEFUL),
            succeed(*TERMINATE_STEPS[:2]),
            cancel_side_by_side,
            ends="FAILED_TEMP",
        ),
        _CLUSTER,
    ),
    "terminate-cnf-graceful-retried": Story(
        play(live_cnf, ask("terminate", _GRACEFUL), retry("delete_objects")), CNF_ANSWERS
    ),
    "terminate-cnf-forceful": Story(
        play(live_cnf, ask("terminate", _FORCEFUL), succeed("delete_objects")), CNF_ANSWERS
    ),
    "scale-out": Story(change("scale", _OUT, "scale_resources"), _TWO, _LEFT),
    "scale-out-v1": Story(change("scale", _OUT, "scale_resources", version="v1"), _TWO),
    "scale-out-rolled-back": Story(change_back("scale", _OUT, "scale_resources"), _TWO, _TWO_LEFT),
    "scale-out-given-up": Story(
        play(vm_of_two_flavours(), ask("scale", _OUT), fail("scale_resources", "fail"), ends="FAILED"),
        _TWO,
        _TWO_LEFT,
    ),
    "scale-in": Story(change("scale", _IN, "scale_resources", before=[("scale", _OUT)])),
    "scale-out-of-a-cluster": Story(
        play(
            live_cluster,
            ask("scale", {**_OUT, "aspectId": "worker_instance"}),
            succeed("scale_resources"),
            retry("scale_end"),
        ),
        _SCALED_CLUSTER,
    ),
    "scale-out-of-a-cluster-rolled-back": Story(
        play(
            live_cluster,
            ask("scale", {**_OUT, "aspectId": "worker_instance"}),
            succeed("scale_resources"),
            fail("scale_end", "rollback"),
            fail("scale_end", "rollback"),
            succeed("scale_end", "scale_resources", "scale_rollback_end"),
            ends="ROLLED_BACK",
        ),
        _SCALED_CLUSTER,
    ),
    "scale-in-of-a-cluster": Story(
        play(
            live_cluster,
            ask("scale", {**_IN, "aspectId": "worker_instance"}),
            retry("scale_start", "scale_resources", "scale_end"),
        ),
        {**_SCALED_CLUSTER, "infra.openstack.scale_resources": ResourcesChanged(resources=cluster_stack(2))},
    ),
    "scale-to-level": Story(change("scale_to_level", {"instantiationLevelId": "three"}, "scale_resources"), _TWO),
    "heal-in-place": Story(change("heal", {"cause": "it does not answer"}, "heal_resources")),
    "heal-in-place-v1": Story(change("heal", {"vnfcInstanceId": ["vnfc-VDU1-1"]}, "heal_resources", version="v1")),
    "heal-everything": Story(
        play(live_vm, ask("heal", _HEAL_ALL), retry("delete_resources", "recreate_resources", "restore_scale"))
    ),
    "heal-everything-given-up": Story(
        play(
            live_vm,
            ask("heal", _HEAL_ALL),
            succeed("delete_resources"),
            fail("recreate_resources", "fail"),
            ends="FAILED",
        )
    ),
    "heal-of-a-worker": Story(
        play(
            live_cluster,
            ask("heal", {"vnfcInstanceId": ["vnfc-workerNode-3"]}),
            retry("heal_start", "heal_resources", "heal_end"),
        ),
        _HEALED_CLUSTER,
    ),
    "heal-of-a-master": Story(
        play(
            live_ha_cluster,
            ask("heal", {"vnfcInstanceId": ["vnfc-masterNode-12"]}),
            retry("heal_start/1", "heal_resources/1", "heal_end/1"),
        ),
        _HEALED_MASTER,
    ),
    "heal-of-a-whole-cluster": Story(
        play(live_cluster, ask("heal", {}), retry("heal_resources", "heal_end", "register_vim")),
        {
            **_HEALED_CLUSTER,
            "infra.openstack.heal_resources": ResourcesChanged(resources=_NEW_CLUSTER),
            "mgmt.run_phase/heal_end": PhaseDone(
                driver=DRIVER,
                phase="heal_end",
                cluster=CLUSTER_ACCESS,
                node_names={server.vnfc_id: f"node-{server.vnfc_id}" for server in _NEW_CLUSTER.servers},
            ),
        },
    ),
    "operate-stop": Story(change("operate", _STOP, "operate_servers")),
    "operate-start": Story(
        change("operate", {"changeStateTo": "STARTED"}, "operate_servers", before=[("operate", _STOP)]), _STARTED
    ),
    "connect": Story(change("change_ext_conn", sample_request("vm", "change_ext_conn"), "change_connections")),
    "connect-v1": Story(
        change("change_ext_conn", sample_request("vm", "change_ext_conn.v1"), "change_connections", version="v1")
    ),
    "connect-rolled-back": Story(
        change_back("change_ext_conn", sample_request("vm", "change_ext_conn"), "change_connections")
    ),
    "change-flavour": Story(change("change_flavour", {"newFlavourId": "large"}, "change_template")),
    "change-flavour-rolled-back": Story(change_back("change_flavour", {"newFlavourId": "large"}, "change_template")),
    "change-package": Story(
        play(
            vm_and_another_package,
            ask("change_vnfpkg", {"vnfdId": OTHER_IMAGE, "additionalParams": {"colour": "red"}}),
            retry("change_template"),
        )
    ),
    "change-vnfpkg-with-scripts": Story(
        play(
            scripted_vm,
            ask("change_vnfpkg", _COORDINATED),
            succeed("change_current_package_start", "change_template"),
            retry("coordinate-new/VDU1/0", "change_current_package_end"),
        ),
        remains=_KEPT,
    ),
    "change-vnfpkg-with-scripts-rolled-back": Story(
        play(
            scripted_vm,
            ask("change_vnfpkg", _COORDINATED),
            succeed("change_current_package_start", "change_template"),
            fail("coordinate-new/VDU1/0", "rollback"),
            succeed("change_current_package_rollback_start", "change_template", "coordinate-old/VDU1/0"),
            fail("change_current_package_rollback_end", "rollback"),
            succeed("change_current_package_rollback_end"),
            ends="ROLLED_BACK",
        ),
        remains=_KEPT,
    ),
    "change-vnfpkg-rolling": Story(
        play(
            scripted_vm,
            ask("change_vnfpkg", _ROLLING),
            succeed("change_current_package_start"),
            retry("change/VDU1_scale", "coordinate-new/VDU1_scale/0"),
            succeed("change_current_package_end"),
        ),
    ),
    "change-vnfpkg-rolling-rolled-back": Story(
        play(
            scripted_vm,
            ask("change_vnfpkg", _ROLLING),
            succeed("change_current_package_start", "change/VDU1_scale"),
            fail("coordinate-new/VDU1_scale/0", "rollback"),
            succeed("change_current_package_rollback_start"),
            fail("change/VDU1_scale", "rollback"),
            succeed("change/VDU1_scale", "coordinate-old/VDU1_scale/0", "change_current_package_rollback_end"),
            ends="ROLLED_BACK",
        ),
    ),
    "modify": Story(play(live_vm, modify)),
    "modify-with-scripts": Story(
        play(scripted_vm, modify, retry("modify_information_start", "modify_information_end")), remains=_KEPT
    ),
    "modify-cnf": Story(
        play(updatable_cnf, modify_cnf, retry("update_objects")), CNF_ANSWERS, RESTARTED.model_dump(mode="json")
    ),
    "modify-cnf-rolled-back": Story(
        play(
            updatable_cnf, modify_cnf, fail("update_objects", "rollback"), succeed("update_objects"), ends="ROLLED_BACK"
        ),
        CNF_ANSWERS,
    ),
    "grant-given": Story(play(vm, get_grant), asks_nfvo=True),
    "grant-refused": Story(play(vm, get_refusal, ends="ROLLED_BACK"), asks_nfvo=True),
    "grant-cancelled": Story(play(vm, cancel_before_the_grant, ends="ROLLED_BACK"), asks_nfvo=True),
}
