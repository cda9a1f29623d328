"""A workload cluster of Cluster API is built, changed and taken down with SIGKILL at each step; nothing is there twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final
from uuid import uuid4

import pytest
from callers.user import GRACEFUL, sample_body
from clouds.holds import Hold
from packages.package_variants import SAMPLES, variant
from servers.broker import everything_twice
from servers.chaos import BROKER, IN_TURN, NO_TARGET, Chaos
from servers.installations import SixInstallation
from servers.six_processes import SERVICES

pytestmark = [pytest.mark.chaos, pytest.mark.deep, pytest.mark.timeout(1500)]

SENDING: Final[Sequence[Hold]] = (
    Hold("the account inside the cluster", "kubernetes", "create serviceaccounts"),
    # The service that sends the credentials reads the version, too.
    Hold("registering the VIM", "kubernetes", "get /version", after=1),
)
BUILDING: Final[Sequence[Hold]] = (
    Hold("an object of the cluster", "kubernetes", "patch kubeadmcontrolplanes"),
    Hold("the network inside the cluster", "kubernetes", "patch daemonsets"),
    *SENDING,
)
SCALE: Final[Sequence[Hold]] = (Hold("setting the count", "kubernetes", "patch machinedeployments/scale"),)
MACHINE: Final[Sequence[Hold]] = (Hold("deleting the machine", "kubernetes", "delete machines"),)
REPLACE: Final[Sequence[Hold]] = (
    Hold("the other template", "kubernetes", "patch openstackmachinetemplates"),
    Hold("an addon of the other package", "kubernetes", "patch configmaps"),
    Hold("the pruned addon", "kubernetes", "delete configmaps"),
    Hold("the pruned template", "kubernetes", "delete openstackmachinetemplates"),
)
AGAIN: Final[Sequence[Hold]] = (
    Hold("the earlier cluster", "kubernetes", "delete clusters"),
    Hold("the new cluster", "kubernetes", "patch clusters"),
    *SENDING,
)
END: Final[Sequence[Hold]] = (
    Hold("the cluster", "kubernetes", "delete clusters"),
    Hold("its credentials for OpenStack", "kubernetes", "delete secrets"),
)
OUT: Final = {"type": "SCALE_OUT", "aspectId": "workers", "numberOfSteps": 2}
SERVING: Final = tuple(service for service in SERVICES if service != "infra-openstack")
"""The services that have a part in workload clusters."""
WORKERS: Final = "Files/kubernetes/workers.yaml"


@dataclass
class Workload:
    """A workload cluster on a management cluster in an installation that is hit."""

    chaos: Chaos
    target: str
    id: str = ""

    async def run(self, task: str, body: dict[str, Any], holds: Sequence[Hold]) -> dict[str, str]:
        """Carry an operation out while the target is hit; return the VDU of each Machine."""
        await self.chaos.run(self.id, task, body, holds, self.target)
        return await self.machines()

    async def machines(self) -> dict[str, str]:
        """Return the VDU of each Machine by name, after checking that the cluster itself has exactly their nodes."""
        info = (await self.chaos.user.instance(self.id))["instantiatedVnfInfo"]
        shown = {one["computeResource"]["resourceId"]: one["vduId"] for one in info["vnfcResourceInfo"]}
        clusters = (await self.chaos.lab.inventory())["clusters"]
        nodes = [
            node["name"] for cluster in clusters for node in cluster["nodes"] if node["name"].startswith("workload-")
        ]
        assert sorted(nodes) == sorted(shown)
        return shown

    async def places(self, *starts: str) -> list[str]:
        """Return the objects of all clusters of the lab whose kind and namespace are these."""
        clusters = (await self.chaos.lab.inventory())["clusters"]
        return [place for cluster in clusters for place in cluster["objects"] if place.startswith(starts)]

    async def vims(self) -> list[str]:
        """Return the ids of the VIMs of the instance: in its own view, and in the registry."""
        connection = (await self.chaos.user.instance(self.id))["vimConnectionInfo"]["workload"]
        mine = await workload_vims(self.chaos)
        assert mine == [connection["vimId"]]
        return mine


async def workload_vims(chaos: Chaos) -> list[str]:
    """Return the ids of the VIMs that are named after workload clusters."""
    return [vim["id"] for name, vim in (await chaos.user.vims()).items() if name.startswith("workload")]


async def package(chaos: Chaos, name: str, **changes: tuple[str, str]) -> tuple[str, dict[str, Any]]:
    """Upload the sample with another addon and other texts, by file; return its VNFD id and its ``additionalParams``."""
    addon = f"Files/addons/{name}.yaml"
    files = {addon: f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: kube-system}}\n"}
    for file, (old, new) in changes.items():
        files[file] = (SAMPLES / "capi-workload" / file).read_text(encoding="utf-8").replace(old, new)
    made = await chaos.user.upload(variant(Path(mkdtemp()), "capi-workload", vnfd_id=str(uuid4()), files=files))
    parameters = sample_body("capi-workload", "instantiate")["additionalParams"]
    parameters["capi"]["addon-def-files"].append(addon)
    return made["vnfdId"], parameters


async def changed(chaos: Chaos, target: str) -> None:
    """Build a workload cluster, scale, heal, change its package and addons, build it again, terminate, hit at each step."""
    user = chaos.user
    machines_id = await chaos.build_cluster(NO_TARGET)
    management = await user.vim_of_cluster(machines_id)
    providers_id = await user.create(await user.sample("capi-management"))
    await user.do(providers_id, "instantiate", user.on_vim(sample_body("capi-management", "instantiate"), management))
    first, parameters = await package(chaos, "first")
    cluster = Workload(chaos, target, await user.create(first))

    body = {**sample_body("capi-workload", "instantiate"), "additionalParams": parameters}
    built = await cluster.run("instantiate", user.on_vim(body, management), BUILDING)
    assert Counter(built.values()) == {"controlPlane": 1, "worker": 1}
    vims = await cluster.vims()

    more = await cluster.run("scale", OUT, SCALE)
    assert (built.items() < more.items(), Counter(more.values())) == (True, {"controlPlane": 1, "worker": 3})
    ill = min(name for name, vdu in more.items() if vdu == "worker")
    healed = await cluster.run("heal", {"vnfcInstanceId": [f"worker-{ill}"]}, MACHINE)
    assert (more.keys() - healed.keys(), Counter(healed.values())) == ({ill}, Counter(more.values()))

    second, parameters = await package(chaos, "second", **{WORKERS: ("m1.medium", "m1.large")})
    body = {"vnfdId": second, "additionalParams": parameters}
    rolled = await cluster.run("change_vnfpkg", body, REPLACE)
    assert Counter(rolled.values()) == Counter(healed.values())
    assert {name for name, vdu in rolled.items() if name in healed} == {
        name for name, vdu in healed.items() if vdu == "controlPlane"
    }
    first_addon, second_addon = (f"ConfigMap/kube-system/{name}" for name in ("first", "second"))
    assert await cluster.places(first_addon, second_addon) == [second_addon]
    assert len(await cluster.places("OpenStackMachineTemplate/default/")) == 2

    again = await cluster.run("heal", {"additionalParams": {"capi": {"recreate": True}}}, AGAIN)
    assert (again.keys() & rolled.keys(), Counter(again.values())) == (set(), Counter(rolled.values()))
    assert await cluster.vims() == vims

    await chaos.run(cluster.id, "terminate", GRACEFUL, END, target)
    assert [place for place in await cluster.places("") if "/default/workload" in place] == []
    assert await workload_vims(chaos) == []
    for instance_id in (cluster.id, providers_id):
        if instance_id == providers_id:
            await user.do(providers_id, "terminate", GRACEFUL)
        await user.delete(instance_id)
    await chaos.end_cluster(machines_id, NO_TARGET)


@pytest.mark.parametrize("target", [*SERVING, BROKER, IN_TURN])
async def test_a_process_killed_while_a_workload_cluster_is_changed_harms_nothing(
    six_chaos: Chaos, target: str
) -> None:
    """CR-078, CR-093, CR-094, CR-113, CR-117: one cluster, one VIM with one id, and each Machine once."""
    await changed(six_chaos, target)


async def test_the_one_process_killed_while_a_workload_cluster_is_changed_harms_nothing(single_chaos: Chaos) -> None:
    """CR-078, CR-117: the single node, on its data folder."""
    await changed(single_chaos, "kubevnfm")


async def test_every_message_of_a_workload_cluster_delivered_twice_harms_nothing(six_chaos: Chaos) -> None:
    """CR-078, CR-113, CR-117: one callback counts, one VIM keeps its id."""
    assert isinstance(six_chaos.installation, SixInstallation)
    async with everything_twice(six_chaos.installation.rabbit) as doubled:
        await changed(six_chaos, NO_TARGET)
    assert {"vim", "infra", "mgmt"} <= {kind.split(".")[1] for kind in doubled}
