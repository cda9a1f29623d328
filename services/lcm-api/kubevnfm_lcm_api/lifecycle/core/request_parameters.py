"""Names and readers of additionalParams that several kinds of VNF have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubevnfm_kit.errors import InvalidInput

DEF_FILES: Final = "lcm-kubernetes-def-files"
CHART: Final = "helm_chart_path"
USE_HELM: Final = "use_helm"
RELEASES: Final = "using_helm_install_param"
ORDER_ARTIFACT: Final = "order_artifact"
VALUES: Final = "values"
COMPUTE_PROFILES: Final = "compute_profiles"
OUTPUTS: Final = "outputs"
RELEASE_NAME: Final = "release_name"
KUBERNETES_VERSION: Final = "kubernetes_version"
REPAIR: Final = "repair"
REPLACE: Final = "replace"
ALL: Final = "all"
CAPI: Final = "capi"
CAPI_VARIABLES: Final = "variables"
DEFAULT_GRACEFUL_S: Final = 10
"""The wait of a GRACEFUL request without a timeout; Tacker v2 has the same default."""


def flag(parameters: Mapping[str, Any], name: str) -> bool:
    """Return a truth value of additionalParams, False without it. Raises InvalidInput."""
    value = parameters.get(name, False)
    if not isinstance(value, bool):
        raise InvalidInput(f"additionalParams/{name}", "true or false expected")
    return value


def variable_names(original: Mapping[str, Any]) -> frozenset[str]:
    """Return the names under which a request has values of variables: any of them may be a secret."""
    return frozenset() if variables_in(original.get("additionalParams")) is None else frozenset({CAPI_VARIABLES})


def variables_in(parameters: object) -> Any:
    """Return the values of placeholders that additionalParams have (capi.md CR-042); None without any."""
    capi = parameters.get(CAPI) if isinstance(parameters, Mapping) else None
    return capi.get(CAPI_VARIABLES) if isinstance(capi, Mapping) else None
