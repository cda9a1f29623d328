"""Further operations in which the process dies: those of SOL003 on a VNF of multi-cloud, and the life of a cloud region."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from real.real_cluster import Body
from real.real_regions import kubeconfig

from worlds.mortal_vnf import Ground

FURTHER: Final = (("scale",), ("heal", "repair"), ("recreate",), ("cloud_region",))
"""The methods of `FurtherGround` in which the process may die, again and again in this order."""
_PODS: Final = 2
"""Before a scaling."""


@dataclass
class FurtherGround(Ground):
    """The ground with further operations."""

    is_scaled: bool = False
    """Whether the VNF has one pod more."""

    def form_name(self, operation: str) -> str:
        """Return also the direction of a scaling."""
        if operation == "scale":
            return " in" if self.is_scaled else " out"
        return super().form_name(operation)

    @staticmethod
    def forms(operations: tuple[str, ...]) -> int:
        """Return how many forms have operations of a cycle."""
        return 2 if "scale" in operations else Ground.forms(operations)

    # --- operations of SOL003 -----------------------------------------------------------------------------------------

    async def before_scale(self) -> None:
        await self.before_patch()

    async def scale(self) -> None:
        """Give the VNF one pod more, or take it away."""
        before = await self.pods()
        await self._operated("scale", {"type": "SCALE_IN" if self.is_scaled else "SCALE_OUT", "aspectId": "web_aspect"})
        assert not self.seen.created
        self.is_scaled = not self.is_scaled
        now = await self.pods()
        less, more = (before, now) if self.is_scaled else (now, before)
        assert less.keys() < more.keys()
        await self.is_as_asked()

    async def before_heal(self) -> None:
        await self.before_patch()

    async def heal(self) -> None:
        """Replace one pod of the VNF."""
        before = await self.pods()
        ill = min(before.items())[1]
        await self._operated("heal", {"vnfcInstanceId": [ill]})
        assert not self.seen.created
        now = await self.pods()
        assert [name for uid, name in before.items() if uid not in now] == [ill]
        await self.is_as_asked()

    async def before_repair(self) -> None:
        await self.before_patch()
        assert self.vnf is not None
        place = f"/api/v1/namespaces/{self.vnf['namespace']}"
        await self.region.cluster.remove(f"{place}/configmaps/late")
        await self.region.cluster.change(f"{place}/configmaps/settings", {"data": {"tag": "foreign"}})

    async def repair(self) -> None:
        """Make what others have deleted, and undo what they have changed."""
        assert self.vnf is not None
        place = self.vnf["namespace"]
        await self._operated("heal", {"additionalParams": {"repair": True}})
        assert [each for each, _ in self.seen.created] == [f"ConfigMap {place}/late"]
        settings = await self.region.cluster.get(f"/api/v1/namespaces/{place}/configmaps/settings")
        assert settings is not None
        assert settings["data"] == self.form(self.has_second)["values"]
        await self.is_as_asked()

    async def before_recreate(self) -> None:
        await self.before_patch()

    async def recreate(self) -> None:
        """Delete all objects of the VNF and make them again."""
        before = await self.pods()
        await self._operated("heal", {})
        assert not before.keys() & (await self.pods()).keys()
        await self.is_as_asked()

    async def _operated(self, task: str, body: Body) -> None:
        assert self.vnf is not None
        self.seen.forget()
        await self.user.operate(self.vnf["vnf_id"], task, body)
        self.vnf = await self.region.settled(self.vnf)

    async def pods(self) -> dict[str, str]:
        """Return the names of the pods of the VNF by uid: those that run, and that SOL003 shows."""
        assert self.vnf is not None
        listed = await self.region.cluster.get(f"/api/v1/namespaces/{self.vnf['namespace']}/pods")
        found = {
            each["metadata"]["uid"]: each["metadata"]["name"]
            for each in (listed or {})["items"]
            if each["metadata"]["ownerReferences"][0]["kind"] == "ReplicaSet"
        }
        assert len(found) == _PODS + self.is_scaled, found
        shown = (await self.user.instance(self.vnf["vnf_id"]))["instantiatedVnfInfo"]["vnfcResourceInfo"]
        assert {each["id"] for each in shown} == set(found.values()), shown
        return found

    # --- regions ------------------------------------------------------------------------------------------------------

    async def cloud_region(self) -> None:
        """Register a region, change its labels and its kubeconfig, remove it."""
        before = (await self.region.call("GET", "/cloud-regions")).must(200).json
        config = kubeconfig(self.region.cluster)
        asked = {"cloud_owner": "op", "cloud_region": "mine", "kubeconfig": config, "links_namespace": "default"}
        made = await self.sent("POST", "/cloud-regions", asked, status=201, repeated=(200,))
        one = f"/cloud-regions/{made['id']}"
        assert (await self.sent("PATCH", one, {"labels": {"use": "tests"}}, status=200))["labels"] == {"use": "tests"}
        await self.sent("PUT", f"{one}/kubeconfig", {"kubeconfig": config}, status=200)
        found = (await self.region.call("GET", one)).must(200).json
        assert (found["status"], found["labels"], found["vim_id"]) == ("ACTIVE", {"use": "tests"}, made["vim_id"])
        assert len((await self.region.call("GET", "/cloud-regions")).must(200).json) == len(before) + 1
        await self.sent("DELETE", one, status=204, repeated=(404,))
        assert (await self.region.call("GET", "/cloud-regions")).must(200).json == before
