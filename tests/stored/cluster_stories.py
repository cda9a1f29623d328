"""The stories of cluster VNFs, and of private registries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from answers import (
    CLUSTER_ACCESS,
    CLUSTER_ANSWERS,
    CLUSTER_STACK,
    DRIVER,
    KURYR_ANSWERS,
    NODE_NAMES,
    REGISTRY_ANSWERS,
    cluster_stack,
    with_storage_server,
)
from instances import (
    cluster,
    kuryr_body,
    kuryr_cluster,
    live_cluster,
    live_cluster_with_storage,
    live_ha_cluster,
    live_kuryr_cluster,
    live_registry,
    registry,
)
from kubevnfm_events import Event
from kubevnfm_events.mgmt import PhaseDone
from kubevnfm_events.stacks import ResourcesChanged, ResourcesCreated
from parts import FORCEFUL, GRACEFUL, IN, OUT, Story, ask, begin_again, fail, play, retry, succeed
from script import Script
from worlds.lcm_world import sample_request


async def fail_to_clean_up(script: Script) -> None:
    """Have the clean-up fail once, and pass the time until it is tried again."""
    await script.answer("create_resources", fails=True)
    script.clock.advance(60)


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


CLUSTER_STEPS: Final = ("instantiate_start", "create_resources", "instantiate_end", "register_vim")
TERMINATE_STEPS: Final = ("terminate_start", "delete_resources", "deregister_vim", "forget_machines")
_ASK_CLUSTER: Final = ask("instantiate", sample_request("cluster", "instantiate"))
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
_HEALED_SERVER: Final[Mapping[str, Event]] = {
    **_HEALED_CLUSTER,
    "infra.openstack.create_resources": ResourcesCreated(resources=with_storage_server(CLUSTER_STACK, 5)),
    "infra.openstack.heal_resources": ResourcesChanged(resources=with_storage_server(CLUSTER_STACK, 6)),
    "mgmt.run_phase/heal_end": PhaseDone(driver=DRIVER, phase="heal_end", node_names=NODE_NAMES),
}
_CLUSTER_LEFT: Final[dict[str, object]] = CLUSTER_STACK.model_dump(mode="json")

CLUSTER_STORIES: Final[Mapping[str, Story]] = {
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
    "terminate-cluster-graceful": Story(
        play(live_cluster, ask("terminate", GRACEFUL), succeed(*TERMINATE_STEPS)), _CLUSTER
    ),
    "terminate-cluster-forceful-retried": Story(
        play(
            live_cluster,
            ask("terminate", FORCEFUL),
            retry(*TERMINATE_STEPS[:2]),
            fail_side_by_side,
            succeed("forget_machines", "deregister_vim"),
        ),
        _CLUSTER,
    ),
    "terminate-cluster-forceful": Story(
        play(live_cluster, ask("terminate", FORCEFUL), succeed(*TERMINATE_STEPS)), _CLUSTER
    ),
    "terminate-cluster-cancelled": Story(
        play(
            live_cluster,
            ask("terminate", FORCEFUL),
            succeed(*TERMINATE_STEPS[:2]),
            cancel_side_by_side,
            ends="FAILED_TEMP",
        ),
        _CLUSTER,
    ),
    "scale-out-of-a-cluster": Story(
        play(
            live_cluster,
            ask("scale", {**OUT, "aspectId": "worker_instance"}),
            succeed("scale_resources"),
            retry("scale_end"),
        ),
        _SCALED_CLUSTER,
    ),
    "scale-out-of-a-cluster-rolled-back": Story(
        play(
            live_cluster,
            ask("scale", {**OUT, "aspectId": "worker_instance"}),
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
            ask("scale", {**IN, "aspectId": "worker_instance"}),
            retry("scale_start", "scale_resources", "scale_end"),
        ),
        {**_SCALED_CLUSTER, "infra.openstack.scale_resources": ResourcesChanged(resources=cluster_stack(2))},
    ),
    "scale-out-of-a-kuryr-cluster": Story(
        play(
            live_kuryr_cluster,
            ask("scale", {**OUT, "aspectId": "worker_instance"}),
            succeed("scale_resources"),
            retry("await_new_trunks"),
            fail("scale_end", "rollback"),
            succeed("scale_end", "scale_resources", "scale_rollback_end"),
            ends="ROLLED_BACK",
        ),
        {**_SCALED_CLUSTER, **KURYR_ANSWERS},
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
    "heal-of-the-storage-server": Story(
        play(
            live_cluster_with_storage("instantiate"),
            ask("heal", {"vnfcInstanceId": ["vnfc-storage_server-5"]}),
            retry("heal_start", "heal_resources", "heal_end"),
        ),
        _HEALED_SERVER,
    ),
    "heal-of-a-master-and-the-storage-server": Story(
        play(
            live_cluster_with_storage("instantiate_complex"),
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
}
