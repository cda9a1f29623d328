"""Verdicts: whether an object works, by the rules that waits of operations have too. infra-k8s knows them (multicloud.md MC-049)."""

from __future__ import annotations

from typing import Literal, Protocol

import aiohttp
from kubevnfm_kit.error_text import ErrorText
from kubevnfm_kit.json_types import JsonObject

from kubevnfm_clients.http import InternalApi
from kubevnfm_clients.multicloud.types import MultiCloudType

Judgement = Literal["Current", "InProgress", "Failed", "Terminating", "NotFound", "Unknown"]


class SeenObject(MultiCloudType):
    """An object of a VNF, as its region has it."""

    vnf_instance_id: str
    api_version: str
    kind: str
    namespace: str | None = None
    name: str
    body: JsonObject | None = None
    """None: it does not exist, or another object has its name."""


class ObjectVerdict(MultiCloudType):
    """The verdict on one object, in the terms of kstatus."""

    judgement: Judgement
    """``Current``: it works; ``Unknown``: it has parts that cannot be understood."""
    message: ErrorText = ""
    """The thing that it waits for, or the reason why it has failed."""
    restart_required: bool = False
    """A virtual machine of KubeVirt: whether a change waits for its next start (MC-063)."""


class Verdicts(Protocol):
    """Served by infra-k8s: ``/internal/v1/verdicts``. May raise OutsideUnavailable."""

    async def judge(self, seen: SeenObject) -> ObjectVerdict:
        """Return the verdict on an object; no cluster is called."""
        ...


class HttpVerdicts:
    """`Verdicts` over HTTP."""

    def __init__(self, base_url: str, token: str, session: aiohttp.ClientSession) -> None:
        self._api = InternalApi("infra-k8s", base_url, token, session)

    async def judge(self, seen: SeenObject) -> ObjectVerdict:
        return ObjectVerdict.model_validate(await self._api.call("POST", "verdicts", body=seen.model_dump(mode="json")))
