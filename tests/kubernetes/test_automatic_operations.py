"""Automatic scaling and healing of a CNF on a real Kubernetes API server."""

from __future__ import annotations

from pathlib import Path

import pytest
from callers.automatic import actions_of, ended, operations_of
from callers.user import GRACEFUL, User
from real import alertmanager
from real.real_cluster import GIVEN, RealCluster
from real.real_cnfs import VIM, onboarded, request_on

pytestmark = pytest.mark.skipif(GIVEN is None, reason="no cluster is given: see docs/real-kubernetes.md")

FILES = {
    "Files/kubernetes/web.yaml": """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: "nginx:1.27"}]}
""",
}


async def test_an_alert_scales_and_a_lost_deployment_is_healed(
    user: User, cluster: RealCluster, tmp_path: Path
) -> None:
    """API-187, API-227, API-236, API-237."""
    vnfd_id = await onboarded(user, tmp_path, FILES)
    async with cluster.namespace() as namespace:
        cnf_id = await user.create(vnfd_id)
        body = await request_on(
            user, VIM, FILES, namespace=namespace, vdu_mapping={"VDU1": {"kind": "Deployment", "name": "web"}}
        )
        allowed = {"isAutohealEnabled": True, "isAutoscaleEnabled": True}
        await user.do(cnf_id, "instantiate", {**body, "vnfConfigurableProperties": allowed})
        path = f"/apis/apps/v1/namespaces/{namespace}/deployments/web"

        message = alertmanager.message(alertmanager.scale(cnf_id, "web_aspect"))
        for _ in range(2):
            (await user.call("POST", "/alert/auto_scaling", message)).must(204)
        (scaled,) = await ended(user, cnf_id, count=1)
        assert (scaled["operation"], scaled["state"]) == ("SCALE", "DONE"), scaled
        made = await cluster.get(path)
        assert made is not None
        assert (made["spec"]["replicas"], made["status"]["readyReplicas"]) == (3, 3)

        await cluster.remove(path)
        found = await ended(user, cnf_id, count=2)
        (healed,) = [each for each in found if each["operation"] == "HEAL"]
        assert healed["state"] == "DONE", healed
        again = await cluster.get(path)
        assert again is not None
        assert again["metadata"]["uid"] != made["metadata"]["uid"]
        assert (again["spec"]["replicas"], again["status"]["readyReplicas"]) == (3, 3)
        for operation, action in (("SCALE", scaled), ("HEAL", healed)):
            (only,) = await operations_of(user, cnf_id, operation)
            assert (only["id"], only["operationState"]) == (action["operationId"], "COMPLETED")
            assert only["isAutomaticInvocation"] is True
        await user.drifted(cnf_id, None)
        assert len(await actions_of(user, cnf_id)) == 2
        await user.do(cnf_id, "terminate", GRACEFUL)
        await user.delete(cnf_id)
