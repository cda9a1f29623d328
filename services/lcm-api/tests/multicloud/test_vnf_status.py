"""``/multicloud/v1/vnf_instances/{id}/status`` (multicloud.md MC-049)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kubevnfm_clients.multicloud.region_views import KubernetesObject
from worlds.multicloud_world import VNFS, Gateway, a_gateway


def exists(gateway: Gateway, resource: dict[str, Any], **members: Any) -> None:
    """Have the region answer with an object for the one that the VNF has."""
    body = {"apiVersion": resource["api_version"], "kind": resource["kind"], "metadata": {"uid": resource["uid"]}}
    found = KubernetesObject.model_validate({**body, **members})
    gateway.world.regions.objects[f"{resource['kind']}/{resource['name']}"] = found


async def test_the_status_judges_each_object_as_the_region_has_it_now(tmp_path: Path) -> None:
    """MC-049, and its bad input: ready, resourceCount, and of each object the judgement and its last status, up to a size."""
    async with a_gateway(tmp_path) as gateway:
        made = (await gateway.bring_up()).must(201).json
        path = f"{VNFS}/{made['vnf_id']}/status"
        first, *others = made["resources"]
        for each in made["resources"]:
            exists(gateway, each, data={"key": "c2VjcmV0"})
        exists(gateway, first, status={"replicas": 1, "reason": None})
        answer = (await gateway.call("GET", path)).must(200)
        assert "ETag" not in answer.headers
        seen = answer.json
        assert (seen["vnf_id"], seen["status"], seen["status_detail"]) == (made["vnf_id"], "READY", "")
        assert (seen["ready"], seen["resourceCount"]) == (True, len(made["resources"]))
        expected = {**first, "live": "present", "judgement": "Current", "message": ""}
        assert seen["resources"][0] == {**expected, "status": {"replicas": 1, "reason": None}}
        assert [each["name"] for each in seen["resources"]] == [each["name"] for each in made["resources"]]
        # Nothing else of an object is shown.
        assert all("status" not in each for each in seen["resources"][1:])
        assert "c2VjcmV0" not in str(seen)

        exists(gateway, first, status={"phase": "Pending"})
        seen = (await gateway.call("GET", path)).must(200).json
        waiting = seen["resources"][0]
        assert (seen["ready"], waiting["ready"]) == (False, False)
        assert (waiting["judgement"], waiting["message"]) == ("InProgress", "Pending")
        assert len(others) == len([each for each in seen["resources"] if each["ready"]])

        exists(gateway, first, status={"text": "x" * 2**16})
        large = (await gateway.call("GET", path)).must(200).json["resources"][0]
        assert (large["ready"], large["truncated"], "status" in large) == (True, True, False)

        exists(gateway, {**first, "uid": "other"}, status={"replicas": 1})
        replaced = (await gateway.call("GET", path)).must(200).json["resources"][0]
        assert (replaced["live"], replaced["judgement"], replaced["ready"]) == ("replaced", "NotFound", False)
        assert (replaced["message"], "status" in replaced) == ("another object has its name", False)
        gateway.world.regions.objects.clear()
        gone = (await gateway.call("GET", path)).must(200).json
        assert (gone["ready"], {each["live"] for each in gone["resources"]}) == (False, {"missing"})

        gateway.world.regions.refusing.add("op/edge")
        assert "refuses the access data" in (await gateway.call("GET", path)).problem(422)["detail"]
        gateway.world.regions.away.add("op/edge")
        (await gateway.call("GET", path)).problem(503)
        (await gateway.call("GET", f"{path}?live=true")).problem(400)
        (await gateway.call("GET", f"{VNFS}/none/status")).problem(404)
        of_sol = await gateway.world.create("cnf")
        (await gateway.call("GET", f"{VNFS}/{of_sol}/status")).problem(404)
