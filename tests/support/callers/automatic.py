"""The automatic actions of a VNF instance, as a user lists them."""

from __future__ import annotations

from typing import Any

from patience import until

from callers.user import User


async def actions_of(user: User, instance_id: str) -> list[dict[str, Any]]:
    """Return the automatic actions of an instance, as they are listed: open ones first, then the newest first."""
    listed = await user.call("GET", f"/kubevnfm/v1/automatic-actions?vnfInstanceId={instance_id}")
    return list(listed.must(200).json["items"])


async def ended(user: User, instance_id: str, *, count: int) -> list[dict[str, Any]]:
    """Wait until the instance has had so many automatic actions, and none is left open."""

    async def found() -> list[dict[str, Any]] | None:
        actions = await actions_of(user, instance_id)
        assert len(actions) <= count, actions
        is_over = len(actions) == count and all("endedAt" in each for each in actions)
        return actions if is_over else None

    return await until(found)


async def operations_of(user: User, instance_id: str, operation: str) -> list[dict[str, Any]]:
    filtered = f"filter=(eq,vnfInstanceId,{instance_id});(eq,operation,{operation})"
    return list((await user.lcm("GET", f"/vnf_lcm_op_occs?{filtered}")).must(200).json)
