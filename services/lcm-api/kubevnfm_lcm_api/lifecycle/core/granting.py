"""Grants of an NFVO (SOL003 clause 9, api.md 3.10): the stored state of a grant request, and the NFVO's possible answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from kubevnfm_events import VimConnection
from kubevnfm_kit.errors import InvalidInput, VnfmError
from kubevnfm_secrets import SecretParams, hide
from kubevnfm_sol.access import check_login, check_understood
from kubevnfm_sol.base import SolType
from kubevnfm_sol.connection_points import merged_links
from kubevnfm_sol.granting import Grant
from kubevnfm_sol.problem import ProblemDetails
from kubevnfm_sol.vim import VimConnectionInfo, long_vim_type
from pydantic import Field, ValidationError


class GrantUnusable(VnfmError, code="grant-unusable", title="Grant cannot be used"):
    """The NFVO's grant is malformed, or names something that the operation cannot use."""

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(f"the NFVO's grant: {place}: {reason}")


class Granting(SolType):
    """The stored state of a grant request; written before each call to the NFVO and after each answer."""

    request: SecretParams = Field(default_factory=dict)
    """GrantRequest; the same at every repeat."""
    asked_at: str
    """When the NFVO was first called; the timeout counts from here."""
    rests_until: str
    """No process calls the NFVO before this time: a call is running, or the poll interval is not over."""
    is_out: bool = False
    """Whether a call was started whose answer is not stored. After a crash the call is made once more."""
    grant_id: str | None = None
    """The id of the grant that the NFVO has announced (202) or given."""
    faults: int = 0
    """Consecutive calls without a usable answer."""
    last_fault: str = ""
    link: str | None = None
    """The grant's URI at the NFVO."""
    grant: SecretParams = Field(default_factory=dict)
    """Grant, once it is given. Retry and rollback use it again and do not ask for another."""


@dataclass(frozen=True)
class Granted:
    """201, or 200 when polled."""

    grant: Mapping[str, Any]
    """The body as received, secrets in clear: `read_grant` hides them."""


@dataclass(frozen=True)
class Undecided:
    """202: the NFVO has not decided yet; poll this grant."""

    grant_id: str
    again_in_s: float | None = None


@dataclass(frozen=True)
class Refused:
    """403, or another answer that will not change."""

    problem: ProblemDetails


@dataclass(frozen=True)
class Unanswered:
    """No decision: the NFVO is unreachable, busy, or does not accept the credentials (yet)."""

    reason: str
    again_in_s: float | None = None


Answer = Granted | Undecided | Refused | Unanswered


class Nfvo(Protocol):
    """The interface of an NFVO that grants operations."""

    async def request_grant(self, request: Mapping[str, object]) -> Answer:
        """Request a grant. SOL003 cannot look up a grant by its operation, so two requests may lead to two grants."""
        ...

    async def poll(self, grant_id: str) -> Answer:
        """Return the NFVO's decision about an earlier request, or `Undecided`."""
        ...

    def link(self, grant_id: str) -> str:
        """Return the grant's URI."""
        ...


def read_grant(given: Mapping[str, Any], occurrence_id: str, instance_id: str) -> Grant:
    """Return the grant, secrets hidden. Raises GrantUnusable if it is malformed, or of another operation or VNF."""
    try:
        grant = Grant.model_validate(hide(given))
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise GrantUnusable("/".join(map(str, first["loc"])) or "body", first["msg"]) from None
    if grant.vnf_lcm_op_occ_id != occurrence_id:
        raise GrantUnusable(
            "vnfLcmOpOccId", f"{grant.vnf_lcm_op_occ_id} is another operation; {occurrence_id} expected"
        )
    if grant.vnf_instance_id != instance_id:
        raise GrantUnusable("vnfInstanceId", f"{grant.vnf_instance_id} is another VNF; {instance_id} expected")
    return grant


def granted_zones(grant: Mapping[str, Any], request: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return the granted zones by VDU, in the order of the resources in the GrantRequest."""
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
    """Return the entries of both lists; an entry of ``new`` replaces the one of ``old`` with the same key."""
    by_key = {str(one.get(key)): dict(one) for one in (*old, *new)}
    return list(by_key.values())


def granted_links(
    old: Iterable[Mapping[str, Any]], new: Iterable[Mapping[str, Any]], *, has_user_data: bool = False
) -> list[dict[str, Any]]:
    """Return the merged external links. A connection point that the grant names is as the grant has it.

    Raises GrantUnusable for one that is on two of its links, unless user data read the grant: only one could be made.
    """
    new = list(new)
    place_by_cp: dict[str, str] = {}
    for index, link in enumerate(new if not has_user_data else ()):
        for number, cp in enumerate(link.get("extCps") or ()):
            at = f"extVirtualLinks[{index}]/extCps[{number}]"
            if place_by_cp.setdefault(cp["cpdId"], at) != at:
                raise GrantUnusable(f"{at}/cpdId", f"{cp['cpdId']} is at {place_by_cp[cp['cpdId']]} already")
    return merged_links(old, new, keeps_configs=False)


def granted_connections(grant: Grant, present: VimConnectionInfo | None) -> dict[str, VimConnectionInfo]:
    """Return the grant's entries; one that names no VIM means ``present``, the entry of the operation's VIM."""
    found: dict[str, VimConnectionInfo] = {}
    for key, one in (grant.vim_connection_info or {}).items():
        # The form of Tacker's v1, which never reads the access data beside a `tenant` (api.md 3.2).
        if one.vim_id is None and "tenant" in one.access_info:
            if present is not None:
                found[key] = present
            continue
        found[key] = one.model_copy(update={"vim_type": long_vim_type(one.vim_type)})
    return found


def granted_vim(connection: VimConnectionInfo, before: VimConnection, key: str) -> VimConnection:
    """Return the access data of the granted VIM. Raises GrantUnusable for another type: the plan's steps need this one."""
    if connection.vim_type != long_vim_type(before.vim_type):
        raise GrantUnusable(f"vimConnectionInfo/{key}/vimType", f"{before.vim_type} expected")
    if not connection.access_info and connection.vim_id is None:
        raise GrantUnusable(f"vimConnectionInfo/{key}", "vimId or accessInfo expected")
    granted = VimConnection(**vars(connection))
    try:
        check_understood(connection, f"vimConnectionInfo/{key}")
        if not granted.is_reference:
            check_login(connection, f"vimConnectionInfo/{key}")
    except InvalidInput as error:
        raise GrantUnusable(error.field, error.reason) from error
    return granted
