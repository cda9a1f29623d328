"""CNFs on a given cluster: their packages, and the requests for them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from callers.user import User
from packages.package_variants import variant
from servers.installations import Installation

from real.real_cluster import RealCluster

VIM: Final = "given"
"""The name of the given cluster among the VIMs."""


@asynccontextmanager
async def user_of(installation: Installation, cluster: RealCluster) -> AsyncIterator[User]:
    """Yield a user of API version 2; the cluster is registered as a VIM."""
    async with User(installation) as caller:
        if VIM not in await caller.vims():
            (await caller.call("POST", "/v1.0/vims", {"vim": cluster.vim(VIM)})).must(201)
        yield caller


async def onboarded(user: User, folder: Path, files: Mapping[str, str]) -> str:
    """Onboard the sample ``cnf`` with these further files; return its VNFD id."""
    vnfd_id = str(uuid4())
    package = await user.upload(variant(folder, vnfd_id=vnfd_id, files=files))
    assert package["onboardingState"] == "ONBOARDED", package
    return vnfd_id


async def request_on(user: User, vim: str, files: Mapping[str, str], **parameters: Any) -> dict[str, Any]:
    """Return the request that instantiates a CNF of these files on the VIM of that name."""
    found = (await user.vims())[vim]
    body = {
        "flavourId": "simple",
        "additionalParams": {"lcm-kubernetes-def-files": list(files), **parameters},
    }
    return user.on_vim(body, {"vimId": found["id"], "vimType": "ETSINFV.KUBERNETES.V_1"})
