"""Callers of a gateway with authentication: the users file, the headers, and requests that are refused."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from kubevnfm_access.passwords import PasswordHash
from lcm_world import Answer, World

UNKNOWN: Final = "00000000-0000-4000-8000-000000000000"
V2: Final = {"Version": "2.0.0"}
LIST: Final = "/vnflcm/v2/vnf_instances"
PACKAGES: Final = "/vnfpkgm/v1/vnf_packages"
VIMS: Final = "/v1.0/vims"
PASSWORD: Final = "pass:word-of-nfvo"
HASHED: Final = str(PasswordHash.from_password(PASSWORD))


def users_file(folder: Path, **roles_by_name: list[str]) -> Path:
    path = folder / "users.toml"
    entries = [
        f'[users.{name}]\nroles = {json.dumps(roles)}\npassword = "{HASHED}"\ncertificate = "{name}.example"\n'
        for name, roles in roles_by_name.items()
    ]
    path.write_text("\n".join(entries))
    return path


def basic(name: str, password: str = PASSWORD) -> dict[str, str]:
    return {"Authorization": f"Basic {b64encode(f'{name}:{password}'.encode()).decode()}"}


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def get(world: World, headers: Mapping[str, str], path: str = LIST) -> Answer:
    return await world.call("GET", path, headers={**V2, **headers})


async def refused(world: World, headers: Mapping[str, str], status: int = 401) -> dict[str, Any]:
    """Be refused; return the problem."""
    answer = await get(world, headers)
    problem: dict[str, Any] = answer.problem(status)
    assert ("WWW-Authenticate" in answer.headers) == (status == 401)
    assert answer.headers["Version"]
    return problem
