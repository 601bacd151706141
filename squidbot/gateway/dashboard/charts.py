"""Charts as geometry: what the templates draw as SVG, each with words that say the same."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from squidbot.gateway.dashboard.words import counted, seconds

_STEP = 10
"""Units between two points; the drawing is stretched to its box, so that only proportions matter."""
_HEIGHT = 100
_GAP = 1.6
_CEILINGS = (1, 2, 4, 6, 8, 10)
_LABELS = 5
_DOT = 0.01
_LEAST = 1e-6
"""What is smaller is nothing, on whatever scale."""


@dataclass(frozen=True, slots=True)
class Point:
    """What happened in one stretch of time; latencies in seconds, None if nothing was called."""

    at: float
    calls: int = 0
    errors: int = 0
    refused: int = 0
    p50: float | None = None
    p95: float | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """One coloured part of a bar."""

    kind: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a pointer asks what happened then, and the answer."""

    at: float
    x: float
    width: float
    words: str
    blocks: tuple[Block, ...] = ()


@dataclass(frozen=True, slots=True)
class Line:
    """A curve, broken where there is nothing to draw."""

    kind: str
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """All that a template needs to draw one chart, and to say it in words and in a table."""

    name: str
    summary: str
    peak: float | None
    """When what the summary ends with happened."""
    width: float
    height: float
    ticks: tuple[str, ...]
    """From the top down."""
    moments: tuple[float, ...]
    """For the axis of time, evenly spread."""
    spots: tuple[Spot, ...]
    lines: tuple[Line, ...] = ()
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[float, tuple[str, ...]], ...] = ()
    """When, and what each column says of it: the same as a table; stretches in which nothing happened are left out."""
    is_empty: bool = False


def calls_chart(points: Sequence[Point], *, step: float) -> Chart:
    """How many calls in each stretch of `step` seconds, how many of them failed or were refused."""
    top = _ceiling(max((point.calls for point in points), default=0))
    total, errors, refused = (sum(getattr(p, name) for p in points) for name in ("calls", "errors", "refused"))
    busiest = max(points, key=lambda point: point.calls, default=None)
    summary = f"{counted(total, 'call')}, {counted(errors, 'error')}, {refused:,} refused."
    if busiest is not None and busiest.calls:
        summary += f" At most {busiest.calls:,} in {_stretch(step)}, at"
    return Chart(
        name="calls",
        summary=summary,
        peak=busiest.at if busiest is not None and total else None,
        width=max(len(points), 1) * _STEP,
        height=_HEIGHT,
        ticks=_ticks(top, lambda value: f"{value:,.0f}" if value == int(value) else f"{value:g}"),
        moments=_moments(points),
        spots=tuple(_bar(index, point, top) for index, point in enumerate(points)),
        columns=("Calls", "Errors", "Refused"),
        rows=tuple((p.at, (f"{p.calls:,}", f"{p.errors:,}", f"{p.refused:,}")) for p in points if p.calls),
        is_empty=not total,
    )


def latency_chart(points: Sequence[Point]) -> Chart:
    """How long calls took: the middle one, and the one that nineteen of twenty do not exceed."""
    slowest = max((point.p95 or 0.0 for point in points), default=0.0)
    top = _ceiling(slowest)
    known = [point for point in points if point.p50 is not None and point.p95 is not None]
    worst = max(known, key=lambda point: point.p95 or 0.0, default=None)
    summary = "No call was made in this time."
    if worst is not None:
        summary = f"The highest p95 was {seconds(worst.p95)}, at"
    return Chart(
        name="latency",
        summary=summary,
        peak=worst.at if worst is not None else None,
        width=max(len(points), 1) * _STEP,
        height=_HEIGHT,
        ticks=_ticks(top, seconds),
        moments=_moments(points),
        spots=tuple(
            Spot(p.at, index * _STEP, _STEP, f"p50 {seconds(p.p50)}, p95 {seconds(p.p95)}")
            for index, p in enumerate(points)
            if p.p50 is not None
        ),
        lines=(
            Line("p95", _paths([point.p95 for point in points], top)),
            Line("p50", _paths([point.p50 for point in points], top)),
        ),
        columns=("p50", "p95"),
        rows=tuple((p.at, (seconds(p.p50), seconds(p.p95))) for p in known),
        is_empty=not known,
    )


def _bar(index: int, point: Point, top: float) -> Spot:
    """One stretch of time: what went well at the foot, what was refused above it, what failed on top."""
    parts = (
        ("ok", point.calls - point.errors - point.refused),
        ("refused", point.refused),
        ("errors", point.errors),
    )
    blocks, y = [], float(_HEIGHT)
    for kind, count in parts:
        height = round(_HEIGHT * max(count, 0) / top, 3)
        if height:
            y -= height
            blocks.append(Block(kind, index * _STEP + _GAP / 2, round(y, 3), _STEP - _GAP, height))
    words = counted(point.calls, "call")
    words += f", {counted(point.errors, 'error')}" if point.errors else ""
    words += f", {point.refused:,} refused" if point.refused else ""
    return Spot(point.at, index * _STEP, _STEP, words, tuple(blocks))


def _paths(values: Sequence[float | None], top: float) -> tuple[str, ...]:
    """An SVG path for every run of values; one that stands alone becomes a dot."""
    return tuple(_path(run, top) for run in _runs(values))


def _path(run: Sequence[tuple[int, float]], top: float) -> str:
    places = [(index * _STEP + _STEP / 2, round(_HEIGHT * (1 - value / top), 3)) for index, value in run]
    drawn = " ".join(f"{'L' if number else 'M'}{x:g} {y:g}" for number, (x, y) in enumerate(places))
    return drawn if len(places) > 1 else f"{drawn} h{_DOT}"


def _runs(values: Iterable[float | None]) -> Iterator[list[tuple[int, float]]]:
    run: list[tuple[int, float]] = []
    for index, value in enumerate(values):
        if value is not None:
            run.append((index, value))
        elif run:
            yield run
            run = []
    if run:
        yield run


def _ceiling(value: float) -> float:
    """The next number above `value` that can be halved in the head; never 0."""
    if value < _LEAST:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in _CEILINGS if step * power >= value * 0.999999)


def _ticks(top: float, say: Callable[[float], str]) -> tuple[str, ...]:
    return (say(top), say(top / 2), "0")


def _moments(points: Sequence[Point]) -> tuple[float, ...]:
    if not points:
        return ()
    last = len(points) - 1
    return tuple(points[round(last * place / (_LABELS - 1))].at for place in range(_LABELS))


def _stretch(step: float) -> str:
    return {60: "a minute", 3600: "an hour"}.get(int(step), f"{step / 60:g} minutes")
