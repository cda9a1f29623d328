"""VNFs of plain machines for end-to-end tests, and their machines in the cloud."""

from __future__ import annotations

from typing import Any

from callers.user import User, sample_body

from clouds.lab_process import LabControl


async def built(user: User) -> str:
    """Return a VNF of one machine."""
    instance_id = await user.create(await user.sample("vm"))
    await user.do(instance_id, "instantiate", sample_body("vm", "instantiate"))
    return instance_id


async def machines(lab: LabControl, instance_id: str) -> dict[str, dict[str, Any]]:
    """Return the VNF's machines in the cloud, by id."""
    servers = (await lab.inventory()).get("servers", [])
    return {server["id"]: server for server in servers if instance_id in server["name"]}


def servers_of(shown: dict[str, Any]) -> set[str]:
    return {one["computeResource"]["resourceId"] for one in shown["instantiatedVnfInfo"]["vnfcResourceInfo"]}


async def package_of(user: User, vnfd_id: str, content: bytes) -> str:
    """Return the VNFD id of a package, which is uploaded at the first call."""
    listed = (await user.call("GET", f"/vnfpkgm/v1/vnf_packages?filter=(eq,vnfdId,{vnfd_id})")).must(200).json
    if not listed:
        assert (await user.upload(content))["onboardingState"] == "ONBOARDED"
    return vnfd_id
