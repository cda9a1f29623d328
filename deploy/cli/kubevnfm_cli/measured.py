"""The measurements of a PM job as text: its newest values, and its last report with the least, mean and greatest value of each."""

from __future__ import annotations

from typing import Final

from kubevnfm_cli.faults import Refused
from kubevnfm_cli.gateway import Gateway
from kubevnfm_cli.json_types import JsonObject, objects, part
from kubevnfm_cli.nouns import age, number, value_at
from kubevnfm_cli.output import Column, table_text
from kubevnfm_cli.terminal import LINE, Screen, printable

_DIGITS: Final = 6
_LAST: Final = (
    Column("METRIC", value_at("performanceMetric")),
    Column("VNF", value_at("vnfInstanceId")),
    Column("PART", value_at("subObjectInstanceId")),
    Column("VALUE", lambda one: _shown(number(one.get("value")))),
    age("AGE", "at"),
)


def _values(one: JsonObject) -> list[float]:
    found = (number(each.get("value")) for each in objects(one.get("performanceValues")))
    return [each for each in found if each is not None]


def _mean(one: JsonObject) -> str | None:
    values = _values(one)
    return _shown(sum(values) / len(values)) if values else None


_REPORT: Final = (
    Column("METRIC", value_at("performanceMetric")),
    Column("VNF", value_at("objectInstanceId")),
    Column("PART", value_at("subObjectInstanceId")),
    Column("VALUES", lambda one: len(_values(one))),
    Column("LEAST", lambda one: _shown(min(_values(one), default=None))),
    Column("MEAN", _mean),
    Column("GREATEST", lambda one: _shown(max(_values(one), default=None))),
    Column("LAST", lambda one: _shown(next(reversed(_values(one)), None))),
)


def _shown(value: float | None) -> str | None:
    return None if value is None else f"{value:.{_DIGITS}g}"


def job_text(screen: Screen, gateway: Gateway, job: JsonObject) -> str:
    """Return the newest values of a job and its last report. Raises Refused, Unreachable, Fault."""
    lines = [f"\n{screen.paint('newest values:', 'bold')}\n"]
    newest = objects(job.get("lastValues"))
    lines.append(table_text(screen, newest, _LAST, is_wide=False) if newest else "there is none yet\n")
    if isinstance(job.get("gap"), dict):
        lines.append(_gap(screen, job["gap"]))
    report = job.get("lastReport")
    if not isinstance(report, dict) or (body := _report(gateway, report)) is None:
        return "".join(lines)
    title = f"last report, {printable(report.get('begin'))} to {printable(report.get('end'))}:"
    lines.append(f"\n{screen.paint(title, 'bold')}\n")
    entries = objects(body.get("entries"))
    lines.append(table_text(screen, entries, _REPORT, is_wide=False) if entries else "it has no values\n")
    lines += [_gap(screen, each) for each in objects(part(body, "metadata", "gaps"))]
    return "".join(lines)


def _report(gateway: Gateway, report: JsonObject) -> JsonObject | None:
    """Return a report; None if it has expired meanwhile."""
    try:
        return gateway.get(str(report.get("href"))).object()
    except Refused as refused:
        if refused.status == 404:
            return None
        raise


def _gap(screen: Screen, gap: JsonObject) -> str:
    text = f"gap from {printable(gap.get('from'))} to {printable(gap.get('to'))}: {printable(gap.get('reason'), LINE)}"
    return f"{screen.paint(text, 'yellow')}\n"
