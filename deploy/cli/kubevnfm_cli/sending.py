"""Requests that start operations: sent, tried without effect, or sent and waited for."""

from __future__ import annotations

from http import HTTPStatus

from kubevnfm_cli.call import Call, Parser
from kubevnfm_cli.durations import seconds_of
from kubevnfm_cli.faults import DONE, Fault
from kubevnfm_cli.following import SUCCESS, read_operation, wait
from kubevnfm_cli.gateway import Query, Reply
from kubevnfm_cli.json_types import objects
from kubevnfm_cli.lines import warnings_of
from kubevnfm_cli.output import show_body
from kubevnfm_cli.terminal import printable


def add_wait_options(parser: Parser) -> None:
    """Add ``--wait`` and ``--timeout``."""
    parser.add_argument(
        "--wait", action="store_true", help="follow the operation until it ends; exit code 5 if without success"
    )
    parser.add_argument(
        "--timeout", metavar="TIME", type=seconds_of,
        help="wait, and end the wait with exit code 3 after 90s, 10m or 1h30m (default: never)",
    )  # fmt: skip


def waits(call: Call) -> bool:
    """Return whether the end of the operation is awaited."""
    return call.given.wait or call.given.timeout is not None


def add_dry_run(parser: Parser) -> None:
    """Add ``--dry-run``."""
    parser.add_argument(
        "--dry-run", action="store_true", help="check the request as any other, show the plan, and begin nothing"
    )


def dry_run_query(call: Call) -> Query:
    """Return the query of a request that is to begin nothing, if that is what was asked."""
    return {"dry_run": "true" if call.given.dry_run else None}


def show_plan(call: Call, reply: Reply) -> int:
    """Show what a request would begin; return the exit code."""
    if reply.status != HTTPStatus.OK:
        # An older gateway does not know the parameter.
        raise Fault(f"the gateway has no dry runs: it has accepted the request: {reply.headers.get('Location')}")
    body = reply.object()
    if not call.format.is_for_people:
        show_body(call, body)
        return DONE
    plan = objects(body.get("plan"))
    if plan:
        steps = "1 step" if len(plan) == 1 else f"{len(plan)} steps"
        call.out.say(f"{printable(body.get('operation'))} would have {steps}, as far as they are known:")
    else:
        call.out.say("the request is valid; nothing was done")
    numbers = {step.get("name"): number for number, step in enumerate(plan, 1)}
    for number, step in enumerate(plan, 1):
        before = step.get("after")
        after = ", ".join(str(numbers[one]) for one in before if one in numbers) if isinstance(before, list) else ""
        call.out.say(f"  {number:>2}  {printable(step.get('title'))}{f'  (after {after})' if after else ''}")
    for text in warnings_of(body):
        call.note(call.err.paint(f"warning: {text}", "yellow"))
    return DONE


def started(call: Call, reply: Reply, success: frozenset[str] = SUCCESS) -> int:
    """Show the operation that a request has started, or wait for it; return the exit code."""
    location = reply.headers.get("Location")
    if not location:
        raise Fault(f"{reply.url}: the answer names no operation")
    return proceed(call, location.rstrip("/").rpartition("/")[2], success)


def proceed(call: Call, operation_id: str, success: frozenset[str] = SUCCESS) -> int:
    """Show an operation that goes on, or wait for it; return the exit code."""
    if waits(call):
        return wait(call, operation_id, timeout_s=call.given.timeout, is_own_output=False, success=success)
    if call.format.is_for_people or call.format.kind == "name":
        call.out.say(f"op/{printable(operation_id)}")
        if call.format.is_for_people:
            for text in warnings_of(read_operation(call.gateway, operation_id).view):
                call.note(call.err.paint(f"warning: {text}", "yellow"))
            call.note(f"accepted; kubevnfm wait op {printable(operation_id)} follows it")
        return DONE
    from kubevnfm_cli.nouns import noun_of
    from kubevnfm_cli.output import show_one

    show_one(call, read_operation(call.gateway, operation_id).view, noun_of("op").table)
    return DONE
