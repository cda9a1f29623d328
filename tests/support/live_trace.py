"""Live spans in the memory of a test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from kubevnfm_kit import live_spans
from kubevnfm_kit.opentelemetry_spans import SdkRecorder
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter


@dataclass
class LiveTrace:
    """The spans that have ended."""

    exporter: InMemorySpanExporter

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        return self.exporter.get_finished_spans()

    @property
    def names(self) -> list[str]:
        return [span.name for span in self.spans]

    def one(self, name: str) -> ReadableSpan:
        (found,) = [span for span in self.spans if span.name == name]
        return found

    def text(self) -> str:
        """All that leaves the process."""
        return "\n".join(span.to_json() for span in self.spans)


@contextmanager
def live_trace(ratio: float = 1.0) -> Iterator[LiveTrace]:
    """Record live spans in the block."""
    exporter = InMemorySpanExporter()
    recorder = SdkRecorder(SimpleSpanProcessor(exporter), "testing", ratio)
    with live_spans.recording(recorder):
        yield LiveTrace(exporter)


def id_of(span: ReadableSpan) -> str:
    assert span.context is not None
    return f"{span.context.span_id:016x}"


def trace_id_of(span: ReadableSpan) -> str:
    assert span.context is not None
    return f"{span.context.trace_id:032x}"


def parent_of(span: ReadableSpan) -> str:
    return f"{span.parent.span_id:016x}" if span.parent is not None else ""


def facts_of(span: ReadableSpan) -> dict[str, object]:
    return dict(span.attributes or {})
