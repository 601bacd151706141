"""Bars as SVG, readable on light and on dark."""

from html import escape

_ROW, _LEFT, _WIDTH = 30, 190, 760


def chart(bars: list[tuple[str, float]], title: str) -> str:
    """One bar for each name, the longest as wide as the picture."""
    most = max((value for _, value in bars), default=0.0) or 1.0
    height = 44 + _ROW * len(bars)
    rows = []
    for number, (name, value) in enumerate(bars):
        y = 40 + _ROW * number
        width = max(2.0, value / most * (_WIDTH - _LEFT - 90))
        fill = "#0f766e" if name.startswith("squidbot") else "#94a3b8"
        weight = ' font-weight="700"' if name.startswith("squidbot") else ""
        rows.append(
            f'<text x="{_LEFT - 10}" y="{y + 15}" text-anchor="end"{weight}>{escape(name)}</text>'
            f'<rect x="{_LEFT}" y="{y}" width="{width:.1f}" height="20" rx="3" fill="{fill}"/>'
            f'<text x="{_LEFT + width + 8:.1f}" y="{y + 15}"{weight}>{value:,.0f}</text>'
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{escape(title)}">'
        "<style>text{font:14px system-ui,sans-serif;fill:#334155}"
        "@media(prefers-color-scheme:dark){text{fill:#cbd5e1}}</style>"
        f'<text x="0" y="20" font-weight="700">{escape(title)}</text>{"".join(rows)}</svg>\n'
    )
