"""Events of operations as lines, for logs and for people: one line an event, which begins with its time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from kubevnfm_cli.events import Event
from kubevnfm_cli.json_types import JsonObject, part
from kubevnfm_cli.nouns import ago, duration, moment, number
from kubevnfm_cli.progress import RESTS, WAIT, Operation
from kubevnfm_cli.terminal import printable

_TEXT: Final = 1000
_MOST_WARNINGS: Final = 50
_WORDS: Final = {
    "started": "begins",
    "asked": "begins",
    "finished": "done",
    "progressed": "goes on",
    "skipped": "nothing to do",
    "failed": "FAILED",
}


def line_of(event: Event) -> str | None:
    """Return the line for an event of an operation; None for an event that says nothing to people."""
    data, at = event.data, time_text(event.time)
    if event.kind == "lcm.operation.changed":
        error = part(data, "error", "detail")
        return f"{at} {printable(data.get('operation'))} {printable(data.get('state'))}{_after(error)}"
    if event.kind == "lcm.step.changed":
        place = f"{printable(data.get('number'))}/{printable(data.get('of'))} " if data.get("of") else ""
        title, state = printable(data.get("title")), _word(data.get("state"))
        again = f" (attempt {printable(data['attempt'])})" if data.get("attempt", 1) != 1 else ""
        return f"{at} step {place}{title}{again}: {state}{_took(data.get('duration_s'))}{_after(data.get('detail'))}"
    if event.kind == "mgmt.task.progressed":
        return _task_line(at, data, data.get("duration_s"))
    return None


def lines_so_far(operation: Operation) -> Iterator[str]:
    """Yield lines for what has happened before the operation was followed, in the order of time."""
    view = operation.view
    found: list[tuple[str, str]] = [(_time(view.get("startTime")), f"{printable(view.get('operation'))} begins")]
    steps = operation.steps
    for position, step in enumerate(steps, 1):
        title = f"step {position}/{len(steps)} {printable(step.get('title'))}"
        if step.get("startedAt"):
            found.append((_time(step["startedAt"]), f"{title}: begins"))
        if step.get("endedAt"):
            took, error = _took(seconds(step)), _after(part(step, "error", "detail"))
            found.append((_time(step["endedAt"]), f"{title}: {_word(step.get('state'))}{took}{error}"))
    for task in operation.tasks():
        at = _time(task.get("updatedAt"))
        found.append((at, _task_line(at, task, task.get("durationS")).removeprefix(f"{at} ")))
    began = _time(view.get("startTime"))
    found += [(began, f"warning: {text}") for text in warnings_of(view)]
    found.sort(key=lambda one: one[0])
    yield from (f"{at} {text}" for at, text in found)
    yield f"{_time(view.get('stateEnteredTime'))} {printable(view.get('operation'))} {printable(view.get('state'))}"


def cause_lines(view: JsonObject) -> list[str]:
    """Return why an operation waits or failed, for people."""
    lines = []
    cause = view.get("cause")
    if isinstance(cause, dict):
        since = ago(cause.get("since")) if str(view.get("state")) not in RESTS else None
        lines.append(f"{printable(cause.get('text'), _TEXT)}{f' (for {since})' if since else ''}")
    elif part(view, "error", "detail"):
        lines.append(printable(part(view, "error", "detail"), _TEXT))
    return lines


def next_lines(view: JsonObject) -> list[tuple[str, str]]:
    """Return what one can do: commands with their texts, the most sensible first."""
    found = view.get("next")
    if not isinstance(found, list):
        return []
    return [
        (printable(one.get("command") or one.get("task")), printable(one.get("text") or "", _TEXT))
        for one in found
        if isinstance(one, dict)
    ]


def warnings_of(view: JsonObject) -> list[str]:
    """Return the parts of the request that are not used, each as one sentence with the name that is meant."""
    found = view.get("warnings")
    return [_warning(one) for one in found[:_MOST_WARNINGS]] if isinstance(found, list) else []


def _warning(one: object) -> str:
    if not isinstance(one, dict):
        return printable(one, _TEXT)
    text = printable(one.get("text") or one.get("field"), _TEXT)
    near = one.get("nearest")
    return f"{text}; did you mean {printable(near)}?" if near and str(near) not in text else text


def seconds(step: JsonObject) -> float | None:
    """Return how long a step took; None if it has not ended."""
    begin, end = moment(step.get("startedAt")), moment(step.get("endedAt"))
    return None if begin is None or end is None else (end - begin).total_seconds()


def time_text(time: object) -> str:
    """Return a time of the wire in ISO form, UTC, with milliseconds."""
    read = moment(time)
    if read is None:
        return printable(time, 40)
    return read.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _time(time: object) -> str:
    return time_text(time) if time else "-"


def _task_line(at: str, task: JsonObject, took: object) -> str:
    where = f"{printable(task['node'])}: " if task.get("node") else ""
    count = f" {printable(task.get('done', '?'))}/{printable(task['total'])}" if task.get("total") is not None else ""
    message = _after(task.get("message"))
    if task.get("task") == WAIT and task.get("state") in ("started", "progressed"):
        return f"{at} {where}waits{message or ': no reason is known'}"
    return f"{at} {where}{printable(task.get('task'))}{count}: {_word(task.get('state'))}{_took(took)}{message}"


def _word(state: object) -> str:
    return _WORDS.get(str(state)) or printable(state)


def _took(seconds_taken: object) -> str:
    taken = number(seconds_taken)
    return "" if taken is None else f" ({duration(taken)})"


def _after(text: object) -> str:
    return f": {printable(text, _TEXT)}" if text else ""


def now_text() -> str:
    """Return this moment as `time_text` does."""
    return time_text(datetime.now(UTC).isoformat())
