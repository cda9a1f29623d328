"""The Heat templates of a flavour."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import pytest
from kubevnfm_csar.archive import extract, open_csar
from kubevnfm_csar.errors import PackageRefused
from kubevnfm_csar.files import FolderFiles
from kubevnfm_csar.hot import nested_templates, read_base_hot
from packages.package_builder import MASTER_HOT, TOP_HOT, package, v1_files


def test_templates_are_found_in_the_archive_and_in_the_folder_alike(tmp_path: Path) -> None:
    csar = open_csar(package(tmp_path))
    extract(csar, tmp_path / "unpacked")
    hot = read_base_hot(csar, "simple")
    assert hot == read_base_hot(FolderFiles(tmp_path / "unpacked"), "simple")
    assert hot is not None
    assert (hot.top.name, hot.top.text) == ("cluster.yaml", TOP_HOT)
    assert set(hot.nested) == {"nested_master.yaml", "nested_worker.yaml"}
    assert hot.file_texts["nested_master.yaml"] == MASTER_HOT
    assert set(hot.user_data_form()) == {"heat_template", "nested_master.yaml", "nested_worker.yaml"}


def test_a_group_leads_to_its_members_resources(tmp_path: Path) -> None:
    hot = read_base_hot(open_csar(package(tmp_path)), "simple")
    assert hot is not None
    assert hot.is_group("master_instance")
    assert not hot.is_group("vip_CP")
    member = hot.member("master_instance")
    assert member is not None
    assert member.resource_types == {"masterNode": "OS::Nova::Server", "masterNode_CP1": "OS::Neutron::Port"}
    assert hot.member("vip_CP") is None
    assert hot.top.parameters == {"nfv"}


def test_a_flavour_without_templates_has_none(tmp_path: Path) -> None:
    assert read_base_hot(open_csar(package(tmp_path)), "medium") is None


def with_file(name: str, template: str = MASTER_HOT) -> str:
    """A template whose first resource has a property that is the file's content."""
    return template + f"  own_text:\n    type: OS::Heat::Value\n    properties: {{value: {{get_file: {name}}}}}\n"


def test_files_that_templates_read_are_sent_with_them(tmp_path: Path) -> None:
    """As the openstack client does: relative to the template, base64 for what is no UTF-8; YAML is no template by that."""
    folder = "BaseHOT/simple"
    files: dict[str, str | bytes] = {
        **v1_files(),
        f"{folder}/cluster.yaml": with_file("[boot.sh]", TOP_HOT).replace("{get_file: [boot.sh]}", "{str_replace: {template:"
        " {get_file: boot.sh}, params: {x: {get_file: nested/cloud.yaml}, y: {get_file: disk}, z: {get_file: ./boot.sh}}}}"),
        f"{folder}/nested/nested_master.yaml": with_file("cloud.yaml"),
        f"{folder}/nested/nested_worker.yaml": with_file("../../../Scripts/zu\u0308rich.yaml"),
        f"{folder}/boot.sh": "#!/bin/sh\n",
        f"{folder}/disk": b"\xff\x00" * 40,
        f"{folder}/nested/cloud.yaml": "#cloud-config\n- [a]\n---\nb: 1\n",
        "Scripts/zürich.yaml": "\ufeffx",
    }  # fmt: skip
    csar = open_csar(package(tmp_path, files))
    hot = read_base_hot(csar, "simple")
    assert hot is not None
    assert set(hot.nested) == {"nested_master.yaml", "nested_worker.yaml"}
    assert {name: text for name, text in hot.file_texts.items() if name not in hot.nested} == {
        "boot.sh": "#!/bin/sh\n",
        "./boot.sh": "#!/bin/sh\n",
        "nested/cloud.yaml": "#cloud-config\n- [a]\n---\nb: 1\n",
        "cloud.yaml": "#cloud-config\n- [a]\n---\nb: 1\n",
        "disk": base64.encodebytes(b"\xff\x00" * 40).decode(),
        "../../../Scripts/zu\u0308rich.yaml": "\ufeffx",
    }
    assert set(nested_templates(hot.file_texts)) == set(hot.nested)
    extract(csar, tmp_path / "unpacked")
    assert read_base_hot(FolderFiles(tmp_path / "unpacked"), "simple") == hot


def test_a_nested_template_is_sent_under_the_name_that_its_user_has_for_it(tmp_path: Path) -> None:
    top = TOP_HOT.replace("type: nested_master.yaml", "type: nested/nested_master.yaml")
    hot = read_base_hot(open_csar(package(tmp_path, {**v1_files(), "BaseHOT/simple/cluster.yaml": top})), "simple")
    assert hot is not None
    assert hot.file_texts["nested/nested_master.yaml"] == hot.file_texts["nested_master.yaml"] == MASTER_HOT


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("absent.sh", "get_file: absent.sh: the path of a file in the package expected; it has no such file"),
        (
            "https://example.org/boot.sh",
            "get_file: https://example.org/boot.sh: the path of a file in the package expected",
        ),
        ("file:///etc/passwd", "get_file: file:///etc/passwd: the path of a file in the package expected"),
        ("/etc/passwd", "get_file: /etc/passwd: the path of a file in the package expected"),
        ("../../../../etc/passwd", "the path of a file in the package expected"),
        ("../../../Files/images/disk.img", "a file that is not below Files/images/ expected"),
        ("{get_param: network}", "get_file: the name of a file expected"),
        ("boot.sh", "get_file: boot.sh is BaseHOT/simple/nested/boot.sh here and BaseHOT/simple/boot.sh in another"),
        ("nested_worker.yaml", "get_file: nested_worker.yaml is nested_worker.yaml here and BaseHOT/simple/nested"),
        ("large", "more than the 4194304 bytes allowed for all files"),
    ],
)
def test_a_file_that_cannot_be_sent_refuses_the_package(tmp_path: Path, name: str, rule: str) -> None:
    folder = "BaseHOT/simple"
    template = with_file(name)
    files: dict[str, str | bytes] = {
        **v1_files(),
        f"{folder}/cluster.yaml": with_file("boot.sh", TOP_HOT),
        f"{folder}/nested/nested_master.yaml": template,
        f"{folder}/boot.sh": "a",
        f"{folder}/nested/boot.sh": "b",
        f"{folder}/nested/large": b"x" * (4 * 2**20),
        "Files/images/disk.img": "x",
    }
    if name == "nested_worker.yaml":  # one name for a template and for a file at another place
        files[f"{folder}/nested/nested_master.yaml"] = MASTER_HOT
        files[f"{folder}/cluster.yaml"] = with_file(name, TOP_HOT)
        files["nested_worker.yaml"] = "x"
    with pytest.raises(PackageRefused, match=re.escape(rule)):
        read_base_hot(open_csar(package(tmp_path, files)), "simple")


@pytest.mark.parametrize(
    ("extra", "rule"),
    [
        ({"BaseHOT/simple/second.yaml": TOP_HOT}, "exactly one template"),
        ({"BaseHOT/simple/cluster.yaml": "resources: {}\n"}, "heat_template_version is missing"),
        (
            {"BaseHOT/simple/cluster.yaml": TOP_HOT.replace("nested_worker", "nested_absent")},
            "nested_absent.yaml, which BaseHOT/simple/nested/ does not hold",
        ),
        ({"BaseHOT/simple/cluster.yaml": "heat_template_version: 2013-05-23\nresources: [a]\n"}, "a mapping of name"),
    ],
)
def test_templates_that_heat_could_not_use_are_refused(
    tmp_path: Path, extra: dict[str, str | bytes], rule: str
) -> None:
    with pytest.raises(PackageRefused, match=rule):
        read_base_hot(open_csar(package(tmp_path, {**v1_files(), **extra})), "simple")
