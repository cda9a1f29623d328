"""Variants of the sample packages: management drivers, other files, another descriptor."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from tempfile import mkdtemp
from typing import Final

import yaml
from kubevnfm_csar.pack import pack

OTHER_CNF: Final = "8a7c3c6d-0e22-4b74-9a1f-4c2d8e6f3ba1"
"""A VNFD id for another version of the sample `cnf`."""
_SAMPLES: Final = Path(__file__).parents[2] / "deploy/samples"


def variant(
    folder: Path,
    sample: str = "cnf",
    *,
    vnfd_id: str | None = None,
    phases: Mapping[str, str] = {},
    files: Mapping[str, str] = {},
    vdus: Mapping[str, str] = {},
) -> bytes:
    """Return ``cnf`` or ``vm`` with a management driver by phase, further or other files, and further VDUs.

    ``vdus``: ``properties.name`` by VDU. As in packages for Tacker, each driver is an artifact with a script.
    """
    root = Path(mkdtemp(dir=folder)) / "package"
    shutil.copytree(_SAMPLES / sample, root, ignore=shutil.ignore_patterns("requests"))
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
    if phases:
        operations = {phase: {"implementation": driver} for phase, driver in phases.items()}
        nodes["VNF"]["interfaces"] = {"Vnflcm": operations}
        nodes["VNF"]["artifacts"] = {
            driver: {"type": "tosca.artifacts.Implementation.Python", "file": f"../Scripts/{driver}.py"}
            for driver in set(phases.values())
        }
    scripts = {f"Scripts/{driver}.py": "# what Tacker would load\n" for driver in phases.values()}
    descriptor.write_text(yaml.safe_dump(whole, sort_keys=False), encoding="utf-8")
    for name, text in {**scripts, **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    archive = root.with_suffix(".zip")
    pack(root, archive)
    return archive.read_bytes()
