"""The stories of VNFs of machines, and those of grants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from answers import SCRIPT_LEFT, VM_ANSWERS, vm_stack
from instances import (
    live_vm,
    scripted_vm,
    vm,
    vm_and_another_package,
    vm_body,
    vm_of_two_flavours,
    vm_with_snapshot,
    vm_without_snapshot,
)
from kubevnfm_events.stacks import ResourcesChanged, ServersOperated
from packages.package_variants import OTHER_VM
from packages.vm_packages import OTHER_IMAGE
from parts import FORCEFUL, GRACEFUL, IN, OUT, Play, Story, ask, begin_again, fail, play, retry, succeed
from script import Script
from servers.nfvo import StubNfvo
from worlds.lcm_world import sample_request


async def delete(script: Script) -> None:
    """Delete the instance of a failed operation; what it left is removed."""
    await script.reaches("FAILED")
    await script.delete()
    await script.answer("create_resources")
    await script.clean_up_reaches("ROLLED_BACK")


async def modify(script: Script) -> None:
    """Change the instance's information."""
    await script.modify(sample_request("vm", "modify"))


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


def change(
    task: str, body: object, step: str, *, version: str = "v2", before: Sequence[tuple[str, object]] = ()
) -> Play:
    """Return the story of a change of one step, which fails once and is retried."""
    return play(vm_of_two_flavours(version, before), ask(task, body, version=version), retry(step))


def change_back(task: str, body: object, step: str) -> Play:
    """Return the story of a change that fails and is rolled back."""
    return play(vm_of_two_flavours(), ask(task, body), fail(step, "rollback"), succeed(step), ends="ROLLED_BACK")


def with_snapshot(task: str) -> Play:
    """Ask for an operation with the individual VNF snapshot of the set-up."""

    async def part(script: Script) -> None:
        await script.ask(task, {"vnfSnapshotInfoId": script.snapshot_info_id})

    return part


_TAKE: Final = "snapshot/vnfc-VDU1-1"
_UNDECIDED: Final = 1_000_000
_HEAL_ALL: Final = {"cause": "all of it", "additionalParams": {"all": True}}
_ASK_VM: Final = ask("instantiate", vm_body())
_TWO: Final = {**VM_ANSWERS, "infra.openstack.scale_resources": ResourcesChanged(resources=vm_stack(1, 2))}
_STARTED: Final = {
    **VM_ANSWERS,
    "infra.openstack.operate_servers": ServersOperated(servers=("server-VDU1-1",), state="STARTED"),
}
_LEFT: Final[dict[str, object]] = vm_stack(1).model_dump(mode="json")
_TWO_LEFT: Final[dict[str, object]] = vm_stack(1, 2).model_dump(mode="json")
_STOP: Final = {"changeStateTo": "STOPPED", "stopType": "GRACEFUL", "gracefulStopTimeout": 20}
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

MACHINE_STORIES: Final[Mapping[str, Story]] = {
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
    "terminate-vm-graceful": Story(play(live_vm, ask("terminate", GRACEFUL), succeed("delete_resources"))),
    "terminate-vm-forceful-v1": Story(
        play(live_vm, ask("terminate", FORCEFUL, version="v1"), succeed("delete_resources"))
    ),
    "terminate-vm-given-up": Story(
        play(live_vm, ask("terminate", GRACEFUL), fail("delete_resources", "fail"), ends="FAILED")
    ),
    "scale-out": Story(change("scale", OUT, "scale_resources"), _TWO, _LEFT),
    "scale-out-v1": Story(change("scale", OUT, "scale_resources", version="v1"), _TWO),
    "scale-out-rolled-back": Story(change_back("scale", OUT, "scale_resources"), _TWO, _TWO_LEFT),
    "scale-out-given-up": Story(
        play(vm_of_two_flavours(), ask("scale", OUT), fail("scale_resources", "fail"), ends="FAILED"),
        _TWO,
        _TWO_LEFT,
    ),
    "scale-in": Story(change("scale", IN, "scale_resources", before=[("scale", OUT)])),
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
    "operate-stop": Story(change("operate", _STOP, "operate_servers")),
    "operate-start": Story(
        change("operate", {"changeStateTo": "STARTED"}, "operate_servers", before=[("operate", _STOP)]), _STARTED
    ),
    "create-snapshot": Story(play(vm_without_snapshot, with_snapshot("create_snapshot"), retry(_TAKE))),
    "create-snapshot-rolled-back": Story(
        play(
            vm_without_snapshot,
            with_snapshot("create_snapshot"),
            fail(_TAKE, "rollback"),
            succeed(_TAKE),
            ends="ROLLED_BACK",
        )
    ),
    "revert-to-snapshot": Story(
        play(vm_with_snapshot, with_snapshot("revert_to_snapshot"), retry("revert/vnfc-VDU1-1"))
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
        remains=SCRIPT_LEFT,
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
        remains=SCRIPT_LEFT,
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
        play(scripted_vm, modify, retry("modify_information_start", "modify_information_end")), remains=SCRIPT_LEFT
    ),
    "grant-given": Story(play(vm, get_grant), asks_nfvo=True),
    "grant-refused": Story(play(vm, get_refusal, ends="ROLLED_BACK"), asks_nfvo=True),
    "grant-cancelled": Story(play(vm, cancel_before_the_grant, ends="ROLLED_BACK"), asks_nfvo=True),
}
