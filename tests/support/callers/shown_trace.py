"""The trace of an operation as the gateway shows it, and whether it is whole."""

from __future__ import annotations

from typing import Any

_CLOCKS_NS = 100_000_000
"""How far the clocks of services on one machine may differ."""


def spans_in(trace: Any) -> list[dict[str, Any]]:
    """Return the spans of an answer, each with its attributes as a mapping."""
    return [
        {**span, "attributes": {each["key"]: next(iter(each["value"].values())) for each in span["attributes"]}}
        for service in trace["resourceSpans"]
        for scope in service["scopeSpans"]
        for span in scope["spans"]
    ]


def check_whole(trace: Any, view: Any) -> None:
    """Raise AssertionError unless the trace of a COMPLETED operation is one tree without doubles that has each step of the plan.

    ``view``: the operation.
    """
    spans = spans_in(trace)
    by_id = {span["spanId"]: span for span in spans}
    assert len(by_id) == len(spans), "each span once"
    assert {span["traceId"] for span in spans} == {view["traceId"]}
    (root,) = [span for span in spans if span.get("parentSpanId") not in by_id]
    assert root["attributes"]["kubevnfm.operation.id"] == view["id"]
    for span in spans:
        assert "kubevnfm.unfinished" not in span["attributes"]
        if span is not root:
            parent = by_id[span["parentSpanId"]]
            assert _begins(parent) - _CLOCKS_NS <= _begins(span) <= _ends(span) <= _ends(parent) + _CLOCKS_NS
    steps = {span["attributes"]["kubevnfm.step.id"]: 0 for span in spans if span is not root}
    for span in spans:
        if span.get("parentSpanId") == root["spanId"]:
            steps[span["attributes"]["kubevnfm.step.id"]] += 1
    # The operation was not retried, so each step was asked once, or has needed no command.
    plan = {step["name"]: 1 for step in view["steps"] if step["state"] != "skipped"}
    assert steps == plan


def _begins(span: dict[str, Any]) -> int:
    return int(span["startTimeUnixNano"])


def _ends(span: dict[str, Any]) -> int:
    return int(span["endTimeUnixNano"])
