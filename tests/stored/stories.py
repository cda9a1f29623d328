"""The stories: every plan, led through every state of its steps. README.md in the fixtures' folder says what to add."""

from __future__ import annotations

import shutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import yaml
from kubevnfm_csar.pack import pack
from kubevnfm_events import ClusterAccess, Event
from kubevnfm_events.infra import (
    NetworkFacts,
    ObjectFacts,
    ObjectsApplied,
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
from kubevnfm_events.mgmt import PhaseDone
from kubevnfm_events.vim import VimRegistered
from kubevnfm_secrets import Secret
from lcm_world import SAMPLES, sample_request
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


CLUSTER_STACK: Final = StackResources(
    stack_id="stack-1",
    stack_name="vnf-1",
    servers=(
        _server("masterNode", 1, cp="masterNode_CP1", group="master_instance"),
        _server("workerNode", 2, cp="workerNode_CP2", group="worker_instance"),
        _server("workerNode", 3, cp="workerNode_CP2", group="worker_instance"),
    ),
    networks=(NetworkFacts(name="internalVL1", resource_id="net-internal"),),
)
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
CNF_ANSWERS: Final[Mapping[str, Event]] = {"infra.k8s.apply_objects": RELEASE}


@dataclass(frozen=True)
class Story:
    """How one operation came about and what happened to it."""

    play: Callable[[Script], Awaitable[None]]
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
    for path in (root / "Definitions").glob("*.yaml"):
        text = path.read_text(encoding="utf-8")
        for phase in ("instantiate_start", "terminate_start"):
            text = text.replace(f"{phase}: []", f"{phase}: {{implementation: {DRIVER}}}")
        assert yaml.safe_load(text)
        path.write_text(text, encoding="utf-8")
    archive = root.with_suffix(".zip")
    pack(root, archive)
    package = await script.world.upload(archive.read_bytes())
    return await script.world.create("cluster", vnfdId=package["vnfdId"])


async def live_cluster(script: Script) -> str:
    """Return a cluster that is INSTANTIATED."""
    instance_id = await cluster(script)
    await script.do(instance_id, "instantiate", sample_request("cluster", "instantiate"))
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


# --- instantiate --------------------------------------------------------------------------------------------------------


def instantiate_vm(version: str) -> Callable[[Script], Awaitable[None]]:
    """Return the story of a plain VM."""

    async def play(script: Script) -> None:
        await script.begin_record(await vm(script))
        await script.ask("instantiate", vm_body(version), version=version)
        await script.succeed("create_resources")
        await script.reaches("COMPLETED")

    return play


CLUSTER_STEPS: Final = ("instantiate_start", "create_resources", "instantiate_end", "register_vim")


async def begin_cluster(script: Script) -> None:
    await script.begin_record(await cluster(script))
    await script.ask("instantiate", sample_request("cluster", "instantiate"))


async def instantiate_cluster(script: Script) -> None:
    await begin_cluster(script)
    await script.succeed(*CLUSTER_STEPS)
    await script.reaches("COMPLETED")


async def retry_each_step_of_a_cluster(script: Script) -> None:
    await begin_cluster(script)
    for step in CLUSTER_STEPS:
        await script.answer(step, fails=True)
        await script.reaches("FAILED_TEMP")
        await script.task("retry")
        await script.answer(step)
    await script.reaches("COMPLETED")


async def roll_a_cluster_back(script: Script) -> None:
    """The first try fails at its second compensation."""
    await begin_cluster(script)
    await script.succeed(*CLUSTER_STEPS[:-1])
    await script.answer("register_vim", fails=True)
    await script.task("rollback")
    await script.answer("register_vim")
    await script.answer("instantiate_end", fails=True)
    await script.reaches("FAILED_TEMP")
    await script.task("rollback")
    await script.succeed("instantiate_end", "create_resources")
    await script.reaches("ROLLED_BACK")


async def retry_after_a_rollback_that_failed(script: Script) -> None:
    await begin_cluster(script)
    await script.succeed(*CLUSTER_STEPS[:-1])
    await script.answer("register_vim", fails=True)
    await script.task("rollback")
    await script.answer("register_vim")
    await script.answer("instantiate_end", fails=True)
    await script.task("retry")
    await script.succeed("instantiate_end", "register_vim")
    await script.reaches("COMPLETED")


async def give_a_cluster_up_and_begin_again(script: Script) -> None:
    """An internal operation removes the remains of the first; its first try fails. Then all is made."""
    instance_id = await cluster(script)
    await script.begin_record(instance_id)
    await script.ask("instantiate", sample_request("cluster", "instantiate"))
    await script.succeed("instantiate_start", "create_resources")
    await script.answer("instantiate_end", fails=True)
    await script.task("fail")
    await script.reaches("FAILED")
    script.forget()
    await script.ask("instantiate", sample_request("cluster", "instantiate"))
    await script.answer("instantiate_end")
    await script.answer("create_resources", fails=True)
    script.clock.advance(60)  # until it is tried again
    await script.answer("create_resources")
    await script.succeed(*CLUSTER_STEPS)
    await script.reaches("COMPLETED")


async def give_a_cluster_up(script: Script) -> None:
    await begin_cluster(script)
    await script.succeed("instantiate_start", "create_resources")
    await script.answer("instantiate_end", fails=True)
    await script.task("fail")
    await script.reaches("FAILED")


async def give_a_vm_up_and_begin_again(script: Script) -> None:
    instance_id = await vm(script)
    await script.begin_record(instance_id)
    await script.ask("instantiate", vm_body())
    await script.answer("create_resources", fails=True)
    await script.task("fail")
    await script.reaches("FAILED")
    script.forget()
    await script.ask("instantiate", vm_body())
    await script.answer("create_resources")  # the clean-up's
    await script.answer("create_resources")
    await script.reaches("COMPLETED")


async def give_a_vm_up_and_delete_it(script: Script) -> None:
    await script.begin_record(await vm(script))
    await script.ask("instantiate", vm_body())
    await script.answer("create_resources", fails=True)
    await script.task("fail")
    await script.reaches("FAILED")
    await script.delete()
    await script.answer("create_resources")
    await script.clean_up_reaches("ROLLED_BACK")


async def instantiate_cnf(script: Script) -> None:
    await script.begin_record(await cnf(script))
    await script.ask("instantiate", cnf_body())
    await script.answer("apply_objects", fails=True)
    await script.task("retry")
    await script.answer("apply_objects")
    await script.reaches("COMPLETED")


async def roll_a_cnf_back(script: Script) -> None:
    await script.begin_record(await cnf(script))
    await script.ask("instantiate", cnf_body())
    await script.answer("apply_objects", fails=True)
    await script.task("rollback")
    await script.answer("apply_objects")
    await script.reaches("ROLLED_BACK")


async def give_a_cnf_up_and_begin_again(script: Script) -> None:
    await script.begin_record(await cnf(script))
    await script.ask("instantiate", cnf_body())
    await script.answer("apply_objects", fails=True)
    await script.task("fail")
    await script.reaches("FAILED")
    script.forget()
    await script.ask("instantiate", cnf_body())
    await script.answer("apply_objects")  # the clean-up's
    await script.answer("apply_objects")
    await script.reaches("COMPLETED")


# --- terminate ----------------------------------------------------------------------------------------------------------

GRACEFUL: Final = {"terminationType": "GRACEFUL", "gracefulTerminationTimeout": 30}
FORCEFUL: Final = {"terminationType": "FORCEFUL"}


def terminate(
    made: Callable[[Script], Awaitable[str]], body: object, *steps: str, version: str = "v2"
) -> Callable[[Script], Awaitable[None]]:
    """Return the story of an instance that is taken down, each step at its first try."""

    async def play(script: Script) -> None:
        await script.begin_record(await made(script))
        await script.ask("terminate", body, version=version)
        await script.succeed(*steps)
        await script.reaches("COMPLETED")

    return play


async def terminate_cluster_in_two_tries(script: Script) -> None:
    await script.begin_record(await live_cluster(script))
    await script.ask("terminate", FORCEFUL)
    for step in ("terminate_start", "delete_resources"):
        await script.answer(step, fails=True)
        await script.task("retry")
        await script.answer(step)
    await script.answer("deregister_vim", fails=True)
    await script.answer("forget_machines", fails=True)
    await script.task("retry")
    await script.succeed("forget_machines", "deregister_vim")
    await script.reaches("COMPLETED")


async def give_a_termination_up(script: Script) -> None:
    await script.begin_record(await live_vm(script))
    await script.ask("terminate", GRACEFUL)
    await script.answer("delete_resources", fails=True)
    await script.task("fail")
    await script.reaches("FAILED")


async def terminate_cnf_in_two_tries(script: Script) -> None:
    await script.begin_record(await live_cnf(script))
    await script.ask("terminate", GRACEFUL)
    await script.answer("delete_objects", fails=True)
    await script.task("retry")
    await script.answer("delete_objects")
    await script.reaches("COMPLETED")


# --- changes ------------------------------------------------------------------------------------------------------------


def change(
    task: str, body: object, step: str, *, version: str = "v2", before: Sequence[tuple[str, object]] = ()
) -> Callable[[Script], Awaitable[None]]:
    """Return the story of a change of one step, which fails once and is retried."""

    async def play(script: Script) -> None:
        instance_id = await live_vm(script, two_flavours(script.world.folder), version=version)
        for earlier, request in before:
            await script.do(instance_id, earlier, request)
        await script.begin_record(instance_id)
        await script.ask(task, body, version=version)
        await script.answer(step, fails=True)
        await script.task("retry")
        await script.answer(step)
        await script.reaches("COMPLETED")

    return play


def change_back(task: str, body: object, step: str) -> Callable[[Script], Awaitable[None]]:
    """Return the story of a change that fails and is rolled back."""

    async def play(script: Script) -> None:
        await script.begin_record(await live_vm(script, two_flavours(script.world.folder)))
        await script.ask(task, body)
        await script.answer(step, fails=True)
        await script.task("rollback")
        await script.answer(step)
        await script.reaches("ROLLED_BACK")

    return play


def change_given_up(task: str, body: object, step: str) -> Callable[[Script], Awaitable[None]]:
    """Return the story of a change that fails and stays so."""

    async def play(script: Script) -> None:
        await script.begin_record(await live_vm(script, two_flavours(script.world.folder)))
        await script.ask(task, body)
        await script.answer(step, fails=True)
        await script.task("fail")
        await script.reaches("FAILED")

    return play


async def heal_everything(script: Script) -> None:
    await script.begin_record(await live_vm(script))
    await script.ask("heal", {"cause": "all of it", "additionalParams": {"all": True}})
    for step in ("delete_resources", "recreate_resources", "restore_scale"):
        await script.answer(step, fails=True)
        await script.task("retry")
        await script.answer(step)
    await script.reaches("COMPLETED")


async def give_a_heal_up(script: Script) -> None:
    await script.begin_record(await live_vm(script))
    await script.ask("heal", {"cause": "all of it", "additionalParams": {"all": True}})
    await script.answer("delete_resources")
    await script.answer("recreate_resources", fails=True)
    await script.task("fail")
    await script.reaches("FAILED")


async def change_package(script: Script) -> None:
    instance_id = await live_vm(script)
    await script.world.upload(other_image(script.world.folder))
    await script.begin_record(instance_id)
    await script.ask("change_vnfpkg", {"vnfdId": OTHER_IMAGE, "additionalParams": {"colour": "red"}})
    await script.answer("change_template", fails=True)
    await script.task("retry")
    await script.answer("change_template")
    await script.reaches("COMPLETED")


async def modify(script: Script) -> None:
    await script.begin_record(await live_vm(script))
    await script.modify(sample_request("vm", "modify"))
    await script.reaches("COMPLETED")


# --- cancel and grants --------------------------------------------------------------------------------------------------


async def cancel_after_the_step(script: Script) -> None:
    await begin_cluster(script)
    await script.succeed("instantiate_start")
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
    await script.reaches("FAILED_TEMP")


async def cancel_side_by_side(script: Script) -> None:
    await script.begin_record(await live_cluster(script))
    await script.ask("terminate", FORCEFUL)
    await script.succeed("terminate_start", "delete_resources")
    await script.asks("deregister_vim", "forget_machines")
    await script.task("cancel", {"cancelMode": "FORCEFUL"})
    await script.reaches("FAILED_TEMP")


_UNDECIDED: Final = 1_000_000


async def granted(script: Script) -> None:
    """The NFVO decides at its second poll."""
    assert script.nfvo is not None
    script.nfvo.undecided = _UNDECIDED
    await script.begin_record(await vm(script))
    await script.ask("instantiate", vm_body())
    await script.is_polled()
    script.nfvo.undecided = 0
    script.clock.advance()
    await script.asks("create_resources")
    await script.answer("create_resources")
    await script.reaches("COMPLETED")


async def refused(script: Script) -> None:
    assert script.nfvo is not None
    script.nfvo.undecided = _UNDECIDED
    await script.begin_record(await vm(script))
    await script.ask("instantiate", vm_body())
    await script.is_polled()
    script.nfvo.undecided, script.nfvo.is_refusing = 0, True
    script.clock.advance()
    await script.reaches("ROLLED_BACK")


async def cancelled_before_the_grant(script: Script) -> None:
    assert script.nfvo is not None
    script.nfvo.undecided = _UNDECIDED
    await script.begin_record(await vm(script))
    await script.ask("instantiate", vm_body())
    await script.is_polled()
    await script.task("cancel", {"cancelMode": "FORCEFUL"})
    await script.reaches("ROLLED_BACK")


_OUT: Final = {"type": "SCALE_OUT", "aspectId": "VDU1_scale", "numberOfSteps": "1"}
_IN: Final = {"type": "SCALE_IN", "aspectId": "VDU1_scale", "numberOfSteps": "1"}
_TWO: Final = {**VM_ANSWERS, "infra.openstack.scale_resources": ResourcesChanged(resources=vm_stack(1, 2))}
_CLUSTER: Final[Mapping[str, Event]] = CLUSTER_ANSWERS
_STARTED: Final = {
    **VM_ANSWERS,
    "infra.openstack.operate_servers": ServersOperated(servers=("server-VDU1-1",), state="STARTED"),
}
_LEFT: Final[dict[str, object]] = vm_stack(1).model_dump(mode="json")
_CLUSTER_LEFT: Final[dict[str, object]] = CLUSTER_STACK.model_dump(mode="json")
_RELEASE_LEFT: Final[dict[str, object]] = RELEASE.model_dump(mode="json")
_STOP: Final = {"changeStateTo": "STOPPED", "stopType": "GRACEFUL", "gracefulStopTimeout": 20}

STORIES: Final[Mapping[str, Story]] = {
    "instantiate-vm-v1": Story(instantiate_vm("v1")),
    "instantiate-vm-v2": Story(instantiate_vm("v2")),
    "instantiate-vm-after-remains": Story(give_a_vm_up_and_begin_again, remains=_LEFT),
    "instantiate-vm-given-up-and-deleted": Story(give_a_vm_up_and_delete_it, remains=_LEFT),
    "instantiate-cluster": Story(instantiate_cluster, _CLUSTER),
    "instantiate-cluster-retried": Story(retry_each_step_of_a_cluster, _CLUSTER, _CLUSTER_LEFT),
    "instantiate-cluster-rolled-back": Story(roll_a_cluster_back, _CLUSTER),
    "instantiate-cluster-retried-after-rollback": Story(retry_after_a_rollback_that_failed, _CLUSTER),
    "instantiate-cluster-given-up": Story(give_a_cluster_up, _CLUSTER),
    "instantiate-cluster-after-remains": Story(give_a_cluster_up_and_begin_again, _CLUSTER),
    "instantiate-cluster-cancelled": Story(cancel_after_the_step, _CLUSTER),
    "instantiate-cnf": Story(instantiate_cnf, CNF_ANSWERS, _RELEASE_LEFT),
    "instantiate-cnf-rolled-back": Story(roll_a_cnf_back, CNF_ANSWERS),
    "instantiate-cnf-after-remains": Story(give_a_cnf_up_and_begin_again, CNF_ANSWERS, _RELEASE_LEFT),
    "terminate-vm-graceful": Story(terminate(live_vm, GRACEFUL, "delete_resources")),
    "terminate-vm-forceful-v1": Story(terminate(live_vm, FORCEFUL, "delete_resources", version="v1")),
    "terminate-vm-given-up": Story(give_a_termination_up),
    "terminate-cluster-graceful": Story(
        terminate(live_cluster, GRACEFUL, "terminate_start", "delete_resources", "deregister_vim", "forget_machines"),
        _CLUSTER,
    ),
    "terminate-cluster-forceful-retried": Story(terminate_cluster_in_two_tries, _CLUSTER),
    "terminate-cluster-cancelled": Story(cancel_side_by_side, _CLUSTER),
    "terminate-cnf-graceful-retried": Story(terminate_cnf_in_two_tries, CNF_ANSWERS),
    "terminate-cnf-forceful": Story(terminate(live_cnf, FORCEFUL, "delete_objects"), CNF_ANSWERS),
    "scale-out": Story(change("scale", _OUT, "scale_resources"), _TWO, _LEFT),
    "scale-out-v1": Story(change("scale", _OUT, "scale_resources", version="v1"), _TWO),
    "scale-out-rolled-back": Story(
        change_back("scale", _OUT, "scale_resources"), _TWO, vm_stack(1, 2).model_dump(mode="json")
    ),
    "scale-out-given-up": Story(
        change_given_up("scale", _OUT, "scale_resources"), _TWO, vm_stack(1, 2).model_dump(mode="json")
    ),
    "scale-in": Story(change("scale", _IN, "scale_resources", before=[("scale", _OUT)])),
    "scale-to-level": Story(change("scale_to_level", {"instantiationLevelId": "three"}, "scale_resources"), _TWO),
    "heal-in-place": Story(change("heal", {"cause": "it does not answer"}, "heal_resources")),
    "heal-in-place-v1": Story(change("heal", {"vnfcInstanceId": ["vnfc-VDU1-1"]}, "heal_resources", version="v1")),
    "heal-everything": Story(heal_everything),
    "heal-everything-given-up": Story(give_a_heal_up),
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
    "change-package": Story(change_package),
    "modify": Story(modify),
    "grant-given": Story(granted, asks_nfvo=True),
    "grant-refused": Story(refused, asks_nfvo=True),
    "grant-cancelled": Story(cancelled_before_the_grant, asks_nfvo=True),
}
