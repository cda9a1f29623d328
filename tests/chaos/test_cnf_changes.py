"""A CNF is scaled, healed and changed to another package with SIGKILL at each step; its pods are those that were asked for, and the instance shows them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import mkdtemp
from typing import Final
from uuid import uuid4

import pytest
from clouds.holds import Hold
from packages.package_variants import variant
from servers.broker import everything_twice
from servers.chaos import BROKER, IN_TURN, NO_TARGET, Chaos
from servers.installations import SixInstallation

pytestmark = [pytest.mark.chaos, pytest.mark.deep, pytest.mark.timeout(900)]

SCALE: Final[Sequence[Hold]] = (Hold("setting the count", "kubernetes", "patch deployments/scale"),)
PODS: Final[Sequence[Hold]] = (Hold("deleting the pod", "kubernetes", "delete pods"),)
WHOLE: Final[Sequence[Hold]] = (
    Hold("the last deletion", "kubernetes", "delete configmaps"),
    Hold("the last object", "kubernetes", "patch poddisruptionbudgets"),
)
REPLACE: Final[Sequence[Hold]] = (
    Hold("an object of the new package", "kubernetes", "patch deployments"),
    Hold("the pruning", "kubernetes", "delete services"),
)
OUT: Final = {"type": "SCALE_OUT", "aspectId": "web_aspect", "numberOfSteps": 2}
IN: Final = {"type": "SCALE_IN", "aspectId": "web_aspect", "numberOfSteps": 1}


async def pods_agree(chaos: Chaos, cluster_id: str, cnf_id: str) -> set[str]:
    """Return the names of the CNF's pods, after checking that cluster and instance show the same."""
    pods = (await chaos.lab.cluster_of(cluster_id))["pods"]
    there = {pod["name"] for pod in pods if cnf_id in pod["labels"].values()}
    info = (await chaos.user.instance(cnf_id))["instantiatedVnfInfo"]
    assert {one["id"] for one in info["vnfcResourceInfo"]} == there
    return there


async def changed(chaos: Chaos, target: str) -> None:
    """Scale a CNF out and in, heal a pod and then all of it, while the target is hit."""
    cluster_id = await chaos.build_cluster(target, ())
    cnf_id = await chaos.build_cnf(cluster_id, target, ())
    await chaos.run(cnf_id, "scale", OUT, SCALE, target)
    more = await pods_agree(chaos, cluster_id, cnf_id)
    await chaos.run(cnf_id, "scale", IN, SCALE, target)
    less = await pods_agree(chaos, cluster_id, cnf_id)
    assert (len(more), len(less), less < more) == (4, 3, True)
    ill = sorted(less)[0]
    await chaos.run(cnf_id, "heal", {"vnfcInstanceId": [f"VDU1-{ill}"]}, PODS, target)
    healed = await pods_agree(chaos, cluster_id, cnf_id)
    assert (less - healed, len(healed)) == ({ill}, 3)
    await chaos.run(cnf_id, "heal", {}, WHOLE, target)
    again = await pods_agree(chaos, cluster_id, cnf_id)
    assert (again & healed, len(again)) == (set(), 3)
    other = await chaos.user.upload(variant(Path(mkdtemp()), vnfd_id=str(uuid4())))
    files = ["Files/kubernetes/configmap.yaml", "Files/kubernetes/deployment.yaml"]
    body = {"vnfdId": other["vnfdId"], "additionalParams": {"lcm-kubernetes-def-files": files}}
    await chaos.run(cnf_id, "change_vnfpkg", body, REPLACE, target)
    assert await pods_agree(chaos, cluster_id, cnf_id) == again
    places = (await chaos.lab.cluster_of(cluster_id))["objects"]
    mine = {place.split("/")[0] for place, one in places.items() if cnf_id in one["labels"].values()}
    assert mine == {"ConfigMap", "Deployment"}
    await chaos.end_cnf(cnf_id, cluster_id, target, ())
    await chaos.end_cluster(cluster_id, target, ())


@pytest.mark.parametrize("target", ["infra-k8s", "lcm-api", BROKER, IN_TURN])
async def test_a_process_killed_while_a_cnf_is_changed_harms_nothing(six_chaos: Chaos, target: str) -> None:
    """CR-022, CR-033, CR-034, CR-035, CR-093."""
    await changed(six_chaos, target)


async def test_the_one_process_killed_while_a_cnf_is_changed_harms_nothing(single_chaos: Chaos) -> None:
    """CR-033, CR-034: the single node, on its data folder."""
    await changed(single_chaos, "kubevnfm")


async def test_every_message_of_a_changed_cnf_delivered_twice_harms_nothing(six_chaos: Chaos) -> None:
    """CR-033, CR-034: counts are absolute, and pods are known by uid."""
    assert isinstance(six_chaos.installation, SixInstallation)
    async with everything_twice(six_chaos.installation.rabbit):
        await changed(six_chaos, NO_TARGET)
