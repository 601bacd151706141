"""Small drawings, as lines within a square of 24 by 24."""

from markupsafe import Markup

_PATHS = {
    "overview": "M4 19V10M10 19V5M16 19v-7M21 19H3",
    "servers": "M4 5h16v5H4zM4 14h16v5H4zM8 7.500v0M8 16.500v0",
    "tools": "M14.500 6.500a4 4 0 0 0 5 5L12 19a2.100 2.100 0 0 1-3-3l7.500-7.500M14.500 6.500 17 4",
    "roles": "M4 4h6v6H4zM14 4h6v6h-6zM4 14h6v6H4zM14 17l2 2 4-4",
    "calls": "M4 6h16M4 12h16M4 18h10",
    "alerts": "M6 16V11a6 6 0 1 1 12 0v5l2 2H4zM10 21h4",
    "tokens": "M9.500 14.500 19 5M16 8l2.500 2.500M8 20a4 4 0 1 0 0-8 4 4 0 0 0 0 8Z",
    "auto": "M12 4a8 8 0 1 0 0 16zM12 4a8 8 0 0 1 0 16",
    "sun": "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8ZM12 3v1M12 20v1M3 12h1M20 12h1M5.600 5.600l.7.7M17.700 17.700l.7.7M5.600 18.400l.7-.7M17.700 6.300l.7-.7",
    "moon": "M20 14.500A8 8 0 1 1 9.500 4 6.500 6.500 0 0 0 20 14.500Z",
    "restart": "M20 12a8 8 0 1 1-2.500-5.800M20 3v4h-4",
    "play": "M7 5v14l11-7z",
    "pause": "M8 5v14M16 5v14",
    "shield": "M12 3 5 6v5c0 4.500 3 8 7 10 4-2 7-5.500 7-10V6zM9 12l2 2 4-4",
    "copy": "M9 9h11v11H9zM15 9V4H4v11h5",
    "check": "M5 12.500 10 17l9-10",
    "branch": "M7 5v14M7 12h5a4 4 0 0 0 4-4V6M13 8l3-3 3 3",
    "dash": "M8 12h8",
    "close": "M6 6l12 12M18 6 6 18",
}
SHAPES = {name: Markup('<path d="{}"/>').format(path) for name, path in _PATHS.items()}
