"""The project's sample CNF."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kubevnfm_events.objects import VduTarget
from kubevnfm_lab.kubernetes import LabCluster

SAMPLE = Path(__file__).parents[3] / "deploy" / "samples" / "cnf" / "Files" / "kubernetes"


async def test_the_sample_cnf_is_applied_and_deleted(site: Any, lab: LabCluster) -> None:
    names = ("configmap", "deployment", "service", "poddisruptionbudget")
    files = {f"Files/kubernetes/{name}.yaml": (SAMPLE / f"{name}.yaml").read_text() for name in names}
    done = await site.apply(files, vdus=[VduTarget(vdu_id="VDU1", name="web", replicas=5)], namespace="default")
    assert len(done.objects) == 4
    assert len(done.pods) == 5
    await site.delete()
    assert lab.inventory()["objects"] == {}
