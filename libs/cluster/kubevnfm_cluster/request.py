"""Reads the parameters of a cluster out of additionalParams; an error names the field and what was expected.

400 (InvalidInput): absent, of the wrong type or form. 422 (Unprocessable): well-formed, but in contradiction to another
value or to what can be installed. Unknown attributes are accepted, because KeyValuePairs are open and the packages of
other managers carry more.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, ClassVar, Final, TypeVar

from kubevnfm_kit.errors import InvalidInput, Unprocessable
from kubevnfm_secrets import KeyRing, Secret, UnknownKey, map_secrets, opened
from pydantic import ValidationError

from kubevnfm_cluster.features import RequestedCluster, check_features
from kubevnfm_cluster.forms import FLAG, Part, one_of
from kubevnfm_cluster.networks import check_networks
from kubevnfm_cluster.parameters import CLUSTER, ROOT, ClusterParameters

FIRST_MINOR, LAST_MINOR = 28, 34
"""Kubernetes 1.28 is the first version in the community's package repositories by minor version."""
_NO_KEYS: Final = KeyRing([bytes(32)])
"""The secrets of a request are plain in memory: revealing one needs no key."""

P = TypeVar("P", bound=Part)


class _Overrides(Part):
    """An object that is only handed on."""


class AdditionalParams(Part):
    """The attributes of a cluster's additionalParams that have a meaning (sequences.md 2.1)."""

    pairs: ClassVar = (
        ("master_node_username", "master_node_password"),
        ("worker_node_username", "worker_node_password"),
    )

    k8s_cluster_installation_param: RequestedCluster
    nfv: _Overrides | None = None
    all: Annotated[bool, FLAG] = False
    tacker_extension_heal_include_block_storage: Annotated[bool, FLAG] = True
    is_reverse: Annotated[str, one_of("True", "False")] = "False"


def read_request(additional_params: Mapping[str, object]) -> RequestedCluster:
    """Return the cluster that a request asks for; texts may be Secret leaves.

    Its values fit each other. Whether they fit the package and the VNFD is for the caller to check.
    Raises: InvalidInput, Unprocessable naming the field (``additionalParams/...``) and what was expected.
    """
    given = _in_clear(additional_params)
    cluster = _read(AdditionalParams, given, path="additionalParams").k8s_cluster_installation_param
    check_rules(cluster)
    check_features(cluster)
    section = given[CLUSTER]
    if cluster.x_strict and isinstance(section, Mapping):
        _refuse_unknown(section, cluster, path=ROOT)
    return cluster


def read_cluster_parameters(additional_params: Mapping[str, object]) -> ClusterParameters:
    """Return the cluster in additionalParams that were accepted and stored before; secrets may be sealed.

    Raises: InvalidInput, Unprocessable as `read_request`.
    """
    if additional_params.get(CLUSTER) is None:
        raise InvalidInput(ROOT, "missing: an object expected")
    parameters = _read(ClusterParameters, additional_params[CLUSTER], path=ROOT)
    check_rules(parameters)
    return parameters


def check_rules(parameters: ClusterParameters) -> None:
    """Refuse what cannot be installed, and networks that overlap. Raises Unprocessable."""
    release = parameters.x_kubernetes_version
    if release is not None:
        found = re.fullmatch(r"1\.(\d{1,3})\.\d{1,3}", release)
        if found is None or not FIRST_MINOR <= int(found[1]) <= LAST_MINOR:
            raise Unprocessable(
                f"{ROOT}/x_kubernetes_version", f"a version from 1.{FIRST_MINOR}.0 to 1.{LAST_MINOR}.x expected"
            )
    if parameters.x_cri != "containerd":
        raise Unprocessable(f"{ROOT}/x_cri", "this container runtime is not supported; containerd is")
    check_networks(parameters)


def _in_clear(additional_params: Mapping[str, object]) -> Mapping[str, object]:
    def refuse(secret: Secret) -> str:
        raise InvalidInput("additionalParams", "texts in clear expected, not sealed values")

    def plain_text(secret: Secret) -> str:
        try:
            return secret.reveal(_NO_KEYS)
        except UnknownKey:
            return refuse(secret)

    # Only documents and messages hold sealed values. One in a request could not be opened when it is used. It comes
    # as a sealed Secret, or as an object whose own text was taken for a secret.
    revealed: Mapping[str, object] = map_secrets(additional_params, plain_text)
    map_secrets(opened(revealed), refuse)
    return revealed


def _read(model: type[P], given: object, *, path: str) -> P:
    try:
        return model.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        attribute = str(first.get("ctx", {}).get("attribute", ""))
        field = "/".join([path, *map(str, first["loc"]), *([attribute] if attribute else [])])
        raise InvalidInput(field, first["msg"].removeprefix("Value error, ")) from None


def _refuse_unknown(given: Mapping[str, object], part: Part, *, path: str) -> None:
    known = type(part).model_fields
    for name, value in given.items():
        if name not in known:
            raise InvalidInput(f"{path}/{name}", f"unknown; known are {', '.join(sorted(known))}")
        read = getattr(part, name)
        if isinstance(read, Part) and isinstance(value, Mapping):
            _refuse_unknown(value, read, path=f"{path}/{name}")
