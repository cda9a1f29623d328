"""Writes the contract for other languages: a JSON Schema for each message, and one AsyncAPI 3.0 document.

``python -m kubevnfm_events.schema`` writes ``schemas/``; ``--release 0.2.0`` also keeps a copy in ``released/0.2.0/``,
with which later versions must be compatible (tests/test_compatibility.py). The files depend on the models only.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Final

from kubevnfm_kit.json_schema import DescribedSchema
from kubevnfm_kit.json_types import JsonMapping, JsonObject
from pydantic.json_schema import models_json_schema

from kubevnfm_events.base import Command, Event, Message
from kubevnfm_events.common import CommandFailed
from kubevnfm_events.contract import commands, event_keys, messages

ROOT: Final = Path(__file__).parent.parent
SCHEMAS: Final = ROOT / "schemas"
RELEASED: Final = ROOT / "released"
ASYNCAPI: Final = "asyncapi.json"
_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_CONTENT_TYPE: Final = "application/cloudevents+json"

_CLOUD_EVENT: Final[JsonMapping] = {
    "type": "object",
    "title": "CloudEvent",
    "description": "CloudEvents 1.0, structured JSON mode, with the extension attributes of kubevnfm.",
    "required": ["specversion", "id", "source", "type", "data"],
    "properties": {
        "specversion": {"type": "string", "const": "1.0"},
        "id": {"type": "string", "minLength": 1, "description": "The same id is the same message, published again."},
        "source": {"type": "string", "minLength": 1, "description": "/kubevnfm/<service>"},
        "type": {"type": "string", "description": "kubevnfm.<domain>.<thing>.<what>.v1"},
        "subject": {
            "type": "string",
            "description": "The VNF instance, or the package, VIM and so on that the message is about.",
        },
        "time": {"type": "string", "format": "date-time"},
        "datacontenttype": {"type": "string", "const": "application/json"},
        "operationid": {"type": "string", "description": "The VNF LCM operation occurrence."},
        "stepid": {"type": "string", "description": "The step of the operation."},
        "attempt": {"type": "integer", "minimum": 1, "description": "The number of the try of the step."},
        "causationid": {"type": "string", "description": "The id of the message that this one follows from."},
        "traceparent": {"type": "string", "description": "W3C Trace Context."},
        "requestid": {"type": "string", "description": "The HTTP request that it follows from: its X-Request-ID."},
        "deadline": {
            "type": "string",
            "format": "date-time",
            "description": "Commands: the time at which the step fails.",
        },
        "data": {"type": "object"},
    },
}


def message_schema(message: type[Message]) -> JsonObject:
    """Return the JSON Schema of what an envelope of the message carries as ``data``."""
    # The schema of validation, not of serialisation: it says what a reader accepts, also without optional attributes.
    schema = message.model_json_schema(mode="validation", schema_generator=DescribedSchema)
    return {"$schema": _DIALECT, "$id": f"urn:kubevnfm:{message.type}", **schema}


def asyncapi() -> JsonObject:
    """Return the AsyncAPI 3.0 document: two exchanges as channels, and an operation for each receiver."""
    asked = commands()
    services = sorted({command.service for command in asked})
    events = [message for message in messages() if issubclass(message, Event)]
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "kubevnfm events",
            "version": version("kubevnfm-events"),
            "description": "Commands and events of an ETSI NFV VNF manager for Kubernetes. Other systems bind queues "
            "of their own to the exchange kubevnfm.events; commands are between kubevnfm's services.",
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": _CONTENT_TYPE,
        "channels": {
            "events": {
                "address": "{routingKey}",
                "title": "Facts",
                "description": "Topic exchange kubevnfm.events; the routing key is the type without prefix and version, "
                "and in service.state.reported the name of the service behind it.",
                "parameters": {"routingKey": {"enum": list(event_keys())}},
                "messages": _references(events),
                "bindings": _exchange("kubevnfm.events", "topic"),
            },
            "commands": {
                "address": "{service}",
                "title": "Commands to one service",
                "description": "Direct exchange kubevnfm.commands; the routing key is the service's name. "
                "Each command is answered by one event with the same operationid, stepid and attempt.",
                "parameters": {"service": {"enum": services}},
                "messages": _references(asked),
                "bindings": _exchange("kubevnfm.commands", "direct"),
            },
        },
        "operations": {
            "publishEvents": {
                "action": "send",
                "channel": {"$ref": "#/channels/events"},
                "summary": "Every service publishes the facts that it knows first.",
                "messages": _of_channel("events", events),
            },
            **{
                _operation(service): _received([command for command in asked if command.service == service])
                for service in services
            },
        },
        "components": {
            "messages": {message.__name__: _message(message) for message in messages()},
            "schemas": {"CloudEvent": dict(_CLOUD_EVENT), **_schemas()},
        },
    }


def _schemas() -> JsonObject:
    _, definitions = models_json_schema(
        [(message, "validation") for message in messages()],
        ref_template="#/components/schemas/{model}",
        schema_generator=DescribedSchema,
    )
    # Sorted: the files are compared with the committed ones, so their order must not depend on imports.
    schemas: JsonObject = definitions["$defs"]
    return dict(sorted(schemas.items()))


def _message(message: type[Message]) -> JsonObject:
    return {
        "name": message.type,
        "title": message.__name__,
        "summary": (message.__doc__ or "").strip().partition("\n")[0],
        "contentType": _CONTENT_TYPE,
        "payload": {
            "allOf": [
                {"$ref": "#/components/schemas/CloudEvent"},
                {
                    "type": "object",
                    "properties": {
                        "type": {"const": message.type},
                        "data": {"$ref": f"#/components/schemas/{message.__name__}"},
                    },
                },
            ]
        },
    }


def _received(asked: Sequence[type[Command]]) -> JsonObject:
    """Return the operation of one service: its commands, and the events that answer them."""
    answers = sorted({command.reply for command in asked if command.reply is not None}, key=lambda event: event.type)
    return {
        "action": "receive",
        "channel": {"$ref": "#/channels/commands"},
        "summary": f"{asked[0].service} handles its commands.",
        "messages": _of_channel("commands", asked),
        "reply": {
            "channel": {"$ref": "#/channels/events"},
            "messages": _of_channel("events", [*answers, CommandFailed]),
        },
    }


def _references(among: Sequence[type[Message]]) -> JsonObject:
    return {message.__name__: {"$ref": f"#/components/messages/{message.__name__}"} for message in among}


def _of_channel(channel: str, among: Sequence[type[Message]]) -> list[dict[str, str]]:
    return [{"$ref": f"#/channels/{channel}/messages/{message.__name__}"} for message in among]


def _exchange(name: str, kind: str) -> JsonObject:
    exchange = {"name": name, "type": kind, "durable": True, "autoDelete": False}
    return {"amqp": {"is": "routingKey", "exchange": exchange, "bindingVersion": "0.3.0"}}


def _operation(service: str) -> str:
    first, *rest = service.split("-")
    return "receiveBy" + first.capitalize() + "".join(word.capitalize() for word in rest)


def files() -> dict[str, str]:
    """Return every file of ``schemas/``: text by file name."""
    written = {f"{message.type}.json": _text(message_schema(message)) for message in messages()}
    return {**written, ASYNCAPI: _text(asyncapi())}


def write(folder: Path) -> None:
    """Write the files into the folder, and remove those of messages that do not exist any more."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = files()
    # A schema without a message would look like a part of the contract to other systems.
    for stale in folder.glob("*.json"):
        if stale.name not in wanted:
            stale.unlink()
    for name, text in wanted.items():
        (folder / name).write_text(text, encoding="utf-8")


def _text(document: JsonMapping) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    """Write the schemas."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--release", metavar="VERSION", help="also keep a copy as those of this release")
    arguments = parser.parse_args()
    write(SCHEMAS)
    if arguments.release:
        write(RELEASED / arguments.release)


if __name__ == "__main__":
    main()
