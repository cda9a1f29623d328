"""Callers of a gateway with authentication, and requests that are refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from worlds.lcm_world import Answer, World

UNKNOWN: Final = "00000000-0000-4000-8000-000000000000"
V2: Final = {"Version": "2.0.0"}
LIST: Final = "/vnflcm/v2/vnf_instances"
PACKAGES: Final = "/vnfpkgm/v1/vnf_packages"
VIMS: Final = "/v1.0/vims"


async def get(world: World, headers: Mapping[str, str], path: str = LIST) -> Answer:
    return await world.call("GET", path, headers={**V2, **headers})


async def refused(world: World, headers: Mapping[str, str], status: int = 401) -> dict[str, Any]:
    """Be refused; return the problem."""
    answer = await get(world, headers)
    problem: dict[str, Any] = answer.problem(status)
    assert ("WWW-Authenticate" in answer.headers) == (status == 401)
    assert answer.headers["Version"]
    return problem
