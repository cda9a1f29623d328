"""Forms of what needs no package, compared with what judges the requests."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import partial
from typing import Any, Final

import pytest
from callers.forms import broken, faults, validator
from kubevnfm_clients.multicloud.links import LinkRequest
from kubevnfm_clients.multicloud.types import MultiCloudType
from kubevnfm_infra_k8s.domain.links.types import read_spec
from kubevnfm_kit.errors import InvalidInput, OutsideUnavailable, Unprocessable
from kubevnfm_lab.kubernetes.pki import Authority
from kubevnfm_lcm_api.http.bodies import parse
from kubevnfm_lcm_api.multicloud.bodies import parsed
from kubevnfm_lcm_api.views.forms.kinds import KINDS
from kubevnfm_lcm_api.views.forms.schemas import request_schema
from kubevnfm_lcm_api.views.forms.texts import TEXTS
from kubevnfm_sol import lcm
from kubevnfm_vim_registry.domain import requests
from kubevnfm_vim_registry.domain.forms import vim_forms
from worlds.lcm_world import World
from worlds.link_specs import SPECS

PASSWORD: Final = {"username": "u", "user_domain_name": "Default", "password": "p"}
CREDENTIAL: Final = {"application_credential_id": "i", "application_credential_secret": "s"}
PROJECT: Final = {"name": "nfv", "project_domain_name": "Default"}
CLOUD: Final = {"name": "cloud", "type": "openstack", "auth_url": "http://keystone:5000/v3"}
CLUSTER: Final = {"name": "site", "type": "kubernetes", "auth_url": "https://api:6443"}
TOKEN: Final = {"bearer_token": "t", "ssl_ca_cert": "system"}
AUTHENTICATION: Final = {"authType": ["BASIC"], "paramsBasic": {"userName": "u", "password": "p"}}

BODIES: Final[Mapping[str, Mapping[str, Any]]] = {
    "cloud-region": {
        "cloud_owner": "op", "cloud_region": "edge", "kubeconfig": "YQ==", "labels": {"a": "b"}, "protected_namespaces": ["kube-system"],
        "token_request": {"namespace": "ns", "service_account": "vnfm", "expiration_s": 600},
    },
    "cloud-region-change": {"labels": {"a": "b"}, "kv": {"x": 1}},
    "cloud-region-kubeconfig": {"kubeconfig": "YQ==", "oidc": {"token_url": "https://idp/token", "client_id": "c", "client_secret": "s"}},
    "virtual-link-reference": {"namespaces": ["ns"]},
    "persistent-volume": {
        "cloud_region_id": "op/edge", "name": "data", "size": "1Gi", "access_modes": ["ReadWriteOnce"], "labels": {"a": "b"},
        "source": {"local": {"path": "/data", "nodes": ["n1"]}},
    },
    "persistent-volume-change": {"size": "2Gi"},
    "order": {
        "cloud_region_id": "op/edge", "csar_id": "p", "namespace": "ns", "values": {"a": 1}, "release_name": "vnf",
        "networks": [{"vdu_id": "app", "virtual_link_id": "l"}], "volumes": [{"persistent_volume_id": "v", "claim_name": "data"}],
    },
    "order-change": {"vnf_instance_name": "x", "values": {"a": 2}},
    "subscription": {
        "callbackUri": "http://nfvo/n", "verbosity": "SHORT", "authentication": AUTHENTICATION,
        "filter": {"operationTypes": ["SCALE"], "vnfInstanceSubscriptionFilter": {"vnfInstanceIds": ["i"]}},
    },
    "package-subscription": {"callbackUri": "http://nfvo/n", "filter": {"vnfdId": ["v"]}},
    "pm-job": {
        "objectType": "Vnfc", "objectInstanceIds": ["v"], "callbackUri": "http://nfvo/n", "subObjectInstanceIds": ["c"],
        "criteria": {"performanceMetric": ["VCpuUsageMeanVnf"], "collectionPeriod": 60, "reportingPeriod": 600},
    },
    "threshold": {
        "objectType": "Vnf", "objectInstanceId": "v", "callbackUri": "http://nfvo/n", "authentication": AUTHENTICATION,
        "criteria": {
            "performanceMetric": "VCpuUsageMeanVnf", "thresholdType": "SIMPLE",
            "simpleThresholdDetails": {"thresholdValue": 80, "hysteresis": 10},
        },
    },
    "change-subscription": {
        "callback_url": "http://osm/n", "min_notify_interval": 5, "authentication": AUTHENTICATION, "filter": {"types": ["vim.reachable"]},
    },
}  # fmt: skip
LOGINS: Final = [
    {**CLOUD, "auth_cred": PASSWORD, "vim_project": PROJECT, "extra": {"interface": "public", "region": "r"}},
    {**CLOUD, "auth_cred": CREDENTIAL},
    {**CLOUD, "auth_cred": {"user_id": "u", "password": "p", "cert_verify": "False"}, "vim_project": {"id": "x"}},
    {**CLUSTER, "auth_cred": TOKEN, "vim_project": {"name": "default"}},
    {**CLUSTER, "auth_url": "http://api", "auth_cred": {"username": "u", "password": "p"}},
    {**CLUSTER, "auth_cred": {"oidc_token_url": "https://i", "client_id": "c", "client_secret": "s", "ssl_ca_cert": "None"}},
]  # fmt: skip


def judged(body: Any) -> None:
    """Check a VIM as its registration does."""
    vim = body.get("vim") if isinstance(body, dict) else None
    if not isinstance(vim, dict):
        raise InvalidInput("vim", "an object expected")
    requests.check_names(vim)
    kind = requests.vim_type(vim)
    for name, default in (("name", None), ("tenant_id", "default"), ("description", "")):
        requests.text(vim, name, default=default)
    requests.flag(vim, "is_default")
    requests.extra_attributes(vim, kind)
    requests.vim_project(vim, kind, requests.auth_cred(vim, kind))


def taken(form: dict[str, Any], body: Any, check: Callable[[Any], object], least: int) -> dict[str, Any]:
    """Return the bodies that the form refuses and the check does not; ``least``: how many it refuses at least."""
    assert faults(form, body) == []
    check(body)
    found, number = {}, 0
    for place, wrong in broken(form, form, body):
        number += 1
        try:
            check(wrong)
        except (InvalidInput, Unprocessable):
            continue
        found[place] = wrong
    assert number >= least
    return found


async def test_what_a_form_refuses_the_request_refuses(world: World) -> None:
    """API-163: of everything that is made without a package; each form is listed with its request."""
    world.vims.add("site", "kubernetes", description="d")
    listed = (await world.call("GET", "/kubevnfm/v1/forms")).must(200).json["items"]
    assert [(each["kind"], each["href"].endswith(f"/forms/{each['kind']}")) for each in listed] == [
        (kind, True) for kind in KINDS
    ]
    routes = {
        (method.upper(), path)
        for document in ("/openapi.json", "/multicloud/v1/openapi.json")
        for path, methods in (await world.call("GET", document)).must(200).json["paths"].items()
        for method in methods
    }
    forms = {}
    for each in listed:
        assert (each["method"], each["path"]) in routes
        params = {"vim": "site"} if each["kind"] == "vim-change" else {}
        form = (await world.call("GET", f"/kubevnfm/v1/forms/{each['kind']}", params=params)).must(200).json
        validator(form)
        assert all(each.get("title") for each in form["properties"].values())
        forms[each["kind"]] = form
    for kind, body in BODIES.items():
        assert (kind, taken(forms[kind], body, partial(read, kind), 2)) == (kind, {})
    for vim in LOGINS:
        assert taken(forms["vim"], {"vim": vim}, judged, 15) == {}
    for kind, spec in SPECS.values():
        body = {"cloud_region_id": "op/edge", "name": "net", "type": kind, "spec": as_in_forms(spec)}
        assert (kind, taken(forms["virtual-link"], body, read_link, 4)) == (kind, {})
    (await world.call("GET", "/kubevnfm/v1/forms/vim-change")).problem(400)
    (await world.call("GET", "/kubevnfm/v1/forms/vim-change", params={"vim": "none"})).problem(404)
    (await world.call("GET", "/kubevnfm/v1/forms/none")).problem(404)
    world.links.failure = OutsideUnavailable("infra-k8s", "no answer")
    without = (await world.call("GET", "/kubevnfm/v1/forms/virtual-link")).must(200).json
    assert without["properties"].keys() == forms["virtual-link"]["properties"].keys()


def as_in_forms(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a spec without the spellings that are not in forms: a truth value for ``on``, a text for a list, a CIDR for a subnet."""
    found = dict(spec)
    if found.get("spoofChk") is True:
        found["spoofChk"] = "on"
    if isinstance(found.get("gateway"), str) and "cidrBlock" in found:
        found["gateway"] = found["gateway"].split(",")
    subnets = found.get("subnets")
    if isinstance(subnets, list):
        found["subnets"] = [{"cidr": each} if isinstance(each, str) else each for each in subnets]
    return found


def read(kind: str, body: Any) -> None:
    model = KINDS[kind].model
    assert model is not None
    if issubclass(model, MultiCloudType):
        parsed(model, body)
    else:
        parse(model, body)


def read_link(body: Any) -> None:
    wanted = parsed(LinkRequest, body)
    read_spec(wanted.type, wanted.spec)


def test_each_attribute_of_each_form_has_a_text() -> None:
    """API-163: those of SOL003 name the clause, and what the built-in texts name exists."""
    kinds = [kind.model for kind in KINDS.values() if kind.model is not None]
    models = [*vars(lcm).values(), *kinds]
    requests_ = [
        one for one in models if isinstance(one, type) and one.__name__.endswith(("Request", "Patch", "Kubeconfig"))
    ]
    forms = {one.__name__: request_schema(one) for one in dict.fromkeys(requests_)}
    assert len(forms) > 20
    types = {name: each for form in forms.values() for name, each in form.get("$defs", {}).items()} | forms
    named = {
        (name, attribute): each for name, one in types.items() for attribute, each in one.get("properties", {}).items()
    }
    assert [place for place, each in named.items() if not each.get("description")] == []
    assert named["ScaleVnfRequest", "aspectId"]["description"].endswith(" (SOL003 5.5.2.5)")
    known = {attribute for _, attribute in named} | {f"{name}.{attribute}" for name, attribute in named}
    assert set(TEXTS) - known == set()


@pytest.mark.parametrize(
    ("changes", "is_taken"),
    [
        ({"auth_cred": {**PASSWORD, "application_credential_id": "i"}}, False),
        ({"auth_cred": {"username": "u", "password": "p"}}, False),
        ({"vim_project": {"name": "nfv"}}, False),
        ({"auth_cred": CREDENTIAL, "vim_project": {}}, True),
        ({"extra": {"interface": "secret"}}, False),
        ({"extra": {"capi": {}}}, False),
        ({"extra": {"mine": [1]}}, True),
        ({"auth_url": "ftp://keystone"}, False),
        ({**CLUSTER, "auth_cred": {"bearer_token": "t"}}, False),
        ({**CLUSTER, "auth_cred": {"client_certificate": "c", "ssl_ca_cert": "system"}}, False),
        ({**CLUSTER, "auth_cred": TOKEN, "vim_project": {"name": 7}}, False),
    ],
)
def test_the_form_of_a_vim_says_which_login_is_complete(changes: Mapping[str, Any], is_taken: bool) -> None:
    """API-163: as the registration judges it."""
    body = {"vim": {**CLOUD, "auth_cred": PASSWORD, "vim_project": PROJECT, **changes}}
    form = {"properties": {"vim": vim_forms()["new"]}}
    assert (faults(form, body) == []) is is_taken
    with nullcontext() if is_taken else pytest.raises(InvalidInput):
        judged(body)


def kubeconfig(ca: str, user: Mapping[str, str]) -> str:
    cluster = {"server": "https://api:6443", "certificate-authority-data": b64encode(ca.encode()).decode()}
    contexts = [{"name": "there", "context": {"cluster": "c", "user": "u"}}]
    return json.dumps(
        {"current-context": "there", "contexts": contexts, "clusters": [{"name": "c", "cluster": cluster}], "users": [{"name": "u", "user": user}]}
    )  # fmt: skip


async def test_a_kubeconfig_is_read_as_a_registration(world: World) -> None:
    """It fits the form of a VIM; a file of its author's machine is refused, and no secret is in the answer."""
    path, ca = "/kubevnfm/v1/kubeconfigs", Authority().pem
    answer = (await world.call("POST", path, {"kubeconfig": kubeconfig(ca, {"token": "swordfish"})})).must(200)
    vim = answer.json["vim"]
    assert answer.headers["Cache-Control"] == "no-store"
    login = {"bearer_token": "swordfish", "ssl_ca_cert": ca}
    assert vim == {"name": "there", "type": "kubernetes", "auth_url": "https://api:6443", "auth_cred": login}
    assert faults({"properties": {"vim": vim_forms()["new"]}}, {"vim": vim}) == []
    for text in (kubeconfig(ca, {"tokenFile": "/root/swordfish"}), "swordfish: [", "", "a: &a [*a]"):
        problem = (await world.call("POST", path, {"kubeconfig": text})).problem(422)
        assert "swordfish" not in str(problem)
    bodies: tuple[object, ...] = ({}, {"kubeconfig": 1}, {"kubeconfig": "", "context": 1}, [])
    for body in (*bodies, {"kubeconfig": kubeconfig(ca, {"token": "swordfish"}), "contxt": "there"}):
        assert "swordfish" not in str((await world.call("POST", path, body)).problem(400))
    missing = {"kubeconfig": kubeconfig(ca, {"token": "t"}), "context": "nowhere"}
    assert (await world.call("POST", path, missing)).problem(422)["invalidParams"][0]["name"] == "context"
