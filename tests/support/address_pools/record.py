"""An address pool: what was asked for, and what of it exists on the router. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from ipaddress import IPv4Network
from typing import Literal, Self

from kubevnfm_kit.errors import Unprocessable
from kubevnfm_sol.base import SolPatch, SolRequest, SolType
from kubevnfm_store.query import Stored
from pydantic import Field

COLLECTION = "address_pools"


class PoolRequest(SolRequest):
    """A pool to create."""

    name: str = Field(min_length=1, max_length=63)
    networks: tuple[IPv4Network, ...] = Field(min_length=1)
    labels: dict[str, str] = Field(default_factory=dict)


class PoolPatch(SolPatch):
    """The changes of a pool."""

    networks: tuple[IPv4Network, ...] = Field(min_length=1)


class Pool(SolType):
    """A pool as it is shown and stored."""

    id: str
    name: str
    networks: tuple[IPv4Network, ...]
    labels: dict[str, str]
    state: Literal["PENDING", "READY", "DELETING"]
    """READY: the router has the networks that were asked for."""
    created_at: str
    updated_at: str
    revision: int = 0
    """The document's; for conditional writes."""

    @classmethod
    def from_stored(cls, stored: Stored) -> Self:
        return cls.model_validate({**stored.body, "revision": stored.revision})


def check_free(networks: Iterable[IPv4Network], others: Iterable[Pool]) -> None:
    """Raise Unprocessable with each network that another pool has a part of."""
    wrong = list(_taken(networks, list(others)))
    if wrong:
        raise Unprocessable(*wrong[0], *wrong[1:])


def _taken(networks: Iterable[IPv4Network], others: list[Pool]) -> Iterator[tuple[str, str]]:
    for index, network in enumerate(networks):
        other = next((pool for pool in others if any(network.overlaps(one) for one in pool.networks)), None)
        if other is not None:
            yield f"networks[{index}]", f"a free network expected; pool {other.id} has a part of {network}"
