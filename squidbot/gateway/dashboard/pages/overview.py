"""The front page: how the servers are, what was called, how it went, and what was unusual."""

from collections.abc import Iterable
from dataclasses import dataclass

from starlette.responses import Response

from squidbot.core.domain.audit import RecordFilter, Usage
from squidbot.core.domain.views import Bucket
from squidbot.gateway.dashboard.charts import Point, calls_chart, latency_chart
from squidbot.gateway.dashboard.gate import Visit
from squidbot.gateway.dashboard.pages.servers import Shown
from squidbot.gateway.dashboard.words import moment

_FEW = 6
_BAD_SHARE = 0.1
"""From here on errors are shown in red."""
_LONG = 31 * 86_400


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time to look at, in steps."""

    name: str
    words: str
    step: int
    count: int
    step_words: str
    axis: str = "time"

    @property
    def seconds(self) -> int:
        return self.step * self.count


SPANS = (
    Span("1h", "hour", 60, 60, "minute"),
    Span("6h", "six hours", 300, 72, "five minutes"),
    Span("24h", "day", 1_200, 72, "twenty minutes"),
    Span("7d", "week", 7_200, 84, "two hours", "date"),
)


@dataclass(frozen=True, slots=True)
class Totals:
    """All of the time in a few numbers."""

    calls: int
    errors: int
    refused: int
    rate: str
    error_share: str
    """Of the calls that were not refused."""
    is_bad: bool
    p50: float | None
    p95: float | None


@dataclass(frozen=True, slots=True)
class Used:
    """What all roles made of one tool."""

    server: str
    tool: str
    calls: int
    errors: int
    mean: float


async def overview(visit: Visit) -> Response:
    """Everything at a glance."""
    span = next((one for one in SPANS if one.name == visit.asked("span")), SPANS[0])
    now = visit.hall.now()
    calls = RecordFilter(kind="call", since=moment(now - span.seconds))
    series = await visit.desk.series(visit.who, RecordFilter(kind="call"), seconds=span.step, count=span.count)
    points = [_point(bucket) for bucket in series.buckets]
    # One step that is as long as can be: all of the time in one number.
    whole = (await visit.desk.series(visit.who, calls, seconds=_LONG, count=2)).buckets
    servers = [Shown.of(view, now) for view in visit.desk.servers(visit.who)]
    trouble = [server.name for server in servers if server.state in ("failed", "degraded")]
    refusals = await visit.desk.calls(visit.who, RecordFilter(outcome="refused"), limit=_FEW)
    return await visit.page(
        "overview.html",
        "overview",
        topics="call state alert settings",
        span=span,
        spans=SPANS,
        axis=span.axis,
        servers=servers,
        ready=sum(server.state in ("ready", "idle") for server in servers),
        wanted=sum(server.state != "disabled" for server in servers),
        trouble=f"{', '.join(trouble)}: see why" if trouble else "",
        totals=_totals(points, max(whole, key=lambda bucket: bucket.calls), span),
        calls_chart=calls_chart(points, step=span.step),
        latency_chart=latency_chart(points),
        usage=_most_used(await visit.desk.usage(visit.who, calls)),
        refusals=refusals.records,
        alerts=await visit.desk.alerts(visit.who, newest=_FEW),
    )


def _point(bucket: Bucket) -> Point:
    return Point(bucket.begin, bucket.calls, bucket.errors, bucket.refused, bucket.p50, bucket.p95)


def _totals(points: Iterable[Point], whole: Bucket, span: Span) -> Totals:
    points = [*points]
    calls, errors, refused = (sum(getattr(p, name) for p in points) for name in ("calls", "errors", "refused"))
    tried = calls - refused
    return Totals(
        calls=calls,
        errors=errors,
        refused=refused,
        rate=f"{calls * 60 / span.seconds:,.1f}",
        error_share=f"{errors / tried:.1%}" if tried else "none",
        is_bad=errors > _BAD_SHARE * tried,
        p50=whole.p50,
        p95=whole.p95,
    )


def _most_used(usage: Iterable[Usage]) -> list[Used]:
    found: dict[tuple[str, str], Used] = {}
    for use in usage:
        tried = use.calls - use.refused
        if tried <= 0 or not use.server:
            continue
        known = found.get((use.server, use.tool), Used(use.server, use.tool, 0, 0, 0.0))
        together = known.calls + tried
        mean = (known.mean * known.calls + use.mean_seconds * tried) / together
        found[use.server, use.tool] = Used(use.server, use.tool, together, known.errors + use.errors, mean)
    return sorted(found.values(), key=lambda used: (-used.calls, used.server, used.tool))[:_FEW]
