"""Message, Command, Event, and the CloudEvents 1.0 envelope that carries them (structured JSON mode).

``type`` is ``kubevnfm.<domain>.<thing>.<what>.v1`` (commands: ``kubevnfm.<domain>.<what>.v1``); the routing key of an
event is the type without prefix and version; a service's name follows where the event is about the service itself. Within ``v1`` only optional fields are added; anything else is a new class.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, ClassVar, Final, Generic, TypeVar
from uuid import uuid4

from kubevnfm_kit.foreign_json import DEEPEST, MOST_NODES, read_foreign
from kubevnfm_kit.json_types import JsonObject
from kubevnfm_secrets import KeyRing, sealing
from pydantic import BaseModel, ConfigDict, ValidationError

PREFIX = "kubevnfm."
VERSION = ".v1"
_LEVELS: Final = 2 * DEEPEST
_NODES: Final = 4 * MOST_NODES
"""More than a document of others may have: a message carries several of them."""


class InvalidMessage(ValueError):
    """The bytes are not a message of this contract; the text says why and never quotes a value."""


class Facts(BaseModel):
    """A part of a message."""

    # Unknown attributes are ignored: within `v1` a newer sender may add optional ones. Inputs are hidden because an
    # error of validation reaches the log and the dead-letter queue. Rules are built when a class is first used: a service
    # uses some of the messages, and those of all of them take megabytes.
    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True, defer_build=True)


class Message(Facts):
    """The data of an envelope."""

    type: ClassVar[str] = ""
    """The CloudEvents ``type``; set by ``kind=`` in the class statement."""

    def __init_subclass__(cls, kind: str = "", **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # A common base of several messages: it is never sent, so it has no type.
        if not kind:
            return
        cls.type = f"{PREFIX}{kind}{VERSION}"
        # Two classes of one type would make decoding depend on the order of imports.
        if MESSAGES.setdefault(cls.type, cls) is not cls:
            raise TypeError(f"{cls.type} is the type of two message classes")

    @classmethod
    def routing_key(cls) -> str:
        """Return the type without prefix and version."""
        return cls.type.removeprefix(PREFIX).removesuffix(VERSION)

    def own_key(self) -> str:
        """Return the routing key that an event with these data is published with."""
        return self.routing_key()


MESSAGES: dict[str, type[Message]] = {}
"""Every message class by its CloudEvents type."""


class Event(Message):
    """States what is true now."""

    by: ClassVar[str] = ""
    """The service that publishes it, set by ``by=``, `EVERY_WORKER` or `EVERY_SERVICE`; a reply is published by its command's service too."""

    def __init_subclass__(cls, kind: str = "", by: str = "", **kwargs: Any) -> None:
        super().__init_subclass__(kind=kind, **kwargs)
        # Not inherited: an event that extends another one is that of another command.
        cls.by = by

    @classmethod
    def key_of(cls, service: str) -> str:
        """Return the routing key with which a service publishes it; an event about the service itself names the service there."""
        return f"{cls.routing_key()}.{service}" if cls.by == EVERY_SERVICE else cls.routing_key()


EVERY_WORKER: Final = "every worker"
"""As ``by=``: the event reports on any command, so each service that handles commands publishes it."""
EVERY_SERVICE: Final = "every service"
"""As ``by=``: the event reports on the service itself."""


class Command(Message):
    """Asks one service to do one thing; answered by exactly one event with the same operation, step and attempt."""

    service: ClassVar[str] = ""
    """The service that handles it: ``infra-openstack`` and so on; set by ``service=`` in the class statement."""
    reply: ClassVar[type[Event] | None] = None
    """The event of its success, set by ``reply=``; None if no step waits for it. A failure is always CommandFailed."""

    def __init_subclass__(
        cls, kind: str = "", service: str = "", reply: type[Event] | None = None, **kwargs: Any
    ) -> None:
        super().__init_subclass__(kind=kind, **kwargs)
        # Without `service` and `reply` a command inherits those of its base class.
        if service:
            cls.service = service
        if reply is not None:
            cls.reply = reply


M = TypeVar("M", bound=Message, covariant=True)
A = TypeVar("A", bound=Message)


@dataclass(frozen=True)
class Envelope(Generic[M]):
    """A CloudEvents 1.0 event; the extension attributes keep CloudEvents' lower-case names."""

    data: M
    source: str
    """``/kubevnfm/<service>``."""
    subject: str = ""
    """The VNF instance id; for a message about something else, the id of the package, VIM and so on."""
    id: str = field(default_factory=lambda: str(uuid4()))
    time: datetime = field(default_factory=lambda: datetime.now(UTC))
    operationid: str = ""
    """The VNF LCM operation occurrence."""
    stepid: str = ""
    attempt: int = 0
    """The number of the try of the step, from 1; 0 outside steps."""
    causationid: str = ""
    """The id of the message that this one answers or follows from."""
    traceparent: str = ""
    """W3C Trace Context."""
    requestid: str = ""
    """The HTTP request that it follows from: its ``X-Request-ID``."""
    deadline: datetime | None = None
    """Commands: after this moment the step has failed and must not be started."""

    @property
    def type(self) -> str:
        return self.data.type

    @property
    def is_command(self) -> bool:
        return isinstance(self.data, Command)

    def follow_up(self, data: A, *, source: str) -> Envelope[A]:
        """Return an envelope for ``data`` that answers this one or reports on it."""
        # Without the deadline: it bounds the command, not what is reported about it.
        return Envelope(
            data=data,
            source=source,
            subject=self.subject,
            operationid=self.operationid,
            stepid=self.stepid,
            attempt=self.attempt,
            causationid=self.id,
            traceparent=self.traceparent,
            requestid=self.requestid,
        )

    def document(self, ring: KeyRing) -> JsonObject:
        """Return the structured-mode JSON object; secrets are sealed."""
        attributes: JsonObject = {
            "specversion": "1.0",
            "id": self.id,
            "source": self.source,
            "type": self.type,
            "time": self.time.isoformat(),
            "datacontenttype": "application/json",
        }
        optional = {
            "subject": self.subject,
            "operationid": self.operationid,
            "stepid": self.stepid,
            "attempt": self.attempt,
            "causationid": self.causationid,
            "traceparent": self.traceparent,
            "requestid": self.requestid,
            "deadline": self.deadline.isoformat() if self.deadline else "",
        }
        # CloudEvents has no null: an attribute without a value is absent.
        attributes.update({name: value for name, value in optional.items() if value})
        # Nulls are left out: an optional attribute that is absent and one that is null mean the same.
        attributes["data"] = self.data.model_dump(mode="json", context=sealing(ring), exclude_none=True)
        return attributes

    def encode(self, ring: KeyRing) -> bytes:
        """Return the UTF-8 JSON of ``document``."""
        return json.dumps(self.document(ring), separators=(",", ":"), ensure_ascii=False).encode()


_TEXTS: Final = ("subject", "operationid", "stepid", "causationid", "traceparent", "requestid")
"""The optional attributes of an envelope that are texts."""


def decode(raw: bytes | str) -> Envelope[Message]:
    """Read an envelope. Raises InvalidMessage if it is not one, or if its type or data is not of the contract."""
    try:
        document = read_foreign(raw, deepest=_LEVELS, most_nodes=_NODES)
    except ValueError as error:
        raise InvalidMessage(f"not JSON: {error}") from error
    return from_document(document)


def from_document(document: Any) -> Envelope[Message]:
    """Read an envelope from its JSON object. Raises InvalidMessage as ``decode`` does."""
    if not isinstance(document, Mapping):
        raise InvalidMessage("not a JSON object")
    for name in ("specversion", "id", "source", "type"):
        if not isinstance(document.get(name), str) or not document[name]:
            raise InvalidMessage(f"{name}: required by CloudEvents 1.0")
    if document["specversion"] != "1.0":
        raise InvalidMessage(f"specversion: expected 1.0, got {document['specversion']}")
    # An unknown type is an error and not skipped: the consumer dead-letters it, so that it is seen.
    message_class = MESSAGES.get(document["type"])
    if message_class is None:
        raise InvalidMessage(f"type: {document['type']} is not a message of this contract")
    try:
        data = message_class.model_validate(document.get("data"))
        # `time` is optional in CloudEvents 1.0.
        time = datetime.fromisoformat(document["time"]) if "time" in document else datetime.now(UTC)
        deadline = datetime.fromisoformat(document["deadline"]) if document.get("deadline") else None
        attempt = int(document.get("attempt", 0))
    except ValidationError as error:
        # Places and rules only: the reason is stored with the dead message, and the value may be a secret.
        places = "; ".join(
            f"data.{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors(include_input=False)
        )
        raise InvalidMessage(places) from error
    except (TypeError, ValueError) as error:
        raise InvalidMessage(str(error)) from error
    return Envelope(
        data=data,
        source=document["source"],
        id=document["id"],
        time=time,
        attempt=attempt,
        deadline=deadline,
        **{name: str(document.get(name, "")) for name in _TEXTS},
    )
