"""Taking a package in as a whole."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from kubevnfm_csar.errors import PackageRefused
from kubevnfm_csar.files import inside
from kubevnfm_csar.package import Package, read_package
from packages.package_builder import META, ONE_VNFD, package, v1_files, zip_of


def test_the_listing_parts_descriptor_images_and_artifacts(tmp_path: Path) -> None:
    path = package(tmp_path, {**v1_files(), "Files/images/ubuntu.img": "image"})
    found = read_package(path)
    assert found.checksum.hash == hashlib.sha256(path.read_bytes()).hexdigest()
    assert found.entry == "Definitions/top.yaml"
    assert set(found.descriptor_files) == {
        META,
        "Definitions/top.yaml",
        "Definitions/types.yaml",
        "Definitions/flavour_simple.yaml",
        "Definitions/flavour_complex.yaml",
    }
    assert "Files/images/ubuntu.img" not in {one.path for one in found.artifacts}
    script = found.artifact("Scripts/install_k8s_cluster.sh")
    assert script is not None
    assert (script.content_type, script.checksum.algorithm) == ("text/plain", "SHA-256")
    unlisted = found.artifact("UserData/k8s_cluster_user_data.py")
    assert unlisted is not None
    driver = hashlib.sha256(b"class KubernetesClusterUserData: ...\n").hexdigest()
    assert (unlisted.content_type, unlisted.checksum.algorithm, unlisted.checksum.hash) == (
        "text/x-python",
        "SHA-256",
        driver,
    )
    assert found.manifests == ("Files/kubernetes/nfs-pv1.yaml",)
    assert found.base_hot_flavours == ("simple", "complex")
    assert Package.model_validate_json(found.model_dump_json()) == found


def test_templates_of_a_flavour_that_is_not_there_are_a_warning(tmp_path: Path) -> None:
    path = package(tmp_path, {**v1_files(), "BaseHOT/simpel/x.yaml": "", "BaseHOT/simpel/y.yaml": ""})
    (warning,) = read_package(path).warnings
    assert warning.startswith("BaseHOT/simpel/: no flavour simpel: the VNFD has simple, complex")
    path = package(tmp_path, {**v1_files(), "Files/terraform/main.tf": "", "Files/terraform/more.tf": ""})
    (warning,) = read_package(path).warnings
    assert warning == "Files/terraform/main.tf: Terraform is not supported; its files (2) are not used"


def test_a_package_for_terraform_is_refused_by_name(tmp_path: Path) -> None:
    """One that can be deployed otherwise may have such a file beside: nothing reads it."""
    terraform = {"Files/terraform/main.tf": "provider x {}\n", "Files/terraform/a.tf.json": "{}"}
    path = zip_of(tmp_path / "package.zip", {"one.yaml": ONE_VNFD, **terraform})
    with pytest.raises(PackageRefused, match=r"Files/terraform/a.tf.json.*Terraform is not supported"):
        read_package(path)


def test_a_package_without_tosca_metadata_needs_its_vnfd_alone(tmp_path: Path) -> None:
    found = read_package(zip_of(tmp_path / "package.zip", {"one.yaml": ONE_VNFD, "docs/readme.md": "read me"}))
    assert (found.entry, found.manifest, found.descriptor_files) == ("one.yaml", None, ("one.yaml",))
    assert [one.path for one in found.artifacts] == ["docs/readme.md"]
    (warning,) = found.warnings
    assert "no digest is checked" in warning


def test_of_several_files_in_the_root_the_vnfd_has_the_manifests_name(tmp_path: Path) -> None:
    files = {"one.yaml": ONE_VNFD, "values.yaml": "a: 1\n"}
    path = zip_of(tmp_path / "package.zip", {**files, "one.mf": "metadata:\n"})
    assert (read_package(path).entry, read_package(path).warnings) == ("one.yaml", ())
    with pytest.raises(PackageRefused, match="or one with the manifest's name; 2 found"):
        read_package(zip_of(tmp_path / "package.zip", files))


@pytest.mark.parametrize("path", ["", "/etc/passwd", "../x", "a/../../x", "a\\b", "."])
def test_a_path_outside_the_package_has_no_plain_form(path: str) -> None:
    assert inside(path) is None


def test_a_path_with_a_leading_dot_has_the_plain_form_without() -> None:
    assert inside("./UserData/k8s_cluster_user_data.py") == "UserData/k8s_cluster_user_data.py"
    assert inside(".hidden/a.py") == ".hidden/a.py"
