"""The calls of ONAP SO's CNF adapter, with the real helm program and a real API server (multicloud.md MC-130, MC-131, MC-134)."""

from __future__ import annotations

import io
import json
import shutil
import tarfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import aiohttp
import pytest
from callers.user import User
from patience import until
from real.real_cluster import GIVEN, RealCluster
from real.real_regions import RealRegion, registered

pytestmark = [
    pytest.mark.skipif(GIVEN is None, reason="no cluster is given: see docs/real-kubernetes.md"),
    pytest.mark.skipif(shutil.which("helm") is None, reason="there is no helm program"),
]

Call = Callable[..., Awaitable[Any]]
CHART: Final = {
    "vfw/Chart.yaml": "{apiVersion: v2, name: vfw, version: 1.0.0}\n",
    "vfw/values.yaml": "{image: {tag: '1.0'}, replicas: 1, greeting: chart, dropped: 1, sub-chart: {}}\n",
    "vfw/greeting.txt": "of the chart\n",
    "vfw/templates/web.yaml": """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}-web}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: {{ printf "nginx:%v" .Values.image.tag | quote }}}]}
""",
    "vfw/templates/settings.yaml": """\
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}-settings}
data: {greeting: {{ .Values.greeting | quote }}, file: {{ .Files.Get "greeting.txt" | quote }}, dropped: "{{ hasKey .Values "dropped" }}", old: {{ semverCompare "<1.28" .Capabilities.KubeVersion.Version | quote }}, sub: {{ index .Values "sub-chart" | toJson | quote }}}
""",
}
PROFILE: Final = {
    "manifest.yaml": "version: v1\ntype:\n  values: over.yaml\n"
    "  configresource: [{filepath: other.txt, chartpath: vfw/greeting.txt}]\n",
    "over.yaml": "{greeting: profile, dropped: null}\n",
    "other.txt": "of the profile\n",
}


def packed(files: Mapping[str, str]) -> bytes:
    """Return a tar.gz."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    return out.getvalue()


@pytest.fixture
async def region(user: User, cluster: RealCluster, tmp_path: Path) -> AsyncIterator[RealRegion]:
    """The given cluster as a region."""
    async with registered(user, cluster, tmp_path) as given:
        yield given


@pytest.fixture
async def call(user: User) -> AsyncIterator[Call]:
    """A caller as the CNF adapter: no media types, no conditions."""
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=120)) as session:

        async def send(method: str, path: str, status: int, body: Any = None) -> Any:
            data = body if body is None or isinstance(body, bytes) else json.dumps(body)
            url = f"{user.installation.url}/v1{path}"
            async with session.request(method, url, data=data, headers={"Prefer": "wait=100"}) as response:
                text = await response.text()
                assert response.status == status, f"{response.status}: {text}"
                return json.loads(text) if text.startswith(("{", "[")) else text

        yield send


async def test_so_brings_a_bundle_up_upgrades_it_and_takes_it_down(
    region: RealRegion, cluster: RealCluster, call: Call
) -> None:
    """MC-130, MC-131, MC-134: a definition, two profiles, an instance with its status, an upgrade, and nothing is left."""
    name, place = f"rb-{uuid4().hex[:8]}", region.place()
    bundle = f"/rb/definition/{name}/v1"
    await call("POST", "/rb/definition", 201, {"rb-name": name, "rb-version": "v1"})
    await call("POST", f"{bundle}/content", 200, packed(CHART))
    for profile in ("plain", "special"):
        facts = {"rb-name": name, "rb-version": "v1", "profile-name": profile, "namespace": place}
        facts |= {"kubernetes-version": "1.27.5"} if profile == "special" else {}
        await call("POST", f"{bundle}/profile", 201, facts)
    await call("POST", f"{bundle}/profile/special/content", 200, packed(PROFILE))
    asked = {
        "cloud-region": region.id.partition("/")[2], "rb-name": name, "rb-version": "v1", "profile-name": "special",
        "release-name": "fw1", "labels": None, "override-values": {"image.tag": "1.27", "replicas": "2", "sub-chart.on": "true"},
    }  # fmt: skip
    made = await call("POST", "/instance", 201, asked)
    assert (made["namespace"], made["release-name"]) == (place, "fw1")
    assert sorted((each["GVK"]["Kind"], each["Name"]) for each in made["resources"]) == [
        ("ConfigMap", "fw1-settings"),
        ("Deployment", "fw1-web"),
        ("Namespace", place),
    ]
    settings = await cluster.get(f"/api/v1/namespaces/{place}/configmaps/fw1-settings")
    assert settings is not None
    assert settings["data"] == {
        "greeting": "profile", "file": "of the profile\n", "dropped": "false", "old": "true", "sub": '{"on":true}',
    }  # fmt: skip
    web = await cluster.get(f"/apis/apps/v1/namespaces/{place}/deployments/fw1-web")
    assert web is not None
    assert (web["spec"]["replicas"], web["spec"]["template"]["spec"]["containers"][0]["image"]) == (2, "nginx:1.27")
    here = f"/instance/{made['id']}"
    status = await call("GET", f"{here}/status", 200)
    kinds = sorted(each["GVK"]["Kind"] for each in status["resourcesStatus"])
    assert (status["ready"], kinds) == (True, ["ConfigMap", "Deployment", "Namespace", "Pod", "Pod"])
    of_place = [each for each in status["resourcesStatus"] if each["GVK"]["Kind"] != "Namespace"]
    assert all(each["status"]["metadata"]["namespace"] == place for each in of_place)
    pods = await call("GET", f"{here}/query?ApiVersion=v1&Kind=Pod", 200)
    assert pods["resourceCount"] == 2
    (vnf,) = (await region.call("GET", f"/vnf_instances?namespace={place}")).must(200).json
    assert (vnf["vnf_instance_name"], vnf["status"]) == (made["id"], "READY")

    done = await call("POST", f"{here}/upgrade", 201, {**asked, "profile-name": "plain", "override-values": {}})
    assert done["request"]["profile-name"] == "plain"
    settings = await cluster.get(f"/api/v1/namespaces/{place}/configmaps/fw1-settings")
    assert settings is not None
    assert settings["data"] == {
        "greeting": "chart", "file": "of the chart\n", "dropped": "true", "old": "false", "sub": "{}",
    }  # fmt: skip
    web = await cluster.get(f"/apis/apps/v1/namespaces/{place}/deployments/fw1-web")
    assert web is not None
    assert (web["spec"]["replicas"], web["spec"]["template"]["spec"]["containers"][0]["image"]) == (1, "nginx:1.0")

    assert "instances are made of it" in await call("DELETE", bundle, 409)
    await call("DELETE", here, 202)

    async def gone() -> bool | None:
        listed = await call("GET", f"/instance?rb-name={name}", 200)
        return listed == [] or None

    await until(gone, timeout_s=60)
    assert await region.is_empty(place)
    await call("DELETE", bundle, 204)
