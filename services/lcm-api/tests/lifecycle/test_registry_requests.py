"""Private registries of a request against the package."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest
from certificates import Authority
from kubevnfm_cluster import ClusterParameters
from kubevnfm_events import PackageRef
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_lcm_api.lifecycle.domain.ports import PackageCatalogue
from kubevnfm_lcm_api.lifecycle.requests.registries import check_certificates

LOGIN = {"ssh_cp_name": "CP1", "username": "ubuntu", "password": "x"}


class OneFile:
    """A package with one file."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    async def file(self, package_id: str, path: str, *, limit_bytes: int) -> bytes | None:
        return self.content if path == "Files/ca.crt" and len(self.content) <= limit_bytes else None


async def test_a_file_that_is_no_certificate_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    """2.6, SEQ-137."""
    registries = [
        {"connection_type": 0, "server": "r:5000"},
        {"connection_type": 1, "server": "s:5000", "certificate_path": "Files/ca.crt"},
    ]
    cluster = ClusterParameters.model_validate(
        {
            "script_path": "x",
            "master_node": {**LOGIN, "cluster_cp_name": "CP1"},
            "worker_node": LOGIN,
            "private_registry_connection_info": registries,
        }
    )
    package = PackageRef(package_id="p", vnfd_id="d")
    right = Authority(tmp_path).file.read_bytes()
    await check_certificates(cast("PackageCatalogue", OneFile(right)), package, cluster)
    await check_certificates(cast("PackageCatalogue", OneFile(right + right)), package, cluster)
    for wrong in (b"a: 1\n", b"", right[:-40], right + b"\n" * 2**20):
        with pytest.raises(Unprocessable, match="not a certificate in PEM form") as caught:
            await check_certificates(cast("PackageCatalogue", OneFile(wrong)), package, cluster)
        assert caught.value.field.endswith("private_registry_connection_info/1/certificate_path")
