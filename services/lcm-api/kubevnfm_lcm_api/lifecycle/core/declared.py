"""The KeyValuePairs of a VNF whose keys its VNFD declares: ``extensions`` and ``vnfConfigurableProperties`` (SOL003 5.5.2.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

from kubevnfm_csar.vnfd.model import Flavour, Vnfd
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_secrets import SECRET_NAMES, SecretParams
from kubevnfm_sol.lcm import VnfInstance
from pydantic.alias_generators import to_camel

DECLARED: Final[Mapping[str, str]] = {
    "extensions": "extensions",
    "vnf_configurable_properties": "configurable_properties",
}
"""The attribute of the VNFD's initial values by that of a request."""
_OF_EACH_VNF: Final[Mapping[str, frozenset[str]]] = {
    "vnf_configurable_properties": frozenset({"isAutohealEnabled", "isAutoscaleEnabled"})
}
"""The keys that SOL003 itself defines: kubevnfm heals and scales each VNF, whether or not its VNFD declares them."""


class Declaring(Protocol):
    """A request that sets both."""

    @property
    def extensions(self) -> SecretParams: ...

    @property
    def vnf_configurable_properties(self) -> SecretParams: ...


def check_all_declared(request: Declaring, vnf: VnfInstance, vnfd: Vnfd, flavour: Flavour) -> None:
    """Raise Unprocessable for a key of the request that neither the VNFD declares nor the instance has."""
    for name in DECLARED:
        check_declared(name, getattr(request, name), vnf, vnfd, flavour)


def check_declared(name: str, given: Mapping[str, Any], vnf: VnfInstance, vnfd: Vnfd, flavour: Flavour | None) -> None:
    """Raise Unprocessable for a key that neither the VNFD declares nor the instance has."""
    # Keys of the instance too: an earlier package may have declared them.
    known = set(getattr(vnfd.initial_values, DECLARED[name])) | set(getattr(vnf, name))
    if flavour is not None:
        known |= set(getattr(flavour.initial_values, DECLARED[name]))
    known |= _OF_EACH_VNF.get(name, frozenset())
    for key in given:
        if key not in known and key != SECRET_NAMES:
            declared = ", ".join(sorted(known)) or "none"
            raise Unprocessable(f"{to_camel(name)}/{key}", f"the VNFD does not declare this key; declared: {declared}")
