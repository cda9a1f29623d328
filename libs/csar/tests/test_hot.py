"""The Heat templates of a flavour."""

from __future__ import annotations

from pathlib import Path

import pytest
from kubevnfm_csar.archive import extract, open_csar
from kubevnfm_csar.errors import PackageRefused
from kubevnfm_csar.files import FolderFiles
from kubevnfm_csar.hot import read_base_hot
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
