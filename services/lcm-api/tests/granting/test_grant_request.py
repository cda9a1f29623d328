"""GrantRequests: the resources that each kind of operation adds, removes and changes."""

from __future__ import annotations

from typing import Any

from kubevnfm_csar.vnfd.model import AffinityRule, Cp, Flavour, Vdu, VirtualLink
from kubevnfm_events.objects import VduTarget
from kubevnfm_events.snapshots import VolumeSnapshot
from kubevnfm_events.stacks import StorageFacts
from kubevnfm_lcm_api.granting.external import nfvo_grant_request
from kubevnfm_lcm_api.lifecycle.containers.changing import HealCnfDraft, ScaleCnfDraft
from kubevnfm_lcm_api.lifecycle.containers.replacing import ReplaceCnfDraft
from kubevnfm_lcm_api.lifecycle.core.grant_request import package_grant_request
from kubevnfm_lcm_api.lifecycle.core.instance import Release, VnfFacts
from kubevnfm_lcm_api.lifecycle.machines.changing import ReplaceVmDraft
from kubevnfm_lcm_api.lifecycle.machines.healing import HealVmDraft
from kubevnfm_lcm_api.lifecycle.machines.scaling import ScaleVmDraft
from kubevnfm_lcm_api.lifecycle.machines.snapshots import Target
from kubevnfm_secrets import hide
from kubevnfm_sol.lcm import OperationType
from worlds.lcm_builders import (
    ANSWERS,
    CNF_BEFORE,
    MACHINE_SNAPSHOTS,
    RESOURCES,
    a_change_draft,
    a_cnf_change,
    a_cnf_terminate_draft,
    a_revert_draft,
    a_snapshot_draft,
    an_instantiate_draft,
    an_operate_draft,
    an_operation,
)

ROOT = "http://vnfm"
FLAVOUR = Flavour(
    flavour_id="simple",
    file="Definitions/simple.yaml",
    vdus={
        "masterNode": Vdu(vdu_id="masterNode", storages=("disk",)),
        "workerNode": Vdu(vdu_id="workerNode"),
    },
    virtual_links={"internal": VirtualLink(virtual_link_id="internal"), "data": VirtualLink(virtual_link_id="data")},
    initial_deltas={"masterNode": 1, "workerNode": 2},
    affinity_rules=(
        AffinityRule(name="apart", kind="anti-affinity", scope="nfvi_node", targets=("workerNode",)),
        AffinityRule(name="alone", kind="affinity", scope="zone", targets=("masterNode",)),
        AffinityRule(name="odd", kind="affinity", scope="rack", targets=("workerNode",)),
    ),
)
WITH_DISK = RESOURCES.model_copy(
    update={"volumes": (StorageFacts(name="disk-0", clone_of="disk", resource_id="volume-1", server_id="server-m1"),)}
)


def request_for(draft: Any, flavour: Flavour | None = FLAVOUR, **occ: Any) -> dict[str, Any]:
    record = an_operation(draft).model_copy(update={"facts": VnfFacts(vnfd_id="vnfd-1")}).with_occ(**occ)
    return nfvo_grant_request(record, draft, flavour, root=ROOT)


def ids(request: dict[str, Any], which: str) -> list[str]:
    return [one["id"] for one in request.get(which, ())]


def templates(request: dict[str, Any], which: str) -> list[str]:
    return [one["resourceTemplateId"] for one in request.get(which, ())]


def existing(request: dict[str, Any], which: str) -> list[tuple[str, str]]:
    return [(one["type"], one["resource"]["resourceId"]) for one in request.get(which, ())]


def test_an_instantiate_adds_all_machines_their_storage_and_the_links_that_are_not_managed_externally() -> None:
    managed = {"extManagedVirtualLinks": [{"id": "m", "vnfVirtualLinkDescId": "data", "resourceId": "net-1"}]}
    request = request_for(an_instantiate_draft(request=managed), operation_params={"instantiationLevelId": "small"})
    assert ids(request, "addResources") == [
        "masterNode-add-0",
        "masterNode-disk-add-0",
        "workerNode-add-0",
        "workerNode-add-1",
        "internal-add-0",
    ]
    assert [one["type"] for one in request["addResources"]] == ["COMPUTE", "STORAGE", "COMPUTE", "COMPUTE", "VL"]
    assert request["instantiationLevelId"] == "small"
    assert request["_links"]["vnfInstance"]["href"] == "http://vnfm/vnflcm/v2/vnf_instances/inst-1"
    assert "removeResources" not in request


def test_rules_about_two_machines_or_more_are_placement_constraints() -> None:
    assert request_for(an_instantiate_draft())["placementConstraints"] == [
        {
            "affinityOrAntiAffinity": "ANTI_AFFINITY",
            "scope": "NFVI_NODE",
            "resource": [
                {"idType": "GRANT", "resourceId": "workerNode-add-0"},
                {"idType": "GRANT", "resourceId": "workerNode-add-1"},
            ],
        }
    ]


def test_a_scale_out_is_placed_relative_to_the_present_machines() -> None:
    request = request_for(a_change_draft(ScaleVmDraft, counts={"masterNode": 1, "workerNode": 3}))
    assert ids(request, "addResources") == ["workerNode-add-0"]
    placed = request["placementConstraints"][0]["resource"]
    assert [one["resourceId"] for one in placed] == ["workerNode-add-0", "server-w1", "server-w2"]
    assert placed[1] == {"idType": "RES_MGMT", "resourceId": "server-w1", "vimConnectionId": "vim1"}


def test_a_scale_in_removes_the_selected_machines() -> None:
    draft = a_change_draft(ScaleVmDraft, counts={"masterNode": 1, "workerNode": 1}, leaving=("server-w2",))
    request = request_for(draft)
    assert existing(request, "removeResources") == [("COMPUTE", "server-w2")]
    assert "addResources" not in request
    assert "placementConstraints" not in request


def test_a_heal_removes_and_adds_the_same_machines_and_their_replaced_volumes() -> None:
    request = request_for(a_change_draft(HealVmDraft, before=WITH_DISK, servers=("server-m1",), volumes=("volume-1",)))
    assert existing(request, "removeResources") == [("COMPUTE", "server-m1"), ("STORAGE", "volume-1")]
    assert templates(request, "removeResources") == ["masterNode", "disk"]
    assert ids(request, "addResources") == ["masterNode-add-0", "masterNode-disk-add-0"]
    without_volume = request_for(a_change_draft(HealVmDraft, before=WITH_DISK, servers=("server-m1",)))
    assert existing(without_volume, "removeResources") == [("COMPUTE", "server-m1")]
    assert ids(without_volume, "addResources") == ["masterNode-add-0"]


def test_a_heal_of_the_whole_stack_is_requested_as_heal_and_not_as_instantiate() -> None:
    request = request_for(a_change_draft(HealVmDraft, is_recreated=True, grant_request={"operation": "INSTANTIATE"}))
    assert request["operation"] == "HEAL"
    assert len(request["removeResources"]) == len(RESOURCES.servers)
    assert [one["type"] for one in request["addResources"]].count("COMPUTE") == 3


def test_a_change_of_package_updates_the_machines_that_stay() -> None:
    draft = a_change_draft(
        ReplaceVmDraft, is_new_package=True, counts={"masterNode": 1, "workerNode": 3}, before=WITH_DISK
    )
    request = request_for(draft, operation=OperationType.CHANGE_VNFPKG)
    assert request["dstVnfdId"] == draft.package.vnfd_id
    assert ids(request, "addResources") == ["workerNode-add-0"]
    assert {one[1] for one in existing(request, "updateResources")} == {"server-m1", "server-w1", "server-w2"}


def test_start_and_stop_update_machines() -> None:
    assert existing(request_for(an_operate_draft(), None), "updateResources") == [("COMPUTE", "server-w1")]


def test_a_snapshot_adds_images_and_a_reversal_changes_machines_and_volumes() -> None:
    """API-171, API-172: without rules about the placement of machines, since none is added."""
    taken = request_for(a_snapshot_draft(before=WITH_DISK))
    names = ["masterNode-snapshot-0", "workerNode-snapshot-1", "workerNode-snapshot-2", "disk-snapshot-0"]
    assert ids(taken, "addResources") == names
    assert {str(one["snapshotResDef"]) for one in taken["addResources"]} == {"{'vnfSnapshotId': 'snapshot-1'}"}
    assert "placementConstraints" not in taken
    volumes = (VolumeSnapshot(volume_id="volume-1", snapshot_id="snapshot-of-1"),)
    machine = MACHINE_SNAPSHOTS[0].model_copy(update={"volumes": volumes})
    back = request_for(a_revert_draft(targets=(Target(vnfc_id=machine.vnfc_id, snapshot=machine, state="STARTED"),)))
    assert existing(back, "updateResources") == [("COMPUTE", machine.server_id), ("STORAGE", "volume-1")]
    compute, storage = (one["snapshotResDef"] for one in back["updateResources"])
    assert compute["snapshotResource"] == {"vimConnectionId": "vim1", "resourceId": machine.image_id}
    assert (storage["vnfcSnapshotId"], storage["storageSnapshotId"]) == (machine.vnfc_id, "volume-1")


def test_changes_of_a_cnf_add_and_remove_pods() -> None:
    """CR-033 to CR-035: a scaling the difference, a heal and a change of package the pods that they replace."""
    out = request_for(a_cnf_change(ScaleCnfDraft, vdu_counts={"web": 2}), None)
    assert (ids(out, "addResources"), ids(out, "removeResources")) == (["web-add-0", "web-add-1"], [])
    less = request_for(a_cnf_change(ScaleCnfDraft, vdu_counts={"web": -1}), None)
    assert (ids(less, "addResources"), existing(less, "removeResources")) == ([], [("COMPUTE", "web-1")])
    replaced = VduTarget(vdu_id="web", name="web", replicas=3)
    for draft, added in (
        (a_cnf_change(HealCnfDraft, pods=CNF_BEFORE.pods), 1),
        (a_cnf_change(HealCnfDraft, is_whole=True), 1),
        (a_cnf_change(ReplaceCnfDraft, images_of=("web",)), 1),
        (a_cnf_change(ReplaceCnfDraft, vdus=(replaced,)), 3),
    ):
        request = request_for(draft, None)
        assert existing(request, "removeResources") == [("COMPUTE", "web-1")]
        assert len(ids(request, "addResources")) == added
        assert ("dstVnfdId" in request) is isinstance(draft, ReplaceCnfDraft)


def test_terminating_a_cnf_removes_its_pods() -> None:
    applied: Any = ANSWERS["infra.k8s.apply_objects"]
    release = Release(namespace="default", objects=(), pods=applied.pods)
    draft = a_cnf_terminate_draft().model_copy(update={"release": release})
    assert existing(request_for(draft, None), "removeResources") == [("COMPUTE", "web-1")]


def test_secrets_are_not_sent_and_links_follow_the_api_version() -> None:
    draft = an_instantiate_draft()
    record = an_operation(draft).model_copy(update={"api_version": "v1"})
    parameters = draft.parameters["k8s_cluster_installation_param"]["master_node"]
    record = record.with_occ(operation_params={"additionalParams": {"node": parameters, "colour": "red"}})
    request = nfvo_grant_request(record, draft, FLAVOUR, root=ROOT)
    assert "password" not in request["additionalParams"]["node"]
    assert request["additionalParams"]["colour"] == "red"
    assert request["_links"]["vnfLcmOpOcc"]["href"] == "http://vnfm/vnflcm/v1/vnf_lcm_op_occs/op-1"


# --- ports, and the request that user data receive --------------------------------------------------------------------

WITH_CPS = FLAVOUR.model_copy(
    update={
        "cps": {
            "cp1": Cp(cp_id="cp1", vdu_id="masterNode"),
            "cp2": Cp(cp_id="cp2", vdu_id="masterNode"),
            "outside": Cp(cp_id="outside", kind="external", vdu_id="masterNode"),
        }
    }
)


def for_user_data(draft: Any, flavour: Flavour = WITH_CPS, **occ: Any) -> dict[str, Any]:
    return package_grant_request(an_operation(draft).with_occ(**occ).occ, "vnfd-1", draft, flavour)


def test_machines_bring_ports_except_those_that_exist_already() -> None:
    link: Any = {"id": "l", "resourceId": "n", "extCps": [{"cpdId": "cp2", "cpConfig": {"c": {"linkPortId": "p"}}}]}
    request = request_for(an_instantiate_draft(ext_virtual_links=(link,)), WITH_CPS)
    assert ids(request, "addResources")[:3] == ["masterNode-add-0", "masterNode-cp1-add-0", "masterNode-disk-add-0"]
    assert [one["type"] for one in request["addResources"]].count("LINKPORT") == 1
    healed = request_for(a_change_draft(HealVmDraft, servers=("server-m1",)), WITH_CPS)
    assert ids(healed, "addResources") == ["masterNode-add-0"], "a healed machine keeps its ports"


def test_user_data_get_the_request_of_an_instantiate_with_its_parameters() -> None:
    parameters = hide({"colour": "red", "password": "s3cret"})
    request = for_user_data(an_instantiate_draft(), operation_params={"additionalParams": parameters})
    assert request["vnfLcmOpOccId"] == "op-1"
    assert (request["operation"], request["flavourId"]) == ("INSTANTIATE", "simple")
    assert request["addResources"] == request_for(an_instantiate_draft(), WITH_CPS)["addResources"]
    assert request["additionalParams"] == parameters


def test_user_data_find_the_machines_of_the_named_vdus_of_a_new_package() -> None:
    draft = a_change_draft(ReplaceVmDraft, is_new_package=True, changed_vdus=("workerNode",))
    request = for_user_data(draft, operation=OperationType.CHANGE_VNFPKG)
    assert existing(request, "removeResources") == [("COMPUTE", "server-w1"), ("COMPUTE", "server-w2")]
    assert ids(request, "addResources") == ["workerNode-add-0", "workerNode-add-1"]
    assert request["dstVnfdId"] == draft.package.vnfd_id
    every = for_user_data(draft.model_copy(update={"changed_vdus": ()}), operation=OperationType.CHANGE_VNFPKG)
    assert len(every["removeResources"]) == len(RESOURCES.servers)


def test_user_data_count_the_machines_of_a_new_flavour_from_none() -> None:
    draft = a_change_draft(ReplaceVmDraft, counts={"masterNode": 1, "workerNode": 4})
    request = for_user_data(draft)
    added = [one["resourceTemplateId"] for one in request["addResources"] if one["type"] == "COMPUTE"]
    assert (added.count("workerNode"), len(request["removeResources"])) == (4, len(RESOURCES.servers))


def test_the_class_of_a_stack_that_is_created_again_is_called_as_at_the_instantiation() -> None:
    draft = a_change_draft(HealVmDraft, is_recreated=True)
    draft = draft.model_copy(update={"grant_request": for_user_data(draft)})
    creation = draft.creation.grant_request
    assert creation["operation"] == "INSTANTIATE"
    assert "removeResources" not in creation
    assert [one["type"] for one in creation["addResources"]].count("COMPUTE") == 3
