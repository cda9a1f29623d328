"""Operations that are hit while they run, and the proof that nothing was lost and nothing exists twice."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any, Final

from callers.shown_trace import check_whole
from callers.user import GRACEFUL, User, sample_body
from clouds.holds import INSTANTIATE_CLUSTER, INSTANTIATE_CNF, TERMINATE_CLUSTER, TERMINATE_CNF, HeldLab, Hold
from clouds.lab_process import LabControl
from patience import until_true

from servers.broker import dead_letters
from servers.installations import Installation, SixInstallation
from servers.six_processes import SERVICES

BROKER: Final = "broker"
IN_TURN: Final = "each service in turn"
NO_TARGET: Final = ""
"""Nothing is hit, and no call is held."""
PATIENCE_S: Final = 600.0
"""The timeout of a disturbed operation; an undisturbed one takes a few seconds."""


@dataclass
class Chaos:
    """Disturbs one installation, runs operations meanwhile, and checks the result."""

    installation: Installation
    user: User
    lab: LabControl
    _down: set[str] = field(default_factory=set)
    _turns: Iterator[str] = field(default_factory=lambda: cycle(SERVICES))

    # --- blows --------------------------------------------------------------------------------------------------------

    async def hit(self, target: str) -> None:
        """Kill a process, or restart the broker. A killed process stays down until `mend`."""
        if target == IN_TURN:
            target = next(self._turns)
        if target == BROKER:
            assert isinstance(self.installation, SixInstallation)
            await asyncio.to_thread(self.installation.rabbit.stop)
            await until_true(self._names_the_broker)
            await asyncio.to_thread(self.installation.rabbit.start)
            return
        await asyncio.to_thread(self.installation.kill, target)
        self._down.add(target)

    async def _names_the_broker(self) -> bool:
        """Return whether the gateway says that the broker is away. It serves all the same."""
        shown = (await self.user.call("GET", "/health/ready")).must(200).json
        return ("broker", "failed") in {(each["part"], each["state"]) for each in shown["parts"]}

    async def mend(self) -> None:
        """Start the killed processes again; return when they are ready."""
        down, self._down = sorted(self._down), set()
        await asyncio.gather(*(asyncio.to_thread(self.installation.start_one, target) for target in down))

    # --- disturbed operations -----------------------------------------------------------------------------------------

    async def run(
        self, instance_id: str, task: str, body: Mapping[str, Any], holds: Sequence[Hold], target: str
    ) -> dict[str, Any]:
        """Carry out an operation and hit the target at each hold. The operation must complete without a retry."""
        if target == NO_TARGET:
            holds = ()
        async with HeldLab.holding(self.lab, holds, instance_id) as held:
            operation = await self.user.start(instance_id, task, body)
            for hold in holds:
                await held.reached(hold)
                await self.hit(target)
                # Every other call continues while the target is still down; the rest continue once it is back.
                if holds.index(hold) % 2:
                    await self.mend()
                await held.let_go(hold)
                await self.mend()
            view = await self.user.rest(operation, timeout_s=PATIENCE_S)
        assert view["state"] == "COMPLETED", json.dumps(view, indent=1)
        trace = await self.user.call("GET", f"/kubevnfm/v1/operations/{operation}/trace")
        check_whole(trace.must(200).json, view)
        return view

    async def build_cluster(self, target: str, holds: Sequence[Hold] = INSTANTIATE_CLUSTER) -> str:
        """Instantiate a cluster of one master and one worker while hitting the target; return the instance id."""
        cluster_id = await self.user.create(await self.user.sample("cluster"))
        await self.run(cluster_id, "instantiate", self.user.cluster(), holds, target)
        await self.cluster_exists_once(cluster_id)
        return cluster_id

    async def end_cluster(self, cluster_id: str, target: str, holds: Sequence[Hold] = TERMINATE_CLUSTER) -> None:
        """Terminate and delete a cluster while hitting the target."""
        await self.run(cluster_id, "terminate", GRACEFUL, holds, target)
        await self.nothing_is_left_of(cluster_id)
        await self.user.delete(cluster_id)

    async def build_cnf(self, cluster_id: str, target: str, holds: Sequence[Hold] = INSTANTIATE_CNF) -> str:
        """Deploy the sample CNF on a cluster while hitting the target; return the instance id."""
        cnf_id = await self.user.create(await self.user.sample("cnf"))
        vim = (await self.user.vims())[f"kubernetes_vim_{cluster_id}"]
        on_it = {"cluster": {"vimId": vim["id"], "vimType": "ETSINFV.KUBERNETES.V_1"}}
        body = {**sample_body("cnf", "instantiate"), "vimConnectionInfo": on_it}
        await self.run(cnf_id, "instantiate", body, holds, target)
        await self.cnf_exists_once(cluster_id, cnf_id)
        return cnf_id

    async def end_cnf(self, cnf_id: str, cluster_id: str, target: str, holds: Sequence[Hold] = TERMINATE_CNF) -> None:
        """Terminate and delete the CNF while hitting the target."""
        await self.run(cnf_id, "terminate", GRACEFUL, holds, target)
        assert _of_users(await self.lab.cluster_of(cluster_id)) == []
        await self.user.delete(cnf_id)

    # --- proofs -------------------------------------------------------------------------------------------------------

    async def cluster_exists_once(self, cluster_id: str) -> None:
        """Check for one stack, two machines that joined once each, one VIM with one entry in the instance, one operation."""
        found = await self.lab.inventory()
        assert [one["name"] for one in found["stacks"] if cluster_id in one["tags"]] == [f"vnf-{cluster_id}"]
        servers = [one["name"] for one in found["servers"] if cluster_id in one["name"]]
        assert sorted(name.rsplit("-", 2)[-2] for name in servers) == ["masterNode", "workerNode"]
        cluster = await self.lab.cluster_of(cluster_id)
        assert len(cluster["nodes"]) == 2
        assert list(cluster["joins"].values()) == [1, 1]
        listed = (await self.user.call("GET", "/v1.0/vims")).must(200).json["vims"]
        names = Counter(vim["name"] for vim in listed)
        assert names[f"kubernetes_vim_{cluster_id}"] == 1
        shown = await self.user.instance(cluster_id)
        types = Counter(each["vimType"] for each in shown["vimConnectionInfo"].values())
        assert types == {"ETSINFV.OPENSTACK_KEYSTONE.V_3": 1, "ETSINFV.KUBERNETES.V_1": 1}
        assert len(shown["instantiatedVnfInfo"]["vnfcResourceInfo"]) == 2
        filter_ = f"filter=(eq,vnfInstanceId,{cluster_id})"
        occurrences = (await self.user.lcm("GET", f"/vnf_lcm_op_occs?{filter_}")).must(200).json
        assert [(each["operation"], each["operationState"]) for each in occurrences] == [("INSTANTIATE", "COMPLETED")]

    async def cnf_exists_once(self, cluster_id: str, cnf_id: str) -> None:
        """Check that each object of the package exists, and no other."""
        kinds = ["ConfigMap", "Deployment", "PodDisruptionBudget", "Service"]
        assert _of_users(await self.lab.cluster_of(cluster_id)) == kinds
        pods = (await self.user.instance(cnf_id))["instantiatedVnfInfo"]["vnfcResourceInfo"]
        assert len(pods) == len({pod["computeResource"]["resourceId"] for pod in pods}) == 2

    async def nothing_is_left_of(self, cluster_id: str) -> None:
        """Check that no stack, machine, VIM or entry in the instance is left."""
        assert not any(cluster_id in name for name in await self.lab.names())
        assert f"kubernetes_vim_{cluster_id}" not in await self.user.vims()
        shown = await self.user.instance(cluster_id)
        assert shown["instantiationState"] == "NOT_INSTANTIATED"
        assert "KUBERNETES" not in str(shown.get("vimConnectionInfo"))

    async def nothing_died(self) -> None:
        """Check that no message became a dead letter."""
        assert isinstance(self.installation, SixInstallation)
        assert await dead_letters(self.installation.rabbit) == {}


def _of_users(cluster: Mapping[str, Any]) -> list[str]:
    """Return the kinds of the objects in the CNF's namespace."""
    places = (place.split("/") for place in cluster["objects"])
    return sorted(kind for kind, namespace, _ in places if namespace == "default")
