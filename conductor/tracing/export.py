"""Sends spans by OTLP over HTTP: the only module that knows OpenTelemetry.

It is imported when traces are on, never otherwise.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from urllib.parse import urlsplit, urlunsplit

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from common.clients import direct
from conductor.tracing.spans import Span

_PATH = "/v1/traces"
_SCOPE = InstrumentationScope("micronova")
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)


class Exporter:
    """Sends to one endpoint."""

    def __init__(self, endpoint: str, service_name: str, instance: str) -> None:
        self._resource = Resource.create(
            {"service.name": service_name, "service.instance.id": instance}
        )
        self._exporter = OTLPSpanExporter(endpoint=url_of(endpoint), session=direct.session())

    def send(self, spans: Sequence[Span]) -> bool:
        """Return whether the endpoint took them."""
        result = self._exporter.export([self._readable(one) for one in spans])
        return result is SpanExportResult.SUCCESS

    def close(self) -> None:
        """Let connections go."""
        self._exporter.shutdown()  # type: ignore[no-untyped-call]

    def _readable(self, one: Span) -> ReadableSpan:
        failed = one.failure is not None
        return ReadableSpan(
            one.name,
            context=_context(one.trace_id, one.span_id),
            parent=None if one.parent_id is None else _context(one.trace_id, one.parent_id),
            resource=self._resource,
            attributes=dict(one.attributes),
            events=[
                Event(mark.name, attributes=dict(mark.attributes), timestamp=_nanoseconds(mark.at))
                for mark in one.marks
            ],
            kind=SpanKind.CLIENT if one.remote else SpanKind.INTERNAL,
            status=Status(StatusCode.ERROR if failed else StatusCode.OK, one.failure),
            start_time=_nanoseconds(one.begins),
            end_time=_nanoseconds(one.ends),
            instrumentation_scope=_SCOPE,
        )


def url_of(endpoint: str) -> str:
    """Return where traces go: with OTLP's path where none is named."""
    parts = urlsplit(endpoint)
    return endpoint if parts.path.strip("/") else urlunsplit(parts._replace(path=_PATH))


def _context(trace_id: int, span_id: int) -> SpanContext:
    return SpanContext(trace_id, span_id, is_remote=False, trace_flags=_SAMPLED)


def _nanoseconds(at: datetime.datetime) -> int:
    return round(at.timestamp() * 1_000_000) * 1000
