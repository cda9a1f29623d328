"""Machines: the phases of a management driver, and a package that a modification names for machines that stay."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from kubevnfm_cluster.request import read_cluster_parameters
from kubevnfm_csar.vnfd.model import (
    Cp,
    Flavour,
    Level,
    PhaseDriver,
    ScalingAspect,
    Storage,
    Vdu,
    VirtualLink,
    Vnfd,
)
from kubevnfm_events import PackageRef
from kubevnfm_events.mgmt import INSTANTIATE_END, TERMINATE_START, RunPhase
from kubevnfm_events.stacks import LeftPackage, ServerFacts, StackResources, StorageFacts, UserData
from kubevnfm_kit.errors import InvalidInput, Unprocessable
from kubevnfm_lcm_api.lifecycle.clusters.phase_steps import RunDriverPhase
from kubevnfm_lcm_api.lifecycle.core.granting import GrantUnusable
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord, StackDeployment
from kubevnfm_lcm_api.lifecycle.core.kind import UnderChange
from kubevnfm_lcm_api.lifecycle.core.ports import PackageCatalogue
from kubevnfm_lcm_api.lifecycle.core.sequences import SEQUENCES
from kubevnfm_lcm_api.lifecycle.machines.carrying import carried_machines
from kubevnfm_lcm_api.lifecycle.machines.drafts import InstantiateVmDraft, TerminateVmDraft
from kubevnfm_lcm_api.lifecycle.machines.healing import HealVmDraft
from kubevnfm_lcm_api.lifecycle.machines.inventory import links_of
from kubevnfm_lcm_api.lifecycle.machines.requested_scaling import leaving_machines
from kubevnfm_lcm_api.lifecycle.machines.scaling import ScaleVmDraft
from kubevnfm_lcm_api.lifecycle.machines.under_change import VnfUnderChange
from kubevnfm_secrets import hide
from kubevnfm_sol.granting import Grant
from kubevnfm_sol.resources import InstantiatedVnfInfo, ScaleInfo
from kubevnfm_store.query import Stored
from worlds.lcm_builders import (
    CLUSTER_PARAMETERS,
    PACKAGE,
    RESOURCES,
    RING,
    a_change_draft,
    a_terminate_draft,
    an_instance,
    an_instantiate_draft,
)

CLUSTER = "k8s_cluster_installation_param"
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
READ = read_cluster_parameters(CLUSTER_PARAMETERS)


def command(draft: InstantiateVmDraft) -> RunPhase:
    return RunDriverPhase(INSTANTIATE_END).ask(draft)


def test_the_command_carries_what_was_read_at_the_request() -> None:
    draft = an_instantiate_draft(resources=RESOURCES, cluster_parameters=READ, parameters={})
    stored = InstantiateVmDraft.from_document(draft.document(RING))
    sent = command(stored)
    assert sent.cluster is not None
    assert sent.cluster.worker_node.password is not None
    assert sent.cluster.worker_node.password.reveal(RING) == "ubuntu"
    assert sent.cluster.model_dump(mode="json") == READ.model_dump(mode="json")
    assert {node.role for node in sent.nodes} == {"master", "worker"}


def test_an_operation_that_version_0_1_0_stored_is_read_from_its_parameters() -> None:
    document = an_instantiate_draft(resources=RESOURCES).document(RING)
    assert "cluster_parameters" not in document
    sent = command(InstantiateVmDraft.from_document(document))
    assert sent.cluster is not None
    assert sent.cluster.worker_node.password is not None
    assert sent.cluster.worker_node.password.reveal(RING) == "ubuntu"
    assert sent.parameters[CLUSTER]["script_path"] == "Scripts/install.sh"


def test_a_termination_of_an_earlier_version_is_read_from_its_parameters() -> None:
    drivers = {"instantiate_end": "kubernetes", "terminate_start": "kubernetes"}
    document = a_terminate_draft(parameters=hide(CLUSTER_PARAMETERS), phases=drivers).document(RING)
    assert "cluster_parameters" not in document
    sent = RunDriverPhase(TERMINATE_START).ask(TerminateVmDraft.from_document(document))
    assert sent.cluster is not None
    assert {node.role for node in sent.nodes} == {"master", "worker"}


def test_an_instance_stores_the_cluster_that_was_instantiated() -> None:
    """An instance of an earlier version has it in its parameters alone."""
    drivers = {"instantiate_end": "kubernetes"}
    draft = an_instantiate_draft(resources=RESOURCES, phases=drivers, cluster_parameters=READ)
    document = draft.completed(an_instance()).document(RING)
    stored = document["internal"].pop("cluster")
    of_now = InstanceRecord.from_document({**document, "internal": {**document["internal"], "cluster": stored}})
    for record in (of_now, InstanceRecord.from_document(document)):
        assert record.internals.cluster is not None
        assert record.internals.cluster.worker_node.password is not None
        assert record.internals.cluster.worker_node.password.reveal(RING) == "ubuntu"


def test_a_vnf_that_is_not_a_cluster_has_other_nodes_whatever_its_parameters_are() -> None:
    draft = a_terminate_draft(parameters={CLUSTER: {"script_path": 7}}, phases={"terminate_start": "kubernetes"})
    sent = RunDriverPhase(TERMINATE_START).ask(draft)
    assert sent.cluster is None
    assert {node.role for node in sent.nodes} == {"other"}


def test_a_grant_replaces_the_cluster_of_the_request() -> None:
    """SOL003: entries of a grant's additionalParams replace those of the request."""
    draft = an_instantiate_draft(resources=RESOURCES, cluster_parameters=READ)
    section = {**CLUSTER_PARAMETERS[CLUSTER], "x_max_parallel_nodes": 3}
    grant = Grant(id="g", vnf_instance_id="i", vnf_lcm_op_occ_id="o", additional_params={CLUSTER: section})
    changed = draft.granted(grant, {})
    assert isinstance(changed, InstantiateVmDraft)
    sent = command(changed)
    assert sent.cluster is not None
    assert sent.cluster.x_max_parallel_nodes == 3

    worker = {**section["worker_node"], "password": "two\nlines"}
    for changes, reason in (
        ({"x_max_parallel_nodes": 0}, "x_max_parallel_nodes: a whole number from 1 to 100 expected"),
        ({"worker_node": worker}, "worker_node/password: one line of text expected"),
    ):
        # A grant that was received has hidden secrets; their form is checked all the same.
        unusable = grant.model_copy(update={"additional_params": hide({CLUSTER: {**section, **changes}})})
        with pytest.raises(GrantUnusable, match=reason):
            draft.granted(unusable, {})


def test_parameters_that_no_longer_fit_the_rules_are_left_to_the_driver_which_names_their_field() -> None:
    broken = hide({CLUSTER: {**CLUSTER_PARAMETERS[CLUSTER], "x_kubernetes_version": "1.99.0"}})
    document = an_instantiate_draft(resources=RESOURCES, parameters=broken).document(RING)
    sent = command(InstantiateVmDraft.from_document(document))
    assert sent.cluster is None
    with pytest.raises(InvalidInput, match=f"additionalParams/{CLUSTER}/x_kubernetes_version"):
        read_cluster_parameters(sent.parameters)


@pytest.mark.parametrize(("node_install", "seconds"), [(1, 7200.0), (86_400, 264_600.0)])
def test_the_phase_has_the_time_that_the_requests_limits_add_up_to(node_install: int, seconds: float) -> None:
    cluster = READ.model_copy(update={"x_timeouts": READ.x_timeouts.model_copy(update={"node_install": node_install})})
    steps = SEQUENCES.planned(an_instantiate_draft(cluster_parameters=cluster))
    assert {step.id: step.timeout_s for step in steps}["instantiate_end"] == seconds


def a_flavour(**changes: Any) -> Flavour:
    """Return the flavour of a master and up to three workers with a volume each, at two levels."""
    aspect = ScalingAspect(aspect_id="workers", max_scale_level=2, deltas=({"workerNode": 1},))
    facts: dict[str, Any] = {
        "flavour_id": "simple",
        "file": "df.yaml",
        "vdus": {name: Vdu(vdu_id=name, max_instances=3) for name in ("masterNode", "workerNode")},
        "cps": {"masterNode_CP1": Cp(cp_id="masterNode_CP1", vdu_id="masterNode", is_external=True)},
        "virtual_links": {"inner": VirtualLink(virtual_link_id="inner")},
        "storages": {"disk": Storage(storage_id="disk")},
        "aspects": {"workers": aspect},
        "levels": {"two": Level(level_id="two")},
        "initial_deltas": {"masterNode": 1, "workerNode": 1},
    }
    return Flavour(**{**facts, **changes})


def a_vnfd(flavour: Flavour, vnfd_id: str = "vnfd-2") -> Vnfd:
    facts = {"provider": "p", "product_name": "n", "software_version": "1", "descriptor_version": "1"}
    return Vnfd(vnfd_id=vnfd_id, flavours={flavour.flavour_id: flavour}, **facts)


class OfTopology:
    """A catalogue of packages without Base HOT, except those of ``hots``."""

    def __init__(self, *hots: str) -> None:
        self.hots = hots

    async def base_hot(self, package_id: str, flavour_id: str) -> object:
        return object() if package_id in self.hots else None

    async def file_names(self, package_id: str) -> frozenset[str]:
        return frozenset()


def standing(user_data: UserData | None = None) -> VnfUnderChange:
    """Return a VNF with a master and two workers, at level 1 of the workers."""
    info = InstantiatedVnfInfo(
        flavour_id="simple", vnf_state="STARTED", scale_status=(ScaleInfo(aspect_id="workers", scale_level=1),)
    )
    resources = RESOURCES.model_copy(update={"volumes": (StorageFacts(name="disk", resource_id="volume-1"),)})
    stack = StackDeployment(kind="stack", vim_key="vim-1", stack_name="vnf-inst-1", resources=resources)
    record = an_instance(instantiated_vnf_info=info).with_internals(
        deployments=(stack,),
        instantiation_level_id="two",
        user_data=user_data,
        connections={
            "extVirtualLinks": [{"id": "e", "resourceId": "net0", "extCps": [{"cpdId": "masterNode_CP1"}]}],
            "extManagedVirtualLinks": [{"id": "m", "resourceId": "net1", "vnfVirtualLinkDescId": "inner"}],
        },
    )
    flavour = a_flavour()
    vnf = UnderChange(Stored("inst-1", 1, {}), record, PACKAGE, a_vnfd(flavour, "vnfd-1"), flavour, info)
    return VnfUnderChange.of_machines(vnf)


NEW = PackageRef(package_id="pkg-2", vnfd_id="vnfd-2", checksum="01")
ASPECT = ScalingAspect(aspect_id="workers", max_scale_level=0)


@pytest.mark.parametrize(
    ("changes", "refusal"),
    [
        ({"flavour_id": "large"}, "lacks the flavour simple that the VNF has; it has large"),
        ({"vdus": {"masterNode": Vdu(vdu_id="masterNode")}}, "lacks the VDU workerNode"),
        (
            {"vdus": {name: Vdu(vdu_id=name, kind="container") for name in ("masterNode", "workerNode")}},
            "VDU masterNode of the VNF is a compute VDU; the package has a container VDU",
        ),
        (
            {"vdus": {name: Vdu(vdu_id=name, max_instances=1) for name in ("masterNode", "workerNode")}},
            "2 machines of workerNode, whose max_number_of_instances is 1",
        ),
        ({"storages": {}}, "lacks the storage disk that the VNF has; it has none"),
        ({"cps": {}}, "lacks the connection point masterNode_CP1"),
        ({"virtual_links": {}}, "lacks the virtual link inner"),
        ({"levels": {"one": Level(level_id="one")}}, "lacks the instantiation level two that the VNF has; it has one"),
        ({"aspects": {}}, "lacks the scaling aspect workers"),
        ({"aspects": {"workers": ASPECT}}, "the VNF is at scale level 1 of workers; the package has 0 at most"),
        (
            {
                "phases": {
                    "instantiate_end": PhaseDriver(
                        phase="instantiate_end", name="mgmt-drivers-kubernetes", file="k8s.py"
                    )
                }
            },
            "the management driver of instantiate_end is none; the package has mgmt-drivers-kubernetes",
        ),
    ],
)
async def test_a_package_that_lacks_what_the_vnf_has_is_refused_by_name(changes: dict[str, Any], refusal: str) -> None:
    packages = cast("PackageCatalogue", OfTopology())
    with pytest.raises(Unprocessable, match=refusal):
        await carried_machines(packages, standing(), NEW, a_vnfd(a_flavour(**changes)))


async def test_a_package_of_another_form_or_without_the_user_data_is_refused() -> None:
    vnfd = a_vnfd(a_flavour())
    for hots, why in ((("pkg-1",), "has no Base HOT"), (("pkg-2",), "has a Base HOT, and the present one has none")):
        with pytest.raises(Unprocessable, match=why):
            await carried_machines(cast("PackageCatalogue", OfTopology(*hots)), standing(), NEW, vnfd)
    user_data = UserData(path="UserData/own.py", class_name="Own")
    with pytest.raises(Unprocessable, match=r"no file UserData/own\.py"):
        await carried_machines(cast("PackageCatalogue", OfTopology()), standing(user_data), NEW, vnfd)


async def test_the_vnf_shows_the_levels_of_the_new_package_and_keeps_which_template_its_stack_has() -> None:
    packages, vnf = cast("PackageCatalogue", OfTopology()), standing()
    more = {**a_flavour().aspects, "others": ScalingAspect(aspect_id="others", max_scale_level=4)}
    carried = await carried_machines(packages, vnf, NEW, a_vnfd(a_flavour(aspects=more)))
    record = carried.on(vnf.record)
    assert record.stack is not None
    assert record.stack.left_package == PACKAGE
    info = record.vnf.instantiated_vnf_info
    assert info is not None
    assert {one.aspect_id: one.scale_level for one in info.scale_status or ()} == {"workers": 1, "others": 0}
    assert {one.aspect_id: one.scale_level for one in info.max_scale_levels or ()} == {"workers": 2, "others": 4}
    # Back to the first package: of the stack's template, a heal may have made parts by the second one.
    again = VnfUnderChange.of_machines(UnderChange(vnf.stored, record, NEW, vnf.vnfd, vnf.flavour, info))
    back = await carried_machines(packages, again, PACKAGE, a_vnfd(a_flavour(), "vnfd-1"))
    assert back.left_package == NEW


def test_a_group_that_keeps_the_definition_of_the_package_before_is_named() -> None:
    left, user_data = LeftPackage(package=NEW), UserData(path="UserData/it.py", class_name="It")
    heal = a_change_draft(HealVmDraft, servers=("server-m1", "server-w1"), left_package=left)
    assert [note.text.partition(":")[0] for note in heal.notes] == ["worker_instance"]
    for others in (
        {"servers": ("server-m1", "server-w1", "server-w2")},
        {"is_recreated": True},
        {"left_package": None},
        {"user_data": user_data},
    ):
        assert heal.model_copy(update=others).notes == ()
    scale = a_change_draft(ScaleVmDraft, counts={"masterNode": 1, "workerNode": 3}, left_package=left)
    assert [note.text.partition(":")[0] for note in scale.notes] == ["worker_instance"]
    assert scale.model_copy(update={"counts": {"masterNode": 1, "workerNode": 1}}).notes == ()


@pytest.mark.parametrize(
    ("is_newest_first", "numbered", "left"),
    [(True, False, "WEB-0"), (False, False, "WEB-10"), (True, True, "WEB-0"), (False, True, "WEB-0")],
)
def test_of_machines_made_at_once_the_numbers_decide_which_leave(
    is_newest_first: bool, numbered: bool, left: str
) -> None:
    # The ids have another order than the numbers.
    servers = [
        ServerFacts(vnfc_id=vnfc_id, name=name, vdu_id="WEB", server_id=f"s-{name}", stack_id="s", created_at=EPOCH)
        for name, vnfc_id in (("WEB-1", "c"), ("WEB-0", "b"), ("WEB-2", "a"), ("WEB-10", "d"))
    ]
    for count in (3, 2, 1):
        leaving = leaving_machines(servers, {"WEB": count}, is_newest_first=is_newest_first, numbered=numbered)
        (gone,) = leaving["WEB"]
        servers.remove(gone)
    assert [server.name for server in servers] == [left]


def test_a_healed_machine_is_the_newest_where_no_class_has_numbered_it() -> None:
    servers = [
        ServerFacts(
            vnfc_id=str(n), name=f"WEB-{n}", vdu_id="WEB", server_id=str(n), stack_id="s",
            created_at=EPOCH + timedelta(minutes=60 if n == 0 else 0),
        )
        for n in range(3)
    ]  # fmt: skip
    for numbered, expected in ((False, "WEB-0"), (True, "WEB-2")):
        leaving = leaving_machines(servers, {"WEB": 2}, is_newest_first=True, numbered=numbered)
        assert [server.name for server in leaving["WEB"]] == [expected]


def test_the_ports_on_links_that_are_managed_externally_are_affected_with_their_machines() -> None:
    """SOL003 5.5.3.14 and 5.5.2.13 note 3: a link that stays has an entry for each kind of change of its ports."""

    def on_networks(resources: StackResources) -> StackResources:
        servers = [
            one.model_copy(update={"ports": (one.ports[0].model_copy(update={"network_id": "outside"}),)})
            for one in resources.servers
        ]
        return resources.model_copy(update={"servers": tuple(servers)})

    managed = [{"id": "m", "vnfVirtualLinkDescId": "data", "resourceId": "outside"}]
    point = {"cpdId": "masterNode_CP1", "cpConfig": {"a": {}}}
    external = [{"id": "x", "resourceId": "net0", "extCps": [point]}]
    whole = on_networks(RESOURCES)
    made = an_instantiate_draft(
        request={"extManagedVirtualLinks": managed}, ext_virtual_links=tuple(external), resources=whole
    )
    (added,) = made.changes().affected_virtual_links
    assert (added.id, added.vnf_virtual_link_desc_id, added.change_type) == ("m", "data", "LINK_PORT_ADDED")
    assert added.network_resource.resource_id == "outside"
    assert len(added.vnf_link_port_ids or ()) == 3
    assert [one.resource_handle.resource_id for one in made.changes().affected_ext_link_ports] == ["port-m1"]

    links = {"extManagedVirtualLinks": managed, "extVirtualLinks": external}
    less = whole.model_copy(update={"servers": whole.servers[:2]})
    scaled = a_change_draft(ScaleVmDraft, before=whole, resources=less, connections=links, connections_before=links)
    (removed,) = scaled.changes().affected_virtual_links
    assert (removed.id, removed.change_type) == ("m", "LINK_PORT_REMOVED")
    assert set(removed.vnf_link_port_ids or ()) < set(added.vnf_link_port_ids or ())
    assert not scaled.changes().affected_ext_link_ports

    info = links_of(made.facts(whole, links))
    gone = a_terminate_draft(resources=whole, links=info).without_stack().changes()
    (ended,) = gone.affected_virtual_links
    assert (ended.change_type, ended.vnf_link_port_ids) == ("LINK_PORT_REMOVED", added.vnf_link_port_ids)
    assert [one.change_type for one in gone.affected_ext_link_ports] == ["REMOVED"]
