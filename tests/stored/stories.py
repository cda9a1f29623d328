"""The stories: every plan, led through every state of its steps. README.md in the fixtures' folder says what to add."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from answers import (
    CLUSTER_ACCESS,
    CLUSTER_ANSWERS,
    CLUSTER_STACK,
    CNF_ANSWERS,
    DRIVER,
    KURYR_ANSWERS,
    NODE_NAMES,
    NODE_PORT_ANSWERS,
    REGISTRY_ANSWERS,
    RELEASE,
    RESTARTED,
    VM_ANSWERS,
    cluster_stack,
    vm_stack,
    with_storage_server,
)
from instances import (
    Setup,
    balanced_body,
    cluster,
    cnf,
    cnf_body,
    cnf_with_node_ports,
    kuryr_body,
    kuryr_cluster,
    live_cluster,
    live_cnf,
    live_cnf_with_node_ports,
    live_ha_cluster,
    live_ha_cluster_with_storage,
    live_kuryr_cluster,
    live_registry,
    live_scripted_cnf,
    live_vm,
    registry,
    scripted_cnf,
    scripted_vm,
    updatable_cnf,
    vm,
    vm_and_another_package,
    vm_body,
    vm_of_two_flavours,
)
from kubevnfm_events import Event
from kubevnfm_events.infra import (
    ResourcesChanged,
    ResourcesCreated,
    ServersOperated,
)
from kubevnfm_events.mgmt import PhaseDone, ScriptAnswer
from lcm_world import sample_request
from nfvo import StubNfvo
from package_variants import OTHER_CNF, OTHER_VM
from script import Script
from vm_packages import OTHER_IMAGE

Play = Callable[[Script], Awaitable[None]]
"""A whole story, or a part of one."""


@dataclass(frozen=True)
class Story:
    """How one operation came about and what happened to it."""

    play: Play
    answers: Mapping[str, Event] = field(default_factory=lambda: dict(VM_ANSWERS))
    remains: dict[str, object] | None = None
    asks_nfvo: bool = False


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
_NEW_CLUSTER_ANSWERS: Final[Mapping[str, Event]] = {
    **_HEALED_CLUSTER,
    "infra.openstack.heal_resources": ResourcesChanged(resources=_NEW_CLUSTER),
    "mgmt.run_phase/heal_end": PhaseDone(
        driver=DRIVER,
        phase="heal_end",
        cluster=CLUSTER_ACCESS,
        node_names={server.vnfc_id: f"node-{server.vnfc_id}" for server in _NEW_CLUSTER.servers},
    ),
}
_HA_STACK: Final = cluster_stack(2, 3, masters=(11, 12, 13))
_HA_NAMES: Final = {one.vnfc_id: f"node-{one.vnfc_id}" for one in _HA_STACK.servers}
_HA_HEALED: Final = cluster_stack(2, 3, masters=(11, 13, 14))
_HA_JOINED: Final = PhaseDone(
    driver=DRIVER, phase="heal_end", node_names={**_HA_NAMES, "vnfc-masterNode-14": "node-vnfc-masterNode-12"}
)
_HEALED_MASTER: Final[Mapping[str, Event]] = {
    **CLUSTER_ANSWERS,
    "infra.openstack.create_resources": ResourcesCreated(resources=_HA_STACK),
    "mgmt.run_phase": PhaseDone(driver=DRIVER, phase="instantiate_end", cluster=CLUSTER_ACCESS, node_names=_HA_NAMES),
    "mgmt.run_phase/heal_start/1": PhaseDone(driver=DRIVER, phase="heal_start", left="vnfc-masterNode-12"),
    "infra.openstack.heal_resources": ResourcesChanged(resources=_HA_HEALED),
    "mgmt.run_phase/heal_end/1": _HA_JOINED,
}
_HEALED_MIX: Final[Mapping[str, Event]] = {
    **_HEALED_MASTER,
    "infra.openstack.create_resources": ResourcesCreated(resources=with_storage_server(_HA_STACK, 5)),
    "mgmt.run_phase/heal_start/storage": PhaseDone(driver=DRIVER, phase="heal_start"),
    "infra.openstack.heal_resources/heal_resources/1": ResourcesChanged(resources=with_storage_server(_HA_HEALED, 5)),
    "infra.openstack.heal_resources": ResourcesChanged(resources=with_storage_server(_HA_HEALED, 6)),
    "mgmt.run_phase/heal_end": _HA_JOINED,
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
    "scale-out-of-a-kuryr-cluster": Story(
        play(
            live_kuryr_cluster,
            ask("scale", {**_OUT, "aspectId": "worker_instance"}),
            succeed("scale_resources"),
            retry("await_new_trunks"),
            fail("scale_end", "rollback"),
            succeed("scale_end", "scale_resources", "scale_rollback_end"),
            ends="ROLLED_BACK",
        ),
        {**_SCALED_CLUSTER, **KURYR_ANSWERS},
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
    "heal-of-a-master-and-the-storage-server": Story(
        play(
            live_ha_cluster_with_storage,
            ask("heal", {"vnfcInstanceId": ["vnfc-storage_server-5", "vnfc-masterNode-12"]}),
            retry("heal_start/storage"),
            succeed("heal_start/1", "heal_resources/1", "heal_end/1", "heal_resources"),
            retry("heal_end"),
        ),
        _HEALED_MIX,
    ),
    "heal-of-a-whole-cluster": Story(
        play(live_cluster, ask("heal", {}), retry("heal_resources", "heal_end", "register_vim")), _NEW_CLUSTER_ANSWERS
    ),
    "heal-of-a-whole-kuryr-cluster": Story(
        play(
            live_kuryr_cluster,
            ask("heal", {}),
            retry("stop_ill_kuryr", "remove_kuryr_resources"),
            succeed("heal_resources"),
            retry("prepare_kuryr_network", "heal_end"),
            succeed("register_vim"),
        ),
        {**_NEW_CLUSTER_ANSWERS, **KURYR_ANSWERS},
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
