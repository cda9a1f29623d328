"""``additionalParams.capi.variables``: the values of placeholders in the manifests of a package (capi.md CR-042)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from kubevnfm_csar.placeholders import NAME, VARIABLES, fill_in
from kubevnfm_events.objects import Variables
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_secrets import Secret

from kubevnfm_lcm_api.lifecycle.containers.manifests import package_texts
from kubevnfm_lcm_api.lifecycle.core.ports import PackageCatalogue
from kubevnfm_lcm_api.lifecycle.core.request_parameters import CAPI, CAPI_VARIABLES, variables_in


def requested_variables(original: Mapping[str, Any]) -> Variables | None:
    """Return the variables that a request gives; None if it gives none.

    ``original``: the body of the request, where nothing is hidden yet. Raises InvalidInput, never with a value.
    """
    given = variables_in(original.get("additionalParams"))
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise InvalidInput(VARIABLES, "an object with one entry for each variable expected")
    for name, value in given.items():
        if NAME.fullmatch(name) is None:
            raise InvalidInput(f"{VARIABLES}/{name}", "a name of letters, digits and _ expected, not first a digit")
        if not isinstance(value, str | int | float):
            raise InvalidInput(f"{VARIABLES}/{name}", "a text, a number, true or false expected")
        # The values become part of YAML texts, whose structure lines make.
        if not _text(value).isprintable():
            raise InvalidInput(f"{VARIABLES}/{name}", "a value without line breaks and control characters expected")
    return {name: Secret(_text(value)) for name, value in given.items()}


def stored_variables(parameters: Mapping[str, Any]) -> Variables | None:
    """Return the variables of the instance's stored additionalParams; None if it was made without."""
    stored = variables_in(parameters)
    if stored is None:
        return None
    return {name: value if isinstance(value, Secret) else Secret(_text(value)) for name, value in stored.items()}


def with_variables(parameters: Mapping[str, Any], variables: Variables | None) -> dict[str, Any]:
    """Return additionalParams with these variables in the place of their own."""
    if variables is None:
        return dict(parameters)
    return {**parameters, CAPI: {**parameters.get(CAPI, {}), CAPI_VARIABLES: variables}}


async def check_filled_in(
    packages: PackageCatalogue, package_id: str, files: Sequence[str], variables: Variables | None
) -> None:
    """Raise InvalidInput for placeholders in files of the package that have no value.

    URLs are left to infra-k8s, which fetches them before it applies anything.
    """
    if variables is None:
        return
    texts = await package_texts(packages, package_id, files)
    # Whether there is a value is all that counts here.
    await asyncio.to_thread(fill_in, texts, dict.fromkeys(variables, ""))


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
