"""Calls counted for Prometheus, traced for OpenTelemetry, and alerts posted to a webhook."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from loguru import logger
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client.parser import text_string_to_metric_families

from squidbot import MCPClient, MCPConfig
from squidbot.adapters.telemetry.alerts import AlertLog
from squidbot.adapters.telemetry.metrics import Metrics
from squidbot.adapters.telemetry.tracing import OpenTelemetryTracing, set_up_export
from squidbot.adapters.telemetry.webhook import AlertWebhook
from squidbot.core.domain.alerts import Alert
from squidbot.core.domain.audit import ToolCall
from squidbot.core.domain.callers import Caller
from squidbot.core.domain.tools import ToolId
from tests.core.domain.test_alerts import RECORD, REFUSED
from tests.fixtures.running import plain_entry

_LABELS = ("role", "server", "tool", "outcome")
ALERT = Alert("1", "2026-11-18T10:00:00.000000Z", "burst", "dev", None, None, "too many", {"calls": 9})


@pytest.fixture
def logged() -> Iterator[list[str]]:
    """The lines of the log."""
    lines: list[str] = []
    sink = logger.add(lambda line: lines.append(line.record["message"]), level="INFO")
    yield lines
    logger.remove(sink)


def samples(metrics: Metrics) -> dict[tuple[str, ...], float]:
    text, kind = metrics.exposition()
    assert kind.startswith("text/plain")
    return {
        (sample.name, *(sample.labels[name] for name in _LABELS if name in sample.labels)): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
        if "le" not in sample.labels
    }


@pytest.mark.requirement("E-08")
def test_calls_and_times_are_counted_by_role_server_tool_and_outcome() -> None:
    """Read back with Prometheus's own parser."""
    metrics = Metrics()
    for record in (RECORD, RECORD, replace(RECORD, outcome="timeout"), replace(RECORD, kind="prompt")):
        metrics.observe(record)
    found = samples(metrics)
    assert found["squidbot_tool_calls_total", "dev", "git", "git_log", "ok"] == 2
    assert found["squidbot_tool_calls_total", "dev", "git", "git_log", "timeout"] == 1
    assert found["squidbot_tool_call_duration_seconds_count", "dev", "git", "git_log"] == 3


@pytest.mark.requirement("E-08")
def test_names_that_callers_make_up_become_no_series() -> None:
    """A thousand invented tools must not be a thousand lines at every scrape."""
    metrics = Metrics()
    for number in range(1_000):
        metrics.observe(replace(REFUSED, tool=f"made-up-{number}"))
    assert samples(metrics)["squidbot_tool_calls_total", "dev", "(unknown)", "(unknown)", "refused"] == 1_000


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    """Every span of this test."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    return exporter


@pytest.mark.anyio
@pytest.mark.requirement("E-08")
async def test_a_call_is_a_span_and_a_real_call_happens_inside_it(spans: InMemorySpanExporter) -> None:
    """Whoever looks at a trace sees the role, the tool and the record."""
    call = ToolCall("record-1", Caller("dev"), ToolId("plain", "echo"), {"text": "hi"})
    async with MCPClient(MCPConfig.from_dict({"servers": {"plain": plain_entry()}})) as client:
        await client.connect("plain")
        spans.clear()
        tracer = trace.get_tracer("test")
        with tracer.start_as_current_span("agent"), OpenTelemetryTracing().span(call):
            assert trace.get_current_span().get_span_context().is_valid
            assert (await client.call_tool("plain", "echo", call.arguments)).text == "hi"
    finished = {span.name: span for span in spans.get_finished_spans()}
    ours, agent = finished["tools/call echo"], finished["agent"]
    assert ours.parent is not None
    assert ours.parent.span_id == agent.context.span_id
    assert dict(ours.attributes or {}) == {
        "mcp.method.name": "tools/call",
        "gen_ai.tool.name": "echo",
        "squidbot.server": "plain",
        "squidbot.role": "dev",
        "squidbot.record": "record-1",
    }


def test_nothing_is_exported_unless_the_environment_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    """No traffic that nobody ordered."""
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    before = trace._TRACER_PROVIDER
    set_up_export()()
    assert trace._TRACER_PROVIDER is before


@contextmanager
def webhook(*statuses: int) -> Iterator[tuple[str, list[Any]]]:
    """A server that answers with these statuses in turn, and what it was sent."""
    heard: list[Any] = []
    answers = iter(statuses)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            heard.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(next(answers))
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/hook?token=s3cr3t-in-url", heard
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.anyio
@pytest.mark.requirement("E-09")
async def test_a_webhook_gets_the_alert_and_is_tried_again_when_it_stumbles() -> None:
    """An alert that nobody hears is none."""
    with webhook(503, 204) as (url, heard):
        await AlertWebhook(url).send(ALERT)
    assert [(item["rule"], item["role"], item["text"]) for item in heard] == [
        ("burst", "dev", "squidbot: too many")
    ] * 2


@pytest.mark.anyio
@pytest.mark.requirement("E-09")
@pytest.mark.parametrize("status", [403, 302])
async def test_a_webhook_that_says_no_is_named_in_the_log_without_its_secret(status: int, logged: list[str]) -> None:
    """Its url often is the secret."""
    with webhook(status) as (url, heard):
        await AlertWebhook(url).send(ALERT)
    assert len(heard) == 1
    assert f"127.0.0.1 did not take an alert (status {status})" in logged[0]
    assert "s3cr3t" not in logged[0]


@pytest.mark.anyio
async def test_an_alert_is_a_line_in_the_log(logged: list[str]) -> None:
    """The least that must happen."""
    await AlertLog().send(ALERT)
    assert logged == ["alert burst: too many"]
