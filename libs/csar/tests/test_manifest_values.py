"""Variables in manifests (multicloud.md MC-023 to MC-030)."""

from __future__ import annotations

from typing import Any

import pytest
from kubevnfm_csar.manifest_values import Filling, Hidden, check_values, merged
from kubevnfm_kit.errors import Unprocessable

VALUES: dict[str, Any] = {
    "name": "web", "port": 8080, "ratio": 0.5, "on": True, "nothing": None, "hosts": ["a", "b"],
    "db": {"port": 5432, "user": "root"}, "quote": 'a"\n- b: {c', "dollar": "$name", "sub-chart": {"port": 80},
}  # fmt: skip


def filled(body: Any, values: Any = VALUES) -> Any:
    filling = Filling(values)
    found = filling.filled(body, "a.yaml, document 1")
    filling.check()
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$name", "web"),
        ("${name}", "web"),
        ("x-$name-${port}", "x-web-8080"),
        ("$port", 8080),
        ("${ratio}", 0.5),
        ("$on", True),
        ("is $on", "is true"),
        ("$nothing", None),
        ("is $nothing", "is null"),
        ("$hosts", ["a", "b"]),
        ("${db}", {"port": 5432, "user": "root"}),
        ("${db.port}", 5432),
        ("${db.user}@$name", "root@web"),
        ("$$name", "$name"),
        ("$$", "$"),
        ("a$$b", "a$b"),
        ("$(NAME)", "$(NAME)"),
        ("$1 $? $", "$1 $? $"),
        ("${none:-x}", "x"),
        ("${none:-}", ""),
        ("${none:-80}", 80),
        ("p${none:-80}", "p80"),
        ("${name:-x}", "web"),
        ("${db.none:-7}", 7),
        ("${sub-chart.port} ${none-1:--x} $name-1", "80 -x web-1"),
        # A value is no template and no YAML.
        ("$dollar", "$name"),
        ("a $quote", 'a a"\n- b: {c'),
    ],
)
def test_the_forms_of_variables(text: str, expected: object) -> None:
    """MC-023, MC-024, MC-025."""
    found = filled({"kind": "ConfigMap", "data": {"key": text}})["data"]["key"]
    assert (found, type(found)) == (expected, type(expected))


def test_keys_and_members_of_lists_are_filled_in() -> None:
    """MC-023."""
    body = {"kind": "X", "spec": [{"$name": ["$port"]}]}
    assert filled(body) == {"kind": "X", "spec": [{"web": [8080]}]}


def test_all_missing_names_are_one_error_with_file_and_path() -> None:
    """MC-026."""
    filling = Filling({"db": {}, "name": "x"})
    filling.filled({"spec": {"ports": [{"port": "${db.port}"}], "a/b": "$who"}}, "a.yaml, document 2")
    filling.filled({"metadata": {"name": "x-$who"}}, "b.yaml, document 1")
    filling.filled({"spec": {"text": "${name.member}"}}, "b.yaml, document 2")
    with pytest.raises(Unprocessable) as caught:
        filling.check()
    assert caught.value.places == (
        ("additionalParams/values", "a.yaml, document 2: /spec/ports/0/port: no value for db.port"),
        ("additionalParams/values", "a.yaml, document 2: /spec/a~1b: no value for who"),
        ("additionalParams/values", "b.yaml, document 1: /metadata/name: no value for who"),
        ("additionalParams/values", "b.yaml, document 2: /spec/text: no value for name.member"),
    )


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"a": "x $hosts"}, "/a: hosts is a list or an object"),
        ({"a": "x ${db}"}, "/a: db is a list or an object"),
        ({"$hosts": 1}, "/$hosts: hosts is a list or an object"),
        ({"$name": 1, "web": 2}, "/web: this key is there twice"),
        ({"a": "${name"}, "/a: ${name is not understood"),
        ({"a": "${#name}"}, "/a: ${#name} is not understood"),
        ({"a": "${a b}"}, "/a: ${a b} is not understood"),
        ({"a": "${none:-{}}"}, "/a: ${none:-{}} is not understood"),
        ({"a": "${a:-" * 200_000}, "/a: ${a:-${a:-"),
        ({"a": "$" + "n" * 2**20}, "/a: no value for nnn"),
    ],
)
def test_what_cannot_be_filled_in_is_refused(body: Any, named: str) -> None:
    """MC-024, MC-025."""
    with pytest.raises(Unprocessable) as caught:
        filled({"kind": "X", **body})
    assert named in str(caught.value)


def test_an_object_switches_substitution_off() -> None:
    """MC-027."""
    body = {"metadata": {"annotations": {"kubevnfm.io/substitute": "false"}}, "data": {"run.sh": "echo $who ${x#y}"}}
    assert filled(body) == body
    with pytest.raises(Unprocessable):
        filled({**body, "metadata": {"annotations": {"kubevnfm.io/substitute": "true"}}})


def test_secret_values_are_for_secrets_alone_and_never_in_an_error() -> None:
    """MC-030: also inside a map that is used as a whole."""
    values = {"password": Hidden("open-sesame"), "db": {"password": Hidden("open-sesame"), "port": 1}}
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "stringData": {"p": "$password", "url": "x:${db.password}", "all": "$db"},
    }
    found = filled(secret, values)["stringData"]
    assert found == {"p": "open-sesame", "url": "x:open-sesame", "all": {"password": "open-sesame", "port": 1}}
    for text in ("$password", "x $password", "$db", "${db.password}"):
        with pytest.raises(Unprocessable) as caught:
            filled({"kind": "ConfigMap", "data": {"p": text}}, values)
        assert "/data/p: " in str(caught.value)
        assert "is secret" in str(caught.value)
        assert "sesame" not in str(caught.value) + repr(caught.value) + repr(values)


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"metadata": {"name": "x-$password"}}, "/metadata/name"),
        ({"metadata": {"labels": {"a": "$password"}}}, "/metadata/labels/a"),
        ({"stringData": {"$password": "x", "$other": "y"}}, "/stringData/$password"),
        ({"apiVersion": "example.org/v1", "data": {"a": "$password"}}, "/data/a"),
        ({"database": {"a": "$password"}}, "/database/a"),
    ],
)
def test_no_part_of_a_secret_that_is_shown_has_a_secret_value(body: Any, path: str) -> None:
    """MC-030: names, labels and keys are in lists, events and errors."""
    values = {"password": Hidden("open-sesame"), "other": Hidden("open-sesame")}
    with pytest.raises(Unprocessable) as caught:
        filled({"apiVersion": "v1", "kind": "Secret", **body}, values)
    assert f"{path}: password is secret" in str(caught.value)
    assert "sesame" not in str(caught.value)


def test_each_member_of_a_secret_may_be_a_value_or_a_map_of_values() -> None:
    """MC-025, MC-030."""
    values = {"password": Hidden("open-sesame"), "all": {"a": Hidden("b")}}
    body = {"apiVersion": "v1", "kind": "Secret", "data": "$all", "stringData": {"p": ["$password"]}}
    assert filled(body, values) == {**body, "data": {"a": "b"}, "stringData": {"p": ["open-sesame"]}}


def test_what_lists_and_maps_become_is_bounded() -> None:
    """Each place is a copy of its own, which takes far more memory than its characters."""
    with pytest.raises(Unprocessable, match="or 1000000 members of lists and objects") as caught:
        filled({"kind": "X", "a": ["$many"] * 1000}, {"many": [{}] * 10_001})
    assert len(caught.value.places) == 1


def test_what_values_become_is_bounded() -> None:
    text = "x" * 2**20
    body = {"kind": "X", "a": ["$t"] * 100, "b": "$t" * 100}
    with pytest.raises(Unprocessable, match="more than 67108864 characters"):
        filled(body, {"t": text})


def test_values_take_the_place_of_defaults_member_by_member() -> None:
    """MC-029."""
    defaults = {"db": {"port": 1, "user": {"name": "a"}}, "x": [1], "y": 2}
    given = {"db": {"user": {"id": 7}}, "x": [2], "z": {"q": 1}}
    assert merged(defaults, given) == {
        "db": {"port": 1, "user": {"name": "a", "id": 7}}, "x": [2], "y": 2, "z": {"q": 1},
    }  # fmt: skip
    assert defaults["db"] == {"port": 1, "user": {"name": "a"}}


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ([], "additionalParams/values"),
        (None, "additionalParams/values"),
        ({"-a": 1}, "additionalParams/values/-a"),
        ({"1a": 1}, "additionalParams/values/1a"),
        ({"": 1}, "additionalParams/values/"),
        ({"vnf_id": "x"}, "additionalParams/values/vnf_id"),
        ({"csar_id": "x"}, "additionalParams/values/csar_id"),
        ({"a": ["x" * (2**20 + 1)]}, "additionalParams/values/a"),
    ],
)
def test_values_that_cannot_be_used_are_refused_by_name(given: object, place: str) -> None:
    """MC-022, MC-028."""
    with pytest.raises(Unprocessable) as caught:
        check_values(given)
    assert caught.value.field == place


def test_the_namespace_may_be_among_the_values() -> None:
    """MC-028."""
    assert check_values({"namespace": "a", "x": None}) == {"namespace": "a", "x": None}
