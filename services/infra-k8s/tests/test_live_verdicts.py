"""Verdicts on objects that were read once (multicloud.md MC-049)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
from kubevnfm_clients.multicloud.verdicts import HttpVerdicts, ObjectVerdict, SeenObject
from kubevnfm_infra_k8s.adapters.documents import StoredReleases
from kubevnfm_infra_k8s.adapters.http_verdicts import verdict_routes
from kubevnfm_infra_k8s.domain.objects import ObjectKey
from kubevnfm_infra_k8s.domain.reading.live_verdicts import LiveVerdicts
from kubevnfm_infra_k8s.domain.release import Entry, Release
from kubevnfm_kit.clock import SystemClock
from kubevnfm_kit.http import serving
from kubevnfm_kit.internal import internal_app
from kubevnfm_store.sqlite.store import SqliteStore

OLD = datetime.now(UTC) - timedelta(hours=1)
JOB = ObjectKey("batch/v1", "Job", "ns", "done")


def seen(
    api_version: str, kind: str, body: dict[str, Any] | None = None, *, created: datetime = OLD, note: str = ""
) -> SeenObject:
    about = {"vnf_instance_id": "i1", "api_version": api_version, "kind": kind, "namespace": "ns", "name": "done"}
    if body is None:
        return SeenObject.model_validate(about)
    metadata = {
        "creationTimestamp": created.isoformat(),
        "generation": 1,
        "annotations": {"kubevnfm.io/ready-when": note} if note else {},
    }
    return SeenObject.model_validate(
        {**about, "body": {"apiVersion": api_version, "kind": kind, "metadata": metadata, **body}}
    )


async def test_an_object_is_judged_by_the_rules_of_waits(store: SqliteStore) -> None:
    """MC-049: over the internal API; a Job that was complete may be gone, and what cannot be understood hides nothing else."""
    releases = StoredReleases(store)
    await releases.save(Release("i1", "https://k", entries=[Entry(JOB, "f.yaml", "", is_complete=True)]))
    verdicts = LiveVerdicts(releases, SystemClock(), settle_s=5.0)
    deployment = {
        "spec": {"replicas": 2},
        "status": {"observedGeneration": 1, "updatedReplicas": 2, "readyReplicas": 1},
    }
    table = (
        (seen("apps/v1", "Deployment", deployment), "InProgress", "0 of 2 ready"),
        (seen("apps/v1", "Deployment"), "NotFound", "does not exist"),
        (seen("v1", "ConfigMap", {"data": {}}), "Current", ""),
        (seen("v1", "PersistentVolumeClaim", {"status": {"phase": "Pending"}}), "Current", ""),
        (seen("v1", "Pod", {"status": {"phase": "Failed", "message": "evicted"}}), "Failed", "evicted"),
        (seen("example.org/v1", "Own", {"spec": {}}), "Current", ""),
        (seen("example.org/v1", "Own", {"spec": {}}, created=datetime.now(UTC) + timedelta(hours=1)), "InProgress", "no status yet"),
        (seen("example.org/v1", "Own", {"status": {"phase": "Up"}}, note="status.phase == Up"), "Current", ""),
        (seen(*JOB.api_kind), "Current", "has done its work, and does not exist any more"),
        (seen("batch/v1", "CronJob"), "NotFound", "does not exist"),
    )  # fmt: skip
    async with (
        serving(internal_app(verdict_routes(verdicts), token="token"), host="127.0.0.1", port=0) as port,
        aiohttp.ClientSession() as session,
    ):
        client = HttpVerdicts(f"http://127.0.0.1:{port}", "token", session)
        for asked, judgement, message in table:
            assert await client.judge(asked) == ObjectVerdict.model_validate(
                {"judgement": judgement, "message": message}
            ), asked
        machine = {
            "spec": {"runStrategy": "Always"},
            "status": {
                "printableStatus": "Running", "observedGeneration": 1, "desiredGeneration": 2,
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }  # fmt: skip
        verdict = await client.judge(seen("kubevirt.io/v1", "VirtualMachine", machine))
        assert (verdict.judgement, verdict.restart_required) == ("Current", True)
        for body, note in (
            ({"status": {}}, "***"),
            ({"metadata": {"creationTimestamp": "?"}}, ""),
        ):
            assert (await client.judge(seen("v1", "Secret", body, note=note))).judgement == "Unknown", body
