"""A v2 class whose scale makes two more workers than anybody asked for: a test sees that it was asked."""

from typing import Any

from tacker.sol_refactored.infra_drivers.openstack.userdata_utils import AbstractUserData


class ScalingUserData(AbstractUserData):  # type: ignore[misc]  # found in the process of user data only
    @staticmethod
    def instantiate(req: Any, inst: Any, grant_req: Any, grant: Any, tmp_csar_dir: str) -> Any:
        link = req["extVirtualLinks"][0]["resourceId"]
        vdu = {"flavor": "m1.small", "image": "ubuntu"}
        return {
            "parameters": {
                "nfv": {
                    "VDU": {"masterNode": vdu, "workerNode": {**vdu, "desired_capacity": 2}},
                    "CP": {name: {"network": link} for name in ("masterNode_CP1", "workerNode_CP1")},
                }
            }
        }

    @staticmethod
    def scale(req: Any, inst: Any, grant_req: Any, grant: Any, tmp_csar_dir: str) -> Any:
        assert (req["type"], grant_req["operation"]) == ("SCALE_OUT", "SCALE")
        assert inst["instantiatedVnfInfo"]["metadata"]["nfv"]["VDU"]["workerNode"]["desired_capacity"] == 2
        assert [one["resourceDefinitionId"] for one in grant["addResources"]] == ["w-0"]
        zone_by_id = {zone["id"]: zone["zoneId"] for zone in grant["zones"]}
        assert [zone_by_id[one["zoneId"]] for one in grant["addResources"]] == ["nova"]  # that of the cloud
        return {"parameters": {"nfv": {"VDU": {"workerNode": {"desired_capacity": 5}}}}}

    scale_rollback = change_ext_conn = change_ext_conn_rollback = heal = change_vnfpkg = change_vnfpkg_rollback = scale
