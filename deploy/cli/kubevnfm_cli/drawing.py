"""An operation drawn for people: its steps, the nodes at work, what blocks it, what one can do."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from kubevnfm_cli.json_types import JsonObject, objects, part
from kubevnfm_cli.lines import cause_lines, next_lines, seconds, warnings_of
from kubevnfm_cli.nouns import ago, duration, moment, number
from kubevnfm_cli.output import colour_of
from kubevnfm_cli.progress import ENDED, RESTS, WAIT, Operation
from kubevnfm_cli.terminal import LINE, Screen, printable

_MARKS: Final = {
    "done": ("✓", "green"),
    "asked": ("▸", "yellow"),
    "undoing": ("◂", "yellow"),
    "failed": ("✗", "red"),
    "undone": ("↶", "dim"),
    "skipped": ("-", "dim"),
}
_WAITING: Final = ("·", "dim")
_RUNNING: Final = frozenset({"asked", "undoing", "failed"})
_MOST_TASKS: Final = 12


def operation_text(screen: Screen, operation: Operation) -> str:
    """Return the whole of an operation as text, as ``describe op`` shows it."""
    return "".join(f"{line}\n" for line in operation_lines(screen, operation, is_whole=True))


def operation_lines(screen: Screen, operation: Operation, *, is_whole: bool, room: int = 10_000) -> list[str]:
    """Return an operation as lines; at most ``room`` of them, in which done and waiting steps give way."""
    head = _head(screen, operation, is_whole=is_whole)
    # While it goes on without trouble, there is nothing to do.
    can_act = is_whole or operation.rests or operation.view.get("cause")
    tail = [
        *_blocking(screen, operation),
        *(_next(screen, operation.view) if can_act else []),
        *(_warnings(screen, operation.view) if is_whole else []),
    ]
    left = max(room - len(head) - len(tail), 3)
    most = max(_MOST_TASKS, left - len(operation.steps) - 2) if not is_whole else None
    steps = _step_lines(screen, operation, is_whole=is_whole, most=most)
    if len(steps) > left:
        running = [place for place, (_, state) in enumerate(steps) if state in _RUNNING] or [0]
        begin = max(0, min(running[0] - 2, len(steps) - left + 2))
        shown = steps[begin : begin + left - 2]
        before, after = begin, len(steps) - begin - len(shown)
        steps = [
            *([(screen.paint(f"  … {before} lines above", "dim"), "")] if before else []),
            *shown,
            *([(screen.paint(f"  … {after} lines below", "dim"), "")] if after else []),
        ]
    return [*head, *(line for line, _ in steps), *tail][: max(room, 1)]


def summary(operation: Operation) -> str:
    """Return the one line that says how an operation stands: ``INSTANTIATE of web-1: COMPLETED after 3m12s``."""
    return f"{printable(operation.title)}: {printable(operation.view.get('state'))}{_took(operation.view)}"


def _took(view: JsonObject) -> str:
    begin, end = moment(view.get("startTime")), moment(view.get("endTime") or view.get("stateEnteredTime"))
    if str(view.get("state")) not in RESTS:
        end = datetime.now(UTC)
    return f" after {duration((end - begin).total_seconds())}" if begin and end else ""


def result_lines(screen: Screen, operation: Operation) -> list[str]:
    """Return the steps with their times, as they stay in a terminal once the operation rests."""
    return [line for line, _ in _step_lines(screen, operation, is_whole=False)]


def verdict(screen: Screen, operation: Operation) -> list[str]:
    """Return how an operation ended; without success also why, and what one can do."""
    state = operation.view.get("state")
    lines = [screen.paint(summary(operation), colour_of(state))]
    if state != "COMPLETED":
        lines += [*_blocking(screen, operation), *_next(screen, operation.view)]
    return lines


def _head(screen: Screen, operation: Operation, *, is_whole: bool) -> list[str]:
    view = operation.view
    state = printable(view.get("state"))
    left = number(part(view, "estimate", "remainingS"))
    about = f", about {duration(left)} left" if left is not None and not operation.rests else ""
    entered = ago(view.get("stateEnteredTime"))
    began = ago(view.get("startTime"))
    if str(view.get("state")) in ENDED:
        times = f"{_took(view)}{f', {entered} ago' if entered else ''}"
    else:
        times = f"{f' for {entered}' if entered else ''}{f', begun {began} ago' if began else ''}{about}"
    title = screen.paint(printable(operation.title), "bold")
    lines = [f"{title}: {screen.paint(state, colour_of(state))}{times}"]
    if is_whole:
        lines += [
            f"id:       {printable(view.get('id'))}",
            f"vnf:      {printable(view.get('vnfInstanceId'))}",
            f"started:  {printable(view.get('startTime'))}",
            *([f"ended:    {printable(view['endTime'])}"] if view.get("endTime") else []),
            *_automatic(view),
            "",
        ]
    return lines


def _automatic(view: JsonObject) -> list[str]:
    """Return why kubevnfm itself has begun an operation; nothing for one of a person."""
    why = view.get("automatic")
    if not isinstance(why, dict):
        return []
    begun = (
        f"by {printable(why.get('trigger'))} {printable(why.get('triggerId'))}, action {printable(why.get('actionId'))}"
    )
    return [f"automatic: {begun}", f"          {printable(why.get('reason'), LINE)}"]


def _step_lines(
    screen: Screen, operation: Operation, *, is_whole: bool, most: int | None = _MOST_TASKS
) -> list[tuple[str, str]]:
    lines = []
    for step in operation.steps:
        state = str(step.get("state"))
        mark, colour = _MARKS.get(state, _WAITING)
        taken = seconds(step)
        running = ago(step.get("startedAt")) if state in ("asked", "undoing") else None
        time = f"  {duration(taken)}" if taken is not None else f"  {running}" if running else ""
        attempt = step.get("attempt")
        again = f"  attempt {attempt}" if isinstance(attempt, int) and attempt > 1 else ""
        title = printable(step.get("title") or step.get("name"))
        lines.append((f"{screen.paint(mark, colour)} {title}{screen.paint(time + again, 'dim')}", state))
        if state == "failed" and part(step, "error", "detail"):
            lines.append((f"    {screen.paint(printable(part(step, 'error', 'detail'), 1000), 'red')}", state))
        if state in ("asked", "undoing") or is_whole:
            lines += [
                (line, state)
                for line in _task_lines(screen, operation, str(step.get("name")), is_whole=is_whole, most=most)
            ]
    return lines


def _task_lines(screen: Screen, operation: Operation, step: str, *, is_whole: bool, most: int | None) -> list[str]:
    tasks = [one for one in operation.tasks() if one.get("step") == step] if is_whole else operation.tasks_of(step)
    lines = []
    for task in tasks[:most]:
        count = (
            f" {printable(task.get('done', '?'))}/{printable(task['total'])}" if task.get("total") is not None else ""
        )
        since = ago(task.get("startedAt") or task.get("since"))
        took = number(task.get("durationS"))
        time = f"  {duration(took)}" if took is not None else f"  {since}" if since else ""
        state = str(task.get("state"))
        word = "" if state in ("started", "progressed") else f" {printable(state)}"
        message = f"  {printable(task['message'], 300)}" if task.get("message") else ""
        name = "waits" if task.get("task") == WAIT else printable(task.get("task"))
        node = f"{printable(task.get('node')):<14} " if task.get("node") else ""
        colour = "red" if state == "failed" else "dim"
        lines.append(f"    {node}{name}{count}{screen.paint(f'{word}{time}{message}', colour)}")
    hidden = len(tasks) - len(lines)
    return [*lines, *([screen.paint(f"    … {hidden} more tasks", "dim")] if hidden > 0 else [])]


def _blocking(screen: Screen, operation: Operation) -> list[str]:
    """Return why it waits or failed."""
    view = operation.view
    said = cause_lines(view)
    colour = "red" if operation.rests else "yellow"
    label = "why: " if operation.rests else "waits: "
    lines = [screen.paint(f"{label}{line}", colour) for line in said]
    if not said:
        lines = [
            screen.paint(f"waits: {printable(wait.get('text'), 500)}{_since(wait)}", colour)
            for wait in objects(view.get("waits"))[:3]
        ]
    return lines


def _since(wait: JsonObject) -> str:
    since = ago(wait.get("since"))
    return f" (for {since})" if since else ""


def _next(screen: Screen, view: JsonObject) -> list[str]:
    found = [(command, text) for command, text in next_lines(view) if command]
    if not found or str(view.get("state")) in ENDED:
        return []
    width = max(len(command) for command, _ in found)
    return ["next:", *(f"  {screen.paint(f'{command:<{width}}', 'cyan')}  {text}" for command, text in found)]


def _warnings(screen: Screen, view: JsonObject) -> list[str]:
    return [screen.paint(f"warning: {text}", "yellow") for text in warnings_of(view)]
