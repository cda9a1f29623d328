"""The written schemas and the AsyncAPI document agree with the models."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from jsonschema_rs import Draft202012Validator, Registry, meta
from kubevnfm_events import Command, Message
from kubevnfm_events.contract import messages
from kubevnfm_events.schema import ASYNCAPI, SCHEMAS, files

DOCUMENT = "urn:kubevnfm:asyncapi"
MESSAGES = {message.type: message for message in messages()}


@cache
def made() -> dict[str, str]:
    """The files of ``schemas/``; it takes half a second to make them."""
    return files()


@cache
def asyncapi_once() -> Any:
    return json.loads(made()[ASYNCAPI])


@cache
def registry() -> Registry:
    """The AsyncAPI document for references to its parts."""
    return Registry([(DOCUMENT, asyncapi_once())])


def test_the_written_schemas_are_those_of_the_models() -> None:
    written = {path.name: path.read_text(encoding="utf-8") for path in SCHEMAS.glob("*.json")}
    assert written == made(), "run `make schemas`"


def test_writing_twice_gives_the_same() -> None:
    assert files() == made()


def test_every_schema_is_valid_json_schema() -> None:
    for name in MESSAGES:
        assert meta.is_valid(schema_of(name)), name


def test_every_reference_of_the_asyncapi_document_leads_somewhere() -> None:
    document = asyncapi_once()
    references = list(references_in(document))
    assert references
    for reference in references:
        target: Any = document
        for step in reference.removeprefix("#/").split("/"):
            target = target[step]


def test_every_message_is_in_one_channel_and_every_command_has_a_receiver() -> None:
    document = asyncapi_once()
    in_channels = [name for channel in document["channels"].values() for name in channel["messages"]]
    assert sorted(in_channels) == sorted(message.__name__ for message in MESSAGES.values())
    received = [
        reference["$ref"].rsplit("/", 1)[-1]
        for name, operation in document["operations"].items()
        if name.startswith("receiveBy")
        for reference in operation["messages"]
    ]
    commands = [message.__name__ for message in MESSAGES.values() if issubclass(message, Command)]
    assert sorted(received) == sorted(commands)


@pytest.mark.parametrize("name", MESSAGES)
def test_the_golden_example_fits_its_schema_and_its_asyncapi_message(name: str) -> None:
    example = read_example(MESSAGES[name])
    Draft202012Validator(schema_of(name), validate_formats=True).validate(example["data"])
    payload = {"$ref": f"{DOCUMENT}#/components/messages/{MESSAGES[name].__name__}/payload"}
    Draft202012Validator(payload, validate_formats=True, registry=registry()).validate(example)


def test_no_file_is_left_over() -> None:
    names = {path.name for path in (SCHEMAS.parent / "examples").glob("*.json")}
    assert names == {f"{name}.json" for name in MESSAGES}
    assert ASYNCAPI in made()


def schema_of(name: str) -> Any:
    return json.loads(made()[f"{name}.json"])


def read_example(message: type[Message]) -> dict[str, Any]:
    path = SCHEMAS.parent / "examples" / f"{message.type}.json"
    example: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return example


def references_in(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for value in node.values():
            yield from references_in(value)
    elif isinstance(node, list):
        for value in node:
            yield from references_in(value)
