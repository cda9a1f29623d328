"""Reads the parameters of a cluster out of additionalParams; an error names the field and what was expected.

400 (InvalidInput): absent, of the wrong type or form. 422 (Unprocessable): well-formed, but in contradiction to another
value or to what can be installed. Unknown attributes are accepted, because KeyValuePairs are open and the packages of
other managers carry more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Annotated, ClassVar, Final, TypeVar

from kubevnfm_kit.errors import InvalidInput, Unprocessable
from kubevnfm_secrets import Secret, map_secrets, opened
from pydantic import ValidationError

from kubevnfm_cluster.forms import FLAG, LoginNames, Part, in_clear, one_of, parsed, text
from kubevnfm_cluster.parameters import CLUSTER, ROOT, ClusterParameters
from kubevnfm_cluster.rules import check_rules
from kubevnfm_cluster.ssh_keys import new_key_pair
from kubevnfm_cluster.ssh_login import Bastion, PackagePath, Password, PrivateKey, TcpPort, UserName

KEY_PAIR_PARAMETER: Final = "x_key_pair_parameter"
LOAD_BALANCER: Final = "lcm-kubernetes-external-lb"
P = TypeVar("P", bound=Part)


class RequestedCluster(ClusterParameters):
    """The configuration of a cluster in a request, with what only the request needs."""

    x_key_pair_parameter: Annotated[str, text("the name of a parameter of the Base HOT")] | None = None
    """The Heat parameter that gets the public key of a pair made for the instance; see `with_key_pair`."""
    x_strict: Annotated[bool, FLAG] = False
    """Whether unknown attributes are refused."""


class _Overrides(Part):
    """An object that is only handed on."""


class AdditionalParams(Part):
    """The attributes of a cluster's additionalParams that have a meaning (sequences.md 2.1)."""

    logins: ClassVar = (LoginNames("master_node_", is_optional=True), LoginNames("worker_node_", is_optional=True))

    k8s_cluster_installation_param: RequestedCluster
    nfv: _Overrides | None = None
    all: Annotated[bool, FLAG] = False
    tacker_extension_heal_include_block_storage: Annotated[bool, FLAG] = True
    is_reverse: Annotated[str, one_of("True", "False")] = "False"


class MachineLogin(Part):
    """How to log in to a machine that is no node of a cluster."""

    logins: ClassVar = (LoginNames("ssh_"),)

    ssh_username: UserName
    ssh_password: Password | None = None
    """Either this or ``ssh_private_key``."""
    ssh_private_key: PrivateKey | None = None
    ssh_private_key_passphrase: Password | None = None
    ssh_port: TcpPort | None = None
    """None: the setting of mgmt-executor."""
    bastion: Bastion | None = None


class BalancerLogin(MachineLogin):
    """The load balancer, and how to log in to it."""

    ssh_ip: Annotated[str, parsed("an IP address", lambda value: str(ip_address(value)))]


class LoadBalancer(Part):
    """The load balancer outside of the cluster that a script of the package configures for a CNF's node ports."""

    script_path: PackagePath
    external_lb_param: BalancerLogin


def request_load_balancer(additional_params: Mapping[str, object]) -> LoadBalancer:
    """Return the load balancer that a request names; texts may be Secret leaves. Unknown attributes are refused.

    Raises: InvalidInput naming the field (``additionalParams/lcm-kubernetes-external-lb/...``) and what was expected.
    """
    given = in_clear_texts({LOAD_BALANCER: additional_params.get(LOAD_BALANCER)})
    balancer = read_load_balancer(given)
    section = given[LOAD_BALANCER]
    assert isinstance(section, Mapping)
    _refuse_unknown(section, balancer, path=f"additionalParams/{LOAD_BALANCER}")
    return balancer


def read_load_balancer(additional_params: Mapping[str, object]) -> LoadBalancer:
    """Return the load balancer in additionalParams that were accepted before; secrets may be sealed.

    Raises: InvalidInput as `request_load_balancer`.
    """
    path = f"additionalParams/{LOAD_BALANCER}"
    if additional_params.get(LOAD_BALANCER) is None:
        raise InvalidInput(path, "missing: an object with script_path and external_lb_param expected")
    return read_part(LoadBalancer, additional_params[LOAD_BALANCER], path=path)


@dataclass(frozen=True)
class MadeKeyPair:
    """A key pair that was made for an instance."""

    parameter: str
    """The Heat parameter that gets the public key."""
    public_key: str
    additional_params: Mapping[str, object]
    """Those of the request, with the public key as ``parameter``, and the private key in each group without a login."""


def with_key_pair(additional_params: Mapping[str, object], *, comment: str) -> MadeKeyPair | None:
    """Return a new key pair if the request asks for one by ``x_key_pair_parameter``.

    The private key then is a parameter as if the request had brought it: it is sealed, stored and deleted with them.
    Raises: InvalidInput, Unprocessable naming the field.
    """
    section, field = additional_params.get(CLUSTER), f"{ROOT}/{KEY_PAIR_PARAMETER}"
    name = section.get(KEY_PAIR_PARAMETER) if isinstance(section, Mapping) else None
    if not isinstance(section, Mapping) or name in (None, ""):
        return None
    if not isinstance(name, str):
        raise InvalidInput(field, "the name of a parameter of the Base HOT expected")
    if name in AdditionalParams.model_fields:
        raise Unprocessable(field, f"{name} has another meaning: a parameter for the public key alone expected")
    if additional_params.get(name) is not None:
        raise Unprocessable(f"additionalParams/{name}", "given, but this parameter gets the public key of the key pair")
    keyless = [
        group
        for group in ("master_node", "worker_node", "storage_server")
        if isinstance(given := section.get(group), Mapping) and not (given.get("password") or given.get("private_key"))
    ]
    if not keyless:
        raise Unprocessable(field, "given, but each group of machines has a password or a private_key of its own")
    pair = new_key_pair(comment)
    groups = {group: {**section[group], "private_key": Secret(pair.private_key)} for group in keyless}
    changed = {**additional_params, name: pair.public_key, CLUSTER: {**section, **groups}}
    return MadeKeyPair(name, pair.public_key, changed)


def read_request(additional_params: Mapping[str, object]) -> RequestedCluster:
    """Return the cluster that a request asks for; texts may be Secret leaves.

    Its values fit each other. Whether they fit the package and the VNFD is for the caller to check.
    Raises: InvalidInput, Unprocessable naming the field (``additionalParams/...``) and what was expected.
    """
    given = in_clear_texts(additional_params)
    cluster = read_part(AdditionalParams, given, path="additionalParams").k8s_cluster_installation_param
    check_rules(cluster)
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
    parameters = read_part(ClusterParameters, additional_params[CLUSTER], path=ROOT)
    check_rules(parameters)
    return parameters


def in_clear_texts(additional_params: Mapping[str, object]) -> Mapping[str, object]:
    """Return the parameters of a request with their secrets in clear. Raises InvalidInput for a sealed one."""

    def refuse(_: Secret) -> object:
        raise InvalidInput("additionalParams", "texts in clear expected, not sealed values")

    # Only documents and messages hold sealed values. One in a request could not be opened when it is used. It comes
    # as a sealed Secret, or as an object whose own text was taken for a secret.
    revealed: Mapping[str, object] = map_secrets(additional_params, in_clear)
    map_secrets(opened(revealed), refuse)
    return revealed


def read_part(model: type[P], given: object, *, path: str) -> P:
    """Return an object of a request. Raises InvalidInput naming the field below ``path``."""
    try:
        return model.model_validate(given)
    except ValidationError as error:
        # One error is reported, and without the cause: pydantic's error holds the value, which may be a secret.
        first = error.errors(include_input=False, include_url=False)[0]
        # The object's own validator finds a missing attribute, so pydantic's place is that of the object.
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
