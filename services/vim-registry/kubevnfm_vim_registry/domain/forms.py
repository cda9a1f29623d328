"""The form of a VIM: a JSON Schema of what a registration takes, made from the tables and checks that judge it (`requests`). No I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations
from typing import Any, Final, get_args

from kubevnfm_kit.cluster_trust import NOT_VERIFIED, SYSTEM_CAS
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_secrets import is_secret_name
from kubevnfm_sol.access import INTERFACES, KUBERNETES_LOGINS, SITE_MARK

from kubevnfm_vim_registry.domain import requests
from kubevnfm_vim_registry.domain.providers import CAPI
from kubevnfm_vim_registry.domain.record import JsonObject, VimType

_Rule = tuple[JsonObject, JsonObject]
"""Conditions on attributes, and the schema that holds then."""
_TEXT: Final[JsonObject] = {"type": "string", "maxLength": requests.LONGEST_TEXT}
_TITLES: Final[dict[str, str]] = {"openstack": "OpenStack", "kubernetes": "Kubernetes"}
_FIELDS: Final[dict[str, str]] = {
    "auth_url": "Keystone, or the Kubernetes API",
    "auth_cred": "The access data",
    "vim_project": "OpenStack: the project. Kubernetes: the namespace that is meant where a request names none",
    "extra": "Further data of the VIM",
    "is_default": "Whether it is meant where a request names no VIM",
    "tenant_id": "The group of VIMs of which one is the default",
    "ssl_ca_cert": f'The CA of the API server as PEM; "{SYSTEM_CAS}": those of the system, "{NOT_VERIFIED}": the certificate is not verified',
    "cacert": "The CA of Keystone and the other services as PEM; without it: those of the system",
    "cert_verify": "Whether certificates are verified",
    "oidc_token_url": "Where an OpenID provider gives tokens that the API server accepts",
    "client_certificate": "PEM",
    "client_key": "PEM",
    "region": "The region whose services are used",
    "interface": "The interface of the services in the catalogue of Keystone",
}
_PEM: Final = frozenset({"ssl_ca_cert", "cacert", "client_certificate", "client_key"})
_NOT_ASKED: Final = frozenset({"ssl_ca_cert_hash", "certificate_key"})
"""Attributes that kubevnfm writes into the VIM of a cluster that it has built."""
_PROJECT_LOGIN: Final = {"user_id": "u", "password": "p"}


@cache
def vim_forms() -> JsonObject:
    """Return the JSON Schemas of the object ``vim``: of a registration (``new``), and of a change by the type of the VIM."""
    return {"new": _registration(), "change": {each: _change(each) for each in get_args(VimType)}}


def _registration() -> JsonObject:
    types = list(get_args(VimType))
    properties: JsonObject = {
        "name": {**_TEXT, "minLength": 1},
        "type": {"enum": types, "x-enum-titles": [_TITLES[each] for each in types]},
        "description": _TEXT,
        "auth_url": {**_TEXT, "pattern": "^[Hh][Tt][Tt][Pp][Ss]?://", "format": "uri"},
        "auth_cred": {"type": "object"},
        "vim_project": {"type": "object"},
        "is_default": {"type": "boolean", "default": False},
        "extra": {"type": "object", "properties": {CAPI: False}},
        "tenant_id": _TEXT,
    }
    return {
        "type": "object",
        "required": ["name", "type", "auth_url", "auth_cred"],
        "properties": {name: _described(name, each) for name, each in properties.items()},
        "additionalProperties": False,
        "allOf": [
            {"if": {"properties": {"type": {"const": each}, **condition}, "required": ["type"]}, "then": then}
            for each in types
            for condition, then in _RULES[each]()
        ],
    }


def _change(type: VimType) -> JsonObject:
    """Return the form of a change, which keeps what it leaves out: with a new log-in, only its own attributes are needed."""
    properties: JsonObject = {
        "name": _TEXT,
        "description": _TEXT,
        "is_default": {"type": "boolean"},
        "auth_cred": _credentials(type),
        "vim_project": _project(type),
        "extra": {"type": "object", "properties": {SITE_MARK: _TEXT}},
    }
    described = {name: _described(name, each) for name, each in properties.items()}
    return {"type": "object", "properties": described, "additionalProperties": False}


def _openstack() -> Iterator[_Rule]:
    credential = requests.OF_APPLICATION_CREDENTIALS
    login = _credentials("openstack")
    names = [name for name in login["properties"] if name not in ("cert_verify", "cacert")]
    login["anyOf"] = _alternatives(names, lambda given: requests.check_credentials(given, "openstack", ""))
    login["not"] = {"required": ["password"], "anyOf": [{"required": [name]} for name in credential]}
    named = _alternatives(
        requests.PROJECT, lambda given: requests.vim_project({"vim_project": given}, "openstack", _PROJECT_LOGIN)
    )
    extra: JsonObject = {
        "region": {"type": "string", "minLength": 1},
        "interface": {"enum": list(INTERFACES)},
    }
    properties = {
        "auth_cred": login,
        "vim_project": _project("openstack"),
        "extra": {"type": "object", "properties": {name: _described(name, each) for name, each in extra.items()}},
    }
    yield {}, {"properties": properties}
    # An application credential belongs to a project.
    without = {"auth_cred": {"not": {"required": [requests.APPLICATION_CREDENTIAL]}}}
    yield without, {"required": ["vim_project"], "properties": {"vim_project": {"anyOf": named}}}


def _kubernetes() -> Iterator[_Rule]:
    login = _credentials("kubernetes")
    login["anyOf"] = [_login(each) for each in KUBERNETES_LOGINS]
    yield {}, {"properties": {"auth_cred": login, "vim_project": _project("kubernetes")}}
    is_encrypted = {"auth_url": {"pattern": "^[Hh][Tt][Tt][Pp][Ss]:"}}
    yield is_encrypted, {"properties": {"auth_cred": {"required": ["ssl_ca_cert"]}}}


_RULES: Final[Mapping[str, Callable[[], Iterator[_Rule]]]] = {"openstack": _openstack, "kubernetes": _kubernetes}


def _project(type: VimType) -> JsonObject:
    if type == "kubernetes":
        return {"type": "object", "properties": {"name": {**_TEXT, "description": "A namespace"}}}
    properties = {name: _described(name, _TEXT) for name in requests.PROJECT}
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _credentials(type: VimType) -> JsonObject:
    names = [name for name in requests.CREDENTIALS[type] if name not in _NOT_ASKED]
    properties = {name: _described(name, _value(name)) for name in names}
    others = {name: {"deprecated": True} for name in requests.CREDENTIALS[type] if name in _NOT_ASKED}
    return {"type": "object", "properties": {**properties, **others}, "additionalProperties": False}


def _value(name: str) -> JsonObject:
    # Certificates are longer than other texts, and have no limit but that of the body.
    found: JsonObject = {"type": "string"}
    if name == "cert_verify":
        found |= {"enum": list(requests.CERT_VERIFY), "default": requests.CERT_VERIFY[0]}
    if name in _PEM:
        found["contentMediaType"] = "application/x-pem-file"
    if is_secret_name(name):
        found |= {"writeOnly": True, "format": "password"}
    return found


def _described(name: str, schema: JsonObject) -> JsonObject:
    return {**schema, **({"description": _FIELDS[name]} if name in _FIELDS else {})}


def _login(names: Sequence[str]) -> JsonObject:
    return {"required": list(names)}


def _alternatives(names: Sequence[str], check: Callable[[JsonObject], Any]) -> list[JsonObject]:
    """Return the smallest sets of attributes that a check accepts, as alternatives of a schema."""
    found: list[frozenset[str]] = []
    for size in range(len(names) + 1):
        for each in map(frozenset, combinations(names, size)):
            if not any(smaller <= each for smaller in found) and _is_accepted(check, each):
                found.append(each)
    return [_login([name for name in names if name in each]) for each in found]


def _is_accepted(check: Callable[[JsonObject], Any], names: frozenset[str]) -> bool:
    try:
        check(dict.fromkeys(names, "given"))
    except InvalidInput:
        return False
    return True
