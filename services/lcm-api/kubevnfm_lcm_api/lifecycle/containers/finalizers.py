"""``additionalParams.capi.force_remove_finalizers`` of a terminate request, and of its retry (capi.md CR-109)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubevnfm_kit.errors import InvalidInput, Unprocessable
from kubevnfm_sol.lcm import OperationType

from kubevnfm_lcm_api.lifecycle.containers.drafts import TerminateCnfDraft
from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.core.request_parameters import CAPI

_FORCE: Final = "force_remove_finalizers"
_PARAMETERS: Final = "additionalParams"


def removes_finalizers(parameters: Mapping[str, Any]) -> bool:
    """Return whether a termination may remove finalizers. Raises InvalidInput, Unprocessable naming the field."""
    place = f"{_PARAMETERS}/{CAPI}"
    given = parameters.get(CAPI, {})
    if not isinstance(given, Mapping):
        raise InvalidInput(place, "an object expected")
    for name in given:
        if name != _FORCE:
            raise Unprocessable(f"{place}/{name}", f"a termination supports {_FORCE} only: leave it out")
    wanted = given.get(_FORCE, False)
    if not isinstance(wanted, bool):
        raise InvalidInput(f"{place}/{_FORCE}", "true or false expected")
    return wanted


def retried_with(body: object) -> bool:
    """Return whether the body of a retry, which SOL003 leaves empty, asks to remove finalizers.

    Raises InvalidInput, Unprocessable naming the field.
    """
    if not isinstance(body, Mapping):
        raise InvalidInput("", "an object expected")
    for name in body:
        if name != _PARAMETERS:
            raise InvalidInput(name, f"a retry has no body, or {_PARAMETERS}")
    parameters = body.get(_PARAMETERS, {})
    if not isinstance(parameters, Mapping):
        raise InvalidInput(_PARAMETERS, "an object expected")
    for name in parameters:
        if name != CAPI:
            raise Unprocessable(f"{_PARAMETERS}/{name}", f"a retry supports {CAPI}/{_FORCE} only: leave it out")
    return removes_finalizers(parameters)


def removing_finalizers(draft: Draft) -> Draft:
    """Return the draft of an operation that may remove finalizers from now on. Raises Unprocessable."""
    if not isinstance(draft, TerminateCnfDraft):
        place = f"{_PARAMETERS}/{CAPI}/{_FORCE}"
        raise Unprocessable(place, f"only the {OperationType.TERMINATE} of a CNF or workload cluster supports it")
    return draft.model_copy(update={_FORCE: True})
