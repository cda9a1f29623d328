"""``kubevnfm describe NOUN ID``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kubevnfm_cli import drawing, lists
from kubevnfm_cli.call import Call, Parser
from kubevnfm_cli.faults import DONE, UsageFault
from kubevnfm_cli.following import read_operation
from kubevnfm_cli.gateway import Gateway, path_of
from kubevnfm_cli.json_types import JsonObject, objects
from kubevnfm_cli.measured import job_text
from kubevnfm_cli.nouns import NOUNS, WORDS, Noun, noun_of
from kubevnfm_cli.operations import named_operation
from kubevnfm_cli.output import show_body
from kubevnfm_cli.standing import standing_text
from kubevnfm_cli.terminal import LINE, printable, printable_text
from kubevnfm_cli.trees import tree_text

_MEASURED: Final = ("reports", "lastReport", "lastValues", "gap")


def arguments(parser: Parser) -> None:
    """Add the arguments."""
    parser.epilog = (
        "vnf: the tree of all that belongs to it, problems first, with its open alarms and last automatic actions;\n"
        "op: steps, nodes, waits, cause and what to do next; pmjob: also its newest values and its last report;\n"
        f"other nouns ({', '.join(noun.name for noun in NOUNS[2:])}): all attributes."
    )
    parser.add_argument("noun", metavar="NOUN", help="the kind of thing, or NOUN/ID")
    parser.add_argument("ids", metavar="ID", nargs="*", help="an id, the beginning of an id, or a name; repeatable")
    parser.add_argument("--all", action="store_true", help="vnf: each thing by itself, also many equal ones")


def run(call: Call) -> int:
    """Describe."""
    word, _, identifier = call.given.noun.partition("/")
    wanted = [identifier, *call.given.ids] if identifier else call.given.ids
    if not wanted and word not in WORDS:
        raise UsageFault(f"describe NOUN ID expected, as in describe vnf {printable(word)}")
    noun = noun_of(word)
    if not wanted:
        raise UsageFault(f"describe {noun.name}: an id or a name expected")
    if noun.name == "op":
        found = [named_operation(call.gateway, [one]) for one in wanted]
    else:
        found = [lists.resolve(call.gateway, noun, one) for one in wanted]
    shown = [_described(call, noun, one) for one in dict.fromkeys(found)]
    if call.format.is_for_people:
        call.page("\n".join(text() for _, text in shown))
    else:
        bodies = [body for body, _ in shown]
        show_body(call, bodies[0] if len(bodies) == 1 else bodies)
    return DONE


def _described(call: Call, noun: Noun, identifier: str) -> tuple[JsonObject, Callable[[], str]]:
    """Return the body of a thing, and what makes its text."""
    gateway = call.gateway
    if noun.name == "op":
        operation = read_operation(gateway, identifier)
        return operation.view, lambda: drawing.operation_text(call.out, operation)
    if noun.name == "vnf":
        query = {"group": "false"} if call.given.all else None
        body = gateway.get(path_of("kubevnfm", "v1", "instances", identifier, "tree"), query).object()
        root = body.get("root")
        tree = root if isinstance(root, dict) else {}
        return body, lambda: tree_text(call.out, tree) + standing_text(call.out, gateway, identifier)
    body = lists.read_one(gateway, noun, identifier)
    if noun.name == "pmjob":
        plain = {name: value for name, value in body.items() if name not in _MEASURED}
        return body, lambda: _attributes(plain) + job_text(call.out, gateway, body)
    return body, lambda: _attributes(noun.item(body)) + (_faults(gateway, body) if noun.name == "pkg" else "")


def _faults(gateway: Gateway, package: JsonObject) -> str:
    """Return failure and warnings of a package with their places."""
    found = gateway.get(path_of("kubevnfm", "v1", "packages", str(package.get("id")), "warnings")).object()
    failure = found.get("failure")
    lines = [f"failure: {_placed(failure)}"] if isinstance(failure, dict) else []
    lines += [f"warning: {_placed(one)}" for one in objects(found.get("warnings"))]
    return "".join(f"{line}\n" for line in lines)


def _placed(fault: JsonObject) -> str:
    place = ":".join(str(fault[name]) for name in ("file", "line", "column") if fault.get(name) is not None)
    near = f"; did you mean {fault['nearest']}?" if fault.get("nearest") else ""
    return printable(f"{place}{': ' if place else ''}{fault.get('text', '')}{near}", LINE)


def _attributes(body: JsonObject) -> str:
    from kubevnfm_cli import yaml_text

    return printable_text(yaml_text.write({name: value for name, value in body.items() if name != "_links"}))
