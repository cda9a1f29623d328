"""VNFDs are read in all layouts that are in use."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from kubevnfm_csar.archive import extract, open_csar
from kubevnfm_csar.errors import PackageRefused, UnknownFlavour, UnknownLevel
from kubevnfm_csar.files import FolderFiles, external_path
from kubevnfm_csar.manifest import META
from kubevnfm_csar.package import read_package
from kubevnfm_csar.vnfd.model import Vnfd
from kubevnfm_csar.vnfd.parameters import OPERATIONS, declared_parameters
from kubevnfm_csar.vnfd.read import flavour_template, read_vnfd
from kubevnfm_csar.vnfd.topology import Node, Topology
from kubevnfm_csar.vnfd.types import TypeTree
from packages.package_builder import TYPES, flavour, package, v1_files, v2_files, with_meta, zip_of


def vnfd_of(folder: Path, files: dict[str, str | bytes] | None = None) -> Vnfd:
    return read_vnfd(open_csar(package(folder, files)))


def refusal(folder: Path, files: dict[str, str | bytes]) -> PackageRefused:
    with pytest.raises(PackageRefused) as caught:
        vnfd_of(folder, files)
    return caught.value


def test_facts_come_from_the_node_and_from_the_defaults_of_its_types(tmp_path: Path) -> None:
    vnfd = vnfd_of(tmp_path)
    assert vnfd.vnfd_id == "b1bb0ce7-ebca-4fa7-95ed-4840d70a1177"
    assert (vnfd.provider, vnfd.product_name) == ("Acme", "Cluster")
    assert (vnfd.software_version, vnfd.descriptor_version) == ("1.30", "1.0")
    assert vnfd.vnfm_info == ("kubevnfm",)
    assert vnfd.default_flavour_id == "simple"


def test_every_imported_file_with_a_flavour_is_one(tmp_path: Path) -> None:
    vnfd = vnfd_of(tmp_path)
    assert list(vnfd.flavours) == ["simple", "complex"]
    assert vnfd.flavours["complex"].description == "the complex one"
    with pytest.raises(UnknownFlavour, match="simple, complex"):
        vnfd.flavour("medium")


def test_a_vnfd_survives_being_stored(tmp_path: Path) -> None:
    vnfd = vnfd_of(tmp_path)
    assert Vnfd.model_validate_json(vnfd.model_dump_json()) == vnfd


def test_a_vdu_shows_profile_image_and_demand(tmp_path: Path) -> None:
    simple = vnfd_of(tmp_path).flavour("simple")
    master, worker = simple.vdus["masterNode"], simple.vdus["workerNode"]
    assert master.image is not None
    assert (master.image.name, master.image.version, master.image.size_bytes) == ("ubuntu", "22.04", 1 << 20)
    assert master.image.min_disk_bytes == 2_000_000_000
    assert (master.image.path, master.image.uri) == (None, "../Files/images/ubuntu.img")
    assert master.compute.capability_name == "m1.medium"
    assert (master.compute.vcpus, master.compute.memory_bytes, master.compute.disk_bytes) == (2, 4 * 10**9, 45 * 10**9)
    assert (worker.min_instances, worker.max_instances) == (2, 4)


def test_an_image_in_the_package_is_found_from_the_definitions(tmp_path: Path) -> None:
    vnfd = vnfd_of(tmp_path, {**v1_files(), "Files/images/ubuntu.img": "image"})
    image = vnfd.flavours["simple"].vdus["masterNode"].image
    assert image is not None
    assert (image.path, image.uri) == ("Files/images/ubuntu.img", None)
    assert [one.image_id for one in vnfd.software_images] == ["masterNode"]


def test_an_image_outside_of_the_package_has_its_path_in_a_copy_without_images_too(tmp_path: Path) -> None:
    """API-161."""
    uri, name, digest = "https://images.example.org/ubuntu.img", "../Files/images/ubuntu.img", "ab"
    files = {path: text.replace(name, uri) if isinstance(text, str) else text for path, text in v1_files().items()}
    assert vnfd_of(tmp_path, files).software_images[0].path is None
    files[META] = f"{files[META]!s}\nName: {uri}.asc\nAlgorithm: SHA-256\nHash: {digest}\n"
    (tmp_path / "other").mkdir()
    zipfile.ZipFile(zip_of(tmp_path / "other.zip", files)).extractall(tmp_path / "other")
    assert read_vnfd(FolderFiles(tmp_path / "other")).software_images[0].path is None
    files[META] = f"{files[META]!s}\nName: {uri}\nAlgorithm: SHA-256\nHash: {digest}\n"
    (tmp_path / "copy").mkdir()
    zipfile.ZipFile(zip_of(tmp_path / "package.zip", files)).extractall(tmp_path / "copy")
    (image,) = read_vnfd(FolderFiles(tmp_path / "copy")).software_images
    assert (image.path, image.uri) == (external_path(uri), uri)


def test_connection_points_know_their_vdu_link_and_whether_requests_may_name_them(tmp_path: Path) -> None:
    simple = vnfd_of(tmp_path).flavour("simple")
    master, worker = simple.cps["masterNode_CP1"], simple.cps["workerNode_CP2"]
    assert (master.vdu_id, master.order, master.virtual_link, master.is_external) == ("masterNode", 0, None, True)
    assert (worker.vdu_id, worker.virtual_link, worker.is_external) == ("workerNode", "internalVL", False)
    assert [one.cidr for one in simple.virtual_links["internalVL"].subnets] == ["10.10.0.0/24"]


def test_levels_and_aspects_give_counts(tmp_path: Path) -> None:
    simple = vnfd_of(tmp_path).flavour("simple")
    assert simple.initial_counts() == {"masterNode": 1, "workerNode": 2}
    assert simple.initial_counts("instantiation_level_2") == {"masterNode": 3, "workerNode": 4}
    assert simple.scale_levels() == {"master_instance": 0, "worker_instance": 0}
    assert simple.scale_levels("instantiation_level_2") == {"master_instance": 2, "worker_instance": 2}
    assert simple.counts_at({"worker_instance": 1}) == {"masterNode": 1, "workerNode": 3}
    assert (simple.max_count("masterNode"), simple.max_count("workerNode")) == (3, 4)
    assert simple.scaled_vdus("worker_instance") == ("workerNode",)
    with pytest.raises(UnknownLevel, match="instantiation_level_1"):
        simple.initial_counts("level_9")


def test_steps_of_different_size_add_up_and_the_last_one_repeats(tmp_path: Path) -> None:
    files = v1_files()
    files["Definitions/flavour_simple.yaml"] = (
        flavour()
        .replace(
            "worker_instance: {name: worker_instance, description: workers, max_scale_level: 2, step_deltas: [delta_1]}",
            "worker_instance: {name: w, description: w, max_scale_level: 3, step_deltas: [delta_1, delta_2]}",
        )
        .replace(
            "aspect: worker_instance, deltas: {delta_1: {number_of_instances: 1}}",
            "aspect: worker_instance, deltas: {delta_1: {number_of_instances: 1}, delta_2: {number_of_instances: 5}}",
        )
    )
    simple = vnfd_of(tmp_path, files).flavour("simple")
    assert [simple.counts_at({"worker_instance": level})["workerNode"] for level in range(4)] == [2, 3, 8, 13]
    assert simple.max_count("workerNode") == 13


def test_a_phase_names_its_driver_and_an_empty_one_nothing(tmp_path: Path) -> None:
    """SEQ-003, SEQ-037."""
    vnfd = vnfd_of(tmp_path)
    driver = vnfd.flavour("simple").phases.get("instantiate_end")
    assert driver is not None
    assert (driver.name, driver.file) == ("mgmt-drivers-kubernetes", "Scripts/kubernetes_mgmt.py")
    assert len(driver.sha256) == 64
    assert vnfd.flavour("simple").phases.get("instantiate_start") is None
    assert vnfd.flavour("simple").phases.get("terminate_start") is None
    assert vnfd.flavour("simple").drivers == (driver,)


def test_the_v2_layout_is_read_alike(tmp_path: Path) -> None:
    vnfd = vnfd_of(tmp_path, v2_files())
    driver = vnfd.flavour("simple").phases.get("instantiate_end")
    assert list(vnfd.flavours) == ["simple"]
    assert driver is not None
    assert driver.file == "Scripts/kubernetes_mgmt.py"
    assert vnfd.flavour("simple").vnf_node == "Cluster"


@pytest.mark.parametrize(
    "phases",
    [
        "instantiate_end: {implementation: {primary: mgmt-drivers-kubernetes, dependencies: [mgmt-drivers-kubernetes]}}",
        "operations: {instantiate_end: {implementation: mgmt-drivers-kubernetes}}",
        "instantiate_end: mgmt-drivers-kubernetes",
        "instantiate_end: {implementation: Scripts/kubernetes_mgmt.py}",
    ],
)
def test_every_notation_of_an_implementation_is_read(tmp_path: Path, phases: str) -> None:
    """SEQ-004."""
    files = {**v1_files(), "Definitions/flavour_simple.yaml": flavour(phases=phases)}
    driver = vnfd_of(tmp_path, files).flavour("simple").phases.get("instantiate_end")
    assert driver is not None
    assert driver.file == "Scripts/kubernetes_mgmt.py"


def test_an_artifact_in_the_short_notation_is_read(tmp_path: Path) -> None:
    """TOSCA: ``name: file``, without a type."""
    long = r"mgmt-drivers-kubernetes:\n.*\n.*\n +file: (.*)"
    text = re.sub(long, r"mgmt-drivers-kubernetes: ../\1", flavour(), count=1)
    assert "mgmt-drivers-kubernetes: ../Scripts" in text
    simple = vnfd_of(tmp_path, {**v1_files(), "Definitions/flavour_simple.yaml": text}).flavour("simple")
    assert simple.phases["instantiate_end"].file == "Scripts/kubernetes_mgmt.py"


def test_a_script_depends_on_files_of_any_type(tmp_path: Path) -> None:
    """SEQ-004: only the primary artifact is run."""
    phases = "instantiate_end: {implementation: {primary: mgmt-drivers-kubernetes, dependencies: [settings]}}"
    text = flavour(phases=phases)
    settings = "settings: {type: tosca.artifacts.Implementation.Yaml, file: Scripts/settings.yaml}\n"
    at = text.index("mgmt-drivers-kubernetes:")
    text = f"{text[:at]}{settings}{text[text.rindex(chr(10), 0, at) + 1 : at]}{text[at:]}"
    files = {**v1_files(), "Definitions/flavour_simple.yaml": text, "Scripts/settings.yaml": "a: 1\n"}
    driver = vnfd_of(tmp_path, files).flavour("simple").phases["instantiate_end"]
    assert (driver.file, driver.dependencies) == ("Scripts/kubernetes_mgmt.py", ("Scripts/settings.yaml",))
    assert not driver.problem


@pytest.mark.parametrize(
    ("changed", "missing"),
    [
        (flavour(phases="instantiate_end: {implementation: absent}"), "absent"),
        (flavour(driver_file="Scripts/absent.py"), "Scripts/absent.py"),
        (flavour(driver_file="/etc/passwd"), "/etc/passwd"),
    ],
)
def test_a_script_that_is_missing_is_a_problem_of_its_phase_alone(tmp_path: Path, changed: str, missing: str) -> None:
    driver = (
        vnfd_of(tmp_path, {**v1_files(), "Definitions/flavour_simple.yaml": changed})
        .flavour("simple")
        .phases.get("instantiate_end")
    )
    assert driver is not None
    assert (driver.file, driver.problem) == (missing, f"the package has no file {missing}")


def playbooks(app: str = "", entry: str = "path: _VAR_vnf_package_path/Scripts/start.yaml, order: 0") -> str:
    return f"""
configurable_properties: {{_VAR_password: pw}}
vdus:
  masterNode: {{config: {{order: 1, vm_app_config: {{type: ansible, username: u, {app} instantiation: [{{{entry}}}]}}}}}}
"""


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        (playbooks(), ""),
        (playbooks("password: _VAR_password, retry_count: 5,"), ""),
        (playbooks(entry="path: _VAR_vnf_package_path//Scripts/_VAR_which.yaml, order: 1, params: {a: {b: 1}}"), ""),
        (None, "the package has no file ScriptANSIBLE/config.yaml"),
        ("a: [", "ScriptANSIBLE/config.yaml: invalid YAML: "),
        ("a: 1", "vdus: an object with one entry for each VDU expected"),
        ("vdus: {masterNode: {}}", "vdus/masterNode/config: order and vm_app_config expected"),
        ("vdus: {masterNode: {config: {order: x, vm_app_config: {}}}}", "vdus/masterNode/config/order: a whole number expected"),
        ("configurable_properties: {a: 1}\nvdus: {}", "names begin with _VAR_ expected"),
        (playbooks("usrname: u,"), "vm_app_config/usrname: did you mean username?"),
        (playbooks("execute-host: {host: h},"), "vm_app_config/execute-host: is for commands on the host of the VNFM"),
        (playbooks().replace("type: ansible", "type: remote-command"), "vm_app_config/type: is for commands"),
        (playbooks(entry="command: rm, order: 0"), "instantiation[0]/command: is for commands on the host"),
        (playbooks(entry="path: _VAR_vnf_package_path/Scripts/none.yaml, order: 0"), "the package has no file Scripts/none.yaml"),
        (playbooks(entry="path: _VAR_vnf_package_path/../../etc/x.yaml, order: 0"), "the package has no file ../../etc/x.yaml"),
        (playbooks(entry="path: _VAR_vnf_package_path/Files/start.yaml, order: 0"), "files below Files/ are not there"),
        (playbooks("priv_key_file: /root/key,"), "priv_key_file: a file of the package expected"),
        (playbooks("priv_key_file: _VAR_vnf_package_path/Scripts/key,"), "the package has no file Scripts/key"),
        (playbooks("connection_wait_timeout: long,"), "connection_wait_timeout: seconds expected"),
        (playbooks("node_pair: [VDU2],"), "node_pair: a VDU of the VNFD expected: masterNode"),
        (playbooks().replace("masterNode", "mastrNode"), "vdus/mastrNode: did you mean masterNode?"),
        (playbooks(entry="path: /etc/x.yaml, order: 0"), "instantiation[0]/path: a playbook of the package expected"),
        (playbooks(entry="path: _VAR_vnf_package_path/Scripts/start.yaml"), "instantiation[0]/order: a whole number"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("driver", ["ansible_driver", "mgmt-drivers-ansible"])
def test_the_playbooks_of_tackers_ansible_driver_are_found_and_judged(
    tmp_path: Path, driver: str, config: str | None, problem: str
) -> None:
    """SEQ 6.8: its own file is one of Tacker's host."""
    artifact = f"{driver}: {{type: tosca.artifacts.Implementation.Python, file: /opt/stack/tacker/ansible.py}}"
    changed = flavour(phases=f"instantiate_end: {{implementation: {driver}}}")
    changed = re.sub("( +)mgmt-drivers-kubernetes:", rf"\1{artifact}\n\1mgmt-drivers-kubernetes:", changed)
    files = {
        **v1_files(),
        "Definitions/flavour_simple.yaml": changed,
        "Scripts/start.yaml": "[]",
        "Files/start.yaml": "[]",
    }
    if config is not None:
        files["ScriptANSIBLE/config.yaml"] = config
    found = vnfd_of(tmp_path, files).flavour("simple").phases["instantiate_end"]
    assert (found.name, found.file, found.driver_class) == (driver, "ScriptANSIBLE/config.yaml", "ansible")
    assert (problem in found.problem) if problem else found.problem == ""


@pytest.mark.parametrize("named", ["mgmt-drivers-kubespray", "own"])
def test_a_driver_for_kubespray_is_refused_by_name(tmp_path: Path, named: str) -> None:
    code = CLASS.replace("Own", "KubesprayMgmtDriver")
    changed = flavour(driver_file="Scripts/own.py").replace("mgmt-drivers-kubernetes", named)
    files = {**v1_files(), "Definitions/flavour_simple.yaml": changed, "Scripts/own.py": code}
    assert f"instantiate_end: {named}: clusters are not built by Kubespray" in str(refusal(tmp_path, files))


CLASS = (
    "from tacker.vnfm.mgmt_drivers import vnflcm_abstract_driver as base\nclass Own(base.VnflcmMgmtAbstractDriver):\n"
    "    def instantiate_end(self, context, vnf_instance, request, grant, grant_request):\n        pass\n"
)


@pytest.mark.parametrize(
    ("code", "name", "problem"),
    [
        (CLASS, "Own", ""),
        (f"{CLASS}class Special(Own):\n    pass\n", "Special", ""),
        (f"import helper\n{CLASS}", "Own", ""),
        (f"{CLASS}if __name__ == '__main__':\n    pass\n", "", ""),
        ("import sys\n", "", ""),
        (CLASS.replace("_end", "_start"), "Own", "its driver class Own has no method instantiate_end"),
        (CLASS.replace("instantiate_end", "mgmt_call"), "Own", ""),
        (CLASS.replace("(base.", "(Mixin, base.").replace("_end", "_start"), "Own", ""),
        (f"{CLASS}class B(base.VnflcmMgmtAbstractDriver):\n    pass\n", "Own", "several driver classes of Tacker's v1"),
        (f"import ansible_runner\n{CLASS}", "Own", "its driver class Own needs ansible_runner, which"),
        (f"from tacker.common import rpc\n{CLASS}", "Own", "needs tacker.common.rpc, which"),
        (
            f"from tacker.common.exceptions import Absent\n{CLASS}",
            "Own",
            "needs tacker.common.exceptions.Absent, which",
        ),
        (f"try:\n    import ansible_runner\nexcept ImportError:\n    pass\n{CLASS}", "Own", ""),
        (f"from oslo_config import cfg\nfrom tacker.common import config, log\n{CLASS}", "Own", ""),
        ("from tacker.common import rpc\n", "", "it imports tacker.common.rpc, which scripts of packages do not have"),
        ("import helper, yaml, requests\nif __name__ == '__main__':\n    pass\n", "", "it imports requests, which"),
        (f"{CLASS}def f(heat):\n    heat.stacks.template(1)\n", "Own", "calls stacks.template, which is not answered"),
    ],
)
def test_a_driver_class_of_v1_is_found_and_judged(tmp_path: Path, code: str, name: str, problem: str) -> None:
    changed = flavour(driver_file="Scripts/own.py")
    files = {**v1_files(), "Definitions/flavour_simple.yaml": changed, "Scripts/own.py": code, "Scripts/helper.py": ""}
    driver = vnfd_of(tmp_path, files).flavour("simple").phases.get("instantiate_end")
    assert driver is not None
    assert driver.driver_class == name
    assert (problem in driver.problem) if problem else driver.problem == ""


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("import sys\nprint 'done'\n", "Scripts/own.py, line 2: SyntaxError: Missing parentheses"),
        ("#!/bin/bash\napt-get install nginx\n", "Scripts/own.py, line 2: SyntaxError: invalid syntax"),
        ("if True:\npass\n", "Scripts/own.py, line 2: IndentationError: expected an indented block"),
        ("return 1\n", "Scripts/own.py, line 1: SyntaxError: 'return' outside function"),
        ("# coding: none\n", "Scripts/own.py: SyntaxError: "),
        ("a = '\0'\n", "Scripts/own.py: SyntaxError: source code string cannot contain null bytes"),
    ],
)
def test_a_file_that_python_cannot_read_is_no_script(tmp_path: Path, code: str, problem: str) -> None:
    changed = flavour(driver_file="Scripts/own.py")
    files = {**v1_files(), "Definitions/flavour_simple.yaml": changed, "Scripts/own.py": code}
    driver = vnfd_of(tmp_path, files).flavour("simple").phases.get("instantiate_end")
    assert driver is not None
    assert driver.problem.startswith(problem)
    assert driver.problem.endswith("; a script for Python 3 expected")


@pytest.mark.parametrize("code", ["assert 1 is 1\n", "(" * 90 + ")" * 90, "a = '\\d'\n"])
def test_a_script_that_python_reads_has_no_problem(tmp_path: Path, code: str) -> None:
    """Warnings of Python are for the author alone."""
    changed = flavour(driver_file="Scripts/own.py")
    files = {**v1_files(), "Definitions/flavour_simple.yaml": changed, "Scripts/own.py": code}
    driver = vnfd_of(tmp_path, files).flavour("simple").phases.get("instantiate_end")
    assert driver is not None
    assert driver.problem == ""


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        (flavour(artifact_type="tosca.artifacts.Implementation.Bash"), "is supported"),
        (flavour().replace("virtual_binding: masterNode", "virtual_binding: absent"), "is not a VDU"),
        (
            flavour().replace("type: tosca.nodes.nfv.Vdu.Compute", "type: tosca.nodes.nfv.Vdu.Compte"),
            "which is not a VDU; node masterNode: type tosca.nodes.nfv.Vdu.Compte is not known (nearest known name: tosca.nodes.nfv.Vdu.Compute)",
        ),
        (flavour().replace("virtual_link: internalVL", "virtual_link: nothing"), "is no virtual link"),
        (flavour().replace("default_level: instantiation_level_1", "default_level: l9"), "is not among the levels"),
        (flavour().replace("size: 1 MiB", "size: huge"), "a size such as '20 GB' expected"),
        (flavour().replace("max_number_of_instances: 4", "max_number_of_instances: 1"), "exceeds the maximum"),
        (flavour().replace("{scale_level: 2}", "{scale_level: 7}"), "above its max_scale_level"),
        (flavour("complex"), "is also described in"),
        ("imports: [absent.yaml]\n", "imports absent.yaml"),
        ("imports: [https://example.org/types.yaml]\n", "imports https://example.org/types.yaml"),
    ],
)
def test_a_flavour_that_contradicts_itself_is_refused_with_its_file(tmp_path: Path, changed: str, rule: str) -> None:
    error = refusal(tmp_path, {**v1_files(), "Definitions/flavour_simple.yaml": changed})
    assert rule in error.rule
    assert error.file.startswith("Definitions/flavour_")


@pytest.mark.parametrize(
    ("changed", "warning"),
    [
        (("targets: [workerNode]", "targets: [workerNode, absent]"), "its target absent is no node of this flavour"),
        (("aspect: worker_instance", "aspect: nothing"), "aspect nothing is not declared: its deltas are not used"),
        (("aspect: worker_instance", "aspect: nothing"), "gives delta_1 of step_deltas: this step changes nothing"),
        (("  aspects:\n", "  aspects:\n            third: {max_scale_level: 1}\n"), "aspect third has no deltas"),
        (
            ("scale_info: {", "scale_info: {third: {scale_level: 1}, "),
            "level instantiation_level_2: aspect third is not",
        ),
    ],
)
def test_contradictions_about_what_is_not_used_are_warnings(
    tmp_path: Path, changed: tuple[str, str], warning: str
) -> None:
    files = {**v1_files(), "Definitions/flavour_simple.yaml": flavour().replace(*changed)}
    vnfd = vnfd_of(tmp_path, files)
    assert any(one.startswith("Definitions/flavour_simple.yaml: ") and warning in one for one in vnfd.warnings)
    assert vnfd.flavour("simple").initial_counts() == {"masterNode": 1, "workerNode": 2}
    assert vnfd_of(tmp_path).warnings == ()


@pytest.mark.parametrize(
    ("changed", "warning"),
    [
        (("  workerNode:\n", "  extra: {type: tosca.nodes.nfv.Vdu.Compte}\n    workerNode:\n"),
         "node extra: type tosca.nodes.nfv.Vdu.Compte is not known (nearest known name: tosca.nodes.nfv.Vdu.Compute)"),
        (("  workerNode:\n", "  extra: {type: tosca.nodes.nfv.VDUCp}\n    workerNode:\n"),
         "node extra: type tosca.nodes.nfv.VDUCp is not known (nearest known name: tosca.nodes.nfv.VduCp)"),
        (("AntiAffinityRule", "AntiAfinityRule"), ("policy policy_antiaffinity_worker: type tosca.policies.nfv.AntiAfinityRule"
         " is not known (nearest known name: tosca.policies.nfv.AntiAffinityRule)")),
        (("nfv.PlacementGroup", "nfv.PlacmentGroup"), "group workers: type tosca.groups.nfv.PlacmentGroup is not known"),
        (("nfv.SwImage", "nfv.SwImge"), "node masterNode: artifact sw_image: type tosca.artifacts.nfv.SwImge is not known"),
        (("  policies:", "  policy:"), "topology_template: policy is not known (nearest known name: policies)"),
        (("  groups:", "  gruops:"), "topology_template: gruops is not known (nearest known name: groups)"),
        (("topology_template:", "topologytemplate: {}\ntopology_template:"),
         "topologytemplate is not known (nearest known name: topology_template)"),
        (("    - scaling_aspects:", "    - [scaling_aspects]\n    - scaling_aspects:"), "policies[0]: a map expected"),
        (("targets: [workers]", "targets: workers"), "policy policy_antiaffinity_worker: targets: a list expected, so it is not read"),
        (("        - virtual_binding: workerNode\n        - virtual_link: internalVL",
          "        virtual_binding: workerNode\n        virtual_link: internalVL"),
         "node workerNode_CP2: requirements: a list expected, so it is not read"),
        (("- virtual_link: internalVL", "- virtual_lnik: internalVL"),
         "node workerNode_CP2: requirement: virtual_lnik is not known (nearest known name: virtual_link)"),
        (("max_number_of_instances: 4", "max_number_of_instanes: 4"), ("node workerNode.vdu_profile: max_number_of_instanes"
         " is not known (nearest known name: max_number_of_instances)")),
        (("size: 1 MiB", "sise: 1 MiB"), "node masterNode.sw_image_data: sise is not known (nearest known name: size)"),
        (("algorithm: sha-512", "algoritm: sha-512"), "node masterNode.sw_image_data.checksum: algoritm is not known"),
        (("virtual_mem_size", "virtual_mem_siz"), "node masterNode: virtual_compute.virtual_memory: virtual_mem_siz is not known"),
        (("      virtual_compute:", "      virtual_computer:"), "node masterNode: capability: virtual_computer is not known"),
        (("virtual_local_storage: [{size_of_storage: 45 GB}]", "virtual_local_storage: {size_of_storage: 45 GB}"),
         "node masterNode: virtual_compute.virtual_local_storage: a list expected"),
        (("dhcp_enabled: true", "dhcp_enabled: y"), "l3_protocol_data.dhcp_enabled: true or false expected, got 'y'"),
        (("cidr: 10.10", "cdir: 10.10"), "virtual_link_protocol_data[0].l3_protocol_data: cdir is not known"),
        (("ip_version: ipv4", "ip_version: ipv5"), "l3_protocol_data.ip_version: ipv5 is not known (nearest known name: ipv"),
        (("layer_protocols: [ipv4]", "layer_protocols: [ivp4]"), "layer_protocols[0]: ivp4 is not known (nearest known name: ipv"),
        (("      Vnflcm:", "      Vnflmc:"), "node VNF: interface: Vnflmc is not known (nearest known name: Vnflcm)"),
        (("instantiate_start: []", "instantiate_strat: []"), "node VNF: Vnflcm: instantiate_strat is not known"),
        (("    artifacts:\n", "    artefacts:\n"), "node VNF: artefacts is not known (nearest known name: artifacts)"),
        (("default: 2", "defualt: 2"), "input least_workers: defualt is not known (nearest known name: default)"),
        (("flavour_description:", "flavor_description:"), "node VNF: flavor_description is not known (nearest known name: flavour_"),
        (("properties: {flavour_id: simple}", "properties: {flavour_id: simple, flavour: x}"), "substitution_mappings: flavour is"),
        (("node_type: acme.nodes.Cluster", "node_type: acme.nodes.Clusters"), "substitution_mappings: type acme.nodes.Clusters is"),
    ],
)  # fmt: skip
def test_what_no_standard_and_no_type_of_the_package_has_is_a_warning(
    tmp_path: Path, changed: tuple[str, str], warning: str
) -> None:
    """Nothing reads it, so its author has to learn of it: a VDU of a mistyped type is a machine that is never made."""
    text = flavour()
    assert changed[0] in text
    files = {**v1_files(), "Definitions/flavour_simple.yaml": text.replace(*changed, 1)}
    found = vnfd_of(tmp_path, files).warnings
    assert [one for one in found if one.startswith("Definitions/flavour_simple.yaml: ") and warning in one], found


@pytest.mark.parametrize(
    ("changed", "warning"),
    [
        (("derived_from: tosca.nodes.nfv.VNF", "derived_from: tosca.nodes.nfv.Vnf"), "type acme.nodes.Base: derived_from: type tosca"),
        (("derived_from: acme.nodes.Base", "derived_form: acme.nodes.Base"), "type acme.nodes.Cluster: derived_form is not known"),
        (("default: here", "defalt: here"), "type acme.datatypes.Extensions.site: defalt is not known"),
        (("data_types:", "datatypes:"), "datatypes is not known (nearest known name: data_types)"),
    ],
)  # fmt: skip
def test_what_a_type_of_the_package_has_is_looked_at_too(
    tmp_path: Path, changed: tuple[str, str], warning: str
) -> None:
    text = TYPES
    assert changed[0] in text
    # The top file gives the facts that these types no longer give.
    facts = "provider: Acme, product_name: Cluster, software_version: '1', descriptor_version: '1', descriptor_id"
    top = str(v1_files()["Definitions/top.yaml"]).replace(
        "        descriptor_id", "        " + facts.replace(", ", "\n        ")
    )
    files = {**v1_files(), "Definitions/types.yaml": text.replace(*changed, 1), "Definitions/top.yaml": top}
    found = vnfd_of(tmp_path, files).warnings
    assert [one for one in found if one.startswith(f"Definitions/types.yaml: {warning}")], found


KNOWN = dedent("""\
    tosca_definitions_version: tosca_simple_yaml_1_3
    interface_types:
      acme.interfaces.Lifecycle:
        derived_from: tosca.interfaces.nfv.Vnflcm
        operations: {instantiate_rollback_start: {}, warm_up: {}}
      acme.interfaces.Old: {derived_from: tosca.interfaces.nfv.Vnflcm, cool_down: {description: an operation}}
    node_types:
      acme.nodes.Vnf:
        derived_from: tosca.nodes.nfv.VNF
        requirements: [{virtual_link_external_1: {capability: tosca.capabilities.nfv.VirtualLinkable}}]
        interfaces: {Vnflcm: {type: acme.interfaces.Lifecycle, operations: {paint: {}}}, Indicator: {type: acme.interfaces.Old}}
      acme.nodes.Other: {derived_from: acme.nodes.Vnf, interfaces: {Vnflcm: {type: acme.interfaces.Old}}}
      acme.nodes.Vdu:
        derived_from: tosca.nodes.nfv.Vdu.Compute
        properties: {colour: {type: string}}
        capabilities: {paint: {type: acme.capabilities.Paint}}
    capability_types:
      acme.capabilities.Paint: {derived_from: tosca.capabilities.Root, properties: {litres: {type: integer}}}
    policy_types:
      acme.policies.Apart: {derived_from: tosca.policies.nfv.AntiAffinityRule, properties: {why: {type: string}}}
    dsl_definitions: {anything: [at, all]}
    topology_template:
      substitution_mappings:
        node_type: acme.nodes.Vnf
        properties: {flavour_id: simple}
        requirements: [{virtual_link_external_1: [cp, virtual_link]}, {virtual_link: [other, virtual_link]}]
      inputs: {names: {type: map, entry_schema: {type: string}, default: {a: b}, constraints: []}}
      node_templates:
        VNF:
          type: acme.nodes.Vnf
          properties: &facts
            descriptor_id: 0f0e2a66-91f4-4a6f-9d79-5a3d1c9a7a11
            provider: Acme
            product_name: One
            software_version: 1
            descriptor_version: 1
            configurable_properties: {is_autoscale_enabled: "true", additional_configurable_properties: {own: 1}}
            modifiable_attributes: {extensions: {own: 1}, metadata: {own: 2}}
            monitoring_parameters: [{name: cpu, performance_metric: v_cpu_usage_mean_vnf}]
          requirements: [{virtual_link_external_1: net}]
          interfaces: {Vnflcm: {inputs: {a: b}, operations: {warm_up: {}, paint: {}, heal_end: {}}}, Indicator: {cool_down: {}}}
        older: {type: acme.nodes.Other, interfaces: {Vnflcm: {cool_down: [], scale_start: []}}}
        vdu:
          type: acme.nodes.Vdu
          directives: [select]
          properties:
            name: {get_input: [names, a]}
            colour: red
            boot_order: {get_property: [SELF, x]}
            monitoring_parameters: {cpu: {name: cpu, performance_metric: v_cpu_usage_mean}}
            sw_image_data: {name: a, version: b, checksum: abc}
          capabilities:
            paint: {properties: {litres: 1}}
            virtual_compute: {properties: {logical_node: {one: {logical_node_requirements: {a: b}}}}}
        machine: {type: tosca.nodes.Compute, properties: {anything: 1}, requirements: [{local_storage: x}]}
        cp: {type: tosca.nodes.nfv.VduCp, requirements: [{virtual_binding: {node: vdu, relationship: x}}]}
        other: {type: tosca.nodes.nfv.VduCp, requirements: [{virtual_binding: vdu}, {dependency: cp}]}
      policies: [{apart: {type: acme.policies.Apart, targets: [vdu], properties: {scope: zone, why: because}, triggers: {}}}]
      outputs: {}
      workflows: {}
    """)


def test_what_the_standards_and_types_of_the_package_have_is_no_warning(tmp_path: Path) -> None:
    vnfd = vnfd_of(tmp_path, with_meta({"Definitions/top.yaml": KNOWN}))
    assert vnfd.warnings == ()
    assert {name for name, cp in vnfd.flavour("simple").cps.items() if cp.is_external} == {"cp", "other"}


def test_a_missing_fact_is_named(tmp_path: Path) -> None:
    files = {
        **v1_files(),
        "Definitions/types.yaml": TYPES.replace("product_name: {type: string, default: Cluster}", ""),
    }
    assert "product_name is missing" in refusal(tmp_path, files).rule


def test_the_standards_type_files_may_be_missing_present_or_urls(tmp_path: Path) -> None:
    files = v1_files()
    files["Definitions/etsi_nfv_sol001_common_types.yaml"] = "tosca_definitions_version: tosca_simple_yaml_1_2\n"
    files["Definitions/types.yaml"] = TYPES.replace(
        "- etsi_nfv_sol001_vnfd_types.yaml",
        "- https://forge.example.org/raw/etsi_nfv_sol001_vnfd_types.yaml",
    )
    assert "Definitions/etsi_nfv_sol001_common_types.yaml" in vnfd_of(tmp_path, files).files


def test_affinity_rules_write_groups_out(tmp_path: Path) -> None:
    (rule,) = vnfd_of(tmp_path).flavour("simple").affinity_rules
    assert (rule.kind, rule.scope, rule.targets, rule.group) == (
        "anti-affinity",
        "nfvi_node",
        ("workerNode",),
        "workers",
    )


def test_initial_values_come_from_the_data_types(tmp_path: Path) -> None:
    values = vnfd_of(tmp_path).initial_values
    assert values.extensions == {"site": "here"}
    assert values.configurable_properties == {"isAutoscaleEnabled": False}


def test_parameters_of_a_type_that_has_itself_are_bounded() -> None:
    """API-163: a long text that is used in a thousand places too."""
    own = {"type": "acme.Loop", "description": "x" * 100_000, "default": {"a": "y" * 100_000}}
    loop = {"properties": {"one": own, "two": own, "many": {"type": "list", "entry_schema": {"type": "acme.Loop"}}}}
    operation = {"inputs": {"additional_parameters": {"type": "acme.Loop"}}}
    node = Node("VNF", "acme.Vnf", {}, {"interfaces": {"Vnflcm": {"operations": dict.fromkeys(OPERATIONS, operation)}}})
    tree = TypeTree([{"data_types": {"acme.Loop": loop}}])
    found = declared_parameters(Topology({}, file="", tree=tree, files=FolderFiles(Path())), node)
    assert set(found["instantiate"]["properties"]) == {"one", "two", "many"}
    assert len(json.dumps(found)) < 1_000_000


@pytest.mark.parametrize(
    ("changed", "extensions", "configurable"),
    [
        (("site: {type: string, default: here}", "site: {type: string, default: 1.10}"), {"site": "1.10"}, False),
        (("site: {type: string, default: here}", "site: {type: string, default: NO}"), {"site": "NO"}, False),
        (("site: {type: string, default: here}", "site: {type: acme.Text, default: 0x1F}"), {"site": "0x1F"}, False),
        (
            ("site: {type: string, default: here}", "site: {type: list, entry_schema: string, default: [010, on]}"),
            {"site": ["010", "on"]},
            False,
        ),
        (("site: {type: string, default: here}", "site: {type: integer, default: 010}"), {"site": 10}, False),
        (("default: false", "default: True"), {"site": "here"}, True),
    ],
)
def test_a_text_is_as_it_is_written_and_a_boolean_is_one(
    tmp_path: Path, changed: tuple[str, str], extensions: dict[str, object], configurable: bool
) -> None:
    """The type of a property decides: TOSCA is YAML 1.2, and versions are often written without quotes."""
    kinds = "data_types:\n  acme.Text: {derived_from: string}\n"
    values = vnfd_of(
        tmp_path, {**v1_files(), "Definitions/types.yaml": TYPES.replace("data_types:\n", kinds, 1).replace(*changed)}
    ).initial_values
    assert values.extensions == extensions
    assert values.configurable_properties == {"isAutoscaleEnabled": configurable}


@pytest.mark.parametrize(
    ("name", "written"),
    [("provider", "NO"), ("provider", "True"), ("descriptor_version", "1.10"), ("descriptor_version", "010"),
     ("software_version", "1:30"), ("software_version", "1_0"), ("product_name", "1e3"), ("product_name", "2024-01-02")],
)  # fmt: skip
def test_facts_are_as_they_are_written(tmp_path: Path, name: str, written: str) -> None:
    top = f"descriptor_id: b1bb0ce7-ebca-4fa7-95ed-4840d70a1177\n        {name}: {written}"
    files = v1_files()
    old = str(files["Definitions/top.yaml"])
    files["Definitions/top.yaml"] = old.replace("descriptor_id: b1bb0ce7-ebca-4fa7-95ed-4840d70a1177", top)
    assert getattr(vnfd_of(tmp_path, files), name) == written


@pytest.mark.parametrize(
    ("written", "read"), [("no", False), ("OFF", False), ("Yes", True), ("True", True), ("n", None)]
)
def test_a_boolean_is_also_one_as_tacker_reads_it(tmp_path: Path, written: str, read: bool | None) -> None:
    changed = flavour().replace("dhcp_enabled: true", f"dhcp_enabled: {written}")
    links = (
        vnfd_of(tmp_path, {**v1_files(), "Definitions/flavour_simple.yaml": changed}).flavour("simple").virtual_links
    )
    assert {one.dhcp_enabled for link in links.values() for one in link.subnets} == {read}


@pytest.mark.parametrize(
    ("layers", "data", "read"),
    [
        ("ipv4", [], []),
        ("ipv4, ipv6", [], [(False, None), (True, None)]),
        ("ethernet, ipv6", [], [(True, None)]),
        (
            "ipv4",
            [{"l3_protocol_data": {"cidr": "10.1.0.0/24"}}, {"associated_layer_protocol": "ipv6"}],
            [(False, "10.1.0.0/24"), (True, None)],
        ),
        (
            "ipv4",
            [
                {"l3_protocol_data": {"ip_version": "ipv6", "cidr": "fd01::/64"}},
                {"l3_protocol_data": {"ip_version": "IPv4"}},
            ],
            [(True, "fd01::/64"), (False, None)],
        ),
    ],
)
def test_a_virtual_link_has_a_subnet_for_each_ip_version(tmp_path: Path, layers: str, data: Any, read: Any) -> None:
    written = flavour()
    start = written.index("connectivity_type: {layer_protocols: [ipv4]}")
    end = written.index("dhcp_enabled: true}") + len("dhcp_enabled: true}")
    profile, margin = (
        json.dumps({"virtual_link_protocol_data": data}),
        " " * (start - written.rindex("\n", 0, start) - 1),
    )
    made = f"connectivity_type: {{layer_protocols: [{layers}]}}\n{margin}vl_profile: {profile}"
    changed = written[:start] + made + written[end:]
    vnfd = vnfd_of(tmp_path, {**v1_files(), "Definitions/flavour_simple.yaml": changed})
    (link,) = vnfd.flavour("simple").virtual_links.values()
    assert [(one.is_ipv6, one.cidr) for one in link.subnets] == read


@pytest.mark.parametrize("number", ["1_0", "0b1", "3.5", "-1", "yes", "' 3'", "'٣'", "true", "9" * 25])
def test_a_number_is_one_of_yaml_1_2(tmp_path: Path, number: str) -> None:
    changed = flavour().replace("max_number_of_instances: 4", f"max_number_of_instances: {number}")
    error = refusal(tmp_path, {**v1_files(), "Definitions/flavour_simple.yaml": changed})
    assert "a whole number of at least 0 expected" in error.rule


@pytest.mark.parametrize(
    ("place", "again"),
    [
        ("Definitions/top.yaml", "    VNF: {type: acme.nodes.Cluster}\n"),
        ("Definitions/types.yaml", "  acme.nodes.Base: {derived_from: tosca.nodes.nfv.VNF}\n"),
        ("Definitions/flavour_simple.yaml", "    masterNode: {type: tosca.nodes.nfv.Vdu.Compute}\n"),
        ("BaseHOT/simple/cluster.yaml", "  vip_CP: {type: OS::Neutron::Port}\n"),
    ],
)
def test_a_file_with_a_key_twice_is_refused(tmp_path: Path, place: str, again: str) -> None:
    """TOSCA Simple Profile in YAML 1.3, 3.1.3.1: the last of two node templates would win."""
    files = v1_files()
    section = {"Definitions/types.yaml": "node_types:\n", "BaseHOT/simple/cluster.yaml": "resources:\n"}
    head = section.get(place, "  node_templates:\n")
    files[place] = str(files[place]).replace(head, head + again, 1)
    with pytest.raises(PackageRefused, match=f"key {again.split(':')[0].strip()} given twice") as caught:
        read_package(package(tmp_path, files))
    assert caught.value.file == place
    assert "line " in caught.value.rule


def _interface(body: str, name: str = "masterNode_CP1") -> str:
    own = "properties: {layer_protocols: [ipv4], order: 0"
    assert own in flavour()
    return flavour().replace(own, f"{own}, {body}", 1)


REQUIREMENT = (
    "virtual_network_interface_requirements: [{name: fast, network_interface_requirements: {SRIOV: 'true'}%s}]"
)


@pytest.mark.parametrize("has_base_hot", [True, False])
@pytest.mark.parametrize(
    ("more", "is_mandatory"),
    [("", False), (", support_mandatory: false", False), (", support_mandatory: true", True)],
)
def test_a_requirement_on_an_interface_is_no_vnic_type(
    tmp_path: Path, has_base_hot: bool, more: str, is_mandatory: bool
) -> None:
    """SOL001 VduCp: a mandatory requirement is refused by name where kubevnfm makes the port, others are warnings."""
    files = {**v1_files(), "Definitions/flavour_simple.yaml": _interface(REQUIREMENT % more)}
    files = {name: text for name, text in files.items() if has_base_hot or not name.startswith("BaseHOT/")}
    path = package(tmp_path, files)
    place = "masterNode_CP1: network interface requirement fast (SRIOV): "
    if is_mandatory and not has_base_hot:
        with pytest.raises(PackageRefused, match=re.escape(place) + "mandatory"):
            read_package(path)
        return
    found = read_package(path)
    cp = found.vnfd.flavour("simple").cps["masterNode_CP1"]
    assert (cp.vnic_type, [one.is_mandatory for one in cp.interface_requirements]) == ("normal", [is_mandatory])
    expected = "the Base HOT has to fulfil it" if has_base_hot else "not supported, so it has no effect"
    assert [one for one in found.warnings if place in one] == [f"Definitions/flavour_simple.yaml: {place}{expected}"]


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        ("vnic_type: requirements", "masterNode_CP1.vnic_type: requirements; normal, virtio, direct"),
        (REQUIREMENT % ", support_mandatory: y", "support_mandatory: true or false expected, got 'y'"),
        ("virtual_network_interface_requirements: [fast]", "requirements[0]: a map expected"),
    ],
)
def test_an_interface_that_cannot_be_is_refused(tmp_path: Path, body: str, rule: str) -> None:
    files = {name: text for name, text in v1_files().items() if not name.startswith("BaseHOT/")}
    with pytest.raises(PackageRefused, match=re.escape(rule)):
        read_package(package(tmp_path, {**files, "Definitions/flavour_simple.yaml": _interface(body)}))


def test_a_kuryr_vnfd_without_any_resource_is_legal(tmp_path: Path) -> None:
    """SEQ-015."""
    single = dedent("""\
        tosca_definitions_version: tosca_simple_yaml_1_2
        imports: [types.yaml]
        topology_template:
          inputs:
            flavour: {default: cluster_install}
          substitution_mappings: {node_type: acme.nodes.Cluster}
          node_templates:
            VNF:
              type: acme.nodes.Cluster
              properties: {flavour_id: {get_input: flavour}}
              interfaces:
                Vnflcm:
                  instantiate_end: {implementation: mgmt-drivers-kubernetes}
              artifacts:
                mgmt-drivers-kubernetes:
                  type: tosca.artifacts.Implementation.Python
                  file: Scripts/kubernetes_mgmt.py
        """)
    files = with_meta(
        {"Definitions/top.yaml": single, "Definitions/types.yaml": TYPES, "Scripts/kubernetes_mgmt.py": "pass\n"}
    )
    vnfd = vnfd_of(tmp_path, files)
    assert list(vnfd.flavours) == ["cluster_install"]
    assert vnfd.flavour("cluster_install").initial_counts() == {}


def test_user_data_gets_the_flavours_template_as_tacker_gives_it(tmp_path: Path) -> None:
    csar = open_csar(zip_of(tmp_path / "package.zip", v1_files()))
    template = flavour_template(csar, "complex")["topology_template"]
    assert template["substitution_mappings"]["properties"]["flavour_id"] == "complex"
    assert "requirements" not in template["substitution_mappings"]
    assert "masterNode" in template["node_templates"]
    with pytest.raises(UnknownFlavour):
        flavour_template(csar, "medium")


def test_an_unpacked_copy_without_its_images_still_has_its_flavours(tmp_path: Path) -> None:
    files = {**v1_files(), "Files/images/ubuntu.img": "image"}
    csar = open_csar(zip_of(tmp_path / "package.zip", with_meta(files, listed=("Files/images/ubuntu.img",))))
    extract(csar, tmp_path / "unpacked", skip=lambda name: name.startswith("Files/images/"))
    copy = FolderFiles(tmp_path / "unpacked")
    assert flavour_template(copy, "simple") == flavour_template(csar, "simple")
    assert list(read_vnfd(copy).flavours) == ["simple", "complex"]


def test_attributes_that_the_package_marks_as_secret_are_known(tmp_path: Path) -> None:
    types = dedent("""\
        data_types:
          acme.datatypes.Login: {derived_from: tosca.datatypes.Credential}
          acme.datatypes.Pin: {derived_from: string, metadata: {sensitive: 'true'}}
          acme.datatypes.ShortPin: {derived_from: acme.datatypes.Pin}
          acme.datatypes.Parameters:
            properties:
              community: {type: string, metadata: {sensitive: true}}
              colour: {type: string, metadata: {sensitive: false}}
              logins: {type: list, entry_schema: {type: acme.datatypes.Login}}
              by_name: {type: map, entry_schema: acme.datatypes.Login}
              pin: {type: acme.datatypes.ShortPin}
        """)
    files = {**v1_files(), "Definitions/marked.yaml": "tosca_definitions_version: tosca_simple_yaml_1_2\n" + types}
    name = next(name for name, text in files.items() if isinstance(text, str) and "- types.yaml" in text)
    files[name] = str(files[name]).replace("- types.yaml", "- types.yaml\n  - marked.yaml", 1)
    assert vnfd_of(tmp_path, files).secret_names == ("by_name", "community", "logins", "pin")
    assert vnfd_of(tmp_path).secret_names == ()
