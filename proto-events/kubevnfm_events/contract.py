"""The contract as a whole: lists that are derived from the message classes, so that none is kept by hand.

A new command needs its class, an example, a handler and a step; the queue bindings, the cancellation and the schemas
follow from the class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kubevnfm_events.base import EVERY_SERVICE, EVERY_WORKER, MESSAGES, Command, Event, Message
from kubevnfm_events.common import CancelStep, CommandFailed

_PACKAGE = __name__.partition(".")[0]

COMMANDER: Final = "lcm-api"
"""The service that sends the commands, those to itself too. The others are asked and answer."""


def messages() -> Sequence[type[Message]]:
    """Return every message class of the contract, sorted by type."""
    # A test process registers messages of its own; they are not part of the contract.
    return [MESSAGES[name] for name in sorted(MESSAGES) if MESSAGES[name].__module__.partition(".")[0] == _PACKAGE]


def commands() -> Sequence[type[Command]]:
    """Return every command of the contract, sorted by type."""
    return [message for message in messages() if issubclass(message, Command)]


def replies() -> Sequence[type[Event]]:
    """Return every event that can answer a step: the commands' replies and CommandFailed, sorted by type."""
    answering: set[type[Event]] = {
        CommandFailed,  # no command names it as its reply, because it answers any of them
        *(command.reply for command in commands() if command.reply is not None),
    }
    return sorted(answering, key=lambda event: event.type)


def cancel_commands() -> Mapping[str, type[CancelStep]]:
    """Return, by service name, the command that cancels a step which that service works on.

    Raises TypeError if a service has two.
    """
    by_service: dict[str, type[CancelStep]] = {}
    # The sender knows only the service of the step that it cancels, so a second class would be ambiguous.
    for command in commands():
        if issubclass(command, CancelStep) and by_service.setdefault(command.service, command) is not command:
            raise TypeError(f"{command.service} has two CancelStep commands: {command.type} and another")
    return by_service


def services() -> Sequence[str]:
    """Return the services that handle a command or publish an event, sorted."""
    publishers = {event.by for event in messages() if issubclass(event, Event)} - {EVERY_WORKER, EVERY_SERVICE, ""}
    return sorted({COMMANDER} | {command.service for command in commands()} | publishers)


def published_by(service: str) -> Sequence[type[Event]]:
    """Return the events that a service publishes, sorted by type: the replies of its commands, and those of its own."""
    own = [command for command in commands() if command.service == service]
    answers = {command.reply for command in own}
    return [
        event
        for event in messages()
        if issubclass(event, Event)
        and (event in answers or event.by in {service, EVERY_SERVICE} or (event.by == EVERY_WORKER and bool(own)))
    ]


def event_keys() -> Sequence[str]:
    """Return the routing keys of all events, sorted."""
    return sorted({event.key_of(service) for service in services() for event in published_by(service)})
