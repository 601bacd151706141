"""Calls counted and timed, for Prometheus and, where it is set up, for OpenTelemetry."""

from collections.abc import Callable

from opentelemetry import metrics as otel
from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from squidbot.core.domain.audit import ToolExecution

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_UNKNOWN = "(unknown)"
_MOST_SERIES = 20_000


class Metrics:
    """Satisfies `CallObserver`."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        who = ("role", "server", "tool")
        self._calls = Counter(
            "squidbot_tool_calls", "Attempts to call a tool.", (*who, "outcome"), registry=self.registry
        )
        self._durations = Histogram(
            "squidbot_tool_call_duration_seconds",
            "Seconds that calls took.",
            who,
            registry=self.registry,
            buckets=_BUCKETS,
        )
        meter = otel.get_meter("squidbot")
        self._otel_calls = meter.create_counter("squidbot.tool.calls", description="Attempts to call a tool.")
        self._otel_durations = meter.create_histogram("mcp.server.operation.duration", unit="s")
        self._series: dict[tuple[str, str, str, str], Callable[[float], None]] = {}

    def observe(self, record: ToolExecution) -> None:
        """Count one attempt."""
        if record.kind != "call":
            return
        key = (record.role, record.server, record.tool, record.outcome)
        note = self._series.get(key)
        if note is None:
            note = self._new_series(key)
        note(record.duration)

    def exposition(self) -> tuple[bytes, str]:
        """All of it as Prometheus reads it, and the type of that text."""
        return generate_latest(self.registry), CONTENT_TYPE_LATEST

    def _new_series(self, key: tuple[str, str, str, str]) -> Callable[[float], None]:
        role, server, tool, outcome = key
        if outcome == "refused" or len(self._series) >= _MOST_SERIES:
            # Names that callers make up must not become series: whoever is refused named something, not a tool.
            server = tool = _UNKNOWN
        calls = self._calls.labels(role, server, tool, outcome)
        durations = self._durations.labels(role, server, tool)
        attributes = {"squidbot.role": role, "squidbot.server": server, "gen_ai.tool.name": tool}
        count, time = self._otel_calls.add, self._otel_durations.record
        counted = {**attributes, "squidbot.outcome": outcome}

        def note(seconds: float) -> None:
            calls.inc()
            durations.observe(seconds)
            count(1, counted)
            time(seconds, attributes)

        if len(self._series) < _MOST_SERIES:
            self._series[key] = note
        return note
