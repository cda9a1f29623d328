"""A CNF of more than forty kinds lives its whole life on a real cluster. Skipped unless KUBEVNFM_KUBERNETES_ENDPOINT names one."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest
from callers.user import GRACEFUL, User
from packages.forty_kinds import forty_kinds, kinds_of
from patience import until
from real.real_cluster import GIVEN, RealCluster
from real.real_cnfs import VIM, onboarded, request_on

pytestmark = pytest.mark.skipif(GIVEN is None, reason="no cluster is given: see docs/real-kubernetes.md")

FILE = "Files/kubernetes/forty.yaml"


async def test_a_package_of_forty_kinds_lives_its_whole_life(user: User, cluster: RealCluster, tmp_path: Path) -> None:
    """CR-010 to CR-012, CR-018, CR-022, CR-023, CR-034, CR-094: nothing of it is left, and nothing foreign is touched."""
    place = f"test-{uuid4().hex[:8]}"
    manifests = forty_kinds(place)
    assert len(set(kinds_of(manifests))) >= 40
    before = await cluster.everything()
    cnf_id = await user.create(await onboarded(user, tmp_path, {FILE: manifests}))
    await user.do(cnf_id, "instantiate", await request_on(user, VIM, {FILE: manifests}, multi_namespace=True))

    page = await cluster.get(f"/api/v1/namespaces/{place}/configmaps/pages")
    assert page is not None
    assert page["data"]["mac"] == "52:54:00:12:34:56"
    vnfcs = (await user.instance(cnf_id))["instantiatedVnfInfo"]["vnfcResourceInfo"]
    assert {vnfc["vduId"] for vnfc in vnfcs} == {"VDU1"}
    assert len(vnfcs) == 2

    changed = await onboarded(user, tmp_path, {FILE: forty_kinds(place, version=2)})
    parameters = {"lcm-kubernetes-def-files": [FILE], "multi_namespace": True}
    await user.do(cnf_id, "change_vnfpkg", {"vnfdId": changed, "additionalParams": parameters})
    page = await cluster.get(f"/api/v1/namespaces/{place}/configmaps/pages")
    assert page is not None
    assert page["data"]["index.html"] == "page 1.22"
    for path in (
        f"/api/v1/namespaces/{place}/replicationcontrollers/old",
        f"/apis/coordination.k8s.io/v1/namespaces/{place}/leases/leader",
        f"/apis/node.k8s.io/v1/runtimeclasses/{place}",
        f"/apis/batch/v1/namespaces/{place}/cronjobs/yearly",
    ):
        assert await cluster.get(path) is None, path

    before_heal = await cluster.get(f"/apis/apps/v1/namespaces/{place}/deployments/web")
    await user.do(cnf_id, "heal", {})
    after_heal = await cluster.get(f"/apis/apps/v1/namespaces/{place}/deployments/web")
    assert before_heal is not None
    assert after_heal is not None
    assert after_heal["metadata"]["uid"] != before_heal["metadata"]["uid"]

    await user.do(cnf_id, "terminate", GRACEFUL)
    await user.delete(cnf_id)

    async def only_what_was() -> bool | None:
        return await cluster.everything() == before or None

    await until(only_what_was, timeout_s=120, pause_s=2)
    assert await cluster.get(f"/apis/apiregistration.k8s.io/v1/apiservices/v9.{place}.example.com") is None
