"""Warns about what an NFVO's grant has and the operation does not use (docs/specification/attributes.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from kubevnfm_kit.request_warnings import RequestWarning, place
from kubevnfm_sol.connectivity import of_indirect_mode
from kubevnfm_sol.granting import Grant

from kubevnfm_lcm_api.http.spelling import unknown_attributes
from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.core.scripted_draft import ScriptedDraft

_MOST: Final = 20
_VIM: Final = "vimConnectionId"
_OF_EVERY: Final = frozenset({"id", "vnfInstanceId", "vnfLcmOpOccId"})
_ATTRIBUTES: Final = tuple(str(field.alias) for field in Grant.model_fields.values() if field.alias not in _OF_EVERY)
"""Those that say what is to be done."""
_RESOURCES: Final = ("addResources", "tempResources", "removeResources", "updateResources")
_UNUSED: Final[Mapping[str, frozenset[str]]] = {
    "zones": frozenset({"resourceProviderId"}),
    "computeResourceFlavours": frozenset({"resourceProviderId"}),
    "softwareImages": frozenset({"resourceProviderId"}),
    "addResources": frozenset({"reservationId", "resourceProviderId", "resourceGroupId"}),
    **{
        name: frozenset({"reservationId", "resourceProviderId", "resourceGroupId", "zoneId"}) for name in _RESOURCES[1:]
    },
}
"""The attributes that no operation uses, by the list of objects that has them. A VIM other than the operation's is not used either."""


def unused_in(given: Mapping[str, Any], draft: Draft) -> Sequence[RequestWarning]:
    """Return a warning for each; none if code of the package gets the grant.

    ``given``: the grant as it came; ``draft``: with the grant applied.
    """
    if getattr(draft, "user_data", None) or (isinstance(draft, ScriptedDraft) and draft.scripts):
        return ()
    unknown = (f"{where}: {reason}" for where, reason in unknown_attributes(Grant, given) if where != "_links")
    found = islice((*unknown, *_unused(given, draft)), _MOST)
    # The request has no such part, so there is no `field`.
    return [RequestWarning(text=f"the NFVO's grant: {each}") for each in found]


def _unused(given: Mapping[str, Any], draft: Draft) -> Iterator[str]:
    used = draft.used_of_grant
    for name in _ATTRIBUTES:
        value = given.get(name)
        if name in _RESOURCES:
            yield from _of_list(name, value, draft, is_zone_used="zones" in used)
        elif value and name not in used:
            yield f"{name}: not used by this operation"
        elif name == "zones":
            yield from _of_list(name, value, draft)
        elif name == "vimAssets" and isinstance(value, Mapping):
            for kind in ("computeResourceFlavours", "softwareImages"):
                yield from _of_list(kind, value.get(kind), draft, inside=f"{name}/{kind}")
    yield from (f"{place(path)}: not used" for path in of_indirect_mode(given))


def _of_list(
    name: str, listed: object, draft: Draft, *, inside: str | None = None, is_zone_used: bool = True
) -> Iterator[str]:
    unused = _UNUSED[name] | (frozenset() if is_zone_used else {"zoneId"})
    known = (None, draft.vim_id, getattr(draft, "vim_key", None))
    for index, one in enumerate(listed if isinstance(listed, list) else ()):
        for attribute, value in one.items() if isinstance(one, Mapping) else ():
            is_other_vim = attribute == _VIM and value not in known
            if value is not None and (attribute in unused or is_other_vim):
                reason = "another VIM than the operation's" if is_other_vim else "not used"
                yield f"{inside or name}[{index}]/{attribute}: {reason}"
