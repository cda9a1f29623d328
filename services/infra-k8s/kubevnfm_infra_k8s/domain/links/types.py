"""The types of links by name, and the reading of a request's spec. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

from kubevnfm_clients.multicloud.links import LinkSpecs, LinkType
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_kit.json_schema import DescribedSchema
from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_sol.wrong_attributes import wrong_attributes
from pydantic import ValidationError
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from kubevnfm_infra_k8s.domain.links.cni import NadSpec, OvsSpec, SriovSpec
from kubevnfm_infra_k8s.domain.links.manifests import ManifestsSpec
from kubevnfm_infra_k8s.domain.links.ovn import KubeOvnSpec, Ovn4nfvProviderSpec, Ovn4nfvSpec, UdnSpec
from kubevnfm_infra_k8s.domain.links.spec import LinkSpec

TYPES: Final[Mapping[LinkType, type[LinkSpec]]] = {
    "nad": NadSpec,
    "sriov": SriovSpec,
    "ovs": OvsSpec,
    "ovn4nfv": Ovn4nfvSpec,
    "ovn4nfv-provider": Ovn4nfvProviderSpec,
    "kube-ovn": KubeOvnSpec,
    "udn": UdnSpec,
    "manifests": ManifestsSpec,
}

_MOST_SUBNETS: Final = 512
"""The most of a link: each new link is compared with all links of its region."""


def read_spec(type: LinkType, spec: JsonMapping) -> LinkSpec:
    """Return the spec of a link. Raises Unprocessable with each wrong place below ``spec``."""
    try:
        read = TYPES[type].model_validate(spec, by_alias=True, by_name=False)
    except ValidationError as error:
        first, *more = wrong_attributes(error, TYPES[type], "spec")
        raise Unprocessable(*first, *more) from error
    faults = [(f"spec/{place}".rstrip("/"), reason) for place, reason in read.faults()]
    if not faults and len(read.subnets()) > _MOST_SUBNETS:
        faults = [("spec", f"up to {_MOST_SUBNETS} subnets expected")]
    if faults:
        raise Unprocessable(*faults[0], *faults[1:])
    return read


def stored_spec(type: LinkType, spec: JsonMapping) -> LinkSpec:
    """Return the spec of a link that was checked when it was created."""
    return TYPES[type].model_validate(spec, by_alias=True, by_name=False)


@cache
def spec_schemas() -> LinkSpecs:
    """Return what the spec of each type can be; not all that is refused can be said by a schema."""
    wanted: list[tuple[type[LinkSpec], JsonSchemaMode]] = [(model, "validation") for model in TYPES.values()]
    found, shared = models_json_schema(wanted, schema_generator=DescribedSchema)
    types = {each: found[model, "validation"] for each, model in TYPES.items()}
    return LinkSpecs(types=types, definitions=shared.get("$defs", {}))
