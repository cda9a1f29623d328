"""``kubevnfm trace ID``: an operation, the attempts of its steps and their tasks, each with its time."""

from __future__ import annotations

from typing import Final, NamedTuple

from kubevnfm_cli.call import Call, Parser
from kubevnfm_cli.faults import DONE
from kubevnfm_cli.gateway import path_of
from kubevnfm_cli.json_types import JsonObject, objects, part
from kubevnfm_cli.nouns import duration
from kubevnfm_cli.operations import add_operation, named_operation
from kubevnfm_cli.output import show_body
from kubevnfm_cli.terminal import Screen, cut, printable, width_of

_MARKS: Final = {0: ("▸", "yellow"), 1: ("✓", "green"), 2: ("✗", "red")}
_BAR: Final = 30
_DEEPEST: Final = 8
_NAME: Final = 60


def arguments(parser: Parser) -> None:
    """Add the arguments."""
    parser.epilog = "-o json is the trace as OTLP has it, which viewers of traces import."
    add_operation(parser)


def run(call: Call) -> int:
    """Draw the trace, or write it."""
    operation = named_operation(call.gateway, call.given.words)
    body = call.gateway.get(path_of("kubevnfm", "v1", "operations", operation, "trace")).object()
    if not call.format.is_for_people:
        show_body(call, body)
        return DONE
    call.page(trace_text(call.out, body))
    return DONE


class _Row(NamedTuple):
    depth: int
    span: JsonObject
    began: float
    ended: float


def trace_text(screen: Screen, body: JsonObject) -> str:
    """Return the tree of spans: state, name, duration, and a bar with its place in the whole."""
    spans = [
        span
        for resource in objects(body.get("resourceSpans"))
        for scope in objects(resource.get("scopeSpans"))
        for span in objects(scope.get("spans"))
    ]
    rows = _rows(spans)
    if not rows:
        return "the trace has no spans\n"
    first, last = min(row.began for row in rows), max(row.ended for row in rows)
    names = [f"{'  ' * row.depth}{_name(row.span)}" for row in rows]
    wide = max(width_of(name) for name in names)
    lines = [f"trace {printable(rows[0].span.get('traceId'))}"]
    for row, name in zip(rows, names, strict=True):
        code = part(row.span, "status", "code")
        mark, colour = _MARKS.get(code if isinstance(code, int) else 0, _MARKS[0])
        took = f"{duration(row.ended - row.began)}{'…' if _attribute(row.span, 'kubevnfm.unfinished') else ''}"
        bar = _bar(row, first, last)
        error = _attribute(row.span, "error.type")
        line = f"{screen.paint(mark, colour)} {name}{' ' * (wide - width_of(name))}  {took:>8}  {screen.paint(bar, colour)}"
        lines.append(f"{line}  {printable(error)}".rstrip() if error else line.rstrip())
    return "".join(f"{line}\n" for line in lines)


def _rows(spans: list[JsonObject]) -> list[_Row]:
    """Return the spans as a tree, each after its parent, those of one parent by time."""
    known = {str(span.get("spanId")) for span in spans}
    below: dict[str, list[JsonObject]] = {}
    for span in sorted(spans, key=lambda one: _seconds(one.get("startTimeUnixNano"))):
        parent = str(span.get("parentSpanId") or "")
        below.setdefault(parent if parent in known else "", []).append(span)
    rows: list[_Row] = []

    def add(parent: str, depth: int) -> None:
        # Each parent once, so that spans which name one another have an end.
        for span in below.pop(parent, []):
            times = (_seconds(span.get(name)) for name in ("startTimeUnixNano", "endTimeUnixNano"))
            rows.append(_Row(depth, span, *times))
            if depth < _DEEPEST:
                add(str(span.get("spanId")), depth + 1)

    add("", 0)
    return rows


def _name(span: JsonObject) -> str:
    step, attempt = _attribute(span, "kubevnfm.step.id"), _attribute(span, "kubevnfm.step.attempt")
    task, node = _attribute(span, "kubevnfm.task"), _attribute(span, "kubevnfm.node")
    if task:
        return cut(printable(f"{task} on {node}" if node else task), _NAME)
    if step:
        undo = "undo " if _attribute(span, "kubevnfm.step.undo") else ""
        again = f" (attempt {attempt})" if str(attempt) not in ("0", "1") else ""
        return cut(printable(f"{undo}{step}{again}"), _NAME)
    return cut(printable(span.get("name")), _NAME)


def _attribute(span: JsonObject, key: str) -> object:
    """Return a simple attribute of a span; None: it has none of that name."""
    found = next((one.get("value") for one in objects(span.get("attributes")) if one.get("key") == key), None)
    return next(iter(found.values()), None) if isinstance(found, dict) else None


def _seconds(nanoseconds: object) -> float:
    text = str(nanoseconds)
    return int(text) / 1e9 if text.isascii() and text.isdigit() and len(text) < 20 else 0.0


def _bar(row: _Row, first: float, last: float) -> str:
    whole = max(last - first, 1e-9)
    begin = min(int((row.began - first) / whole * _BAR), _BAR - 1)
    end = min(max(begin + 1, round((row.ended - first) / whole * _BAR)), _BAR)
    return f"{' ' * begin}{'━' * (end - begin)}"
