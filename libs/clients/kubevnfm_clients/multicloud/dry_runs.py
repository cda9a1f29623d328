"""Dry runs: what a request would make of the objects of a VNF, without making it. infra-k8s answers (multicloud.md MC-033, MC-039)."""

from __future__ import annotations

import asyncio
from typing import Any, Final, Literal, Protocol

import aiohttp
from kubevnfm_events.objects import ObjectsOrder
from kubevnfm_kit.error_text import ErrorText
from kubevnfm_kit.json_types import JsonObject
from kubevnfm_secrets import KeyRing, sealing
from pydantic import Field

from kubevnfm_clients.http import InternalApi
from kubevnfm_clients.multicloud.types import MultiCloudType

DryRunOccasion = Literal["create", "update", "rollback"]
DryRunMode = Literal["render", "server", "diff"]
Action = Literal["create", "update", "delete", "unchanged", "adopt", "read", "run"]
MOST_FIELDS: Final = 200
"""The differences of one object that are listed."""
_LONGEST_S: Final = 60.0


class DryRunOrder(ObjectsOrder):
    """The objects of a VNF, as an operation would be asked for them."""

    vnf_instance_id: str
    mode: DryRunMode
    occasion: DryRunOccasion = "create"
    """The purpose of the operation, which says which hooks it runs."""


class FieldDifference(MultiCloudType):
    """A field that would change. A member that is absent has no value before, or none after."""

    path: str
    """A JSON Pointer: into the changed object, or if the field is removed into the present one."""
    before: Any = Field(default=None, alias="from")
    after: Any = Field(default=None, alias="to")


class DryRunObject(MultiCloudType):
    """An object of a dry run. Data of Secrets are ``***``."""

    api_version: str
    kind: str
    namespace: str | None = None
    name: str
    file: str | None = None
    priority: int | None = None
    action: Action | None = None
    """Absent unless the objects were compared; ``adopt``: an object of others is in its place; ``run``: it is a hook."""
    hook: Literal["pre-apply", "post-apply"] | None = None
    """The point at which it runs, if it is a hook: those of failures and deletions are not listed."""
    checked: bool = False
    """Whether the API server has judged it: not without its namespace, its kind, or another object of the set."""
    error: ErrorText | None = None
    """Why the API server, or kubevnfm, refuses it."""
    restarts: bool = False
    """Whether its pods are started again."""
    truncated: bool = False
    """Whether fields or parts of long texts are left out."""
    fields: tuple[FieldDifference, ...] = ()
    object: JsonObject | None = None
    """The object as it would be sent, or as the API server would store it; absent if it was compared."""


class DryRunReport(MultiCloudType):
    """The result of a dry run."""

    summary: dict[str, int] = Field(default_factory=dict)
    """How many objects have each action, and how many an ``error``."""
    objects: tuple[DryRunObject, ...] = ()
    """In the order in which they are applied, hooks at their points; those to be deleted at the end."""


class PlacedOrder(ObjectsOrder):
    """The objects of a VNF, whose places in the region may be taken."""

    vnf_instance_id: str


class TakenPlaces(MultiCloudType):
    """The objects of others that have the names of objects of a VNF, in its namespace."""

    objects: tuple[str, ...] = ()
    """The first ones: kind, namespace and name."""
    count: int = 0
    """How many there are."""


class DryRuns(Protocol):
    """Served by infra-k8s: ``/internal/v1/dry-runs``, ``/internal/v1/taken-places``. May raise OutsideUnavailable."""

    async def run(self, order: DryRunOrder) -> DryRunReport:
        """Return what the API server would do. Raises InvalidInput, Unprocessable, Conflict."""
        ...

    async def taken_places(self, order: PlacedOrder) -> TakenPlaces:
        """Return the objects of others in the place of those of an order. None if the region does not say so in time."""
        ...


class HttpDryRuns:
    """`DryRuns` over HTTP; secret values are sealed on the way."""

    def __init__(self, base_url: str, token: str, session: aiohttp.ClientSession, *, ring: KeyRing) -> None:
        self._api, self._ring = InternalApi("infra-k8s", base_url, token, session), ring

    async def run(self, order: DryRunOrder) -> DryRunReport:
        body = order.model_dump(mode="json", exclude_none=True, context=sealing(self._ring))
        answer = await self._api.call("POST", "dry-runs", body=body, wait_s=_LONGEST_S)
        return DryRunReport.model_validate(answer)

    async def taken_places(self, order: PlacedOrder) -> TakenPlaces:
        # In a thread: an order may have megabytes.
        body = await asyncio.to_thread(order.model_dump, mode="json", exclude_none=True, context=sealing(self._ring))
        return TakenPlaces.model_validate(await self._api.call("POST", "taken-places", body=body))
