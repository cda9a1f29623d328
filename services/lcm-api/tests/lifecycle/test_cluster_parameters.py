"""additionalParams of a cluster against its package and VNFD (sequences.md chapter 2).

The forms of the attributes, their defaults, and the rules between them are tested in libs/cluster.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any, Literal

import pytest
from kubevnfm_cluster.rules import node_mask
from kubevnfm_csar.archive import open_csar
from kubevnfm_csar.hot import BaseHot, read_base_hot
from kubevnfm_csar.pack import pack
from kubevnfm_csar.vnfd.model import Vnfd
from kubevnfm_csar.vnfd.read import read_vnfd
from kubevnfm_kit.errors import InvalidInput, Unprocessable
from kubevnfm_lcm_api.lifecycle.clusters.parameters import CheckedCluster, check_cluster_parameters
from kubevnfm_lcm_api.lifecycle.machines.package_fit import named_user_data
from kubevnfm_secrets import hide
from packages.package_builder import MASTER_HOT, TOP_HOT, package, v1_files

ROOT = "additionalParams/k8s_cluster_installation_param"
ABSENT = object()

STORAGE = """\
  storage_server_volume: {type: OS::Cinder::Volume, properties: {size: 5}}
  storage_server_CP: {type: OS::Neutron::Port, properties: {network: net0}}
  storage_server:
    type: OS::Nova::Server
    properties:
      networks: [{port: {get_resource: storage_server_CP}}]
      block_device_mapping_v2:
        - {device_name: vdb, volume_id: {get_resource: storage_server_volume}, boot_index: -1}
  other_volume: {type: OS::Cinder::Volume, properties: {size: 5}}
  other_server: {type: OS::Nova::Server, properties: {networks: [{port: {get_resource: vip_CP}}]}}
  other_attachment:
    type: OS::Cinder::VolumeAttachment
    properties: {volume_id: {get_resource: other_volume}, instance_uuid: {get_resource: other_server}}
  loose_volume: {type: OS::Cinder::Volume, properties: {size: 5}}
  vip_CP_floating_ip: {type: OS::Neutron::FloatingIP, properties: {floating_network: ext}}
  node_subnet: {type: OS::Neutron::Subnet, properties: {network: net0, cidr: 10.20.0.0/24}}
"""
FLOATING = """\
  masterNode_fip: {type: OS::Neutron::FloatingIP, properties: {floating_network: ext}}
"""
HA_MASTER_HOT = MASTER_HOT.replace(
    "{network: {get_param: network}}",
    "{network: {get_param: network}, allowed_address_pairs: [{ip_address: {get_param: vip_port_ip}}]}",
)


@pytest.fixture(scope="module")
def taken_in(tmp_path_factory: pytest.TempPathFactory) -> tuple[Vnfd, dict[str, BaseHot], frozenset[str]]:
    files = v1_files()
    for flavour in ("simple", "complex"):
        files[f"BaseHOT/{flavour}/cluster.yaml"] = TOP_HOT + STORAGE
        files[f"BaseHOT/{flavour}/nested/nested_master.yaml"] = HA_MASTER_HOT + FLOATING
    for name in ("Files/kubernetes/nfs-pv2.yaml", "Files/kubernetes/nfs-pv3.yaml", "Files/registries/ca.crt"):
        files[name] = "a: 1\n"
    files["Scripts/install_helm.sh"] = "#!/bin/bash\n"
    csar = open_csar(package(tmp_path_factory.mktemp("package"), files))
    hots = {flavour: read_base_hot(csar, flavour) for flavour in ("simple", "complex")}
    return read_vnfd(csar), {flavour: hot for flavour, hot in hots.items() if hot is not None}, csar.names()


class Checker:
    def __init__(self, taken_in: tuple[Vnfd, dict[str, BaseHot], frozenset[str]]) -> None:
        self.vnfd, self.hots, self.names = taken_in

    def __call__(
        self,
        params: Mapping[str, Any],
        *,
        flavour: str = "simple",
        version: Literal["v1", "v2"] = "v1",
        level: str | None = None,
        hot: bool = True,
    ) -> CheckedCluster:
        return check_cluster_parameters(
            params,
            flavour=self.vnfd.flavour(flavour),
            base_hot=self.hots[flavour] if hot else None,
            file_names=self.names,
            api_version=version,
            has_user_data=named_user_data(params, self.names) is not None,
            instantiation_level_id=level,
        )


@pytest.fixture
def check(taken_in: tuple[Vnfd, dict[str, BaseHot], frozenset[str]]) -> Checker:
    return Checker(taken_in)


def body(**changes: Any) -> dict[str, Any]:
    """The cluster part of seed 004's sample; ``path__to__attribute=value`` changes it, ABSENT removes."""
    params: dict[str, Any] = {
        "lcm-operation-user-data": "./UserData/k8s_cluster_user_data.py",
        "lcm-operation-user-data-class": "KubernetesClusterUserData",
        "k8s_cluster_installation_param": {
            "script_path": "Scripts/install_k8s_cluster.sh",
            "vim_name": "kubernetes_vim",
            "master_node": {
                "aspect_id": "master_instance",
                "ssh_cp_name": "masterNode_CP1",
                "nic_cp_name": "masterNode_CP1",
                "username": "ubuntu",
                "password": "ubuntu",
                "pod_cidr": "192.168.3.0/24",
                "cluster_cidr": "10.199.187.0/24",
                "cluster_cp_name": "masterNode_CP1",
            },
            "worker_node": {
                "aspect_id": "worker_instance",
                "ssh_cp_name": "workerNode_CP2",
                "nic_cp_name": "workerNode_CP2",
                "username": "ubuntu",
                "password": "ubuntu",
            },
            "proxy": {
                "http_proxy": "http://user1:password1@host1:port1",
                "https_proxy": "https://user2:password2@host2:port2",
                "no_proxy": "192.168.246.0/24,10.0.0.1,registry.example.com",
                "k8s_node_cidr": "192.168.0.0/24",
            },
        },
    }
    return changed(params, {f"k8s_cluster_installation_param__{name}": value for name, value in changes.items()})


def changed(params: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    result = deepcopy(params)
    for path, value in changes.items():
        *parents, last = path.split("__")
        place = result
        for name in parents:
            place = place.setdefault(name, {})
        if value is ABSENT:
            place.pop(last, None)
        else:
            place[last] = value
    return result


REGISTRIES: list[dict[str, Any]] = [
    {"connection_type": "0", "server": "192.168.0.10:5000"},
    {
        "connection_type": "1",
        "server": "registry.example.com",
        "username": "user01",
        "password": "user01",
        "certificate_path": "Files/registries/ca.crt",
        "hosts_string": "192.168.0.20 registry.example.com",
    },
]
STORAGE_SERVER: dict[str, Any] = {
    "ssh_cp_name": "storage_server_CP",
    "username": "ubuntu",
    "password": "ubuntu",
    "cinder_volume_setup_params": [{"volume_resource_id": "storage_server_volume", "mount_to": "/volume"}],
    "nfs_server_setup_params": [
        {"export_dir": f"/volume/nfs/pv{number}", "export_to": "10.10.0.0/24"} for number in (1, 2, 3)
    ],
}
VOLUMES = [
    {"pv_manifest_file_path": f"Files/kubernetes/nfs-pv{number}.yaml", "nfs_server_cp": "storage_server_CP"}
    for number in (1, 2, 3)
]


def test_the_sample_is_accepted_as_it_comes_and_as_the_gateway_hides_its_secrets(check: Checker) -> None:
    """SEQ-022, SEQ-023."""
    plain, hidden = check(body()), check(hide(body()))
    assert plain == hidden
    assert (plain.masters, plain.workers, plain.max_nodes) == (1, 2, 7)
    parameters = plain.parameters
    assert parameters.script_path == "Scripts/install_k8s_cluster.sh"
    assert str(parameters.master_node.pod_cidr) == "192.168.3.0/24"
    assert str(parameters.master_node.cluster_cidr) == "10.199.187.0/24"
    assert parameters.proxy.exceptions == ("192.168.246.0/24", "10.0.0.1", "registry.example.com")
    assert "ubuntu" not in repr(parameters.master_node.password)
    assert "password1" not in parameters.model_dump_json()


@pytest.mark.parametrize(
    ("field", "value", "status", "expected"),
    [
        # 2.2
        ("script_path", ABSENT, 400, "missing"),
        ("script_path", "Scripts/absent.sh", 422, "no file Scripts/absent.sh"),
        ("script_path", "Scripts/$(reboot).sh", 422, "no file"),
        ("helm_installation_script_path", "Scripts/absent.sh", 422, "no file"),
        ("x_kubernetes_version", "1.19.0", 422, "1.28.0"),
        ("x_cni", "Files/kubernetes/absent.yaml", 422, "no file"),
        # 2.3
        ("master_node__aspect_id", ABSENT, 400, "missing"),
        ("master_node__aspect_id", "masters", 422, "no scaling aspect masters; it has master_instance"),
        ("master_node__ssh_cp_name", "workerNode_CP2", 422, "nested_master.yaml has no resource workerNode_CP2"),
        ("master_node__ssh_cp_name", "masterNode", 422, "OS::Nova::Server"),
        ("master_node__nic_cp_name", "masterNode_fip", 422, "OS::Neutron::FloatingIP"),
        ("master_node__username", "root; reboot", 400, "a Linux user name"),
        ("master_node__pod_cidr", "10.10.0.0/20", 422, "overlaps virtual link internalVL"),
        ("master_node__pod_cidr", "10.20.0.0/20", 422, "overlaps subnet node_subnet"),
        ("master_node__pod_cidr", "192.168.0.0/16", 422, "overlaps the nodes' network k8s_node_cidr"),
        ("master_node__pod_cidr", "192.168.3.0/27", 422, "too small for 7 nodes"),
        ("master_node__cluster_cidr", "10.10.0.0/16", 422, "overlaps virtual link internalVL"),
        ("master_node__cluster_cp_name", "vip_CP", 422, "nested_master.yaml has no resource vip_CP"),
        ("master_node__cluster_fip_name", "vip_CP", 422, "OS::Neutron::Port"),
        ("master_node__cluster_fip_name", "absent", 422, "fitting: vip_CP_floating_ip"),
        # 2.4
        ("worker_node__aspect_id", ABSENT, 400, "missing"),
        ("worker_node__aspect_id", "workers", 422, "no scaling aspect"),
        ("worker_node__ssh_cp_name", "CP9", 422, "fitting: workerNode_CP2"),
        ("worker_node__nic_cp_name", "CP9", 422, "no resource CP9"),
        # 2.5
        ("proxy__https_proxy", "http://u:p'w@proxy:3128", 400, "a URL"),
    ],
)
@pytest.mark.parametrize("is_hidden", [False, True])
def test_a_wrong_value_is_refused_with_its_field_and_what_was_expected(
    check: Checker, field: str, value: Any, status: int, expected: str, is_hidden: bool
) -> None:
    """SEQ-191."""
    params = body(**{field: value})
    with pytest.raises(InvalidInput) as caught:
        check(hide(params) if is_hidden else params)
    error = caught.value
    assert error.status == status
    assert error.field.startswith(f"{ROOT}/{field.replace('__', '/')}")
    assert expected in error.reason


@pytest.mark.parametrize(
    ("changes", "status", "field", "expected"),
    [
        ({"k8s_cluster_installation_param": ABSENT}, 400, "k8s_cluster_installation_param", "missing"),
        ({"lcm-operation-user-data": ABSENT}, 400, "lcm-operation-user-data", "both of"),
        ({"lcm-operation-user-data-class": ABSENT}, 400, "lcm-operation-user-data-class", "both of"),
        ({"lcm-operation-user-data": "../a.py"}, 400, "lcm-operation-user-data", "a path inside the package"),
        ({"lcm-operation-user-data": "UserData/a.sh"}, 400, "lcm-operation-user-data", "ending in .py"),
        ({"lcm-operation-user-data": "UserData/a.py"}, 422, "lcm-operation-user-data", "no file UserData/a.py"),
        ({"lcm-operation-user-data-class": "a b"}, 400, "lcm-operation-user-data-class", "a Python class"),
        ({"is_reverse": True}, 400, "is_reverse", "True or False"),
    ],
)
def test_a_wrong_value_beside_the_cluster_is_refused(
    check: Checker, changes: dict[str, Any], status: int, field: str, expected: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        check(changed(body(), changes))
    assert caught.value.status == status
    assert caught.value.field.startswith(f"additionalParams/{field}")
    assert expected in caught.value.reason


def test_the_pod_network_must_have_a_part_for_every_node_that_scaling_allows(check: Checker) -> None:
    """There are 3 nodes at first, and 7 at most: a /25 has parts of /28 for 7, a /26 only for 4."""
    assert check(body(master_node__pod_cidr="172.16.0.0/25")).max_nodes == 7
    with pytest.raises(Unprocessable, match="too small for 7 nodes"):
        check(body(master_node__pod_cidr="172.16.0.0/26"))


def test_vdu_ids_find_the_machines_in_both_versions(check: Checker) -> None:
    by_vdu = body(
        master_node__aspect_id=ABSENT,
        worker_node__aspect_id=ABSENT,
        master_node__vdu_id="masterNode",
        worker_node__vdu_id="workerNode",
    )
    for version in ("v1", "v2"):
        found = check(by_vdu, version=version)
        assert (found.masters, found.workers, found.max_nodes) == (1, 2, 7)
    with pytest.raises(Unprocessable, match=r"worker_node/vdu_id: the VNFD has no VDU nodes; it has masterNode"):
        check(changed(by_vdu, {"k8s_cluster_installation_param__worker_node__vdu_id": "nodes"}), version="v2")
    check(body(), version="v2")


def test_in_v2_the_vdu_must_be_named_when_no_aspect_is(check: Checker) -> None:
    with pytest.raises(InvalidInput, match=r"master_node/vdu_id: missing"):
        check(body(master_node__aspect_id=ABSENT), version="v2")


def test_by_tosca_alone_roles_come_from_names_and_ports_from_the_vnfd(check: Checker) -> None:
    """SEQ-019, SEQ-027."""
    by_tosca = changed(
        body(master_node__aspect_id=ABSENT, worker_node__aspect_id=ABSENT),
        {"lcm-operation-user-data": ABSENT, "lcm-operation-user-data-class": ABSENT},
    )
    with pytest.raises(
        Unprocessable, match=r"master_node: up to 3 machines: without a Base HOT, a VDU with one machine"
    ):
        check(by_tosca, hot=False)
    simple = check.vnfd.flavour("simple")
    one_each = simple.model_copy(
        update={"aspects": {}, "levels": {}, "initial_deltas": {"masterNode": 1, "workerNode": 1}}
    )
    alone = Checker((check.vnfd.model_copy(update={"flavours": {"simple": one_each}}), check.hots, check.names))
    for version in ("v1", "v2"):
        found = alone(by_tosca, hot=False, version=version)
        assert (found.parameters.master_node.ssh_cp_name, found.masters, found.workers) == ("masterNode_CP1", 1, 1)
    with pytest.raises(Unprocessable, match=r"master_node/ssh_cp_name: the VNFD has no resource ssh"):
        alone(changed(by_tosca, {"k8s_cluster_installation_param__master_node__ssh_cp_name": "ssh"}), hot=False)


def test_ssh_over_a_floating_ip_needs_the_nic_named(check: Checker) -> None:
    found = check(body(master_node__ssh_cp_name="masterNode_fip"))
    assert found.parameters.master_node.cluster_port == "masterNode_CP1"
    with pytest.raises(InvalidInput, match="nic_cp_name: missing"):
        check(body(master_node__ssh_cp_name="masterNode_fip", master_node__nic_cp_name=ABSENT))


def test_several_masters_have_their_endpoint_in_the_top_template(check: Checker) -> None:
    found = check(body(master_node__cluster_cp_name="vip_CP"), flavour="complex")
    assert (found.masters, found.parameters.master_node.cluster_cp_name) == (3, "vip_CP")
    with pytest.raises(Unprocessable, match="cluster_cp_name: the top template has no resource masterNode_CP1"):
        check(body(), flavour="complex")
    with pytest.raises(InvalidInput, match="cluster_fip_name: missing"):
        check(body(master_node__ssh_cp_name="masterNode_fip", master_node__cluster_cp_name="vip_CP"), flavour="complex")


def test_the_ports_of_several_masters_must_allow_the_virtual_address(check: Checker) -> None:
    asked, hot = body(master_node__cluster_cp_name="vip_CP"), check.hots["complex"]
    master = hot.nested["nested_master.yaml"]
    for change, is_refused in ({"allowed_address_pairs": []}, True), ({"port_security_enabled": False}, False):
        port: dict[str, Any] = {"type": "OS::Neutron::Port", "properties": change}
        template = {**master.body, "resources": {**master.body["resources"], "masterNode_CP1": port}}
        nested = {**hot.nested, "nested_master.yaml": master.model_copy(update={"body": template})}
        check.hots = {"complex": hot.model_copy(update={"nested": nested})}
        if is_refused:
            with pytest.raises(
                Unprocessable, match=r"nic_cp_name: masterNode_CP1 of .*: allowed_address_pairs .* vip_CP"
            ):
                check(asked, flavour="complex")
        else:
            assert check(asked, flavour="complex").masters == 3


def test_an_even_number_of_masters_is_refused(check: Checker) -> None:
    """etcd with four members survives the loss of one, as with three."""
    level_id, simple = "instantiation_level_2", check.vnfd.flavour("simple")
    level = simple.levels[level_id].model_copy(update={"counts": {"masterNode": 4, "workerNode": 2}})
    flavour = simple.model_copy(update={"levels": {level_id: level}})
    check.vnfd = check.vnfd.model_copy(update={"flavours": {"simple": flavour}})
    with pytest.raises(Unprocessable, match="master_node: 4 masters at this instantiation level: an odd number"):
        check(body(master_node__cluster_cp_name="vip_CP"), level=level_id)


def test_an_instantiation_level_sets_the_number_of_machines(check: Checker) -> None:
    found = check(body(master_node__cluster_cp_name="vip_CP"), level="instantiation_level_2")
    assert (found.masters, found.workers, found.max_nodes) == (3, 4, 7)


def storage(**changes: Any) -> dict[str, Any]:
    return {"storage_server": {**STORAGE_SERVER, **changes}, "pv_registration_params": VOLUMES}


def test_the_sample_with_a_storage_server_is_accepted(check: Checker) -> None:
    """SEQ-068, SEQ-072, SEQ-075: document 002's own request, without nic_cp_name; volumes may be left out."""
    found = check(body(**storage())).parameters
    assert found.storage_server is not None
    assert [one.export_dir for one in found.storage_server.nfs_server_setup_params] == [
        f"/volume/nfs/pv{number}" for number in (1, 2, 3)
    ]
    assert [one.nfs_server_cp for one in found.pv_registration_params] == ["storage_server_CP"] * 3
    check(body(**storage(nic_cp_name="storage_server_CP", ssh_cp_name="vip_CP_floating_ip")))
    assert check(body(storage_server=STORAGE_SERVER, pv_registration_params=None)).parameters.storage_server is not None
    assert check(body(private_registry_connection_info=[], pv_registration_params=[])).parameters.storage_server is None


def test_the_sample_with_two_registries_is_accepted(check: Checker) -> None:
    """SEQ-124, SEQ-125, SEQ-135, SEQ-136: document 004's own request, for the VNFD of a cluster without registries."""
    found = check(body(private_registry_connection_info=REGISTRIES)).parameters.private_registry_connection_info
    assert [(one.url, one.username) for one in found] == [
        (f"http://{REGISTRIES[0]['server']}", None),
        (f"https://{REGISTRIES[1]['server']}", REGISTRIES[1]["username"]),
    ]
    assert check(body()).parameters.private_registry_connection_info == ()


def registry(**changes: Any) -> dict[str, Any]:
    entry = {name: value for name, value in {**REGISTRIES[1], **changes}.items() if value is not ABSENT}
    return {"private_registry_connection_info": [entry]}


def volume(**changes: Any) -> dict[str, Any]:
    return storage(cinder_volume_setup_params=[{**STORAGE_SERVER["cinder_volume_setup_params"][0], **changes}])


def export(**changes: Any) -> dict[str, Any]:
    return storage(nfs_server_setup_params=[{**STORAGE_SERVER["nfs_server_setup_params"][0], **changes}])


def persistent(**changes: Any) -> dict[str, Any]:
    return {"storage_server": STORAGE_SERVER, "pv_registration_params": [{**VOLUMES[0], **changes}]}


@pytest.mark.parametrize(
    ("features", "status", "field"),
    [
        # 2.6
        (registry(connection_type=ABSENT), 400, "connection_type"),
        (registry(connection_type="2"), 400, "connection_type"),
        (registry(connection_type=True), 400, "connection_type"),
        (registry(server=ABSENT), 400, "server"),
        (registry(server="https://registry.example.com"), 400, "server"),
        (registry(server="registry.example.com/path"), 400, "server"),
        ({"private_registry_connection_info": [REGISTRIES[0], REGISTRIES[0]]}, 422, "server"),
        (registry(username=ABSENT), 400, "username"),
        (registry(password=ABSENT), 400, "password"),
        (registry(certificate_path="Files/registries/absent.crt"), 422, "certificate_path"),
        (registry(connection_type="0"), 422, "certificate_path"),
        (registry(hosts_string="192.168.0.20"), 400, "hosts_string"),
        (registry(hosts_string="registry.example.com 192.168.0.20"), 400, "hosts_string"),
        (registry(hosts_string="192.168.0.20 a\n10.0.0.1 b"), 400, "hosts_string"),
        # 2.7
        (storage(ssh_cp_name=None), 400, "ssh_cp_name"),
        (storage(ssh_cp_name="absent"), 422, "ssh_cp_name"),
        (storage(nic_cp_name="absent"), 422, "nic_cp_name"),
        (storage(username=None), 400, "username"),
        (storage(password=None), 400, "password"),
        (storage(cinder_volume_setup_params=None), 400, "cinder_volume_setup_params"),
        (storage(cinder_volume_setup_params=[]), 400, "cinder_volume_setup_params"),
        (volume(volume_resource_id=None), 400, "volume_resource_id"),
        (volume(volume_resource_id="vip_CP"), 422, "volume_resource_id"),
        (volume(volume_resource_id="loose_volume"), 422, "volume_resource_id"),
        (
            storage(
                cinder_volume_setup_params=[
                    *STORAGE_SERVER["cinder_volume_setup_params"],
                    {"volume_resource_id": "other_volume", "mount_to": "/other"},
                ]
            ),
            422,
            "volume_resource_id",
        ),
        (storage(ssh_cp_name="vip_CP"), 422, "ssh_cp_name"),
        (volume(mount_to=None), 400, "mount_to"),
        (volume(mount_to="volume"), 400, "mount_to"),
        (volume(mount_to="/"), 400, "mount_to"),
        (volume(mount_to="/etc/x"), 400, "mount_to"),
        (volume(mount_to="/volume/../etc"), 400, "mount_to"),
        (volume(mount_to="/vol;reboot"), 400, "mount_to"),
        (storage(cinder_volume_setup_params=STORAGE_SERVER["cinder_volume_setup_params"] * 2), 400, "mount_to"),
        (storage(nfs_server_setup_params=[]), 400, "nfs_server_setup_params"),
        (export(export_dir=None), 400, "export_dir"),
        (export(export_dir="nfs"), 400, "export_dir"),
        (export(export_dir="/elsewhere"), 422, "export_dir"),
        (storage(nfs_server_setup_params=STORAGE_SERVER["nfs_server_setup_params"] * 2), 400, "export_dir"),
        (export(export_to=None), 400, "export_to"),
        (export(export_to="10.0.0.0/24 (rw)"), 400, "export_to"),
        # 2.8
        (persistent(pv_manifest_file_path=None), 400, "pv_manifest_file_path"),
        (persistent(pv_manifest_file_path="Files/kubernetes/absent.yaml"), 422, "pv_manifest_file_path"),
        (persistent(nfs_server_cp=None), 400, "nfs_server_cp"),
        (persistent(nfs_server_cp="absent"), 422, "nfs_server_cp"),
    ],
)
def test_a_malformed_feature_is_refused_for_its_form_first(
    check: Checker, features: dict[str, Any], status: int, field: str
) -> None:
    """SEQ-069, SEQ-070, SEQ-071, SEQ-072, SEQ-125."""
    with pytest.raises(InvalidInput) as caught:
        check(hide(body(**features)))
    assert "not supported yet" not in caught.value.reason
    assert caught.value.status == status
    assert caught.value.field.endswith(f"/{field}")


def test_the_shipped_samples_request_fits_the_shipped_sample(tmp_path: Path) -> None:
    """SEQ-043."""
    sample = Path(__file__).parents[4] / "deploy/samples/cluster"
    pack(sample, tmp_path / "cluster.zip")
    csar = open_csar(tmp_path / "cluster.zip")
    request = json.loads((sample / "requests/instantiate.json").read_text())
    for version in ("v1", "v2"):
        found = check_cluster_parameters(
            request["additionalParams"],
            flavour=read_vnfd(csar).flavour(request["flavourId"]),
            base_hot=read_base_hot(csar, request["flavourId"]),
            file_names=csar.names(),
            api_version=version,
            has_user_data=named_user_data(request["additionalParams"], csar.names()) is not None,
            instantiation_level_id=request["instantiationLevelId"],
        )
        assert (found.masters, found.workers, found.max_nodes) == (1, 2, 11)
        assert node_mask(found.parameters.master_node.pod_cidr, nodes=found.max_nodes) == 24
