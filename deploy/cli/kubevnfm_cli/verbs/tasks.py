"""The verbs that start an operation of a VNF: instantiate, scale, heal, operate, change-package, modify, terminate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kubevnfm_cli import bodies, lists
from kubevnfm_cli.call import Call, Parser
from kubevnfm_cli.faults import UsageFault
from kubevnfm_cli.gateway import Gateway, path_of
from kubevnfm_cli.json_types import JsonObject
from kubevnfm_cli.nouns import noun_of
from kubevnfm_cli.sending import add_dry_run, add_wait_options, dry_run_query, show_plan, started
from kubevnfm_cli.terminal import printable

if TYPE_CHECKING:
    from kubevnfm_cli.schema_text import Form

_VIM_TYPES: Final = {"openstack": "ETSINFV.OPENSTACK_KEYSTONE.V_3", "kubernetes": "ETSINFV.KUBERNETES.V_1"}
_PATCH: Final = {"Content-Type": "application/merge-patch+json"}


class Task(NamedTuple):
    """How a verb becomes a request."""

    add: Callable[[Parser], None]
    body: Callable[[Call, JsonObject], tuple[str, JsonObject]]
    """Returns the task's name in the path, and the body."""


def arguments(parser: Parser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("vnf", metavar="VNF", help="an id, the beginning of an id, or a name")
    _TASKS[parser.verb].add(parser)
    bodies.add_body_options(parser, has_parameters=parser.verb != "modify")
    add_dry_run(parser)
    add_wait_options(parser)


def run(call: Call) -> int:
    """Start the operation."""
    given = call.given
    least = lists.LEAST_TO_END if call.verb == "terminate" else lists.LEAST
    body = bodies.read_body(given.file)
    if call.verb != "modify":
        bodies.check_words(given)  # wrong ones are refused before anything is asked
    task, body = _TASKS[call.verb].body(call, body)
    instance_id = lists.resolve(call.gateway, noun_of("vnf"), given.vnf, least=least)
    form = _form(call, task, body, instance_id)
    if call.verb != "modify":
        body = bodies.with_parameters(body, given, form)
    body = _completed(call, task, body, form)
    instance = path_of("vnflcm", "v2", "vnf_instances", instance_id)
    method, path, headers = ("PATCH", instance, _PATCH) if task == "PATCH" else ("POST", f"{instance}/{task}", None)
    reply = call.gateway.call(method, path, body, query=dry_run_query(call), headers=headers)
    return show_plan(call, reply) if given.dry_run else started(call, reply)


def _form(call: Call, task: str, body: JsonObject, instance_id: str) -> Form | None:
    """Return the form of the request, if it is of use; None otherwise."""
    from kubevnfm_cli import forms

    lacks_flavour = task == "instantiate" and "flavourId" not in body
    has_values = call.verb != "modify" and (call.given.set or call.given.set_string or call.given.set_file)
    if not (lacks_flavour or has_values or (task == "instantiate" and forms.can_ask(call))):
        return None
    found = forms.known_form(call.gateway, instance_id, task)
    return None if found is None else forms.chosen(found, body)


def _completed(call: Call, task: str, body: JsonObject, form: Form | None) -> JsonObject:
    """Return the body of an instantiation with its flavour, and with what a person was asked for. Raises UsageFault."""
    from kubevnfm_cli import forms

    if task != "instantiate":
        return body
    flavour = forms.type_at(form, ["flavourId"])
    allowed = flavour.get("enum")
    if "flavourId" not in body and isinstance(allowed, list) and len(allowed) == 1:
        body = {"flavourId": allowed[0], **body}
    if form is not None and forms.can_ask(call):
        if "flavourId" not in body:
            answer = forms.answer(call, forms.Missing(("flavourId",), flavour)) or flavour.get("default")
            body = {**body, **({"flavourId": answer} if answer else {})}
        body = forms.asked(call, form, body)
    if "flavourId" not in body:
        from kubevnfm_cli.schema_text import facts_of

        facts = facts_of({"enum": allowed, "x-enum-titles": flavour.get("x-enum-titles")}) if allowed else ""
        raise UsageFault(f"--flavour ID expected, or flavourId in -f FILE{f': {facts}' if facts else ''}")
    return body


def _add_instantiate(parser: Parser) -> None:
    parser.add_argument("--flavour", metavar="ID", help="the deployment flavour (default: the only one of the package)")
    parser.add_argument("--level", metavar="ID", help="the instantiation level")
    parser.add_argument(
        "--vim", metavar="VIM", action="append", default=[], help="a registered VIM, by id or name; repeatable"
    )


def _instantiate(call: Call, body: JsonObject) -> tuple[str, JsonObject]:
    given = call.given
    connections = {f"vim{number}": _vim(call.gateway, name) for number, name in enumerate(given.vim, 1)} or None
    flags = {"flavourId": given.flavour, "instantiationLevelId": given.level, "vimConnectionInfo": connections}
    return "instantiate", bodies.merged(body, flags)


def _vim(gateway: Gateway, name: str) -> JsonObject:
    noun = noun_of("vim")
    vim = noun.item(lists.read_one(gateway, noun, lists.resolve(gateway, noun, name)))
    kind = str(vim.get("type"))
    return {"vimId": vim.get("id"), "vimType": _VIM_TYPES.get(kind, kind)}


def _add_scale(parser: Parser) -> None:
    parser.add_argument("--aspect", metavar="ID", help="the scaling aspect")
    direction = parser.add_mutually_exclusive_group()
    direction.add_argument("--out", metavar="STEPS", type=int, help="so many steps more")
    direction.add_argument("--in", metavar="STEPS", type=int, dest="less", help="so many steps less")
    direction.add_argument(
        "--to", metavar="ASPECT=LEVEL", action="append", help="to these levels of aspects; repeatable"
    )
    direction.add_argument("--level", metavar="ID", help="to this instantiation level")


def _scale(call: Call, body: JsonObject) -> tuple[str, JsonObject]:
    given = call.given
    if given.level or given.to or body.keys() & {"instantiationLevelId", "scaleInfo"}:
        if given.aspect:
            raise UsageFault("--aspect is for --out and --in; --to ASPECT=LEVEL names its aspect")
        levels = [_scale_target(word) for word in given.to] if given.to else None
        return "scale_to_level", bodies.merged(body, {"instantiationLevelId": given.level, "scaleInfo": levels})
    steps = given.out if given.out is not None else given.less
    if steps is not None and steps < 1:
        raise UsageFault("--out and --in: at least 1 step expected")
    direction = "SCALE_OUT" if given.out is not None else "SCALE_IN" if given.less is not None else None
    whole = bodies.merged(body, {"type": direction, "aspectId": given.aspect, "numberOfSteps": steps})
    if "type" not in whole or "aspectId" not in whole:
        raise UsageFault("--aspect ID with --out STEPS or --in STEPS, or --to ASPECT=LEVEL, expected")
    return "scale", whole


def _scale_target(word: str) -> JsonObject:
    aspect, equals, level = word.partition("=")
    if not equals or not level.isdecimal():
        raise UsageFault(f"--to {printable(word)}: ASPECT=LEVEL expected")
    return {"aspectId": aspect, "scaleLevel": int(level)}


def _add_heal(parser: Parser) -> None:
    parser.add_argument(
        "--vnfc", metavar="ID", action="append", help="this VNFC only; repeatable (default: what needs it)"
    )
    parser.add_argument("--cause", metavar="TEXT", help="why, for the records")


def _heal(call: Call, body: JsonObject) -> tuple[str, JsonObject]:
    return "heal", bodies.merged(body, {"vnfcInstanceId": call.given.vnfc, "cause": call.given.cause})


def _add_operate(parser: Parser) -> None:
    parser.add_argument("state", choices=("start", "stop"), nargs="?", help="what is to be done")
    parser.add_argument("--graceful", metavar="SECONDS", type=int, help="stop: give it so much time first")
    parser.add_argument("--vnfc", metavar="ID", action="append", help="this VNFC only; repeatable")


def _operate(call: Call, body: JsonObject) -> tuple[str, JsonObject]:
    given = call.given
    flags: dict[str, object] = {"vnfcInstanceId": given.vnfc}
    if given.state == "start":
        flags["changeStateTo"] = "STARTED"
    elif given.state == "stop":
        flags["changeStateTo"] = "STOPPED"
        flags["stopType"] = "FORCEFUL" if given.graceful is None else "GRACEFUL"
    if given.graceful is not None:
        flags["gracefulStopTimeout"] = given.graceful
    whole = bodies.merged(body, flags)
    if "changeStateTo" not in whole:
        raise UsageFault("start or stop expected, or changeStateTo in -f FILE")
    return "operate", whole


def _add_package(parser: Parser) -> None:
    parser.add_argument("--package", metavar="PKG", help="the new package, by id or product name")
    parser.add_argument("--vnfd", metavar="ID", help="the new package, by the id of its VNFD")


def _change_package(call: Call, body: JsonObject) -> tuple[str, JsonObject]:
    whole = bodies.merged(body, {"vnfdId": vnfd_of(call)})
    if "vnfdId" not in whole:
        raise UsageFault("--package PKG or --vnfd ID expected, or vnfdId in -f FILE")
    return "change_vnfpkg", whole


def vnfd_of(call: Call) -> str | None:
    """Return the VNFD that ``--vnfd`` or ``--package`` names. Raises UsageFault."""
    if call.given.vnfd or not call.given.package:
        return str(call.given.vnfd) if call.given.vnfd else None
    noun = noun_of("pkg")
    package = lists.read_one(call.gateway, noun, lists.resolve(call.gateway, noun, call.given.package))
    if not package.get("vnfdId"):
        raise UsageFault(f"--package {printable(call.given.package)}: it is not onboarded")
    return str(package["vnfdId"])


def _add_modify(parser: Parser) -> None:
    parser.add_argument("--name", help="the new name")
    parser.add_argument("--description", help="the new description")
    parser.add_argument("--metadata", metavar="KEY=VALUE", action="append", default=[], help="in metadata; repeatable")


def _modify(call: Call, body: JsonObject) -> tuple[str, JsonObject]:
    given = call.given
    metadata: Mapping[str, Any] | None = bodies.key_values(given.metadata, "--metadata")
    if metadata is not None:
        metadata = {**(body.get("metadata") or {}), **metadata}
    flags = {"vnfInstanceName": given.name, "vnfInstanceDescription": given.description, "metadata": metadata}
    whole = bodies.merged(body, flags)
    if not whole:
        raise UsageFault("nothing to modify: --name, --description, --metadata or -f FILE expected")
    return "PATCH", whole


def _add_terminate(parser: Parser) -> None:
    parser.add_argument("--graceful", metavar="SECONDS", type=int, help="give it so much time first (default: at once)")


def _terminate(call: Call, body: JsonObject) -> tuple[str, JsonObject]:
    graceful = call.given.graceful
    kind = "GRACEFUL" if graceful is not None else body.get("terminationType", "FORCEFUL")
    return "terminate", bodies.merged(body, {"terminationType": kind, "gracefulTerminationTimeout": graceful})


_TASKS: Final[Mapping[str, Task]] = {
    "instantiate": Task(_add_instantiate, _instantiate),
    "scale": Task(_add_scale, _scale),
    "heal": Task(_add_heal, _heal),
    "operate": Task(_add_operate, _operate),
    "change-package": Task(_add_package, _change_package),
    "modify": Task(_add_modify, _modify),
    "terminate": Task(_add_terminate, _terminate),
}
