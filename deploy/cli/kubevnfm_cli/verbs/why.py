"""``kubevnfm why ID``: the cause, and what one can do."""

from __future__ import annotations

from kubevnfm_cli import drawing
from kubevnfm_cli.call import Call, Parser
from kubevnfm_cli.faults import DONE
from kubevnfm_cli.following import read_operation
from kubevnfm_cli.json_types import part
from kubevnfm_cli.operations import add_operation, named_operation
from kubevnfm_cli.output import show_body
from kubevnfm_cli.terminal import printable


def arguments(parser: Parser) -> None:
    """Add the arguments."""
    add_operation(parser)


def run(call: Call) -> int:
    """Say why an operation waits, failed or is slow."""
    gateway = call.gateway
    operation = read_operation(gateway, named_operation(gateway, call.given.words))
    if not call.format.is_for_people:
        show_body(call, operation.view)
        return DONE
    lines = drawing.verdict(call.out, operation)
    cause = operation.view.get("cause")
    if isinstance(cause, dict):
        about = [
            f"{name} {printable(part(cause, 'object', name))}"
            for name in ("namespace", "vimId")
            if part(cause, "object", name) not in (None, "", part(cause, "object", "name"))
        ]
        if part(cause, "object", "name"):
            kind, name = printable(part(cause, "object", "kind")), printable(part(cause, "object", "name"))
            lines.insert(2, f"about: {' '.join([kind, name, *about])}")
        lines.append(f"more: docs/{printable(cause.get('page'))}")
    elif len(lines) == 1 and not operation.rests:
        lines.append("nothing blocks it that is known")
    for line in lines:
        call.out.say(line)
    return DONE
