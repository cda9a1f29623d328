"""A CNF that is a Helm chart, by the real helm program on a real cluster. Skipped without these."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from callers.user import GRACEFUL, User
from packages.package_variants import variant
from real.real_cluster import GIVEN, RealCluster
from real.real_cnfs import VIM

pytestmark = [
    pytest.mark.skipif(GIVEN is None, reason="no cluster is given: see docs/real-kubernetes.md"),
    pytest.mark.skipif(shutil.which("helm") is None, reason="there is no helm program"),
]

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web-{{ .Release.Name }}}
spec:
  replicas: {{ .Values.web.replicaCount }}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: {{ printf "nginx:%s" .Values.image.tag | quote }}}]}
"""
SECRET = """\
apiVersion: v1
kind: Secret
metadata: {name: login-{{ .Release.Name }}}
stringData: {chance: {{ randAlphaNum 12 | quote }}, password: {{ required "a password expected" .Values.password | quote }}}
"""
BUDGET = """\
{{- if .Capabilities.APIVersions.Has "policy/v1/PodDisruptionBudget" }}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web-{{ .Release.Name }}}
spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}
{{- end }}
"""
FILES = {
    "Files/web/Chart.yaml": "{apiVersion: v2, name: web, version: 1.0.0, kubeVersion: '>= 1.25.0-0'}\n",
    "Files/web/values.yaml": "{image: {tag: '1.0'}, web: {replicaCount: 9}}\n",
    "Files/web/templates/deployment.yaml": DEPLOYMENT,
    "Files/web/templates/secret.yaml": SECRET,
    "Files/web/templates/budget.yaml": BUDGET,
}


async def test_a_chart_is_deployed_scaled_healed_and_terminated(
    user: User, cluster: RealCluster, tmp_path: Path
) -> None:
    """CR-005, CR-030, CR-033, CR-034."""
    vnfd_id = str(uuid4())
    assert (await user.upload(variant(tmp_path, vnfd_id=vnfd_id, files=FILES)))["onboardingState"] == "ONBOARDED"
    vim = (await user.vims())[VIM]
    async with cluster.namespace() as namespace:
        cnf_id = await user.create(vnfd_id)
        parameters = {
            "namespace": namespace,
            "helm_chart_path": "Files/web",
            "helm_parameters": {"image.tag": "1.27"},
            "helm_value_names": {"VDU1": {"replica": "web.replicaCount"}},
        }
        body = {"flavourId": "simple", "additionalParams": parameters}
        body = user.on_vim(body, {"vimId": vim["id"], "vimType": "ETSINFV.HELM.V_3"})
        failed = await user.rest(await user.start(cnf_id, "instantiate", body))
        assert failed["state"] == "FAILED_TEMP"
        assert "a password expected" in failed["error"]["detail"]
        assert (await user.act(failed["id"], "rollback"))["state"] == "ROLLED_BACK"

        parameters["helm_parameters"] = {"image.tag": "1.27", "password": "swordfish-12"}
        await user.do(cnf_id, "instantiate", body)
        release = f"vnf{cnf_id.replace('-', '')}"
        path = f"/apis/apps/v1/namespaces/{namespace}/deployments/web-{release}"
        made = await cluster.get(path)
        assert made is not None
        assert made["spec"]["replicas"] == 2
        assert made["spec"]["template"]["spec"]["containers"][0]["image"] == "nginx:1.27"
        assert await cluster.get(f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets/web-{release}")

        await user.do(cnf_id, "scale", {"type": "SCALE_OUT", "aspectId": "web_aspect"})
        await user.do(cnf_id, "heal", {})
        again = await cluster.get(path)
        assert again is not None
        assert again["metadata"]["uid"] != made["metadata"]["uid"]
        assert again["spec"]["replicas"] == 3
        assert len((await user.instance(cnf_id))["instantiatedVnfInfo"]["vnfcResourceInfo"]) == 3
        await user.do(cnf_id, "terminate", GRACEFUL)
        await user.delete(cnf_id)
        for kind in ("secrets", "configmaps"):
            found = await cluster.get(
                f"/api/v1/namespaces/{namespace}/{kind}?labelSelector=kubevnfm.io/vnf-instance-id"
            )
            assert found is not None
            assert not found["items"]
        assert await cluster.get(path) is None
    assert not any("swordfish-12" in text for text in user.heard)


async def test_the_releases_of_version_1_are_deployed_scaled_healed_and_terminated(
    user: User, cluster: RealCluster, tmp_path: Path
) -> None:
    """CR-005a, CR-030, CR-033, CR-034: two releases of one chart, by the body that Tacker's clients send."""
    vnfd_id = str(uuid4())
    assert (await user.upload(variant(tmp_path, vnfd_id=vnfd_id, files=FILES)))["onboardingState"] == "ONBOARDED"
    vim = (await user.vims())[VIM]
    async with cluster.namespace() as namespace:
        cnf_id = await user.create(vnfd_id)
        one = {"exthelmchart": "false", "helmchartfile_path": "Files/web"}
        parameters: dict[str, Any] = {
            "namespace": namespace,
            "use_helm": "true",
            "using_helm_install_param": [
                {**one, "helmreleasename": "back", "helmparameter": ["web.replicaCount=1,image.tag=1.27"]},
                {**one, "helmreleasename": "front", "helmparameter": ["password=swordfish-13"]},
            ],
            "helm_replica_values": {"web_aspect": "web.replicaCount"},
            "vdu_mapping": {"VDU1": {"kind": "Deployment", "name": "web-front", "helmreleasename": "front"}},
        }
        body = {"flavourId": "simple", "additionalParams": parameters}
        body = user.on_vim(body, {"vimId": vim["id"], "vimType": "ETSINFV.KUBERNETES.V_1"})
        failed = await user.rest(await user.start(cnf_id, "instantiate", body))
        assert (failed["state"], "a password expected" in failed["error"]["detail"]) == ("FAILED_TEMP", True)
        assert (await user.act(failed["id"], "rollback"))["state"] == "ROLLED_BACK"

        parameters["using_helm_install_param"][0]["helmparameter"].append("password=swordfish-14")
        await user.do(cnf_id, "instantiate", body)
        paths = {name: f"/apis/apps/v1/namespaces/{namespace}/deployments/web-{name}" for name in ("back", "front")}

        async def replicas() -> dict[str, int]:
            return {name: (await cluster.get(path) or {})["spec"]["replicas"] for name, path in paths.items()}

        assert await replicas() == {"back": 1, "front": 2}
        await user.do(cnf_id, "scale", {"type": "SCALE_OUT", "aspectId": "web_aspect"})
        await user.do(cnf_id, "heal", {})
        assert await replicas() == {"back": 1, "front": 3}
        assert len((await user.instance(cnf_id))["instantiatedVnfInfo"]["vnfcResourceInfo"]) == 3
        await user.do(cnf_id, "terminate", GRACEFUL)
        await user.delete(cnf_id)
        assert [await cluster.get(path) for path in paths.values()] == [None, None]
    assert not any("swordfish-1" in text for text in user.heard)
