"""Forms of requests: typed values of ``--set``, what is asked, and files to fill in."""

from __future__ import annotations

import argparse
import io
import sys
from typing import Any, Final

import pytest
from callers.command_line import Output, kubevnfm
from kubevnfm_cli.bodies import with_parameters
from kubevnfm_cli.call import Call
from kubevnfm_cli.faults import UsageFault
from kubevnfm_cli.forms import asked, missing
from kubevnfm_cli.main import Streams
from kubevnfm_cli.schema_text import Form, template
from kubevnfm_cli.yaml_text import read_documents
from worlds.lcm_world import World

SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["flavourId", "additionalParams"],
    "properties": {
        "flavourId": {"type": "string", "enum": ["a", "b"], "default": "a"},
        "kind": {"const": "fixed", "type": "string"},
        "additionalParams": {
            "type": "object",
            "required": ["user"],
            "properties": {
                "user": {"$ref": "#/$defs/User"},
                "count": {"type": "integer", "maximum": 5},
                "tags": {"type": "array", "items": {"type": "object", "properties": {"key": {"type": "string"}}}},
                "not \x9b plain": {"type": ["string", "null"]},
            },
            "additionalProperties": {"type": "string"},
        },
    },
    "allOf": [
        {
            "if": {"properties": {"flavourId": {"const": "b"}}},
            "then": {"properties": {"level": {"enum": ["x", "y"]}}, "required": ["level"]},
        }
    ],
    "$defs": {
        "User": {
            "type": "object",
            "required": ["name", "password", "age"],
            "properties": {
                "name": {"type": "string", "title": "Name"},
                "password": {"type": "string", "writeOnly": True, "format": "password"},
                "age": {"type": "integer"},
            },
        }
    },
}


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("user.name=007", "007"),
        ("user.name='5'", "5"),
        ("user.name=yes: no", "yes: no"),
        ("user.name=[", "["),
        ("count=5", 5),
        ("other=1.10", "1.10"),
        ("tags=[{key: a}]", [{"key": "a"}]),
    ],
)
def test_a_value_has_the_type_that_the_form_wants(word: str, value: object) -> None:
    given = argparse.Namespace(set=[word], set_string=[], set_file=[])
    found: Any = with_parameters({}, given, Form(SCHEMA))["additionalParams"]
    for name in word.partition("=")[0].split("."):
        found = found[name]
    assert found == value


@pytest.mark.parametrize("option", ["set", "set_string", "set_file"])
def test_an_attribute_of_the_request_is_not_taken_for_a_parameter(option: str) -> None:
    given = argparse.Namespace(**{**dict.fromkeys(("set", "set_string", "set_file"), ()), option: ["flavourId=b"]})
    refused = rf"^--{option.replace('_', '-')} flavourId: .* -f FILE$"
    with pytest.raises(UsageFault, match=refused):
        with_parameters({}, given, Form(SCHEMA))
    own: Any = {"properties": {"additionalParams": {"properties": {"flavourId": {}}}, "flavourId": {}}}
    if option != "set_file":
        assert with_parameters({}, given, Form(own)) == {"additionalParams": {"flavourId": "b"}}


def test_what_a_request_lacks_is_asked_and_secrets_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    lacking = [str(one) for one in missing(Form(SCHEMA), {"additionalParams": {"user": {"age": 1}}})]
    assert lacking == ["additionalParams/user/name", "additionalParams/user/password"]
    out, err = Output(), Output(is_terminal=True)
    given = argparse.Namespace(no_color=True)
    call = Call("instantiate", given, {}, Streams(out, err))
    monkeypatch.setattr(sys, "stdin", io.StringIO("ada\nmany\n\nz\ny\n"))
    secrets: list[str] = []

    def typed(prompt: str, stream: Any) -> str:
        secrets.append(prompt)
        return "s3cret"

    monkeypatch.setattr("getpass.getpass", typed)
    body = asked(call, Form(SCHEMA), {"flavourId": "b"})
    assert body == {"flavourId": "b", "additionalParams": {"user": {"name": "ada", "password": "s3cret"}}, "level": "y"}
    assert secrets == ["additionalParams/user/password: "]
    assert "s3cret" not in err.getvalue() + out.getvalue()
    assert [line.rpartition(": ")[2] for line in err.getvalue().splitlines() if "fit" in line] == [
        "many does not fit",
        "z does not fit",
    ]


def test_a_template_is_a_request_and_each_comment_a_part_of_one() -> None:
    text = template(Form(SCHEMA))
    assert "\x9b" not in text
    (body,) = read_documents(text, "template")
    assert body == {"flavourId": "a", "additionalParams": {"user": {"name": "", "password": "", "age": None}}}
    assert "# with flavourId=b some fields differ" in text
    taken = "\n".join(
        line.replace("# ", "", 1) if line.lstrip().startswith("# ") else line for line in text.splitlines()[1:]
    )
    (whole,) = read_documents(taken, "template")
    assert whole["additionalParams"]["tags"] == [{"key": ""}]
    assert whole["kind"] == "fixed"
    both = {"if": {"properties": {"flavourId": {"const": "a"}, "size": {"const": "big"}}}, "then": {}}
    assert Form({**SCHEMA, "allOf": [both]}).choices() == ["size=big"], "the flavour is the default one"


async def test_an_instantiation_takes_the_only_flavour_and_names_the_fields_of_the_package(world: World) -> None:
    await world.sample()
    assert (await kubevnfm(world.url, "create", "vnf", "--package", "Virtual machine", "--name", "web")).code == 0
    ran = await kubevnfm(world.url, "instantiate", "web", "--set", "a=1", "--dry-run")
    assert "flavour" not in ran.err, ran
    shown = await kubevnfm(world.url, "explain", "instantiate", "Virtual machine", "--template")
    assert read_documents(shown.out, "template") == [{"flavourId": "simple"}]
    volume = await kubevnfm(world.url, "explain", "sub")
    assert "callbackUri <text, required>" in volume.out, volume
