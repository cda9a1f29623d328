"""Packing a folder, and the samples that the project ships."""

from __future__ import annotations

import json
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from kubevnfm_csar.archive import open_csar
from kubevnfm_csar.errors import PackageRefused
from kubevnfm_csar.files import FolderFiles
from kubevnfm_csar.hot import read_base_hot
from kubevnfm_csar.pack import main, pack
from kubevnfm_csar.vnfd.read import flavour_template, read_vnfd
from packages.package_builder import v1_files

SAMPLES = Path(__file__).parents[3] / "deploy/samples"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "package"
    for name, content in {**v1_files(), "requests/create.json": "{}", "Scripts/.hidden": "", "README.md": "#"}.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def test_every_artifact_is_listed_with_its_digest_and_files_beside_it_are_left_out(
    folder: Path, tmp_path: Path
) -> None:
    package = pack(folder, tmp_path / "out.zip")
    assert {one.path for one in package.artifacts if one.checksum is None} == set()
    assert "UserData/k8s_cluster_user_data.py" in package.files
    assert not {"requests/create.json", "README.md", "Scripts/.hidden"} & set(package.files)


def test_the_same_folder_gives_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    first = pack(folder, tmp_path / "one.zip")
    (folder / "Scripts/kubernetes_mgmt.py").touch(mode=0o755)
    assert pack(folder, tmp_path / "two.zip").checksum == first.checksum
    assert {info.date_time for info in zipfile.ZipFile(tmp_path / "one.zip").infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_a_folder_can_be_packed_by_several_at_one_time(folder: Path, tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as threads:
        packed = list(threads.map(lambda _: pack(folder, tmp_path / "one.zip"), range(8)))
    assert len({each.checksum for each in packed}) == 1
    assert not list(tmp_path.glob(".*")), "no draft is left"


def test_a_folder_that_onboarding_would_refuse_gives_no_package(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "Definitions/flavour_simple.yaml").unlink()
    out = tmp_path / "out.zip"
    assert main([str(folder), str(out)]) == 1
    assert "flavour_simple.yaml" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["package"]
    (folder / "TOSCA-Metadata/TOSCA.meta").unlink()
    with pytest.raises(PackageRefused, match="Entry-Definitions"):
        pack(folder, out)


@pytest.mark.parametrize("sample", ["cluster", "cnf", "registry", "vm"])
def test_the_samples_can_be_taken_in_and_their_requests_fit_them(sample: str, tmp_path: Path) -> None:
    """SEQ-043."""
    package = pack(SAMPLES / sample, tmp_path / "out.zip")
    requests = {path.stem: json.loads(path.read_text()) for path in (SAMPLES / sample / "requests").glob("*.json")}
    assert set(requests) >= {"create", "instantiate", "terminate"}
    assert requests["create"]["vnfdId"] == package.vnfd.vnfd_id
    flavour = package.vnfd.flavour(requests["instantiate"]["flavourId"])
    assert flavour.initial_counts(requests["instantiate"].get("instantiationLevelId"))
    for name in requests["instantiate"].get("additionalParams", {}).get("lcm-kubernetes-def-files", ()):
        assert name in package.manifests


@pytest.mark.parametrize("sample", sorted(path.parent.name for path in SAMPLES.glob("*/TOSCA-Metadata")))
def test_all_of_a_sample_is_known(sample: str) -> None:
    assert read_vnfd(FolderFiles(SAMPLES / sample)).warnings == ()


def test_the_sample_cluster_counts_its_workers_and_names_its_driver(tmp_path: Path) -> None:
    vnfd = pack(SAMPLES / "cluster", tmp_path / "out.zip").vnfd
    simple = vnfd.flavour("simple")
    by_level = {level: simple.initial_counts(level)["workerNode"] for level in simple.levels}
    assert by_level == {"smallest": 1, "instantiation_level_1": 2, "instantiation_level_2": 4, "largest": 10}
    assert simple.initial_counts() == {"masterNode": 1, "workerNode": 2}
    assert (simple.max_count("masterNode"), simple.max_count("workerNode")) == (1, 10)
    assert set(simple.phases) >= {"instantiate_end", "terminate_end"}


def test_the_sample_user_data_fills_what_the_sample_template_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack(SAMPLES / "cluster", tmp_path / "out.zip")
    csar = open_csar(tmp_path / "out.zip")
    hot = read_base_hot(csar, "simple")
    assert hot is not None
    base = ModuleType("tacker.vnfm.lcm_user_data.abstract_user_data")
    vars(base)["AbstractUserData"] = object
    parent = ModuleType("tacker.vnfm.lcm_user_data")
    vars(parent)["abstract_user_data"] = base
    for name, module in {
        "tacker": ModuleType("tacker"),
        "tacker.vnfm": ModuleType("tacker.vnfm"),
        "tacker.vnfm.lcm_user_data": parent,
        "tacker.vnfm.lcm_user_data.abstract_user_data": base,
    }.items():
        monkeypatch.setitem(sys.modules, name, module)
    code: dict[str, object] = {}
    exec(csar.open("UserData/cluster_user_data.py").read(), code)
    user_data: type = code["ClusterUserData"]  # type: ignore[assignment]  # a class, as its name in the request says
    cp = SimpleNamespace(cpd_id="workerNode_CP2")
    request = SimpleNamespace(
        instantiation_level_id="instantiation_level_2",
        ext_virtual_links=[SimpleNamespace(resource_id="net-id", ext_cps=[cp])],
    )
    images = {"masterNode": [SimpleNamespace(resource_identifier="image-id")]}
    filled = user_data.instantiate(  # type: ignore[attr-defined]  # known at run time only
        hot.user_data_form(), flavour_template(csar, "simple"), request, images
    )
    assert filled == {
        "nfv": {
            "VDU": {
                "masterNode": {"flavor": "m1.medium", "image": "image-id"},
                "workerNode": {"flavor": "m1.medium", "image": "ubuntu"},
            },
            "CP": {"masterNode_CP1": {"network": "net0"}, "workerNode_CP2": {"network": "net-id"}},
            "desired_capacity": {"master_instance": 1, "worker_instance": 4},
        }
    }
    request.instantiation_level_id = None
    again = user_data.instantiate({}, flavour_template(csar, "simple"), request, None)  # type: ignore[attr-defined]
    assert again["nfv"]["desired_capacity"] == {"master_instance": 1, "worker_instance": 2}
