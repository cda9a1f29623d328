"""``kubevnfm why ID``: the cause, and what one can do."""

from __future__ import annotations

from kubevnfm_cli import drawing
from kubevnfm_cli.call import Call, Parser
from kubevnfm_cli.faults import DONE
from kubevnfm_cli.following import read_operation
from kubevnfm_cli.json_types import part
from kubevnfm_cli.operations import add_operation, named_operations
from kubevnfm_cli.output import show_body
from kubevnfm_cli.progress import Operation
from kubevnfm_cli.terminal import printable


def arguments(parser: Parser) -> None:
    """Add the arguments."""
    add_operation(parser, several=True)


def run(call: Call) -> int:
    """Say why an operation waits, failed or is slow."""
    gateway = call.gateway
    found = [read_operation(gateway, one) for one in named_operations(gateway, call.given.words)]
    if not call.format.is_for_people:
        views = [operation.view for operation in found]
        show_body(call, views[0] if len(views) == 1 else views)
        return DONE
    for place, operation in enumerate(found):
        if place:
            call.out.say("")
        for line in _lines(call, operation):
            call.out.say(line)
    return DONE


def _lines(call: Call, operation: Operation) -> list[str]:
    lines = drawing.verdict(call.out, operation)
    cause = operation.view.get("cause")
    if isinstance(cause, dict):
        places = {
            "namespace": part(cause, "object", "namespace"),
            "vim": part(cause, "object", "vimName") or part(cause, "object", "vimId"),
        }
        own = part(cause, "object", "name")
        about = [f"{name} {printable(place)}" for name, place in places.items() if place not in (None, "", own)]
        if part(cause, "object", "name"):
            kind, name = printable(part(cause, "object", "kind")), printable(part(cause, "object", "name"))
            lines.insert(2, f"about: {' '.join([kind, name, *about])}")
        lines.append(f"more: docs/{printable(cause.get('page'))}")
    elif len(lines) == 1 and not operation.rests:
        lines.append("nothing blocks it that is known")
    return lines
