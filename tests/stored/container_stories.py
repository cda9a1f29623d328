"""The stories of VNFs of containers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from answers import (
    CNF_ANSWERS,
    HEALED,
    MANAGEMENT_ANSWERS,
    NODE_PORT_ANSWERS,
    RELEASE,
    REPAIRED,
    REPLACED,
    RESTARTED,
    SCALED,
    SCALED_WORKLOAD_ANSWERS,
    SCRIPT_LEFT,
    WORKLOAD_ANSWERS,
)
from instances import (
    OTHER_HOLDS,
    balanced_body,
    body_of_unheld,
    body_with_volume,
    cnf,
    cnf_body,
    cnf_on_links,
    cnf_with_node_ports,
    linked_body,
    live_cnf,
    live_cnf_on_links,
    live_cnf_with_node_ports,
    live_cnf_with_other_holds,
    live_cnf_with_volume,
    live_management,
    live_scripted_cnf,
    live_workload,
    live_workload_with_a_sender,
    management,
    management_body,
    scripted_cnf,
    updatable_cnf,
    volume,
    workload,
    workload_body,
    workload_with_a_sender,
)
from packages.package_variants import CAPI_MANAGEMENT, CAPI_WORKLOAD, OTHER_CNF
from parts import FORCEFUL, GRACEFUL, Story, ask, begin_again, fail, play, retry, succeed
from script import Script


async def modify_cnf(script: Script) -> None:
    """Change a CNF's package, and with it the images of its containers."""
    await script.modify({"vnfdId": OTHER_CNF, "metadata": {"changed": "images"}})


_OUT: Final = {"type": "SCALE_OUT", "aspectId": "web_aspect", "numberOfSteps": 1}
_LEVEL: Final = {"instantiationLevelId": "instantiation_level_2"}
_WORKERS: Final = {"type": "SCALE_OUT", "aspectId": "workers", "numberOfSteps": 1}
_ROLL_OUT: Final = {"vnfdId": CAPI_WORKLOAD, "additionalParams": {"capi": {"rollout": True}}}
_REPAIR: Final = {"additionalParams": {"repair": True}}
_MANAGEMENT_FILES: Final = {"lcm-kubernetes-def-files": ["Files/kubernetes/cert-manager.yaml"]}
_WORKLOAD_FILES: Final = {
    "vnfdId": CAPI_WORKLOAD,
    "additionalParams": {"lcm-kubernetes-def-files": ["Files/kubernetes/cluster.yaml"]},
}
_WORKLOAD_ADDONS: Final = {
    "vnfdId": CAPI_WORKLOAD,
    "additionalParams": {
        "lcm-kubernetes-def-files": ["Files/kubernetes/cluster.yaml"],
        "capi": {"addon-def-files": ["Files/addons/cni.yaml"]},
    },
}
_FILES: Final = {"lcm-kubernetes-def-files": ["Files/kubernetes/deployment.yaml"]}
_OTHER: Final = {"vnfdId": OTHER_CNF, "additionalParams": _FILES}
_ROLLING: Final = {
    "vnfdId": OTHER_CNF,
    "additionalParams": {"upgrade_type": "RollingUpdate", "vdu_params": [{"vdu_id": "VDU1"}]},
}
_ASK_BALANCED: Final = ask("instantiate", balanced_body())
_ASK_CNF: Final = ask("instantiate", cnf_body())
_RELEASE_LEFT: Final[dict[str, object]] = RELEASE.model_dump(mode="json")


async def _bring_up_with_volume(script: Script) -> None:
    await script.bring_up(body_with_volume(script))


async def _bring_up_unheld(script: Script) -> None:
    await script.bring_up(body_of_unheld(script))
    await script.reaches("FAILED_TEMP")
    await script.task("rollback")


async def _change_holds(script: Script) -> None:
    await script.patch(OTHER_HOLDS)


CONTAINER_STORIES: Final[Mapping[str, Story]] = {
    "instantiate-cnf": Story(play(cnf, _ASK_CNF, retry("apply_objects")), CNF_ANSWERS, _RELEASE_LEFT),
    "instantiate-cnf-rolled-back": Story(
        play(cnf, _ASK_CNF, fail("apply_objects", "rollback"), succeed("apply_objects"), ends="ROLLED_BACK"),
        CNF_ANSWERS,
    ),
    "instantiate-cnf-on-links": Story(
        play(cnf_on_links, ask("instantiate", linked_body()), retry("hold_links", "apply_objects")), CNF_ANSWERS
    ),
    "instantiate-cnf-on-links-rolled-back": Story(
        play(
            cnf_on_links,
            ask("instantiate", linked_body()),
            succeed("hold_links"),
            fail("apply_objects", "rollback"),
            succeed("apply_objects", "hold_links"),
            ends="ROLLED_BACK",
        ),
        CNF_ANSWERS,
    ),
    "instantiate-cnf-with-volume": Story(
        play(volume, _bring_up_with_volume, retry("hold_volumes", "apply_objects")), CNF_ANSWERS
    ),
    "instantiate-cnf-with-volume-rolled-back": Story(
        play(
            volume,
            _bring_up_with_volume,
            succeed("hold_volumes"),
            fail("apply_objects", "rollback"),
            succeed("apply_objects", "hold_volumes"),
            ends="ROLLED_BACK",
        ),
        CNF_ANSWERS,
    ),
    "instantiate-unheld-cnf-rolled-back": Story(play(volume, _bring_up_unheld, ends="ROLLED_BACK"), CNF_ANSWERS),
    "terminate-cnf-with-volume": Story(
        play(live_cnf_with_volume, ask("terminate", GRACEFUL), retry("delete_objects", "release_volumes")),
        CNF_ANSWERS,
    ),
    "terminate-cnf-on-links": Story(
        play(live_cnf_on_links, ask("terminate", GRACEFUL), retry("delete_objects", "release_links")), CNF_ANSWERS
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
    "instantiate-workload": Story(
        play(
            workload,
            ask("instantiate", workload_body()),
            retry(
                "apply_cluster_objects",
                "await_cluster/initialized",
                "apply_addons",
                "await_cluster/available",
                "send_credentials",
                "register_workload_vim",
            ),
        ),
        WORKLOAD_ANSWERS,
    ),
    "instantiate-workload-with-a-sender": Story(
        play(
            workload_with_a_sender,
            ask("instantiate", workload_body()),
            retry(
                "apply_cluster_objects",
                "await_cluster/initialized",
                "apply_addons",
                "await_cluster/available",
                "instantiate_end",
                "register_workload_vim",
            ),
        ),
        WORKLOAD_ANSWERS,
    ),
    "instantiate-workload-with-a-sender-rolled-back": Story(
        play(
            workload_with_a_sender,
            ask("instantiate", workload_body()),
            succeed(
                "apply_cluster_objects",
                "await_cluster/initialized",
                "apply_addons",
                "await_cluster/available",
                "instantiate_end",
            ),
            fail("register_workload_vim", "rollback"),
            succeed("register_workload_vim", "instantiate_end", "apply_cluster_objects"),
            ends="ROLLED_BACK",
        ),
        WORKLOAD_ANSWERS,
    ),
    "terminate-workload-with-a-sender": Story(
        play(
            live_workload_with_a_sender,
            ask("terminate", GRACEFUL),
            retry("deregister_vim", "terminate_start", "delete_cluster_objects", "forget_machines"),
        ),
        WORKLOAD_ANSWERS,
    ),
    "instantiate-management": Story(
        play(management, ask("instantiate", management_body()), retry("apply_objects", "record_capi_providers")),
        MANAGEMENT_ANSWERS,
    ),
    "terminate-management": Story(
        play(
            live_management,
            ask("terminate", FORCEFUL),
            retry("check_clusters", "delete_objects", "record_capi_providers"),
        ),
        MANAGEMENT_ANSWERS,
    ),
    "change-package-of-management-rolled-back": Story(
        play(
            live_management,
            ask("change_vnfpkg", {"vnfdId": CAPI_MANAGEMENT, "additionalParams": _MANAGEMENT_FILES}),
            succeed("replace_objects"),
            fail("record_capi_providers", "rollback"),
            succeed("record_capi_providers", "replace_objects"),
            ends="ROLLED_BACK",
        ),
        MANAGEMENT_ANSWERS,
    ),
    "terminate-workload": Story(
        play(
            live_workload,
            ask("terminate", GRACEFUL),
            retry("deregister_vim", "withdraw_credentials", "delete_cluster_objects"),
        ),
        WORKLOAD_ANSWERS,
    ),
    "scale-out-workload": Story(
        play(
            live_workload,
            ask("scale", _WORKERS),
            retry("await_settled_cluster/before", "scale_cluster_machines", "await_settled_cluster/after"),
        ),
        SCALED_WORKLOAD_ANSWERS,
    ),
    "scale-out-workload-rolled-back": Story(
        play(
            live_workload,
            ask("scale", _WORKERS),
            succeed("await_settled_cluster/before"),
            fail("scale_cluster_machines", "rollback"),
            succeed("scale_cluster_machines", "await_settled_cluster/before"),
            ends="ROLLED_BACK",
        ),
        SCALED_WORKLOAD_ANSWERS,
    ),
    "change-package-of-workload": Story(
        play(
            live_workload,
            ask("change_vnfpkg", _WORKLOAD_FILES),
            retry(
                "update_cluster/check",
                "await_settled_cluster",
                "update_cluster/control_plane",
                "await_updated_cluster/control_plane",
                "update_cluster/all",
                "await_updated_cluster/all",
                "update_cluster/prune",
            ),
        ),
        WORKLOAD_ANSWERS,
    ),
    "change-package-of-workload-rolled-back": Story(
        play(
            live_workload,
            ask("change_vnfpkg", _WORKLOAD_FILES),
            succeed("update_cluster/check", "await_settled_cluster", "update_cluster/control_plane"),
            fail("await_updated_cluster/control_plane", "rollback"),
            succeed("update_cluster/control_plane", "await_settled_cluster", "update_cluster/check"),
            ends="ROLLED_BACK",
        ),
        WORKLOAD_ANSWERS,
    ),
    "change-addons-of-workload-rolled-back": Story(
        play(
            live_workload,
            ask("change_vnfpkg", _WORKLOAD_ADDONS),
            succeed(
                "update_cluster/check",
                "await_settled_cluster",
                "update_cluster/control_plane",
                "await_updated_cluster/control_plane",
                "update_addons/apply",
                "update_cluster/all",
                "await_updated_cluster/all",
            ),
            fail("update_addons/prune", "rollback"),
            succeed(
                "update_cluster/all",
                "update_addons/apply",
                "update_cluster/control_plane",
                "await_settled_cluster",
                "update_cluster/check",
            ),
            ends="ROLLED_BACK",
        ),
        WORKLOAD_ANSWERS,
    ),
    "roll-out-workload": Story(
        play(
            live_workload,
            ask("change_vnfpkg", _ROLL_OUT),
            retry("await_settled_cluster", "roll_out_machines", "await_rolled_out_cluster"),
        ),
        WORKLOAD_ANSWERS,
    ),
    "heal-workload": Story(
        play(
            live_workload,
            ask("heal", {"vnfcInstanceId": ["worker-workload-md-0-1"], "additionalParams": {"force": True}}),
            retry("check_machines", "replace_machine/workload-md-0-1"),
        ),
        WORKLOAD_ANSWERS,
    ),
    "recreate-workload": Story(
        play(
            live_workload,
            ask("heal", {"additionalParams": {"capi": {"recreate": True}}}),
            retry(
                "release_workload_vim",
                "withdraw_credentials",
                "delete_cluster_objects",
                "apply_cluster_objects",
                "await_cluster/initialized",
                "apply_addons",
                "await_cluster/available",
                "send_credentials",
                "register_workload_vim",
            ),
        ),
        WORKLOAD_ANSWERS,
    ),
    "repair-workload": Story(
        play(live_workload, ask("heal", _REPAIR), retry("repair_cluster_objects", "await_settled_cluster")),
        WORKLOAD_ANSWERS,
    ),
    "terminate-cnf-node-ports": Story(
        play(
            live_cnf_with_node_ports,
            ask("terminate", GRACEFUL),
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
        SCRIPT_LEFT,
    ),
    "terminate-cnf-with-scripts": Story(
        play(
            live_scripted_cnf,
            ask("terminate", GRACEFUL),
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
    "terminate-cnf-graceful-retried": Story(
        play(live_cnf, ask("terminate", GRACEFUL), retry("delete_objects")), CNF_ANSWERS
    ),
    "terminate-cnf-forceful": Story(play(live_cnf, ask("terminate", FORCEFUL), succeed("delete_objects")), CNF_ANSWERS),
    "scale-out-cnf": Story(
        play(live_cnf, ask("scale", _OUT), retry("scale_objects")), CNF_ANSWERS, SCALED.model_dump(mode="json")
    ),
    "scale-out-cnf-rolled-back": Story(
        play(
            live_cnf,
            ask("scale", _OUT),
            fail("scale_objects", "rollback"),
            succeed("scale_objects"),
            ends="ROLLED_BACK",
        ),
        CNF_ANSWERS,
    ),
    "scale-cnf-to-level": Story(play(live_cnf, ask("scale_to_level", _LEVEL), retry("scale_objects")), CNF_ANSWERS),
    "heal-cnf": Story(
        play(live_cnf, ask("heal", {"vnfcInstanceId": ["VDU1-vdu1-1"]}), retry("heal_objects")),
        CNF_ANSWERS,
        HEALED.model_dump(mode="json"),
    ),
    "heal-whole-cnf": Story(play(live_cnf, ask("heal", {}), retry("delete_objects", "apply_objects")), CNF_ANSWERS),
    "heal-whole-cnf-node-ports": Story(
        play(
            live_cnf_with_node_ports,
            ask("heal", {}),
            succeed("terminate_end", "delete_objects", "apply_objects", "instantiate_end"),
        ),
        NODE_PORT_ANSWERS,
    ),
    "repair-cnf": Story(
        play(live_cnf, ask("heal", _REPAIR), retry("repair_objects")), CNF_ANSWERS, REPAIRED.model_dump(mode="json")
    ),
    "repair-cnf-node-ports": Story(
        play(
            live_cnf_with_node_ports,
            ask("heal", _REPAIR),
            succeed("repair_objects", "terminate_end", "instantiate_end"),
        ),
        NODE_PORT_ANSWERS,
    ),
    "change-package-of-cnf": Story(
        play(updatable_cnf, ask("change_vnfpkg", _OTHER), retry("replace_objects")),
        CNF_ANSWERS,
        REPLACED.model_dump(mode="json"),
    ),
    "change-package-of-cnf-rolled-back": Story(
        play(
            updatable_cnf,
            ask("change_vnfpkg", _OTHER),
            fail("replace_objects", "rollback"),
            succeed("replace_objects"),
            ends="ROLLED_BACK",
        ),
        CNF_ANSWERS,
    ),
    "change-holds-of-cnf": Story(
        play(
            live_cnf_with_other_holds,
            _change_holds,
            retry(
                "hold_changed_links",
                "hold_changed_volumes",
                "replace_objects",
                "release_earlier_links",
                "release_earlier_volumes",
            ),
        ),
        CNF_ANSWERS,
    ),
    "change-holds-of-cnf-rolled-back": Story(
        play(
            live_cnf_with_other_holds,
            _change_holds,
            succeed("hold_changed_links", "hold_changed_volumes", "replace_objects", "release_earlier_links"),
            fail("release_earlier_volumes", "rollback"),
            succeed(
                "release_earlier_volumes",
                "release_earlier_links",
                "replace_objects",
                "hold_changed_volumes",
                "hold_changed_links",
            ),
            ends="ROLLED_BACK",
        ),
        CNF_ANSWERS,
    ),
    "change-images-of-cnf": Story(
        play(updatable_cnf, ask("change_vnfpkg", _ROLLING), retry("change_images")),
        CNF_ANSWERS,
        RESTARTED.model_dump(mode="json"),
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
}
