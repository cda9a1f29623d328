"""Compares additionalParams with what the VNFD declares of them: the data types of the inputs of its operations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubevnfm_csar.hot_parameters import pattern_schema
from kubevnfm_csar.values_schema import ValuesSchema
from kubevnfm_csar.vnfd.model import Flavour
from kubevnfm_sol.base import SolType
from kubevnfm_sol.lcm import OperationType

from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.requests.services import RequestServices

DECLARED_NAMES: Final[Mapping[OperationType, str]] = {
    OperationType.CHANGE_EXT_CONN: "change_external_connectivity",
    OperationType.CHANGE_VNFPKG: "change_current_package",
}
"""The operations that SOL001 names otherwise."""
_MAKE_THE_STACK: Final = frozenset(
    {OperationType.INSTANTIATE, OperationType.CHANGE_FLAVOUR, OperationType.CHANGE_VNFPKG}
)


async def check_declared_parameters(
    on: RequestServices, operation: OperationType, request: SolType, flavour: Flavour | None, draft: Draft
) -> None:
    """Raise Unprocessable for values that are not as the VNFD declares them, or as a pattern of the Base HOT wants them.

    ``flavour``: that after the operation, None: unknown.
    """
    if operation in _MAKE_THE_STACK and flavour is not None:
        await _check_patterns(on, request, flavour, draft)
    declared = flavour.parameters.get(declared_name(operation)) if flavour is not None else None
    if declared is None or flavour is None:
        return
    given: Mapping[str, Any] = getattr(request, "additional_params", None) or {}
    await on.packages.check_values(ValuesSchema(flavour.file, declared), given, place="additionalParams")


async def _check_patterns(on: RequestServices, request: SolType, flavour: Flavour, draft: Draft) -> None:
    package = getattr(draft, "package", None)
    # With a class of the package, it decides what a parameter of the stack is made from.
    if package is None or getattr(draft, "user_data", None) is not None:
        return
    hot = await on.packages.base_hot(package.package_id, flavour.flavour_id)
    schema = pattern_schema(hot.top.declared) if hot is not None else {}
    given = {
        name: str(value) if isinstance(value, int | float) else value
        for name, value in (getattr(request, "additional_params", None) or {}).items()
        if name in schema.get("properties", {})
    }
    if given:
        await on.packages.check_values(ValuesSchema("the Base HOT", schema), given, place="additionalParams")


def declared_name(operation: OperationType) -> str:
    """Return the name by which a VNFD declares the parameters of an operation."""
    return DECLARED_NAMES.get(operation, operation.value.lower())
