"""A span for each call, and the set-up of OpenTelemetry where the environment asks for it."""

import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from loguru import logger
from opentelemetry import trace
from opentelemetry.trace import SpanKind

from squidbot.core.domain.audit import ToolCall

_ASKED = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT")
_LOOK = 1.0
"""Seconds between two looks at whether somebody has begun to listen."""
_NOBODY_LISTENS: AbstractContextManager[object] = nullcontext()


class OpenTelemetryTracing:
    """Satisfies `Tracing`. Spans of the protocol's own library become children of ours."""

    def __init__(self) -> None:
        self._tracer = trace.get_tracer("squidbot")
        self._looked = float("-inf")
        self._is_heard = False

    def span(self, call: ToolCall) -> AbstractContextManager[object]:
        """The time of one call, under whatever span is current."""
        now = time.monotonic()
        if not self._is_heard and now - self._looked > _LOOK:
            self._looked = now
            self._is_heard = not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
        if not self._is_heard:
            return _NOBODY_LISTENS
        attributes = {
            "mcp.method.name": "tools/call",
            "gen_ai.tool.name": call.tool.tool,
            "squidbot.server": call.tool.server,
            "squidbot.role": call.caller.role,
            "squidbot.record": call.id,
        }
        return self._tracer.start_as_current_span(
            f"tools/call {call.tool.tool}", kind=SpanKind.INTERNAL, attributes=attributes
        )


def set_up_export() -> Callable[[], None]:
    """Send spans and metrics where the standard variables say; what ends that again, once all is sent."""
    if not any(os.environ.get(name) for name in _ASKED) or os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return _nothing
    try:
        from opentelemetry import metrics
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        logger.warning(
            "OTEL_EXPORTER_OTLP_ENDPOINT is set, but nothing is exported: install 'squidbot-gateway[otel]' for that"
        )
        return _nothing
    resource = Resource.create({"service.name": os.environ.get("OTEL_SERVICE_NAME", "squidbot")})
    tracing = TracerProvider(resource=resource)
    tracing.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(tracing)
    metering = MeterProvider(resource=resource, metric_readers=[PeriodicExportingMetricReader(OTLPMetricExporter())])
    metrics.set_meter_provider(metering)

    def end() -> None:
        tracing.shutdown()
        metering.shutdown(timeout_millis=3_000)

    return end


def _nothing() -> None:
    """What ends nothing."""
