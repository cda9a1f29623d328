"""Instantiate and terminate over HTTP: what is refused before anything is created, and who wins a race."""

from __future__ import annotations

import asyncio
import copy
import operator
import re
import shutil
from collections.abc import Callable, Iterator
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from kubevnfm_csar.pack import pack
from kubevnfm_events.stacks import ChangeConnections, CreateResources
from kubevnfm_lcm_api.lifecycle.requests import unread
from kubevnfm_sol.free_containers import Container, misspelled
from packages.package_variants import changed_package, variant
from worlds.lcm_world import LINKED, SAMPLES, World, sample_request

Change = Callable[[dict[str, Any]], None]
UNKNOWN = "00000000-0000-4000-8000-000000000000"


def setting(**changes: Any) -> Change:
    def change(body: dict[str, Any]) -> None:
        body.update(changes)

    return change


def params(**changes: Any) -> Change:
    def change(body: dict[str, Any]) -> None:
        given = {name.replace("__", "-"): value for name, value in changes.items()}
        body.setdefault("additionalParams", {}).update(given)
        for name in [name for name, value in given.items() if value is None]:
            del body["additionalParams"][name]

    return change


def chart(**changes: Any) -> Change:
    """Name a file of the package as a Helm chart in the place of manifests."""
    named = {"helm_chart_path": "Files/kubernetes/service.yaml", "lcm__kubernetes__def__files": None}
    return params(**named, **changes)


def release(**changes: Any) -> dict[str, Any]:
    """Return an entry of ``using_helm_install_param`` for a file of the package, without the attributes that are None."""
    given = {
        "exthelmchart": "false",
        "helmreleasename": "web",
        "helmchartfile_path": "Files/kubernetes/service.yaml",
        **changes,
    }
    return {name: value for name, value in given.items() if value is not None}


def external(url: str, **changes: Any) -> dict[str, Any]:
    """Return the same for a chart of a repository."""
    more = {"exthelmchart": "true", "exthelmrepo_url": url, "helmchartname": "web", "helmchartfile_path": None}
    return release(**{**more, **changes})


def releases(*entries: Any, **changes: Any) -> Change:
    """Name releases as version 1 of Tacker's API does, in the place of manifests."""
    given = {"use_helm": "true", "using_helm_install_param": list(entries), "lcm__kubernetes__def__files": None}
    return params(**given, **changes)


def node(which: str, **changes: Any) -> Change:
    def change(body: dict[str, Any]) -> None:
        body["additionalParams"]["k8s_cluster_installation_param"][which].update(changes)

    return change


def vims(**entries: Any) -> Change:
    return setting(vimConnectionInfo=entries)


def login(**access: Any) -> dict[str, Any]:
    """Return a VimConnectionInfo with a log-in of its own, changed by ``access``; None leaves an attribute out."""
    given = {"username": "nfv", "password": "nfv", "project": "nfv", **access}
    return {
        "vimType": OPENSTACK,
        "interfaceInfo": {"endpoint": "https://keystone/v3"},
        "accessInfo": {name: value for name, value in given.items() if value is not None},
    }


def cluster(**interface: Any) -> dict[str, Any]:
    """Return the VimConnectionInfo of a Kubernetes API without CA (CR-007), changed by ``interface``."""
    return {
        "vimType": KUBERNETES,
        "interfaceInfo": {"endpoint": "https://127.0.0.1:6443", **interface},
        "accessInfo": {"bearer_token": "token-1"},
    }


def linked(config: dict[str, Any] | None = None, cpd_id: str = "VDU1_CP1", **link: Any) -> Change:
    """Connect the machine; ``config``: the entries of cpConfig, by id."""
    plain = {"a": ethernet()} if config is None else config
    cps = [{"cpdId": cpd_id, "cpConfig": plain}]
    return setting(extVirtualLinks=[{"id": "x", "resourceId": "net0", "extCps": cps, **link}])


def linked_twice(*, is_one_link: bool = False) -> Change:
    """Name the connection point a second time, with an entry of its own."""
    cps = [{"cpdId": "VDU1_CP1", "cpConfig": {name: ethernet()}} for name in "ab"]
    links = [cps] if is_one_link else [[cp] for cp in cps]
    return setting(
        extVirtualLinks=[{"id": f"x{n}", "resourceId": f"net{n}", "extCps": one} for n, one in enumerate(links)]
    )


def ethernet(*addresses: dict[str, Any], **members: Any) -> dict[str, Any]:
    given = {"ipAddresses": [{"type": "IPV4", **one} for one in addresses], **members}
    return {"cpProtocolData": [{"layerProtocol": "IP_OVER_ETHERNET", "ipOverEthernet": given}]}


def managed(name: str, **link: Any) -> Change:
    return setting(extManagedVirtualLinks=[{"id": "m", "vnfVirtualLinkDescId": name, "resourceId": "net1", **link}])


_AT = "extVirtualLinks[0]/extCps[0]/cpConfig"
_OF_RELEASE = "using_helm_install_param[0]"
_IN = "/cpProtocolData[0]/ipOverEthernet"
_MAC = {"macAddress": "fa:16:3e:00:00:01"}
_PORTS = [{"id": "p", "resourceHandle": {"resourceId": "port-1"}}]
OPENSTACK = "ETSINFV.OPENSTACK_KEYSTONE.V_3"
KUBERNETES = "ETSINFV.KUBERNETES.V_1"
USER_DATA = {"lcm__operation__user__data": "UserData/x.py", "lcm__operation__user__data__class": "X"}

REFUSED: list[tuple[str, Change, int, str]] = [
    ("vm", setting(flavourId="none"), 400, "flavourId"),
    ("vm", setting(flavourId=""), 400, "flavourId"),
    ("vm", setting(flavourId=None), 400, "flavourId"),
    ("vm", setting(instantiationLevelId="none"), 400, "instantiationLevelId"),
    ("vm", setting(extVirtualLinks=[{"id": "x"}]), 400, "extVirtualLinks[0]/resourceId"),
    ("vm", setting(extVirtualLinks=[{"id": "x", "resourceId": "n", "extCps": [5]}]), 400, "extVirtualLinks[0]/extCps[0]"),
    ("vm", setting(extVirtualLinks=[{"id": "x", "resourceId": "n", "extCps": [{"cpdId": "c", "cpConfig": 5}]}]), 400, "cpConfig"),
    ("vm", setting(extVirtualLinks=[{"id": "x", "resourceId": "n", "extCps": [{"cpdId": "VDU1_CP"}]}]), 400, "extVirtualLinks[0]/extCps[0]/cpdId"),
    ("vm", linked(vimConnectionId="other"), 422, "extVirtualLinks[0]/vimConnectionId"),
    ("vm", linked(extLinkPorts=[{**_PORTS[0], "trunkResourceId": "t"}]), 422, "extLinkPorts[0]/trunkResourceId"),
    ("vm", linked({"a": {"linkPortId": "q"}}, extLinkPorts=_PORTS), 422, f"{_AT}/a/linkPortId: unknown link port q: p expected"),
    ("vm", linked({"a": {"linkPortId": "p"}}, extLinkPorts=_PORTS), 422, f"{_AT}/a/linkPortId: the package's Heat template has no"),
    ("vm", linked({"a": ethernet(**_MAC)}), 422, f"{_AT}/a{_IN}/macAddress"),
    ("vm", linked({"a": ethernet(macAddress="fa:16")}), 400, f"{_AT}/a{_IN}/macAddress"),
    ("vm", linked({"a": ethernet({"fixedAddresses": ["10.10.0.5"]})}), 422, f"{_AT}/a{_IN}/ipAddresses[0]"),
    ("vm", linked({"a": ethernet({"fixedAddresses": ["10.10.0.5/24"]})}), 400, f"{_AT}/a{_IN}/ipAddresses[0]/fixedAddresses[0]"),
    ("vm", linked({"a": ethernet({"numDynamicAddresses": 2})}), 422, f"{_AT}/a{_IN}/ipAddresses[0]"),
    ("vm", linked({"a": ethernet({"numDynamicAddresses": 1, "subnetId": "s"})}), 422, f"{_AT}/a{_IN}/ipAddresses[0]"),
    ("vm", linked({"a": ethernet({"addressRange": {"minAddress": "10.10.0.5", "maxAddress": "10.10.0.9"}})}), 422, f"{_AT}/a{_IN}/ipAddresses[0]"),
    ("vm", linked({"a": ethernet(segmentationId="7")}), 422, f"{_AT}/a{_IN}/segmentationId"),
    ("vm", linked({"a": {"cpProtocolData": [{"layerProtocol": "IP_FOR_VIRTUAL_CP"}]}}), 400, f"{_AT}/a/cpProtocolData[0]/layerProtocol"),
    ("vm", linked({"a": {**ethernet(), "parentCpConfigId": "b"}}), 422, f"{_AT}/a/parentCpConfigId"),
    ("vm", linked({"a": {**ethernet(), "createExtLinkPort": False}}), 422, f"{_AT}/a/createExtLinkPort"),
    ("vm", linked({"a": {"netAttDefResourceId": "n"}}), 422, f"{_AT}/a/netAttDefResourceId"),
    ("vm", linked({name: ethernet() for name in "abcd"}), 422, f"{_AT}: up to 3 entries expected"),
    ("vm", linked({"a": ethernet(**_MAC)}), 422, "has no parameter [nfv, CP, VDU1_CP1, mac_address]"),
    ("vm", linked({"a": ethernet({"fixedAddresses": ["10.10.0.5", "10.10.0.5"]})}), 422, f"{_AT}/a{_IN}/ipAddresses: 10.10.0.5 is at"),
    ("vm", linked_twice(), 422, "extVirtualLinks[1]/extCps[0]/cpdId: VDU1_CP1 is at extVirtualLinks[0]/extCps[0] already"),
    ("vm", linked_twice(is_one_link=True), 422, "extVirtualLinks[0]/extCps[1]/cpdId: VDU1_CP1 is at extVirtualLinks[0]/extCps[0] already"),
    ("vm", managed("nosuch"), 422, "extManagedVirtualLinks[0]/vnfVirtualLinkDescId: nosuch: the VNF has no virtual link of its own"),
    ("vm", managed("nosuch", vimConnectionId="other"), 422, "extManagedVirtualLinks[0]/vimConnectionId"),
    ("vm", linked(vimConectionId="v"), 400, "extVirtualLinks[0]/vimConectionId: no such attribute: did you mean vimConnectionId?"),
    ("vm", linked({"a": {**ethernet(), "linkPort": "p"}}), 400, f"{_AT}/a/linkPort: no such attribute: did you mean linkPortId?"),
    ("vm", linked({"a": ethernet({"addresses": ["10.10.0.5"]})}), 400, f"{_AT}/a{_IN}/ipAddresses[0]/addresses"),
    ("vm", setting(extVirtualLinks=[]), 422, "extVirtualLinks: a virtual link for connection point VDU1_CP1 expected"),
    ("vm", setting(additionalParams=[]), 400, "additionalParams"),
    ("vm", params(tf_dir_path="Files/terraform"), 422, "additionalParams/tf_dir_path: Terraform configurations are not deployed"),
    ("vm", setting(extensions={"x": 1}), 422, "extensions/x"),
    ("cnf", setting(vnfConfigurableProperties={"x": 1}), 422, "vnfConfigurableProperties/x"),
    ("vm", vims(a=5), 400, "vimConnectionInfo/a"),
    ("vm", vims(a={}), 400, "vimConnectionInfo/a/vimType"),
    ("vm", vims(a={"vimType": 5}), 400, "vimConnectionInfo/a/vimType"),
    ("vm", vims(a={"vimType": "vmware", "vimId": "vim-1"}), 422, "vimConnectionInfo/a/vimType"),
    ("vm", vims(a={"vimType": "ETSINFV.TERRAFORM.V_1", "vimId": "vim-1"}), 422, "vimConnectionInfo/a/vimType"),
    ("vm", vims(a={"vimType": OPENSTACK}), 422, "vimConnectionInfo/a"),
    ("vm", vims(a={"vimType": OPENSTACK, "vimId": UNKNOWN}), 422, "vimConnectionInfo/a/vimId"),
    ("vm", vims(a={"vimType": OPENSTACK, "vimId": "k8s"}), 422, "vimConnectionInfo/a/vimType"),
    ("vm", vims(a={"vimType": OPENSTACK, "accessInfo": {"username": "u"}}), 400, "interfaceInfo/endpoint"),
    ("vm", setting(vimConnectionInfo=[{"id": "a"}]), 400, "vimConnectionInfo"),
    ("vm", vims(a=login(password=None)), 400, "vimConnectionInfo/a/accessInfo/password"),
    ("vm", vims(a=login(project=None)), 400, "vimConnectionInfo/a/accessInfo/project"),
    ("vm", vims(a=login(applicationCredentialId="c")), 400, "accessInfo/password"),
    ("vm", vims(a=login(colour="blue")), 400, "vimConnectionInfo/a/accessInfo/colour"),
    ("vm", vims(a=login(username={"a": 1})), 400, "vimConnectionInfo/a/accessInfo/username"),
    ("vm", vims(a={**login(), "interfaceInfo": {"endpoint": "keystone"}}), 400, "interfaceInfo/endpoint"),
    ("vm", vims(a={**login(), "interfaceInfo": {"endpiont": "https://k"}}), 400, "interfaceInfo/endpiont"),
    ("vm", vims(a={**login(), "interfaceInfo": {"endpoint": "https://k", "trustedCertificates": "x"}}), 400, "PEM"),
    ("vm", vims(a={**login(), "extra": {"interface": "private"}}), 400, "extra/interface"),
    ("vm", vims(a={"vimType": OPENSTACK, "vimId": "vim-1", "accessInfo": {"username": "u"}}), 400, "endpoint"),
    ("vm", vims(a={"vimType": OPENSTACK, "vimId": "vim-1", "accessInfo": {"region": "Mars"}}), 422, "accessInfo/region"),
    ("cnf", vims(a=cluster()), 400, "vimConnectionInfo/a/interfaceInfo/ssl_ca_cert"),
    ("cnf", vims(a=cluster(ssl_ca_cert="")), 400, "interfaceInfo/ssl_ca_cert"),
    ("cnf", vims(a=cluster(ssl_ca_cert="no PEM")), 400, "interfaceInfo/ssl_ca_cert"),
    ("cnf", vims(a=cluster(skipTlsVerify=False)), 400, "interfaceInfo/ssl_ca_cert"),
    ("vm", params(lcm__operation__user__data="UserData/x.py"), 400, "lcm-operation-user-data-class"),
    ("vm", params(lcm__operation__user__data__class="X"), 400, "lcm-operation-user-data"),
    ("vm", params(**{**USER_DATA, "lcm__operation__user__data": "../x.py"}), 400, "lcm-operation-user-data"),
    ("vm", params(**{**USER_DATA, "lcm__operation__user__data": "/etc/x.py"}), 400, "lcm-operation-user-data"),
    ("vm", params(**USER_DATA), 422, "UserData/x.py"),
    ("vm", params(lcm__kubernetes__def__files=["a.yaml"]), 422, "lcm-kubernetes-def-files"),
    ("cnf", params(lcm__kubernetes__def__files=None), 400, "lcm-kubernetes-def-files"),
    ("cnf", params(lcm__kubernetes__def__files=[]), 400, "lcm-kubernetes-def-files"),
    ("cnf", params(lcm__kubernetes__def__files=["Files/none.yaml"]), 400, "Files/none.yaml"),
    ("cnf", params(lcm__kubernetes__def__files=[5]), 400, "lcm-kubernetes-def-files[0]"),
    ("cnf", params(use_helm="yes", lcm__kubernetes__def__files=None), 400, "additionalParams/use_helm"),
    ("cnf", params(use_helm="true", lcm__kubernetes__def__files=None), 400, "additionalParams/using_helm_install_param"),
    ("cnf", params(use_helm=True), 400, "additionalParams/lcm-kubernetes-def-files: not expected beside use_helm"),
    ("cnf", params(using_helm_install_param=[{"exthelmchart": "false"}]), 422, "using_helm_install_param: goes with use_helm"),
    ("cnf", params(helm_replica_values={"a": "b"}), 422, "helm_replica_values: goes with use_helm"),
    ("cnf", releases(), 400, "using_helm_install_param: a list of 1 to 50 objects expected"),
    ("cnf", releases(5), 400, f"{_OF_RELEASE}: an object expected"),
    ("cnf", releases({}), 400, f"{_OF_RELEASE}/helmreleasename"),
    ("cnf", releases(release(helmreleasename="Web")), 400, f"{_OF_RELEASE}/helmreleasename"),
    ("cnf", releases(release(), release()), 400, "using_helm_install_param[1]/helmreleasename: web is there already"),
    ("cnf", releases(release(exthelmchart="maybe")), 400, f"{_OF_RELEASE}/exthelmchart"),
    ("cnf", releases(release(helmchartfilepath="x")), 400, "helmchartfilepath: did you mean helmchartfile_path?"),
    ("cnf", releases(release(helmchartfile_path=None)), 400, f"{_OF_RELEASE}/helmchartfile_path"),
    ("cnf", releases(release(helmchartfile_path="Files/none.tgz")), 400, f"{_OF_RELEASE}/helmchartfile_path: the package has no archive"),
    ("cnf", releases(release(helmparameter="a=1")), 400, f"{_OF_RELEASE}/helmparameter: a list of texts"),
    ("cnf", releases(release(helmparameter=["a"])), 400, f"{_OF_RELEASE}/helmparameter[0]: key=value expected"),
    ("cnf", releases(release(helmparameter=["a[0]=1"])), 400, f"{_OF_RELEASE}/helmparameter/a[0]"),
    ("cnf", releases(release(exthelmchart="true")), 400, f"{_OF_RELEASE}/helmchartfile_path: not expected with exthelmchart: true"),
    ("cnf", releases(release(helmchartversion="1.0.0")), 400, f"{_OF_RELEASE}/helmchartversion: not expected with exthelmchart: false"),
    ("cnf", releases(release(exthelmchart="true", helmchartfile_path=None)), 400, f"{_OF_RELEASE}/exthelmrepo_url"),
    ("cnf", releases(external("https://charts.example.org/a?b=c")), 422, "without credentials, query and fragment"),
    ("cnf", releases(external("https://u:p@charts.example.org")), 400, f"{_OF_RELEASE}/exthelmrepo_url: the http(s) address of the repository, without credentials"),
    ("cnf", releases(external("ftp://charts.example.org")), 422, f"{_OF_RELEASE}/exthelmrepo_url"),
    ("cnf", releases(external("http://127.0.0.1:1/charts")), 422, "exthelmrepo_url: http://127.0.0.1:1/charts/index.yaml: its address is in a network"),
    ("cnf", releases(external("http://127.0.0.1:1", helmchartname=None)), 400, f"{_OF_RELEASE}/helmchartname"),
    ("cnf", releases(release(), helm_replica_values={"none": "replicas"}), 400, "helm_replica_values/none: an aspect of the flavour"),
    ("cnf", releases(release(), helm_replica_values={"web_aspect": 5}), 400, "helm_replica_values/web_aspect"),
    ("cnf", releases(release(), helm_replica_values=[]), 400, "additionalParams/helm_replica_values"),
    ("cnf", releases(release(helmreleasename="one"), release(helmreleasename="two"), helm_replica_values={"web_aspect": "replicas"}), 400, "belongs to none of the releases one, two: name its helmreleasename"),
    ("cnf", releases(release(), vdu_mapping={"VDU1": {"kind": "Deployment", "name": "web", "helmreleasename": "other"}}), 400, "vdu_mapping/VDU1/helmreleasename: one of the releases web expected"),
    ("cnf", releases(release(), helm_pinned_charts={}), 400, "additionalParams/helm_pinned_charts"),
    ("cnf", releases(release(), helm_chart_path="Files/kubernetes/deployment.yaml"), 400, "additionalParams/helm_chart_path: not expected beside use_helm"),
    ("cnf", params(helm_chart_path="Files/kubernetes/web.tgz", lcm__kubernetes__def__files=None), 400, "no archive Files/kubernetes/web.tgz"),
    ("cnf", params(helm_chart_path=7, lcm__kubernetes__def__files=None), 400, "additionalParams/helm_chart_path"),
    ("cnf", params(helm_chart_path="Files/kubernetes/service.yaml"), 400, "additionalParams/lcm-kubernetes-def-files"),
    ("cnf", params(helm_parameters={"a": 1}), 400, "additionalParams/helm_parameters"),
    ("cnf", chart(helm_parameters="a=1"), 400, "additionalParams/helm_parameters"),
    ("cnf", chart(helm_parameters={"a..b": 1}), 400, "additionalParams/helm_parameters/a..b"),
    ("cnf", chart(helm_parameters={"a." * 200 + "a": 1}), 400, "a key of at most 20 parts expected"),
    ("cnf", chart(helm_parameters={"a[0]": 1}), 400, "additionalParams/helm_parameters/a[0]"),
    ("cnf", chart(helm_parameters={"a": 1, "a.b": 1}), 400, "additionalParams/helm_parameters/a.b"),
    ("cnf", chart(helm_parameters={"replicas": 1}, helm_value_names={"VDU1": {"replica": "replicas"}}), 400, "given twice"),
    ("cnf", chart(helm_value_names={"VDU9": {"replica": "replicas"}}), 400, "additionalParams/helm_value_names/VDU9"),
    ("cnf", chart(helm_value_names={"VDU1": {"count": "replicas"}}), 400, "additionalParams/helm_value_names/VDU1"),
    ("cnf", vims(a={"vimType": "ETSINFV.HELM.V_3", "vimId": "k8"}), 422, "vimConnectionInfo/a/vimId"),
    ("cnf", params(namespace=5), 400, "additionalParams/namespace"),
    ("cnf", params(vdu_mapping=["VDU1"]), 400, "additionalParams/vdu_mapping"),
    ("cnf", params(vdu_mapping={"VDU9": {}}), 400, "additionalParams/vdu_mapping/VDU9"),
    ("cnf", params(vdu_mapping={"VDU1": "web"}), 400, "additionalParams/vdu_mapping/VDU1"),
    ("cnf", params(vdu_mapping={"VDU1": {"kind": "Job", "name": "web"}}), 400, "additionalParams/vdu_mapping/VDU1/kind"),
    ("cnf", params(vdu_mapping={"VDU1": {"kind": "Pod"}}), 400, "additionalParams/vdu_mapping/VDU1/name"),
    ("cnf", params(vdu_mapping={"VDU1": {"kind": "Pod", "name": "web", "helmreleasename": "r"}}), 400, "vdu_mapping/VDU1/helmreleasename"),
    ("cnf", params(wait_timeout=-1), 400, "additionalParams/wait_timeout"),
    ("cnf", params(wait_timeout=True), 400, "additionalParams/wait_timeout"),
    ("cnf", params(wait_timeout=86_401), 400, "seconds above 0, at most 86400, expected"),
    ("cnf", params(adopt="yes"), 400, "additionalParams/adopt"),
    ("cluster", params(k8s_cluster_installation_param=None), 400, "k8s_cluster_installation_param"),
    ("cluster", node("master_node", ssh_cp_name="none"), 422, "ssh_cp_name"),
    ("cluster", node("master_node", pod_cidr="10.96.0.0/16"), 422, "cidr"),
    ("cluster", node("worker_node", username=None), 400, "username"),
    ("cluster", params(lcm__operation__user__data__class="no class"), 400, "lcm-operation-user-data-class"),
    ("cluster", params(lcm__operation__user__data__class="Cluster"), 422, "lcm-operation-user-data-class"),
]  # fmt: skip


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stocked(shared_world: World) -> World:
    """Return lcm-api with a Kubernetes VIM and the samples that `REFUSED` names."""
    shared_world.vims.add("k8s", "kubernetes")
    for sample in sorted({case[0] for case in REFUSED}):
        await shared_world.sample(sample)
    return shared_world


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(("sample", "change", "status", "field"), REFUSED)
async def test_a_request_that_cannot_work_is_refused_by_the_name_of_its_attribute(
    stocked: World, sample: str, change: Change, status: int, field: str
) -> None:
    """CR-007 among others."""
    world = stocked
    instance_id = await world.create(sample)
    body = copy.deepcopy(sample_request(sample, "instantiate"))
    if sample == "cnf":
        body["vimConnectionInfo"]["cluster"]["vimId"] = "k8s"
    change(body)
    answer = await world.lcm("POST", f"/vnf_instances/{instance_id}/instantiate", body)
    assert answer.status in {400, 422}, answer.raw
    problem = answer.problem(answer.status)
    assert field in problem["detail"]
    assert answer.status == status, problem
    assert world.twins.commands == []
    assert (await world.lcm("GET", "/vnf_lcm_op_occs")).json == []
    assert (await world.lcm("GET", f"/vnf_instances/{instance_id}")).json["instantiationState"] == "NOT_INSTANTIATED"


async def test_masters_that_cannot_share_an_address_are_refused_before_anything_is_made(
    world: World, tmp_path: Path
) -> None:
    source = Path(shutil.copytree(SAMPLES / "cluster", tmp_path / "ha"))
    hot = source / "BaseHOT/complex/nested/master.hot.yaml"
    hot.write_text(hot.read_text().replace("allowed_address_pairs", "value_specs"))
    pack(source, tmp_path / "ha.zip")
    assert (await world.upload((tmp_path / "ha.zip").read_bytes()))["onboardingState"] == "ONBOARDED"
    body = {**copy.deepcopy(sample_request("cluster", "instantiate")), "flavourId": "complex"}
    node("master_node", cluster_cp_name="vip_CP")(body)
    answer = await world.lcm("POST", f"/vnf_instances/{await world.create('cluster')}/instantiate", body)
    assert (
        "masterNode_CP1 of BaseHOT/complex/nested/master.hot.yaml: allowed_address_pairs"
        in answer.problem(422)["detail"]
    )
    assert world.twins.commands == []


def without_base_hot(tmp_path: Path) -> Path:
    """Return the folder of the sample of a machine, described by its VNFD only, with a user data class."""
    source = Path(shutil.copytree(SAMPLES / "vm", tmp_path / "tosca", ignore=shutil.ignore_patterns("BaseHOT")))
    (source / "UserData").mkdir()
    (source / "UserData/x.py").write_text("class X: ...\n")
    return source


async def test_without_base_hot_links_are_needed_and_user_data_cannot_run(world: World, tmp_path: Path) -> None:
    """Both are known from request and package: the first step, which makes the template, must not be what finds it."""
    pack(without_base_hot(tmp_path), tmp_path / "tosca.zip")
    assert (await world.upload((tmp_path / "tosca.zip").read_bytes()))["onboardingState"] == "ONBOARDED"
    instance_id, body = await world.create(), sample_request("vm", "instantiate")
    path = f"/vnf_instances/{instance_id}/instantiate"
    with_link, unlinked = copy.deepcopy(body), {**body, "extVirtualLinks": []}
    assert "VDU1_CP1" in (await world.lcm("POST", path, unlinked)).problem(422)["detail"]
    params(**USER_DATA)(with_link)
    assert "Base HOT" in (await world.lcm("POST", path, with_link)).problem(422)["detail"]
    # Without a template all that a port can have is done; one machine cannot have what another one has.
    place = "extVirtualLinks[0]/extCps[0]/cpConfig/b"
    for config in ({"linkPortId": "p"}, ethernet(**_MAC), ethernet({"fixedAddresses": ["10.10.0.5"]})):
        linked({"a": config, "b": config}, extLinkPorts=_PORTS)(unlinked)
        problem = (await world.lcm("POST", path, unlinked)).problem(422)
        assert place in problem["detail"]
        assert "already" in problem["detail"]
    assert world.twins.commands == []
    linked({"a": {"linkPortId": "p"}, "b": ethernet({"numDynamicAddresses": 2}, **_MAC)}, extLinkPorts=_PORTS)(body)
    accepted = (await world.lcm("POST", path, body)).must(202)
    await world.reached(accepted.headers["Location"].rpartition("/")[2], "COMPLETED")


async def test_numbers_that_the_package_does_not_allow_are_refused_at_the_request(world: World) -> None:
    """Heat refuses a size beyond a group's max_size when the stack is made; the VDU's own limit it does not know."""
    name = "Definitions/vm.vnfd.yaml"
    text = (SAMPLES / "vm" / name).read_text()
    more = text.replace("number_of_instances: 3\n        targets", "number_of_instances: 30\n        targets")
    assert more.count("30") == 1
    beyond_profile = await world.upload(changed_package(world.folder, "vm", {name: more}))
    beyond_group = await world.upload(
        changed_package(
            world.folder,
            "vm",
            {
                name: more.replace("max_number_of_instances: 3", "max_number_of_instances: 90").replace(
                    beyond_profile["vnfdId"], UNKNOWN
                )
            },
        )
    )
    body = sample_request("vm", "instantiate")
    for package, reason in (
        (beyond_profile, "30 machines of VDU1, whose max_number_of_instances is 3"),
        (beyond_group, "30 machines of VDU1: group VDU1_group of the Base HOT has min_size 1, max_size 3"),
    ):
        instance_id = await world.create(vnfdId=package["vnfdId"])
        path = f"/vnf_instances/{instance_id}"
        refused = (await world.lcm("POST", f"{path}/instantiate", {**body, "instantiationLevelId": "three"})).problem(
            422
        )
        assert refused["detail"] == f"instantiationLevelId: {reason}"
        await world.reached(await world.instantiate(instance_id), "COMPLETED")
        refused = (await world.lcm("POST", f"{path}/scale_to_level", {"instantiationLevelId": "three"})).problem(422)
        assert refused["detail"] == f"instantiationLevelId: {reason}"


async def test_user_data_that_cannot_be_loaded_are_refused_at_the_request(world: World) -> None:
    """The imports of user data are known before a stack is made: the standard library, YAML, Tacker's helpers, modules of the package."""
    good = "import yaml\nimport beside\nfrom tacker.vnfm.lcm_user_data import utils\nclass X: ...\n"
    files = {"UserData/beside.py": "", "UserData/x.py": "import paramiko\nclass X: ...\n", "UserData/y.py": good}
    base = "from tacker.sol_refactored.infra_drivers.openstack import userdata_utils"
    files["UserData/v2.py"] = f"{base}, heat_utils\nclass X(userdata_utils.AbstractUserData): ...\n"
    await world.upload(variant(world.folder, "vm", files=files | {"UserData/z.py": "class X:\n"}))
    path, body = f"/vnf_instances/{await world.create()}/instantiate", sample_request("vm", "instantiate")
    for name, reason in (
        ("x", "it imports paramiko, which user data of packages do not have"),
        ("v2", "it imports tacker.sol_refactored.infra_drivers.openstack.heat_utils, which user data"),
        ("z", "IndentationError"),
    ):
        params(**{**USER_DATA, "lcm__operation__user__data": f"UserData/{name}.py"})(body)
        detail = (await world.lcm("POST", path, body)).problem(422)["detail"]
        assert f"UserData/{name}.py cannot be run: " in detail
        assert reason in detail
    assert world.twins.commands == []
    params(**{**USER_DATA, "lcm__operation__user__data": "UserData/y.py"})(body)
    (await world.lcm("POST", path, body)).must(202)


async def test_what_nothing_reads_in_a_free_container_is_a_warning_of_the_operation(world: World) -> None:
    """SOL003 4.4.1.7 lets them have any names. Code of a package may read each, so then there is no warning."""
    place, why = "additionalParams/", "not used, since neither kubevnfm nor the package reads an attribute of this name"
    hot = (
        (SAMPLES / "vm/BaseHOT/simple/vm_hot.yaml")
        .read_text()
        .replace(
            "parameters:\n", "parameters:\n  depth: {type: string, default: a, constraints: [{length: {max: 3}}]}\n", 1
        )
    )
    await world.upload(
        variant(world.folder, "vm", files={"BaseHOT/simple/vm_hot.yaml": hot, "UserData/x.py": "class X: ...\n"})
    )
    body, given = sample_request("vm", "instantiate"), {"depth": "b", "detph": "c", "nfv": {}, "qqqqqq": 1}

    async def warnings(task: str, instance_id: str, body: dict[str, Any]) -> object:
        accepted = (await world.lcm("POST", f"/vnf_instances/{instance_id}/{task}", body)).must(202)
        operation_id = accepted.headers["Location"].rpartition("/")[2]
        await world.reached(operation_id, "COMPLETED")
        shown = (await world.call("GET", f"/kubevnfm/v1/operations/{operation_id}")).must(200).json
        found = shown.get("warnings")
        texts = None if found is None else [each["text"] for each in found]
        assert (await world.operation(operation_id)).get("warnings") == texts
        for each in found or ():
            assert reduce(operator.getitem, each["field"].split("/")[1:], body) is not None
            assert each.get("nearest") == (each["text"].partition("the nearest is ")[2] or None)
        return texts

    expected = [f"{place}detph: {why}; the nearest is depth", f"{place}qqqqqq: {why}"]
    vims(a={"vimType": OPENSTACK, "vimId": "vim-1", "extra": {"area": "a", "regions": "b", "kubevnfm_site": "s"}})(body)
    extra = "not used, since kubevnfm reads no attribute of this name"
    instance_id = await world.create()
    wrong = {**body, "additionalParams": {"depth": "long", "nfv": {}}}
    refused = (await world.lcm("POST", f"/vnf_instances/{instance_id}/instantiate", wrong)).problem(400)
    assert [each["name"] for each in refused["invalidParams"]] == ["additionalParams/depth"]
    assert await warnings("instantiate", instance_id, {**body, "additionalParams": given}) == [
        *expected,
        f"vimConnectionInfo/a/extra/area: {extra}",
        f"vimConnectionInfo/a/extra/regions: {extra}; the nearest is region",
        f"vimConnectionInfo/a/extra/kubevnfm_site: {extra}",
    ]
    of_others = [
        f"{place}namespace: not used, since kubevnfm reads it for VNFs on Kubernetes alone",
        f"{place}is_reverse: not used, since kubevnfm reads it for scale and scale_to_level alone",
    ]
    others = {"namespace": "default", "is_reverse": "True"}
    heal = {"additionalParams": {**given, "all": False, **others}}
    assert await warnings("heal", instance_id, heal) == [*reversed(of_others), *expected]
    await world.upload(variant(world.folder, "vm", vnfd_id=UNKNOWN, files={"BaseHOT/simple/vm_hot.yaml": hot}))
    for depth, status in (("long", 400), ("abc", 200)):
        change = {"vnfdId": UNKNOWN, "additionalParams": {"depth": depth}}
        path = f"/vnf_instances/{instance_id}/change_vnfpkg"
        answer = await world.lcm("POST", path, change, params={"dry_run": "true"})
        assert (answer.status, "additionalParams/depth" in str(answer.json)) == (status, status == 400)
    assert (
        await warnings(
            "scale",
            instance_id,
            {"type": "SCALE_OUT", "aspectId": "VDU1_scale", "additionalParams": {"is_auto": "False"}},
        )
        is None
    )
    assert (
        await warnings("terminate", instance_id, {"terminationType": "FORCEFUL", "additionalParams": given}) == expected
    )
    params(**USER_DATA, **given)(body)
    assert await warnings("instantiate", await world.create(), body) is None
    # An attribute outside of free containers never reaches that code.
    body["vimConnectionInfo"]["a"]["vimid"] = "vim-1"
    entry = "vimConnectionInfo/a/vimid: not used, since SOL003 has no attribute of this name; the nearest is vimId"
    assert await warnings("instantiate", await world.create(), body) == [entry]


def test_the_names_that_are_read_are_known() -> None:
    """Each that an error names, or that a module reads as a flag."""
    folder = Path(unread.__file__).parents[1]
    texts = [path.read_text() for path in folder.rglob("*.py")]
    pattern = (
        r'additionalParams[/.]([a-zA-Z][\w-]+)|flag\([\w.]+, "([\w-]+)"|(?:parameters|_params)(?:\.get\(|\[)"([\w-]+)"'
    )
    named = {name for text in texts for found in re.findall(pattern, text) for name in found if name}
    assert len(named) > 12
    assert named - {"additionalParams", "instantiationLevelId"} <= unread.OWN, "those two are read of whole requests"


def test_warnings_of_a_request_are_bounded() -> None:
    """They are stored with the operation, however many VIMs a request has."""
    vims = {"vimConnectionInfo": {str(number): {"qqqqqq": 1} for number in range(5000)}}
    assert len(unread.unread_of_vims({}, vims)) == 100


def test_the_names_of_a_request_that_are_compared_are_bounded() -> None:
    """A comparison takes up to 50 ms, and a request may have thousands of objects of thousands of names."""
    taken: list[int] = []

    def containers() -> Iterator[Container]:
        for number in range(1000):
            taken.append(number)
            yield Container(["a", number], [f"{number}{name}" for name in range(50)], ["replicas"])

    assert misspelled(containers(), "nothing reads an attribute") == []
    assert taken == [0, 1, 2, 3]
    many = (Container(["a", number], ["replcas"], ["replicas"]) for number in range(1000))
    assert [each.field for each in misspelled(many, "x")] == [f"/a/{number}/replcas" for number in range(20)]


async def test_without_any_vim_there_must_be_a_default_one(world: World) -> None:
    await world.sample()
    instance_id = await world.create()
    world.vims.records["vim-1"]["is_default"] = False
    body = sample_request("vm", "instantiate")
    problem = (await world.lcm("POST", f"/vnf_instances/{instance_id}/instantiate", body)).problem(422)
    assert problem["type"] == "no-vim"
    world.vims.records["vim-1"]["is_default"] = True
    (await world.lcm("POST", f"/vnf_instances/{instance_id}/instantiate", body)).must(202)


async def test_v1_takes_its_own_form_of_the_same_request(world: World) -> None:
    """API-023, API-151: lists where v2 has maps, VIM types by their short names."""
    await world.sample()
    v2_id, v1_id = await world.create(), await world.create()
    plain = {"cpProtocolData": [{"layerProtocol": "IP_OVER_ETHERNET"}]}
    v2_link = {
        "id": "ext",
        "resourceId": "net0",
        "extCps": [{"cpdId": "VDU1_CP1", "cpConfig": {"c": plain}}],
    }
    v1_link = {
        "id": "ext",
        "resourceId": "net0",
        "extCps": [{"cpdId": "VDU1_CP1", "cpConfig": [{"cpInstanceId": "c", **plain}]}],
    }
    vim = {"vimId": "vim-1", "vimType": OPENSTACK}
    (
        await world.lcm(
            "POST",
            f"/vnf_instances/{v2_id}/instantiate",
            {"flavourId": "simple", "extVirtualLinks": [v2_link], "vimConnectionInfo": {"v": vim}},
        )
    ).must(202)
    accepted = (
        await world.v1(
            "POST",
            f"/vnf_instances/{v1_id}/instantiate",
            {
                "flavourId": "simple",
                "extVirtualLinks": [v1_link],
                "vimConnectionInfo": [{"id": "v", **vim, "vimType": "openstack"}],
            },
        )
    ).must(202)
    assert accepted.headers["Location"].startswith(f"{world.url}/vnflcm/v1/vnf_lcm_op_occs/")
    first = await world.twins.has_asked(2)
    by_instance = {command.subject: command.data for command in first}
    one, other = by_instance[v1_id], by_instance[v2_id]
    assert isinstance(one, CreateResources)
    assert isinstance(other, CreateResources)
    assert one.vim == other.vim
    await world.until(lambda: [c.state for c in world.changes].count("COMPLETED") == 2)
    infos = [(await world.lcm("GET", f"/vnf_instances/{i}")).json for i in (v1_id, v2_id)]
    assert infos[0]["vimConnectionInfo"] == infos[1]["vimConnectionInfo"]
    links = [info["instantiatedVnfInfo"]["extVirtualLinkInfo"] for info in infos]
    assert links[0] == links[1]


@pytest.mark.parametrize(
    "listed", [{"a": {}}, ["x"], [{"id": 5, "vimType": "openstack"}], [{"id": "a", "vimType": "openstack"}] * 2]
)
async def test_v1_refuses_a_vim_list_that_is_none(world: World, listed: Any) -> None:
    body = {"flavourId": "simple", "vimConnectionInfo": listed}
    problem = (await world.v1("POST", f"/vnf_instances/{UNKNOWN}/instantiate", body)).problem(400)
    assert "vimConnectionInfo" in problem["detail"]


async def test_of_two_instantiates_at_once_one_is_accepted_and_the_other_names_it(world: World) -> None:
    await world.sample()
    world.twins.waiting.add("infra.openstack.create_resources")
    instance_id = await world.create()
    path, body = f"/vnf_instances/{instance_id}/instantiate", sample_request("vm", "instantiate")
    answers = await asyncio.gather(*(world.lcm("POST", path, body) for _ in range(5)))
    (accepted,) = [answer for answer in answers if answer.status == 202]
    operation_id = accepted.headers["Location"].rpartition("/")[2]
    for answer in answers:
        if answer is not accepted:
            assert operation_id in answer.problem(409)["detail"]
    await world.twins.has_asked(1)
    await world.twins.release()
    await world.reached(operation_id, "COMPLETED")
    assert world.twins.asked() == ["infra.openstack.create_resources"]


async def test_a_malformed_body_is_rejected_even_while_the_instance_is_busy(world: World) -> None:
    await world.sample()
    operation_id = await world.an_operation_in("PROCESSING")
    instance_id = (await world.operation(operation_id))["vnfInstanceId"]
    (await world.lcm("POST", f"/vnf_instances/{instance_id}/instantiate", {"flavourId": 5})).problem(400)
    (await world.lcm("POST", f"/vnf_instances/{instance_id}/instantiate", {"flavourId": "simple"})).problem(409)
    await world.twins.release()


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400),
        ({"terminationType": "SOON"}, 400),
        ({"terminationType": "GRACEFUL", "gracefulTerminationTimeout": -1}, 400),
        ({"terminationType": "GRACEFUL", "gracefulTerminationTimeout": "soon"}, 400),
        ({"terminationType": "FORCEFUL", "gracefulTerminationTimeout": 5}, 202),
        ({"terminationType": "GRACEFUL", "gracefulTerminationTimeout": 0}, 202),
        ({"terminationType": "GRACEFUL"}, 202),
    ],
)
async def test_terminate_says_how(world: World, body: dict[str, Any], status: int) -> None:
    await world.sample()
    operation_id = await world.an_operation_in("COMPLETED")
    instance_id = (await world.operation(operation_id))["vnfInstanceId"]
    answer = (await world.lcm("POST", f"/vnf_instances/{instance_id}/terminate", body)).must(status)
    if status == 202:
        await world.reached(answer.headers["Location"].rpartition("/")[2], "COMPLETED")
        (command,) = [
            c.data for c in world.twins.commands if c.data.routing_key() == "infra.openstack.delete_resources"
        ]
        waits = body.get("gracefulTerminationTimeout", 10) if body["terminationType"] == "GRACEFUL" else 0
        assert command.graceful_wait_s == waits  # type: ignore[attr-defined]
        shown = (await world.lcm("GET", f"/vnf_instances/{instance_id}")).json
        assert shown["instantiationState"] == "NOT_INSTANTIATED"
        assert "vimConnectionInfo" not in shown


async def test_parameters_of_scripts_under_the_name_of_a_cluster_do_not_hold_up_a_termination(world: World) -> None:
    await world.sample()
    operation_id = await world.an_operation_in("COMPLETED")
    instance_id = (await world.operation(operation_id))["vnfInstanceId"]
    own = {"k8s_cluster_installation_param": {"script_path": 7}}
    ended = await world.ask(instance_id, "terminate", {"terminationType": "FORCEFUL", "additionalParams": own})
    await world.reached(ended, "COMPLETED")


async def test_terminate_needs_an_instantiated_instance(world: World) -> None:
    await world.sample()
    body = {"terminationType": "FORCEFUL"}
    instance_id = await world.create()
    (await world.lcm("POST", f"/vnf_instances/{instance_id}/terminate", body)).problem(409)
    (await world.lcm("POST", f"/vnf_instances/{UNKNOWN}/terminate", body)).problem(404)
    operation_id = await world.an_operation_in("FAILED_TEMP")
    busy = (await world.operation(operation_id))["vnfInstanceId"]
    assert operation_id in (await world.lcm("POST", f"/vnf_instances/{busy}/terminate", body)).problem(409)["detail"]


async def test_an_instance_is_terminated_though_its_package_is_gone(world: World) -> None:
    package = await world.sample()
    operation_id = await world.an_operation_in("COMPLETED")
    instance_id = (await world.operation(operation_id))["vnfInstanceId"]
    await world.store.delete("vnf_packages", package["id"])
    ended = await world.ask(instance_id, "terminate", {"terminationType": "FORCEFUL"})
    await world.reached(ended, "COMPLETED")


async def test_a_cluster_that_others_live_on_is_not_terminated_gracefully(world: World) -> None:
    for name in ("cluster", "cnf"):
        await world.sample(name)
    cluster_id = await world.create("cluster")
    await world.reached(await world.instantiate(cluster_id, "cluster"), "COMPLETED")
    world.vims.add("vim-2", "kubernetes")
    cnf_id = await world.create("cnf")
    where = {"cluster": {"vimId": "vim-2", "vimType": KUBERNETES}}
    await world.reached(await world.instantiate(cnf_id, "cnf", vimConnectionInfo=where), "COMPLETED")
    path = f"/vnf_instances/{cluster_id}/terminate"
    problem = (await world.lcm("POST", path, {"terminationType": "GRACEFUL", "gracefulTerminationTimeout": 0})).problem(
        409
    )
    assert cnf_id in problem["detail"]
    (await world.lcm("POST", path, {"terminationType": "FORCEFUL"})).must(202)


async def test_an_instance_of_one_version_is_served_by_the_other(world: World) -> None:
    await world.sample()
    instance_id = (await world.v1("POST", "/vnf_instances", sample_request("vm", "create"))).must(201).json["id"]
    await world.reached(await world.instantiate(instance_id), "COMPLETED")
    ended = await world.v1("POST", f"/vnf_instances/{instance_id}/terminate", {"terminationType": "FORCEFUL"})
    await world.reached(ended.must(202).headers["Location"].rpartition("/")[2], "COMPLETED")
    (await world.v1("DELETE", f"/vnf_instances/{instance_id}")).must(204)


TACKERS = {
    "id": "79a97d01-e5f3-4eaa-b2bc-8f513ecb8a56",
    "vimType": "ETSINFV.OPENSTACK_KEYSTONE.v_2",
    "vimConnectionId": "79a97d01-e5f3-4eaa-b2bc-8f513ecb8a56",
    "interfaceInfo": {"endpoint": "http://127.0.0.1/identity"},
    "accessInfo": {"username": "user", "region": "RegionTwo", "password": "hidden", "tenant": "1994d69783d64c00"},
}
"""An entry of the requests in Tacker's guides, whose access data Tacker never reads."""


def with_regions(world: World, *regions: str) -> None:
    world.vims.records["vim-1"]["placement_attr"] = {"regions": list(regions)}


async def test_an_entry_of_v1_that_names_no_vim_means_the_default_one(world: World) -> None:
    """API-031."""
    await world.sample()
    with_regions(world, "RegionOne", "RegionTwo")
    instance_id = await world.create()
    path = f"/vnf_instances/{instance_id}"
    answer = await world.v1("POST", f"{path}/instantiate", {**LINKED, "vimConnectionInfo": [TACKERS]})
    operation_id = answer.must(202).headers["Location"].rpartition("/")[2]
    await world.reached(operation_id, "COMPLETED")
    (command,) = world.twins.commands
    assert isinstance(command.data, CreateResources)
    assert (command.data.vim.vim_id, command.data.vim.access_info) == ("vim-1", {"region": "RegionTwo"})
    assert command.data.vim.is_reference
    (shown,) = (await world.v1("GET", path)).json["vimConnectionInfo"]
    assert (shown["id"], shown["vimId"], shown["vimType"]) == (TACKERS["id"], "vim-1", "openstack")

    # Afterwards such an entry means the VIM of the VNF, and an unknown log-in must not replace it.
    change = {
        "extVirtualLinks": [{"id": "ext", "resourceId": "net1", "extCps": [{"cpdId": "VDU1_CP1"}]}],
        "vimConnectionInfo": [TACKERS],
    }
    answer = await world.v1("POST", f"{path}/change_ext_conn", change)
    await world.reached(answer.must(202).headers["Location"].rpartition("/")[2], "COMPLETED")
    changed = world.twins.commands[-1].data
    assert isinstance(changed, ChangeConnections)
    assert changed.vim == command.data.vim


async def test_without_a_default_vim_an_entry_of_v1_is_used_as_it_is_or_refused(world: World) -> None:
    await world.sample()
    world.vims.records["vim-1"]["is_default"] = False
    instance_id = await world.create()
    path = f"/vnf_instances/{instance_id}/instantiate"
    lacking = {**TACKERS, "accessInfo": {"username": "user", "password": "hidden"}}
    answer = await world.v1("POST", path, {**LINKED, "vimConnectionInfo": [lacking]})
    assert "accessInfo/project" in answer.problem(400)["detail"]
    (await world.v1("POST", path, {**LINKED, "vimConnectionInfo": [TACKERS]})).must(202)
    (command,) = await world.twins.has_asked(1)
    assert isinstance(command.data, CreateResources)
    assert command.data.vim.access_info["tenant"] == "1994d69783d64c00"


async def test_a_region_that_the_default_vim_lacks_is_refused(world: World) -> None:
    await world.sample()
    with_regions(world, "RegionOne")
    path = f"/vnf_instances/{await world.create()}/instantiate"
    answer = await world.v1("POST", path, {**LINKED, "vimConnectionInfo": [TACKERS]})
    detail = answer.problem(422)["detail"]
    assert "accessInfo/region" in detail
    assert "RegionOne" in detail


@pytest.mark.parametrize("task", ["change_ext_conn", "patch"])
async def test_access_data_that_replace_those_of_a_vnf_are_checked_at_the_request(world: World, task: str) -> None:
    await world.sample()
    instance_id = await world.create()
    await world.reached(await world.instantiate(instance_id), "COMPLETED")
    body: dict[str, Any] = {"vimConnectionInfo": {"vim-1": login(password=None)}}
    path = f"/vnf_instances/{instance_id}"
    if task == "patch":
        answer = await world.lcm("PATCH", path, body)
    else:
        body["extVirtualLinks"] = [{"id": "ext", "resourceId": "net1", "extCps": [{"cpdId": "VDU1_CP1"}]}]
        answer = await world.lcm("POST", f"{path}/{task}", body)
    assert "vimConnectionInfo/vim-1/accessInfo/password" in answer.problem(400)["detail"]
