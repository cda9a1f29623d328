"""Asking an NFVO for a grant (SOL003 clause 9, api.md 3.10): what is remembered of it, and what the NFVO can answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from kubevnfm_kit.errors import VnfmError
from kubevnfm_secrets import SecretParams, hide
from kubevnfm_sol.base import SolType
from kubevnfm_sol.granting import Grant
from kubevnfm_sol.problem import ProblemDetails
from pydantic import Field, ValidationError


class GrantUnusable(VnfmError):
    """The NFVO has granted the operation in a way that we cannot follow."""

    code = "grant-unusable"
    title = "Grant cannot be used"
    status = 422

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(f"the NFVO's grant: {place}: {reason}")


class Granting(SolType):
    """What an occurrence remembers of its grant: stored before the NFVO is asked, and after each of its answers."""

    request: SecretParams = Field(default_factory=dict)
    """GrantRequest; the same at every repeat."""
    asked_at: str
    """When the NFVO was asked first; the time-out counts from here."""
    rests_until: str
    """Nobody asks before: a call is on its way, or its answer is not to be asked for yet."""
    is_out: bool = False
    """Whether a request was sent whose answer is not stored: a crash in between makes it be sent once more."""
    grant_id: str | None = None
    """What the NFVO has named and not decided, or has granted."""
    faults: int = 0
    """Calls in a row without an answer that says something."""
    last_fault: str = ""
    link: str | None = None
    """The grant's URI at the NFVO."""
    grant: SecretParams = Field(default_factory=dict)
    """Grant, once it is given: retry and rollback use it again without asking."""


@dataclass(frozen=True)
class Granted:
    """201, or 200 when polled."""

    grant: Mapping[str, Any]
    """As it came, secrets in clear: `read_grant` hides them."""


@dataclass(frozen=True)
class Undecided:
    """202: ask again for this grant."""

    grant_id: str
    again_in_s: float | None = None


@dataclass(frozen=True)
class Refused:
    """403, or another answer that will not change."""

    problem: ProblemDetails


@dataclass(frozen=True)
class Unanswered:
    """Nothing that decides: the NFVO is away, busy, or does not know us (yet)."""

    reason: str
    again_in_s: float | None = None


Answer = Granted | Undecided | Refused | Unanswered


class Nfvo(Protocol):
    """Who grants."""

    async def request_grant(self, request: Mapping[str, Any]) -> Answer:
        """Ask for a grant. SOL003 has no way to find a grant by its operation: asking twice may make two."""
        ...

    async def poll(self, grant_id: str) -> Answer:
        """Ask what has become of a request that was not decided at once."""
        ...

    def link(self, grant_id: str) -> str:
        """Return the grant's URI."""
        ...


def read_grant(given: Mapping[str, Any], occurrence_id: str) -> Grant:
    """Return the grant, secrets hidden. Raises GrantUnusable when it is none, or another operation's."""
    try:
        grant = Grant.model_validate(hide(given))
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise GrantUnusable("/".join(map(str, first["loc"])) or "body", first["msg"]) from None
    if grant.vnf_lcm_op_occ_id != occurrence_id:
        raise GrantUnusable("vnfLcmOpOccId", "it is that of another operation")
    return grant


def granted_zones(grant: Mapping[str, Any], request: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return the zones that were granted to the machines of each VDU, in the order of the GrantRequest's resources."""
    zone_by_id = {zone["id"]: str(zone["zoneId"]) for zone in grant.get("zones") or ()}
    zone_by_resource = {
        one["resourceDefinitionId"]: zone_by_id[one["zoneId"]]
        for one in grant.get("addResources") or ()
        if one.get("zoneId") in zone_by_id
    }
    found: dict[str, tuple[str, ...]] = {}
    for one in request.get("addResources") or ():
        zone = zone_by_resource.get(one["id"])
        if one["type"] == "COMPUTE" and zone is not None:
            found[one["vduId"]] = (*found.get(one["vduId"], ()), zone)
    return found


def merged(old: Iterable[Mapping[str, Any]], new: Iterable[Mapping[str, Any]], key: str) -> list[dict[str, Any]]:
    """Return the entries of both lists; of those with the same key the new one."""
    by_key = {str(one.get(key)): dict(one) for one in (*old, *new)}
    return list(by_key.values())
