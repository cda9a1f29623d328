"""Taking a package in as a whole."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from kubevnfm_csar import Package, PackageRefused, inside, read_package
from package_builder import META, package, v1_files


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


def test_templates_of_a_flavour_that_is_not_there_are_refused(tmp_path: Path) -> None:
    path = package(tmp_path, {**v1_files(), "BaseHOT/simpel/x.yaml": "heat_template_version: 2013-05-23\n"})
    with pytest.raises(PackageRefused, match="no flavour simpel"):
        read_package(path)


@pytest.mark.parametrize("path", ["", "/etc/passwd", "../x", "a/../../x", "a\\b", "."])
def test_a_path_outside_the_package_has_no_plain_form(path: str) -> None:
    assert inside(path) is None


def test_a_path_with_a_leading_dot_has_the_plain_form_without() -> None:
    assert inside("./UserData/k8s_cluster_user_data.py") == "UserData/k8s_cluster_user_data.py"
    assert inside(".hidden/a.py") == ".hidden/a.py"
