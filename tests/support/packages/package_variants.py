"""Variants of the sample packages: management drivers, other files, another descriptor."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from tempfile import mkdtemp
from typing import Final

import yaml
from kubevnfm_csar.pack import pack
from kubevnfm_csar.vnfd.ansible import DRIVERS as ANSIBLE

from packages.made_once import made_once

OTHER_CNF: Final = "8a7c3c6d-0e22-4b74-9a1f-4c2d8e6f3ba1"
"""A VNFD id for another version of the sample `cnf`."""
CAPI_MANAGEMENT: Final = "3a0e6c0e-5d0b-4a52-9a36-0f6a5a3a7f01"
"""The VNFD id of the sample ``capi-management``."""
CAPI_WORKLOAD: Final = "3a0e6c0e-5d0b-4a52-9a36-0f6a5a3a7f02"
"""The VNFD id of the sample `capi-workload`."""
OTHER_WORKLOAD: Final = "3a0e6c0e-5d0b-4a52-9a36-0f6a5a3a7f99"
"""A VNFD id for another version of the sample `capi-workload`."""
OTHER_VM: Final = "d1b8f2a4-55c6-4e0b-9d3f-6f2b7c8e9a02"
"""A VNFD id for another version of the sample `vm`."""
SAMPLES: Final = Path(__file__).parents[3] / "deploy/samples"


KEYED_CLUSTER: Final = "0d7c5c5e-3c0b-4d4e-8a35-5f7a3d0f4a11"
"""The VNFD id of `keyed_cluster`."""
_CLUSTER: Final = "4cf1e5fe-5a37-4ee8-a5a7-64bd4da8ff2b"
"""That of the sample."""
_KEY_PAIR: Final[Mapping[str, object]] = {
    "type": "OS::Nova::KeyPair",
    "properties": {"name": {"get_param": "OS::stack_id"}, "public_key": {"get_param": "ssh_public_key"}},
}


@made_once
def keyed_cluster(folder: Path, /, **declaration: str) -> bytes:
    """Return ``cluster`` with machines that refuse passwords, and accept the key of the parameter ``ssh_public_key``.

    ``declaration``: more attributes of the parameter.
    """
    root = Path(mkdtemp(dir=folder)) / "package"
    shutil.copytree(SAMPLES / "cluster", root, ignore=shutil.ignore_patterns("requests"))
    hot = root / "BaseHOT/simple"
    top = yaml.safe_load((hot / "cluster_hot.yaml").read_text(encoding="utf-8"))
    top["parameters"]["ssh_public_key"] = {"type": "string", **declaration}
    for role in ("master", "worker"):
        top["resources"][f"{role}_instance"]["properties"]["resource"]["properties"]["key_name"] = {
            "get_resource": "key_pair"
        }
        file = hot / f"nested/{role}.hot.yaml"
        nested = yaml.safe_load(file.read_text(encoding="utf-8"))
        nested["parameters"]["key_name"] = {"type": "string"}
        nested["resources"][f"{role}Node"]["properties"] |= {
            "key_name": {"get_param": "key_name"},
            "user_data_format": "RAW",
            "user_data": "#cloud-config\nssh_pwauth: false\n",
        }
        file.write_text(yaml.safe_dump(nested), encoding="utf-8")
    top["resources"]["key_pair"] = dict(_KEY_PAIR)
    (hot / "cluster_hot.yaml").write_text(yaml.safe_dump(top), encoding="utf-8")
    for file in (root / "Definitions").glob("*.yaml"):
        text = file.read_text(encoding="utf-8")
        file.write_text(text.replace(_CLUSTER, KEYED_CLUSTER), encoding="utf-8")
    archive = root.with_suffix(".zip")
    pack(root, archive)
    return archive.read_bytes()


@made_once
def changed_package(folder: Path, sample: str, files: Mapping[str, str | None]) -> bytes:
    """Return a sample package with other files; None: without that file."""
    root = Path(mkdtemp(dir=folder)) / "package"
    shutil.copytree(SAMPLES / sample, root, ignore=shutil.ignore_patterns("requests"))
    for name, text in files.items():
        if text is None:
            (root / name).unlink()
        else:
            (root / name).write_text(text, encoding="utf-8")
    archive = root.with_suffix(".zip")
    pack(root, archive)
    return archive.read_bytes()


@made_once
def scripted_cluster(folder: Path, script: str = "print('a cluster')\n", *, vnfd_id: str = _CLUSTER) -> bytes:
    """Return ``cluster`` with a script of its own in the place of the driver."""
    root = Path(mkdtemp(dir=folder)) / "package"
    shutil.copytree(SAMPLES / "cluster", root, ignore=shutil.ignore_patterns("requests"))
    for file in (root / "Definitions").glob("*.yaml"):
        text = file.read_text(encoding="utf-8").replace("mgmt-drivers-kubernetes", "own").replace(_CLUSTER, vnfd_id)
        file.write_text(text.replace("Scripts/kubernetes_mgmt.py", "Scripts/own.py"), encoding="utf-8")
    (root / "Scripts/own.py").write_text(script, encoding="utf-8")
    archive = root.with_suffix(".zip")
    pack(root, archive)
    return archive.read_bytes()


@made_once
def variant(
    folder: Path,
    sample: str = "cnf",
    *,
    vnfd_id: str | None = None,
    phases: Mapping[str, str] = {},
    files: Mapping[str, str] = {},
    vdus: Mapping[str, str] = {},
    cps: Mapping[str, str | None] = {},
) -> bytes:
    """Return ``cnf`` or ``vm`` with a management driver by phase, further or other files, and further VDUs.

    ``vdus``: ``properties.name`` by VDU; ``cps``: connection points of VDU1, with their internal virtual links or None. As in packages for Tacker, each driver is an artifact with a script.
    """
    root = Path(mkdtemp(dir=folder)) / "package"
    shutil.copytree(SAMPLES / sample, root, ignore=shutil.ignore_patterns("requests"))
    descriptor = root / f"Definitions/{sample}.vnfd.yaml"
    whole = yaml.safe_load(descriptor.read_text(encoding="utf-8"))
    nodes = whole["topology_template"]["node_templates"]
    if vnfd_id is not None:
        nodes["VNF"]["properties"]["descriptor_id"] = vnfd_id
    for vdu_id, name in vdus.items():
        profile = {"min_number_of_instances": 1, "max_number_of_instances": 1}
        nodes[vdu_id] = {
            "type": "tosca.nodes.nfv.Vdu.Compute",
            "properties": {"name": name, "description": name, "vdu_profile": profile},
        }
    for name, link in cps.items():
        bound = [{"virtual_binding": "VDU1"}, *([] if link is None else [{"virtual_link": link}])]
        nodes[name] = {
            "type": "tosca.nodes.nfv.VduCp",
            "properties": {"layer_protocols": ["ipv4"]},
            "requirements": bound,
        }
        if link is not None:
            nodes[link] = {
                "type": "tosca.nodes.nfv.VnfVirtualLink",
                "properties": {
                    "connectivity_type": {"layer_protocols": ["ipv4"]},
                    "description": link,
                    "vl_profile": {
                        "max_bitrate_requirements": {"root": 1},
                        "min_bitrate_requirements": {"root": 1},
                    },
                },
            }
    if phases:
        operations = {phase: {"implementation": driver} for phase, driver in phases.items()}
        nodes["VNF"]["interfaces"] = {"Vnflcm": operations}
        nodes["VNF"]["artifacts"] = {
            driver: {"type": "tosca.artifacts.Implementation.Python", "file": f"../Scripts/{driver}.py"}
            for driver in set(phases.values())
        }
    scripts = {
        f"Scripts/{driver}.py": "# what Tacker would load\n" for driver in phases.values() if driver not in ANSIBLE
    }
    descriptor.write_text(yaml.safe_dump(whole, sort_keys=False), encoding="utf-8")
    for name, text in {**scripts, **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    archive = root.with_suffix(".zip")
    pack(root, archive)
    return archive.read_bytes()
