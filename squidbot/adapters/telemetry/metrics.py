"""Calls counted and timed, for Prometheus and, where it is set up, for OpenTelemetry."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Final, TypeAlias

from opentelemetry import metrics as otel
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from squidbot.core.domain.audit import ToolExecution

_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_BOUNDS: Final = (*map(floatToGoString, _BUCKETS), "+Inf")
_UNKNOWN: Final = "(unknown)"
_MOST_SERIES: Final = 20_000
_WHO: Final = ("role", "server", "tool")
Labels: TypeAlias = tuple[str, ...]


class _Durations:
    """How long the calls of one role to one tool took."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * len(_BOUNDS)
        self.total = 0.0

    def buckets(self) -> Sequence[tuple[str, float]]:
        return list(zip(_BOUNDS, accumulate(self.counts), strict=True))


class Metrics(Collector):
    """Satisfies `CallObserver`: adds numbers up itself, since this is done for every call, and lays them out when asked."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(self)
        meter = otel.get_meter("squidbot")
        self._otel_calls = meter.create_counter("squidbot.tool.calls", description="Attempts to call a tool.")
        self._otel_durations = meter.create_histogram("mcp.server.operation.duration", unit="s")
        self._calls: dict[Labels, int] = {}
        self._durations: dict[Labels, _Durations] = {}
        self._series: dict[Labels, Callable[[float], None]] = {}

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

    def collect(self) -> Iterator[Metric]:
        """What has been counted until now."""
        calls = CounterMetricFamily("squidbot_tool_calls", "Attempts to call a tool.", labels=(*_WHO, "outcome"))
        for labels, count in tuple(self._calls.items()):
            calls.add_metric(labels, count)
        yield calls
        taken = HistogramMetricFamily("squidbot_tool_call_duration_seconds", "Seconds that calls took.", labels=_WHO)
        for labels, durations in tuple(self._durations.items()):
            taken.add_metric(labels, durations.buckets(), durations.total)
        yield taken

    def _new_series(self, key: Labels) -> Callable[[float], None]:
        role, server, tool, outcome = key
        if outcome == "refused" or len(self._series) >= _MOST_SERIES:
            # Names that callers make up must not become series: whoever is refused named something, not a tool.
            server = tool = _UNKNOWN
        counted, timed = (role, server, tool, outcome), (role, server, tool)
        calls, durations = self._calls, self._durations.setdefault(timed, _Durations())
        calls.setdefault(counted, 0)
        attributes = {"squidbot.role": role, "squidbot.server": server, "gen_ai.tool.name": tool}
        count, time = self._otel_calls.add, self._otel_durations.record
        with_outcome = {**attributes, "squidbot.outcome": outcome}

        def note(seconds: float) -> None:
            calls[counted] += 1
            durations.counts[bisect_left(_BUCKETS, seconds)] += 1
            durations.total += seconds
            count(1, with_outcome)
            time(seconds, attributes)

        if len(self._series) < _MOST_SERIES:
            self._series[key] = note
        return note
