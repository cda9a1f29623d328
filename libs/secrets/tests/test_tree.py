"""Secrets inside free-form JSON: found by name, masked, sealed, opened, left out."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from kubevnfm_secrets import (
    MASK,
    KeyRing,
    Secret,
    SecretParams,
    hide,
    is_secret_name,
    map_secrets,
    mask,
    opened,
    revealed,
    sealed,
    sealing,
    without_secrets,
)
from kubevnfm_secrets.names import _KINDS_OF_KEYS, _SECRETS
from pydantic import BaseModel

RING = KeyRing.from_text(KeyRing.new_key())
TREE: dict[str, Any] = {
    "flavour": "simple",
    "count": 3,
    "is_default": True,
    "nothing": None,
    "password": "p!1",
    "ssh": {"username": "ubuntu", "private_key": "k!1", "port": 22},
    "nodes": [{"name": "a", "token": "t!1"}, {"name": "b"}],
    "credentials": {"user": "u!1", "pin": 471147114711, "is_admin": True, "more": ["m!1", None]},
    "proxy": "http://user:w!1@proxy.example:3128",
    "mirror": "http://mirror.example/path",
}
SECRET_VALUES = ("p!1", "k!1", "t!1", "u!1", "471147114711", "m!1", "w!1")


@pytest.mark.parametrize(
    "name",
    [
        "password", "PASSWORD", "adminPasswd", "ssh_passphrase", "client_secret", "bearer_token", "privateKey",
        "private_key", "client_key", "certificateKey", "access_key", "api_key", "kubeconfig",
        "credential", "credentials", "admin_pass", "adminPass", "pwd", "db-pwd", "psk", "wifi_psk2", "rootpw_pw", "PASS",
        "root_password_value", "password_2", "passwords", "dbpassword", "adminpass", "apikey", "TLSKey", "secretData",
        "userPSK", "auth_tokens", "encryption_key", "shared-keys", "otp", "token1", "OS_PASSWORD", "x.db.pwd",
    ],
)  # fmt: skip
def test_a_name_that_says_secret_hides_its_value(name: str) -> None:
    assert hide({name: "x"}) == {name: Secret("x")}


@pytest.mark.parametrize("name",
    [
        "password_policy", "token_url", "token_request", "configmap_secret_paths", "key", "username", "keypair", "passwordless", "bypass", "pass_through", "public_key",
        "max_tokens", "token_count", "secret_name", "credential_id", "auth_cred", "accessInfo", "key_name", "compass",
        "ssh_authorized_keys", "passed", "keystone", "spwdx", "tokenEndpoint", "passport", "",
    ],
)  # fmt: skip
def test_other_names_hide_nothing(name: str) -> None:
    assert hide({name: "x"}) == {name: "x"}


def test_a_request_lists_further_names_for_an_object_and_what_is_below() -> None:
    tree = {
        "community": "c",
        "a": {"x_secret_names": ["community", "pin"], "community": "c", "in": [{"pin": 1, "other": 2}]},
    }
    assert hide(tree) == {
        "community": "c",
        "a": {**tree["a"], "community": Secret("c"), "in": [{"pin": Secret("1"), "other": 2}]},  # type: ignore[dict-item]  # our own tree
    }
    assert hide(hide(tree)) == hide(tree)
    assert hide({"x_secret_names": "community", "community": "c"}) == {"x_secret_names": "community", "community": "c"}


def test_a_package_marks_further_names() -> None:
    assert hide({"community": {"a": "c"}, "b": 1}, ["community"]) == {"community": {"a": Secret("c")}, "b": 1}


def test_a_long_name_takes_no_time() -> None:
    begin = time.process_time()
    assert not is_secret_name("a_" * 1_000_000)
    # A quick look passes over most names, and over none of these.
    assert all(is_secret_name(f"db_{word}") and is_secret_name(f"x{word.title()}") for word in _SECRETS)
    assert all(is_secret_name(f"{kind}_KEY") for kind in _KINDS_OF_KEYS)
    assert not is_secret_name("pas" * 1_000_000)
    assert time.process_time() - begin < 0.5


def test_below_a_secret_name_every_value_is_hidden() -> None:
    hidden = hide(TREE)["credentials"]
    assert hidden == {
        "user": Secret("u!1"),
        "pin": Secret("471147114711"),
        "is_admin": True,
        "more": [Secret("m!1"), None],
    }


def test_a_url_with_credentials_is_hidden_under_any_name() -> None:
    assert hide(TREE)["proxy"] == Secret("http://user:w!1@proxy.example:3128")
    assert hide(TREE)["mirror"] == "http://mirror.example/path"


def test_what_is_not_secret_stays_as_it_is() -> None:
    hidden = hide(TREE)
    for name in ("flavour", "count", "is_default", "nothing", "mirror"):
        assert hidden[name] is TREE[name]
    assert hidden["ssh"]["port"] == 22


def test_hiding_twice_changes_nothing() -> None:
    assert hide(hide(TREE)) == hide(TREE)


def test_a_masked_tree_is_json_without_secrets() -> None:
    text = json.dumps(mask(hide(TREE)))
    assert text.count(MASK) == len(SECRET_VALUES)
    for value in SECRET_VALUES:
        assert value not in text


def test_a_sealed_tree_opens_to_the_same_secrets() -> None:
    document = json.loads(json.dumps(sealed(hide(TREE), RING)))
    for value in SECRET_VALUES:
        assert value not in json.dumps(document)
    again = opened(document)
    assert revealed(again, RING) == revealed(hide(TREE), RING)
    assert sealed(again, RING) == document


def test_revealing_gives_the_texts() -> None:
    assert revealed(hide(TREE), RING) == {**TREE, "credentials": {**TREE["credentials"], "pin": "471147114711"}}


def test_an_object_with_more_than_the_sealed_attribute_is_an_ordinary_one() -> None:
    tree = {"a": {"$sealed": "x", "b": 1}, "c": {"$sealed": 7}}
    assert opened(tree) == tree


def test_without_secrets_leaves_out_attributes_and_elements() -> None:
    tree = {"a": [1, Secret("x"), {"b": Secret("y"), "c": 2}], "d": Secret("z"), "e": (Secret("x"), 3)}
    assert without_secrets(tree) == {"a": [1, {"c": 2}], "e": [3]}


def test_map_secrets_visits_each_secret_once() -> None:
    seen: list[str] = []
    map_secrets(hide(TREE), lambda secret: seen.append(secret.reveal(RING)))
    assert len(seen) == len(SECRET_VALUES)


class Request(BaseModel):
    parameters: SecretParams = {}


def test_a_model_reads_masks_and_seals_its_parameters() -> None:
    request = Request(parameters=hide({"password": "p!1", "n": 1}))
    assert request.model_dump(mode="json") == {"parameters": {"password": MASK, "n": 1}}
    document = request.model_dump(mode="json", context=sealing(RING))
    assert Request.model_validate(document).parameters["password"].reveal(RING) == "p!1"
    assert request.model_dump()["parameters"]["password"] == Secret("p!1")


def test_a_model_seals_what_a_package_marks_when_it_is_written() -> None:
    document = Request(parameters={"community": "c!1"}).model_dump(mode="json", context=sealing(RING, ["community"]))
    assert "c!1" not in str(document)
    assert Request.model_validate(document).parameters["community"].reveal(RING) == "c!1"


def test_a_name_counts_for_all_that_is_below_the_object_that_lists_it() -> None:
    tree = {
        "x_secret_names": ["a"],
        "in": [{"x_secret_names": ["b"], "deep": {"a": "1", "b": "2"}}, {"b": "3"}],
        "b": "4",
    }
    shown = mask(hide(tree))
    assert shown["in"][0]["deep"] == {"a": MASK, "b": MASK}
    assert (shown["in"][1], shown["b"]) == ({"b": "3"}, "4")


@pytest.mark.parametrize(
    "text",
    ["login.password=x", "a=1,db.pwd=x", "--api-key=x", "pins[0].otp=1", "pin=1", "_pwd=1", "a=1,db.url=pg://u:w@h/d"],
)
def test_an_assignment_in_a_list_is_hidden_by_the_name_on_its_left(text: str) -> None:
    """As arguments of programs and ``helm --set`` have it; ``x_secret_names`` counts too."""
    tree = {"x_secret_names": ["pin"], "given": [text, "service.port=8081", "http://mirror/?token=a", "a=password"]}
    assert hide(tree)["given"] == [Secret(text), *tree["given"][1:]]
