"""The headers of traces as callers send them, and the ids of our own spans."""

from __future__ import annotations

import pytest
from kubevnfm_kit.traces import callers_trace, derived_span_id, derived_trace_id, trace_of, traced_by
from multidict import CIMultiDict

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
HALF = "8448eb211c80319c"
NONE = None


@pytest.mark.parametrize(
    ("headers", "found"),
    [
        ({"traceparent": f"00-{TRACE}-{SPAN}-01"}, f"00-{TRACE}-{SPAN}-01"),
        ({"traceparent": f" 00-{TRACE}-{SPAN}-00"}, f"00-{TRACE}-{SPAN}-00"),
        ({"traceparent": f"00-{TRACE}-{SPAN}-03"}, f"00-{TRACE}-{SPAN}-01"),
        # A later version may have more fields.
        ({"traceparent": f"cc-{TRACE}-{SPAN}-01-what-comes-later"}, f"00-{TRACE}-{SPAN}-01"),
        ({"traceparent": f"00-{TRACE}-{SPAN}-01-more"}, NONE),
        ({"traceparent": f"ff-{TRACE}-{SPAN}-01"}, NONE),
        ({"traceparent": f"00-{'0' * 32}-{SPAN}-01"}, NONE),
        ({"traceparent": f"00-{TRACE}-{'0' * 16}-01"}, NONE),
        ({"traceparent": f"00-{TRACE.upper()}-{SPAN}-01"}, NONE),
        ({"traceparent": f"cc-{TRACE}-{SPAN}-01-{'x' * 300}"}, NONE),
        ({"traceparent": "\x1b[31m"}, NONE),
        ({}, NONE),
        ({"b3": f"{TRACE}-{SPAN}-1"}, f"00-{TRACE}-{SPAN}-01"),
        ({"b3": f"{HALF}-{SPAN}-0-{SPAN}"}, f"00-{'0' * 16}{HALF}-{SPAN}-00"),
        ({"b3": f"{TRACE}-{SPAN}"}, f"00-{TRACE}-{SPAN}-01"),
        ({"b3": "0"}, NONE),
        ({"X-B3-TraceId": TRACE, "X-B3-SpanId": SPAN}, f"00-{TRACE}-{SPAN}-01"),
        ({"x-b3-traceid": HALF, "x-b3-spanid": SPAN, "x-b3-sampled": "0"}, f"00-{'0' * 16}{HALF}-{SPAN}-00"),
        ({"X-B3-TraceId": TRACE, "X-B3-SpanId": SPAN, "X-B3-Sampled": "0", "X-B3-Flags": "1"}, f"00-{TRACE}-{SPAN}-01"),
        ({"X-B3-TraceId": TRACE}, NONE),
        # W3C's is the first.
        ({"traceparent": f"00-{TRACE}-{SPAN}-01", "b3": f"{HALF}-{SPAN}-0"}, f"00-{TRACE}-{SPAN}-01"),
        ({"traceparent": "wrong", "b3": f"{TRACE}-{SPAN}-0"}, f"00-{TRACE}-{SPAN}-00"),
    ],
)
def test_the_trace_of_a_caller_is_read_and_a_wrong_one_is_none(headers: dict[str, str], found: str | None) -> None:
    context = trace_of(CIMultiDict(headers))
    assert (None if context is None else str(context)) == found


def test_ids_are_those_of_their_facts() -> None:
    """Systems that record traces keep them, so they never change."""
    assert derived_trace_id("operation", "op-1") == "d3eb88504ae7b699690cea586905a8f0"
    assert derived_span_id("step", "op-1", "join/worker-3", "2") == "85c4260cd827e6a5"
    assert derived_span_id("a|b") != derived_span_id("a", "b")
    assert derived_span_id("a", "b") != derived_span_id("a", "b", "")


def test_what_follows_from_a_request_sees_its_trace() -> None:
    assert callers_trace() is None
    with traced_by(trace_of({"b3": f"{TRACE}-{SPAN}"})):
        assert str(callers_trace()) == f"00-{TRACE}-{SPAN}-01"
    assert callers_trace() is None
